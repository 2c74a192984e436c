# SPDX-License-Identifier: BSD-3-Clause
"""`perdure energy plan`."""

from __future__ import annotations

import json

from perdure.energy import quantities as q
from perdure.energy.documents import write_document
from perdure.energy.output import warn, watts_text
from perdure.energy.plan.file import document_of
from perdure.energy.plan.options import (
    FailureOptions,
    GoalOptions,
    LevelOptions,
    NodeOptions,
    OutputOptions,
    Profiles,
)
from perdure.energy.plan.planning import Plan, Request, make_plan
from perdure.option_groups import grouped
from perdure.screen import Screen, bold, console, say
from perdure.tables import table


@grouped
def plan(
    failures: FailureOptions,
    levels: LevelOptions,
    node: NodeOptions,
    goal: GoalOptions,
    output: OutputOptions,
    profiles: Profiles = None,
) -> None:
    """How often to checkpoint, at which frequency and with how many writers.

    Sizes, times and powers need their units. Ends with 1 where the input can't be planned with.

    Examples: perdure energy plan disk.json --size 64GB --mtbf 14.66h --power 471W -o plan.json;
    perdure energy plan --write-time 130s --read-time 90s --failures log.csv;
    perdure energy plan --levels local,partner,pfs --share 70%,25%,5% --mtbf 14.66h
    --write-time 128s,290s,20min --read-time 87s,200s,15min
    """
    notes: list[str] = []
    request = Request(
        failing=failures.failing(notes),
        places=levels.places(profiles or [], notes),
        node=node.node(),
        goal=goal.goal(),
        size_bytes=levels.size_bytes(),
        writers=levels.writers_at_once(),
        every=levels.every(),
        warnings=notes,
    )
    made = make_plan(request)
    document = document_of(made)
    for note in dict.fromkeys(request.warnings):
        warn(note)
    if output.output is not None:
        write_document(document, output.output)
    _draw(made, output)
    if output.as_json:
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        _print(made)


def _draw(made: Plan, output: OutputOptions) -> None:
    if output.plot is None and output.front is None:
        return
    from perdure.energy.plan import plots

    for file, draw in ((output.plot, plots.draw_interval), (output.front, plots.draw_front)):
        if file is not None:
            try:
                draw(made, file)
            except ValueError as failure:
                raise q.Wrong(f"{file} was not drawn: {failure}") from None
            say(f"drawn: {file}", err=True)


def _print(made: Plan) -> None:
    out, request = console(), made.request
    failing = request.failing
    out.print(bold(f"a checkpoint after every {q.duration_text(made.work_s)} of work ",
                   f"(least {request.goal.objective})"))
    rows = table("level", "every", "write", "read", "takes", "restart", "per day",
                 left=("level", "write", "read"))
    for each in made.used:
        outcome = each.found.outcome
        rows.add_row(
            each.place.name, str(each.every), outcome.write.setting.text(),
            outcome.read.setting.text(), q.duration_text(outcome.write.seconds),
            q.duration_text(outcome.read.seconds), f"{each.checkpoints_per_day:.4g}",
        )
    out.print(rows)
    written = made.bytes_per_day
    out.print(
        f"MTBF {q.duration_text(1 / failing.rate_per_s)}; "
        f"{q.percent_text(made.time_per_work - 1)} more time than work; "
        f"energy per effective time {watts_text(made.epe_W)}"
        + (f"; {written / 1e9:.4g} GB written a day" if written is not None else "")
    )
    if failing.mtbf_low_s is not None and failing.mtbf_high_s is not None:
        out.print(f"MTBF from {failing.events} gaps; 95 %: {q.duration_text(failing.mtbf_low_s)} "
                  f"to {q.duration_text(failing.mtbf_high_s)}")
    job_s = request.goal.job_s
    if job_s is not None:
        joules = "" if made.epe_W is None else f" and {made.epe_W * job_s / 3.6e6:.4g} kWh"
        out.print(f"a job of {q.duration_text(job_s)} is expected to take "
                  f"{q.duration_text(job_s * made.time_per_work)}{joules} a node")
    if made.schedule is not None:
        lazy = made.schedule.expected
        first = ", ".join(q.duration_text(work) for work in made.schedule.works_s[:5])
        out.print(f"after a restart, by the hazard rule: {first}, …; "
                  f"{q.percent_text(lazy.time_per_work - 1)} more time than work, "
                  f"{lazy.checkpoints_per_day:.4g} checkpoints a day"
                  + ("" if made.epe_W is None else f", {watts_text(lazy.epe_W)}"))
    _print_rivals(made, out)


def _print_rivals(made: Plan, out: Screen) -> None:
    if made.rivals:
        rows = table("interval by", "work", "more time", "energy", "checkpoints a day",
                     left=("interval by",))
        for name, each in made.rivals.items():
            rows.add_row(name, q.duration_text(each.work_s), q.percent_text(each.time_per_work - 1),
                         watts_text(each.epe_W), f"{each.checkpoints_per_day:.4g}")
        out.print(rows)
    if made.governors:
        rows = table("all processes write, governor", "more time", "energy", "plan saves",
                     left=("all processes write, governor",))
        for governor in made.governors:
            low, high = governor.low, governor.high
            ends = [low] if low == high else [low, high]
            saved = [1 - (made.time_per_work / end.time_per_work if end.epe_W is None
                          or made.epe_W is None else made.epe_W / end.epe_W) for end in ends]
            rows.add_row(
                governor.name,
                " to ".join(q.percent_text(end.time_per_work - 1) for end in ends),
                " to ".join(watts_text(end.epe_W) for end in ends),
                " to ".join(map(q.percent_text, saved)),
            )
        out.print(rows)
    if len(made.patterns) > 1:
        rows = table("levels", "every", "work", "more time", "energy", left=("levels", "every"))
        for pattern in made.patterns:
            expected = pattern.expected
            rows.add_row(
                ", ".join(made.request.places[i].name for i in pattern.kept),
                ", ".join(map(str, pattern.every)), q.duration_text(pattern.work_s),
                q.percent_text(expected.time_per_work - 1),
                watts_text(None if made.epe_W is None else expected.epe_W),
            )
        out.print(rows)
