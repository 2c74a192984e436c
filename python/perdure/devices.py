# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure devices`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from perdure.core import load_core
from perdure.documents import print_json
from perdure.screen import console
from perdure.tables import table

if TYPE_CHECKING:
    from perdure import _core

FIELDS = (
    "name",
    "description",
    "level",
    "read_latency_ns",
    "write_latency_ns",
    "commit_latency_ns",
    "read_gb_per_s",
    "write_gb_per_s",
    "read_nj_per_line",
    "write_nj_per_line",
    "standby_uw_per_mb",
    "endurance_writes",
    "granule_bytes",
    "access_bytes",
    "source",
    "derivation",
)
_COLUMNS = {
    "read_latency_ns": "read ns",
    "write_latency_ns": "write ns",
    "commit_latency_ns": "commit ns",
    "read_gb_per_s": "read GB/s",
    "write_gb_per_s": "write GB/s",
    "read_nj_per_line": "read nJ/line",
    "write_nj_per_line": "write nJ/line",
    "standby_uw_per_mb": "standby uW/MB",
}


def devices(
    as_json: Annotated[
        bool, typer.Option("--json", help="All fields as a JSON list; null where no source says.")
    ] = False,
) -> None:
    """List the parts that can be emulated or planned with, and where their numbers come from."""
    rows = load_core().device_table()
    if as_json:
        entries = [{name: getattr(row, name) for name in FIELDS} for row in rows]
        print_json("devices", {"devices": entries})
    else:
        _print_table(rows)


def _print_table(rows: list[_core.DeviceRow]) -> None:
    out = console()
    for level in dict.fromkeys(row.level for row in rows):
        made = table("name", *_COLUMNS.values(), left=("name",), title=f"level: {level}")
        for row in rows:
            if row.level == level:
                made.add_row(row.name, *(_text(getattr(row, name)) for name in _COLUMNS))
        out.print(made)
        out.print()
    for row in rows:
        derivation = f" Derivation: {row.derivation}." if row.derivation else ""
        out.print(f"{row.name}: {row.description}. Source: {row.source}.{derivation}")


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
