# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from perdure.failures import Wrong
from perdure.files import check_output
from perdure.option_groups import output_file
from perdure.screen import bad_parameter, say
from perdure.units import parse_time

Run = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="What `perdure run --json RUN` or `perdure bench --json` "
                   "wrote.", show_default=False),
]
Output = Annotated[
    Path | None,
    output_file("-o", "--output", help="The file that gets the page.  [default: RUN.html]"),
]
Mtbf = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Mean time between failures of the whole job, for the best "
                 "interval: 14h.", show_default="as the job had them"),
]
Plan = Annotated[
    Path | None,
    typer.Option(metavar="PLAN", help="The plan of `perdure energy plan` to compare with.",
                 show_default="that of --commit-plan"),
]
ProfileFile = Annotated[
    Path | None,
    typer.Option(metavar="PROFILE", help="The device's profile of `perdure energy profile`, to "
                 "compare the bandwidth of commits with.", show_default=False),
]


def report(
    run: Run,
    output: Output = None,
    mtbf: Mtbf = None,
    plan: Plan = None,
    profile: ProfileFile = None,
) -> None:
    """Show what a job did, or a benchmark's figures, on one page of HTML.

    Of a job: its attempts and versions over time, where the time went, how fast commits wrote, the
    plan against what was measured, the best interval, and what to change. Of a benchmark: which
    targets hold, what is too noisy, and all figures. The page needs no other file, is in light and
    dark, prints on A4, and may be mailed.

    Examples: perdure report run.json; perdure report run.json --mtbf 14h -o page.html;
    perdure report hpccg.jsonl
    """
    from perdure.energy.documents import read_document, read_words  # --help needs no numpy

    file = output or Path(run.with_suffix(".html").name)
    if str(file) == "-":
        raise bad_parameter("a page goes to a file; name one", param_hint="--output")
    if output is None:
        check_output(file)
    between_s = _mtbf_s(mtbf)
    text = read_words(run, "job")
    if _is_document(text):
        from perdure.report.job_page import write_job_page

        write_job_page(read_document(run, "job"), run, between_s, plan, profile, file)
    else:
        from perdure.report.facts_page import write_facts_page

        for option, given in (("--mtbf", mtbf), ("--plan", plan), ("--profile", profile)):
            if given is not None:
                raise bad_parameter("is of a job, and these are figures", param_hint=option)
        write_facts_page(text, run, file)
    say(f"written: {file}", err=True)


def _is_document(text: str) -> bool:
    """Whether it is one JSON value, and not one a line; of a single line: whether it is no figure.

    A broken one counts as a document, which says what is wrong with it.
    """
    lines = text.split("\n", 1)
    try:
        first = json.loads(lines[0])
    except (ValueError, RecursionError):
        return True
    return not isinstance(first, dict) or first.keys().isdisjoint(("bench", "figures"))


def _mtbf_s(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = parse_time(text)
    except Wrong as wrong:
        raise bad_parameter(str(wrong), param_hint="--mtbf") from None
    if seconds <= 0:
        raise bad_parameter("must be more than nothing", param_hint="--mtbf")
    return seconds
