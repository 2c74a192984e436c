"""The verb `perdure sim report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perdure.core import load_core
from perdure.screen import say
from perdure.sim import command as sim
from perdure.sim.machine import DEFAULT_PRESET, Stopped, fail, watching
from perdure.sim.quantities import parse_budget, parse_bytes, parse_options
from perdure.sim.report import Wishes, study_trace, write_report


def report(
    trace: sim.Trace,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Where it goes.  [default: TRACE.html]",
                     show_default=False),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="slowdown=P%", help="How much slower than without swapping.")
    ] = "slowdown=20%",
    typical: Annotated[
        str, typer.Option(metavar="SIZE", help="DRAM of a usual machine, to compare with.")
    ] = "1GiB",
    mram: sim.Mram = sim.DEFAULT_MRAM,
    option: sim.PolicyValues = None,
    step: sim.Step = None,
    preset: sim.Preset = DEFAULT_PRESET,
    dram_part: sim.DramPart = None,
    mram_part: sim.MramPart = None,
    flash_part: sim.FlashPart = None,
    mix_levels: sim.MixLevels = False,
    first_touch_clean: sim.Clean = False,
    region: sim.Region = "",
    compute: sim.Compute = None,
) -> None:
    """Everything about one trace on one page of HTML, which needs no other file.

    What the program touches, how its accesses concentrate, policies compared, time and energy over
    capacities (Figures 3 to 6 of the paper, for this trace), the machine with least energy, and
    why. Capacities of MRAM that hold the whole program are left out. --option is of low_power.

    Example: perdure sim report cg.ptrace -o report.html --mram 64MiB,128MiB
    """
    core = load_core()
    file = output or Path(trace.with_suffix(".html").name)
    try:
        wishes = Wishes(
            budget=parse_budget(budget),
            typical_bytes=parse_bytes(typical),
            mram=sim.capacities(mram),
            step_bytes=parse_bytes(step) if step else None,
            values=parse_options(option),
            preset=preset,
        )
        options = sim.options_of(
            preset, dram_part, mram_part, flash_part, mix_levels, first_touch_clean, region, compute
        )
        with watching() as watch:
            studied = study_trace(trace, options, wishes, watch)
        write_report(studied, file)
    except Stopped:
        say("perdure: stopped; no report was written", err=True)
        raise typer.Exit(sim.INTERRUPTED) from None
    except (core.Error, ValueError, OSError) as failure:
        raise fail(failure) from None
    say(f"written: {file}", err=True)
