# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure sim`: one line for each of its commands."""

from __future__ import annotations

import typer

from perdure.sim.commands.locality import locality
from perdure.sim.commands.optimise import optimise_command
from perdure.sim.commands.policies import policies
from perdure.sim.commands.report import report
from perdure.sim.commands.run import run
from perdure.sim.commands.sweep import sweep

app = typer.Typer(
    help="Replay a trace on memory that does not exist yet: time and energy on DRAM, MRAM and "
    "flash, and the capacities with least energy.",
    no_args_is_help=True,
)
app.command("run", no_args_is_help=True)(run)
app.command("sweep", no_args_is_help=True)(sweep)
app.command("optimise", no_args_is_help=True)(optimise_command)
app.command("locality", no_args_is_help=True)(locality)
app.command("policies")(policies)
app.command("report", no_args_is_help=True)(report)
