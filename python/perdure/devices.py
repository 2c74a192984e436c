# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure devices`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from perdure.core import load_core
from perdure.documents import fields, print_json
from perdure.screen import console
from perdure.tables import table

if TYPE_CHECKING:
    from perdure import _core

FIELDS = (
    "name",
    "description",
    "assembly",
    "read_latency_ns",
    "write_latency_ns",
    "commit_latency_ns",
    "read_gb_per_s",
    "write_gb_per_s",
    "write_queue_bytes",
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
    """List the memory models that can be emulated or planned with, and their sources."""
    models = load_core().device_table()
    if as_json:
        print_json("devices", {"devices": [fields(model, FIELDS) for model in models]})
    else:
        _print_table(models)


def _print_table(models: list[_core.MemoryModel]) -> None:
    out = console()
    for assembly in dict.fromkeys(model.assembly for model in models):
        made = table("name", *_COLUMNS.values(), left=("name",), title=f"assembly: {assembly}")
        for model in models:
            if model.assembly == assembly:
                made.add_row(model.name, *(_text(getattr(model, name)) for name in _COLUMNS))
        out.print(made)
        out.print()
    for model in models:
        derivation = f" Derivation: {model.derivation}." if model.derivation else ""
        out.print(f"{model.name}: {model.description}. Source: {model.source}.{derivation}")


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
