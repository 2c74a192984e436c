# SPDX-License-Identifier: BSD-3-Clause
"""The group of commands `perdure ipv`; each command is in a file of its own."""

from __future__ import annotations

import typer

app = typer.Typer(
    help="In-place versioning: what a loop must save, and whether its hooks are right.",
    no_args_is_help=True,
)
