# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure energy`: one line for each of its commands."""

from __future__ import annotations

import typer

from perdure.energy.node_commands import attach as attach_node_commands
from perdure.energy.plan.command import plan
from perdure.energy.plan.explain_command import explain
from perdure.energy.plan.simulate_command import simulate

app = typer.Typer(
    help="How often to checkpoint, at which CPU frequency and with how many writers: measure, "
    "plan, simulate, apply.",
    no_args_is_help=True,
)
app.command("plan", no_args_is_help=True)(plan)
app.command("simulate", no_args_is_help=True)(simulate)
app.command("explain", no_args_is_help=True)(explain)
attach_node_commands(app)
