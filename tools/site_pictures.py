# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the tables of docs/figures.md, which tools/figures.py fills from the committed facts.

A row of a table is a row of its picture: a point for each column that is drawn, and a line between
the two values that the table has in brackets. The table stays, folded below the picture. The words
of a picture are text and its colours the page's, in light, dark and print.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from perdure.figures import COLOURS, figure_of, finish
from perdure.pages.page import svg

_FILLED = re.compile(r"(<!-- figures: [^\n]*\n.*?-->\n)(.*?)(<!-- end -->)", re.S)
_TABLE = re.compile(r"(?:^\|[^\n]*\n)+", re.M)
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_CELL = re.compile(rf"\*{{0,2}}{_NUMBER}\*{{0,2}}(?: \({_NUMBER} to {_NUMBER}\))?")
_ROW_INCHES = 0.26
_BESIDE = 0.17  # of a row, between its columns
_FROM_LOG = 8  # largest over smallest


class Picture(NamedTuple):
    """Of a table with these first two headings."""

    columns: tuple[str, ...]
    title: str
    axis: str


_OVER_NONE = "over the run without protection; 1 costs nothing"
_WINDOWS = Picture(("copy", "log", "twin", "flush"), "", "time over that on a plain window")
PICTURES = {
    ("case", "run_time_ratio"): Picture(
        ("run_time_ratio", "commit_blocking_ratio"), "Run time, and a commit",
        "run time over that of none; a commit over one memcpy of the same bytes"),
    ("emulated memory", "copy"): Picture(
        ("copy", "twin", "log"), "Run time on emulated memory", _OVER_NONE),
    ("hpccg, p a window", "run_time_ratio"): Picture(
        ("run_time_ratio",), "Run time, hpccg in windows", _OVER_NONE),
    ("PageRank of cnr-2000, 150 iterations", "run_time_ratio"): Picture(
        ("run_time_ratio",), "Run time, PageRank in windows", _OVER_NONE),
    ("MPICH", "copy"): _WINDOWS._replace(title="Operations on persistent windows, MPICH"),
    ("Open MPI", "copy"): _WINDOWS._replace(title="Operations on persistent windows, Open MPI"),
    ("MPICH", "over tmpfs"): Picture(
        ("over tmpfs", "over disk", "over GlusterFS"), "Accesses of cached files",
        "times as fast as stock MPI-IO"),
    ("power, nodes of the graph", "kept: stock, s"): Picture(
        ("ratio",), "Powers of a matrix, files kept",
        "cached over stock MPI-IO on the parallel file system"),
    ("size", "over libpmem, 1 thread"): Picture(
        ("over libpmem, 1 thread", "2 threads"), "Copies to the medium", "over libpmem's"),
    ("pages that changed", "in order, kernel"): Picture(
        ("in order, kernel", "scattered, kernel", "in order, faults", "scattered, faults"),
        "Commits of few changed pages", "over one memcpy of the pages that changed"),
}  # fmt: skip


def with_pictures(markdown: str) -> str:
    """The page with a picture for each table that PICTURES knows, which is folded below it."""

    def replaced(table: re.Match[str]) -> str:
        rows = [cells(line) for line in table[0].splitlines()]
        known = PICTURES.get((rows[0][0], rows[0][1]))
        if known is None:
            return table[0]
        drawn = [row for row in rows[2:] if points(known, rows[0], [row])]
        picture = re.sub(r"\n\s*", " ", str(svg(drawing(known, rows[0], drawn))))
        return (f'<figure class="facts">{picture}</figure>\n\n<details markdown="1">\n'
                f"<summary>The table</summary>\n\n{table[0]}\n</details>\n")

    return _FILLED.sub(lambda block: f"{block[1]}{_TABLE.sub(replaced, block[2])}{block[3]}",
                       markdown)


def cells(line: str) -> list[str]:
    """Of a row, without the signs of code."""
    return [cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|")]


def points(
    picture: Picture, heads: list[str], rows: list[list[str]]
) -> dict[str, list[tuple[int, float, float, float]]]:
    """Of each column: row, value, and its bounds, which are the value if there are none."""
    found: dict[str, list[tuple[int, float, float, float]]] = {}
    for name in picture.columns:
        place = heads.index(name)
        for number, row in enumerate(rows):
            match = _CELL.match(row[place]) if place < len(row) else None
            if match and float(match[1]) > 0:
                value = float(match[1])
                low, high = float(match[2] or value), float(match[3] or value)
                found.setdefault(name, []).append((number, value, low, high))
    return found


def drawing(
    picture: Picture, heads: list[str], rows: list[list[str]]
) -> Callable[[BinaryIO], None]:
    """What draws the picture as SVG."""

    def draw(file: BinaryIO) -> None:
        series = points(picture, heads, rows)
        figure = figure_of(9, 1.4 + _ROW_INCHES * len(rows), picture.title)
        axis = figure.subplots()
        for place, (name, values) in enumerate(series.items()):
            colour, beside = COLOURS[place], (place - (len(series) - 1) / 2) * _BESIDE
            for number, _, low, high in values:
                axis.plot([low, high], [number + beside] * 2, color=colour, linewidth=2, alpha=0.5)
            axis.plot([each[1] for each in values], [each[0] + beside for each in values],
                      "o", color=colour, markersize=4, label=name.replace("_", " "))
        everything = [value for values in series.values() for _, value, _, _ in values]
        axis.axvline(1, color="#555555", linewidth=0.8)
        if max(everything) > _FROM_LOG * min(everything):
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter("")
        else:
            axis.set_xlim(left=0)
        axis.set_yticks(range(len(rows)), [row[0] for row in rows])
        axis.set_ylim(len(rows) - 0.4, -0.6)
        finish(axis, picture.axis, None, "x")
        if len(series) > 1:
            figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=4)
        figure.savefig(file, format="svg")

    return draw
