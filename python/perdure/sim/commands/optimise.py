# SPDX-License-Identifier: BSD-3-Clause
"""The command `perdure sim optimise`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from perdure.documents import print_json
from perdure.option_groups import AsJson, grouped
from perdure.screen import console, say
from perdure.sim.optimise import Optimum, optimise
from perdure.sim.options import (
    GoalOptions,
    GridOptions,
    MachineOptions,
    Plot,
    Trace,
)
from perdure.sim.quantities import joules_text, mib_text
from perdure.sim.sweep import CURVE_POLICIES, Point, Study
from perdure.tables import table
from perdure.units import seconds_text
from perdure.watching import watching


@grouped
def optimise_command(
    trace: Trace,
    goal: GoalOptions,
    grid: GridOptions,
    machine: MachineOptions,
    policy: Annotated[
        str, typer.Option(metavar="NAME", help=f"The policy: {', '.join(CURVE_POLICIES)}.")
    ] = "low_power",
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Find the capacities with least energy that slow the program down by no more than a budget.

    Example: perdure sim optimise cg.ptrace --budget slowdown=20% --plot cg.svg
    """
    with watching() as watch:
        study = Study(str(trace), machine.options(), grid.capacities(), watch)
        found = optimise(study, policy, grid.values(), goal.share(), goal.typical_bytes(),
                         study.step(grid.step_bytes()))
        watch.check()
    if plot:
        from perdure.sim.plot import draw_capacities

        draw_capacities(found.points, f"{trace.name}: {policy}", plot, found.best)
        say(f"drawn: {plot}", err=True)
    if as_json:
        print_json("sim-optimise", optimum_json(found))
    else:
        _print_optimum(found)


def optimum_json(found: Optimum) -> dict[str, Any]:
    """An optimum as plain values; the points as in sweep --json."""
    return {
        "policy": found.policy,
        "budget": found.budget,
        "reference": asdict(found.reference),
        "typical": asdict(found.typical),
        "best": None if found.best is None else asdict(found.best),
        "notches": [
            {**asdict(notch.point), "kind": notch.kind, "reason": notch.reason}
            for notch in found.notches
        ],
    }


def _machine_text(point: Point) -> str:
    memory = f"{mib_text(point.dram_bytes)} of DRAM"
    return f"{mib_text(point.mram_bytes)} of MRAM and {memory}" if point.mram_bytes else memory


def _print_optimum(found: Optimum) -> None:
    out = console()
    usual, reference, best = found.typical, found.reference, found.best
    for name, point in (("a usual machine", usual), ("just enough DRAM", reference)):
        out.print(
            f"{name}: {_machine_text(point)}, {seconds_text(point.time_s)}, "
            f"{joules_text(point.energy_j)}"
        )
    if best is None:
        out.print(f"no machine of these is at most {found.budget:.0%} slower")
    else:
        out.print(
            f"least energy, at most {found.budget:.0%} slower: {_machine_text(best)}, "
            f"{seconds_text(best.time_s)} ({best.time_s / reference.time_s - 1:+.1%}), "
            f"{joules_text(best.energy_j)}: {best.energy_j / usual.energy_j:.1%} of the usual one's"
        )
    rows = table("MRAM", "DRAM", "time", "energy", "kind", "why", left=("kind", "why"),
                 title="notches")
    for notch in found.notches:
        rows.add_row(
            mib_text(notch.point.mram_bytes),
            mib_text(notch.point.dram_bytes),
            seconds_text(notch.point.time_s),
            joules_text(notch.point.energy_j),
            notch.kind,
            notch.reason,
        )
    out.print(rows)
