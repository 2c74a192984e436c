# SPDX-License-Identifier: BSD-3-Clause
"""A trace's totals, as plain values and for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perdure.documents import fields
from perdure.units import bytes_text

if TYPE_CHECKING:
    from perdure._core import TraceSummary


_TOTALS = (
    "command", "rank", "ranks", "created_ns", "mode", "cache_bytes", "line_bytes", "ways",
    "page_bytes", "floor_pages", "records", "reads", "writes", "pages",
)  # fmt: skip


def summary_json(path: Path, summary: TraceSummary) -> dict:
    """Plain values; sizes in bytes, times in nanoseconds; null where it is not known."""
    return {
        "file": str(path),
        **fields(summary, _TOTALS),
        "footprint_bytes": summary.pages * summary.page_bytes,
        "streams": [{"reads": reads, "writes": writes} for reads, writes in summary.streams],
        "regions": summary.regions,
        "program_accesses": summary.program_accesses or None,
        "elapsed_ns": summary.elapsed_ns or None,
        "compute_ns": summary.compute_ns or None,
        "size_bytes": path.stat().st_size,
    }


def cache_text(values: dict) -> str:
    """The CPU cache of a trace."""
    if values["mode"] == "none":
        return f"none: every access, in units of {values['line_bytes']} bytes"
    ways = "direct-mapped" if values["ways"] == 1 else f"{values['ways']} ways"
    return (
        f"{bytes_text(values['cache_bytes'])}, {ways}, lines of {values['line_bytes']} bytes, "
        f"mode {values['mode']}"
    )


def summary_lines(values: dict) -> list[str]:
    """Some lines that say what is in a trace."""
    rank = f"  rank {values['rank']} of {values['ranks']}" if values["ranks"] > 1 else ""
    streams = len(values["streams"])
    lines = [
        f"{values['file']}: {bytes_text(values['size_bytes'])}, whole{rank}",
        f"  of        {values['command'] or 'an unknown command'}",
        f"  cache     {cache_text(values)}",
        f"  accesses  {values['reads']:,} reads, {values['writes']:,} writes of the memory"
        f" in {values['records']:,} records",
        f"  pages     {values['pages']:,} of {bytes_text(values['page_bytes'])}:"
        f" {bytes_text(values['footprint_bytes'])}",
        f"  threads   {streams}",
    ]
    if values["regions"]:
        lines.append(f"  regions   {', '.join(dict.fromkeys(values['regions']))}")
    return lines
