"""The verb `perdure sim` with its commands."""

from __future__ import annotations

from perdure.sim.command import app
from perdure.sim.report_command import report

app.command("report", no_args_is_help=True)(report)
