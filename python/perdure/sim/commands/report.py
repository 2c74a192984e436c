# SPDX-License-Identifier: BSD-3-Clause
"""The command `perdure sim report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from perdure.failures import Stopped
from perdure.files import check_output
from perdure.option_groups import grouped, output_file
from perdure.screen import say
from perdure.sim.options import GoalOptions, GridOptions, MachineOptions, Trace
from perdure.sim.report import Wishes, study_trace, write_report
from perdure.watching import watching


@grouped
def report(
    trace: Trace,
    goal: GoalOptions,
    grid: GridOptions,
    machine: MachineOptions,
    output: Annotated[
        Path | None,
        output_file("-o", "--output", help="The file that gets the page.  [default: TRACE.html]"),
    ] = None,
) -> None:
    """Everything about one trace on one page of HTML, which needs no other file.

    What the program touches, how its accesses concentrate, policies compared, time and energy over
    capacities (Figures 3 to 6 of the paper, for this trace), the machine with least energy, and
    why; it is that of `perdure sim optimise`. --option is of low_power.

    Example: perdure sim report cg.ptrace -o report.html --mram 64MiB,128MiB
    """
    file = output or Path(trace.with_suffix(".html").name)
    check_output(file)
    wishes = Wishes(goal.share(), goal.typical_bytes(), grid.capacities(), grid.step_bytes(),
                    grid.values(), machine.preset)
    try:
        with watching() as watch:
            studied = study_trace(trace, machine.options(), wishes, watch)
    except Stopped as stopped:
        raise Stopped(f"{stopped}; no report was written") from None
    write_report(studied, file)
    say(f"written: {file}", err=True)
