# SPDX-License-Identifier: BSD-3-Clause
"""The command `perdure sim sweep`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from perdure.documents import json_text
from perdure.exit_codes import INTERRUPTED
from perdure.failures import Wrong
from perdure.option_groups import AsJson, grouped
from perdure.screen import console, say
from perdure.sim.options import (
    GridOptions,
    MachineOptions,
    Plot,
    Trace,
)
from perdure.sim.quantities import joules_text, mib_text
from perdure.sim.sweep import Point, Study, known_points
from perdure.tables import table
from perdure.units import parse_size, seconds_text
from perdure.watching import watching


@grouped
def sweep(
    trace: Trace,
    grid: GridOptions,
    machine: MachineOptions,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A policy to try; may be repeated.  [default: "
                     "low_power]",
                     show_default=False),
    ] = None,
    up_to: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Try capacities of main memory up to this one.  "
                     "[default: what the program touches]",
                     show_default=False),
    ] = None,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Time and energy over a grid of capacities, from one pass over the trace where that is exact.

    One policy draws Figures 5 and 6 of the paper (time and energy against main memory, a line for
    each capacity of MRAM); several draw Figure 3 (time against DRAM, at the largest MRAM).

    Ctrl-C ends it with 130 and what there is: the points that were finished, or, during the one
    pass, those of the accesses so far. Each is then marked as partial.

    Examples: perdure sim sweep cg.ptrace --mram 64MiB,128MiB --plot cg.png;
    perdure sim sweep mg.ptrace --mram 128MiB --policy lru --policy mram_fixed --policy low_power
    """
    policies = policy or ["low_power"]
    points: list[Point] = []
    step_bytes, most = grid.step_bytes(), parse_size(up_to) if up_to else None
    with watching() as watch:
        study = Study(str(trace), machine.options(), grid.capacities(), watch,
                      keep_partial=True)
        step = study.step(step_bytes)
        several = len(policies) > 1
        for each in policies:
            for size in [study.mram[-1]] if several else study.mram:
                frames = study.frames(step, size, most)
                points += study.points(each, size, frames, grid.values())
    if watch.stopped:
        points = [replace(point, partial=True) for point in points]
    if plot and (points or not watch.stopped):
        _draw(points, trace, plot, several)
    if as_json:
        for point in points:
            say(json_text("sim-point", {**asdict(point), "total_bytes": point.total_bytes}, None))
    elif points:
        _print_points(points)
    if watch.stopped:
        say(f"perdure: stopped; {_what_is_left(points)}", err=True)
        raise typer.Exit(INTERRUPTED)


def _what_is_left(points: list[Point]) -> str:
    if not points:
        return "no point was finished"
    share = points[0].trace_share
    if share == 1.0:
        return f"these are the {len(points)} points that were finished"
    return f"these points are of {_share_text(share)}, without its computation"


def _share_text(share: float | None) -> str:
    return "the accesses so far" if share is None else f"{share:.1%} of the trace"


def _draw(points: list[Point], trace: Path, file: Path, several: bool) -> None:
    from perdure.sim.plot import draw_capacities, draw_policies

    known = known_points(points)
    if not known:
        raise Wrong("the devices have no times or energies: there is nothing to draw")
    if several:
        draw_policies(known, f"{trace.name}: time by policy{_partial_text(known)}", file)
    else:
        title = f"{trace.name}: {points[0].policy}{_partial_text(known)}"
        draw_capacities(known, title, file, None)
    say(f"drawn: {file}", err=True)


def _partial_text(points: Sequence[Point]) -> str:
    if not points[0].partial:
        return ""
    share = points[0].trace_share
    return " (partial)" if share == 1.0 else f" (partial: {_share_text(share)})"


def _print_points(points: list[Point]) -> None:
    rows = table("policy", "MRAM", "DRAM", "time", "energy", "pages in", "pages out", "by",
                 left=("policy", "by"))
    for point in points:
        mark = _partial_text([point])
        rows.add_row(
            point.policy,
            mib_text(point.mram_bytes),
            mib_text(point.dram_bytes),
            "not known" if point.time_s is None else seconds_text(point.time_s),
            "not known" if point.energy_j is None else joules_text(point.energy_j),
            str(point.page_ins),
            str(point.page_outs),
            point.by + mark,
        )
    console().print(rows)
