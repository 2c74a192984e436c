"""The verb `perdure devices`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from perdure.core import load_core
from perdure.screen import console, say

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
    core = load_core()
    try:
        rows = core.device_table()
    except core.Error as failure:
        say(f"perdure: {failure}", err=True)
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps([{name: getattr(row, name) for name in FIELDS} for row in rows], indent=2))
    else:
        _print_table(rows)


def _print_table(rows: list[_core.DeviceRow]) -> None:
    out = console()
    for level in dict.fromkeys(row.level for row in rows):
        table = Table(title=f"level: {level}", title_justify="left", box=None, pad_edge=False)
        table.add_column("name", no_wrap=True)
        for title in _COLUMNS.values():
            table.add_column(title, justify="right")
        for row in rows:
            if row.level == level:
                table.add_row(row.name, *(_text(getattr(row, name)) for name in _COLUMNS))
        out.print(table)
        out.print()
    for row in rows:
        derivation = f" Derivation: {row.derivation}." if row.derivation else ""
        out.print(
            f"{row.name}: {row.description}. Source: {row.source}.{derivation}", markup=False
        )


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
