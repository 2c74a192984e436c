# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure ipv`: one line for each of its commands."""

from __future__ import annotations

import typer

from perdure.ipv.check_command import check
from perdure.ipv.explain_command import explain
from perdure.ipv.record_command import record

app = typer.Typer(
    help="In-place versioning: what a loop must save, and whether its hooks are right.",
    no_args_is_help=True,
)
_JOB = {"allow_interspersed_args": False}
app.command("check", context_settings=_JOB, no_args_is_help=True)(check)
app.command("explain")(explain)
app.command("record", context_settings=_JOB, no_args_is_help=True)(record)
