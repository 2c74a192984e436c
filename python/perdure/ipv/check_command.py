# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure ipv check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perdure.documents import print_json
from perdure.exit_codes import FAILED, RULE_BROKEN
from perdure.ipv.builds import record_checked
from perdure.ipv.watched import run_watched
from perdure.screen import say
from perdure.units import bytes_text


def check(
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="The program, with its "
                                                 "arguments.")],
    show: Annotated[
        int, typer.Option(metavar="N", min=0, help="Report at most N violations while the "
                          "program runs.")
    ] = 20,
    checked: Annotated[
        list[Path] | None,
        typer.Option("--for", metavar="FILE", help="Where no rule was broken, record in this "
                     "program or library that its boxes are checked; it is compiled as CMD, but "
                     "without --ipv-check. May be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the reports as JSON.")] = False,
) -> None:
    """Run a program and watch whether its hooks of in-place versioning keep to their rules.

    The program is built with perdure-clang --ipv-check. Every load and store of an object is
    watched in every iteration. Ends with the program's exit code; with 86 if that is 0 and a rule
    was broken; with 1 if there is no report, or nothing was there to be checked.

    Examples: perdure ipv check -- ./heat; perdure ipv check --for ./heat -- ./heat_checked
    """
    code, reports = run_watched(command, "check", show=show)
    has_objects = any(report["objects"] for report in reports)
    if not has_objects:
        code = code or FAILED
    if any(report["violation_count"] for report in reports):
        code = code or RULE_BROKEN
    hashes = {build["hash"] for report in reports for build in report["builds"]}
    recorded = {} if code else {
        str(file): [note.source for note in record_checked(file, hashes)] for file in checked or []
    }
    if as_json:
        print_json("ipv-check", {"reports": reports, "recorded": recorded})
    else:
        for report in reports:
            _print(report)
        for name, sources in recorded.items():
            print(f"{name} is recorded as checked: {', '.join(sources)}")
    if not has_objects:
        say("perdure: the program has no objects: name them by perdure_ipv_object()", err=True)
    if checked and code:
        say(f"perdure: {', '.join(map(str, checked))} is not recorded as checked", err=True)
    raise typer.Exit(code)


def _print(report: dict) -> None:
    rank = f"rank {report['rank']} of {report['ranks']}: " if report["ranks"] > 1 else ""
    print(
        f"{rank}{report['violation_count']} violations at {len(report['violations'])} places in "
        f"{report['iterations']} iterations; {report['loads']:,} loads and "
        f"{report['stores']:,} stores of objects"
    )
    for found in report["objects"]:
        print(
            f"  {found['name']}: {bytes_text(found['size_bytes'])}, {found['rows']:,} rows, "
            f"{bytes_text(found['copied_bytes'])} copied, "
            f"{found['unannounced_stores']} unannounced stores"
        )
    for violation in report["violations"]:
        last = violation["last_iteration"]
        often = "" if violation["count"] == 1 else f" ({violation['count']} times, last in " \
            f"iteration {last})"
        print(f"  {violation['rule']}: {violation['text']}{often}")
