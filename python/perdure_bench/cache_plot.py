# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `perdure bench cache`: latency of every way by size, for each kind of access."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perdure.figures import BLUE, GREEN, GREY, ORANGE, PINK, RED, figure_of, finish
from perdure_bench.facts import Fact

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = ("seq-read", "random-read", "seq-write", "random-write")
_WAYS = {
    "cached": (BLUE, "-"),
    "mapped": ("black", ":"),
    "posix-tmpfs": (GREY, ":"),
    "posix-disk": (GREY, "--"),
    "mpiio-tmpfs": (ORANGE, "-"),
    "mpiio-disk": (RED, "-"),
    "mpiio-gluster": (PINK, "-"),
    "mpi-rma": (GREEN, "-"),
}
_SIZES = {"8B": 8, "64B": 64, "4KiB": 4096, "1MiB": 1 << 20}


def points_of(facts: list[Fact], place: str, kind: str, suffix: str = "") -> dict[str, list]:
    """(size, latency) by way, of cases PLACE-SIZE-KIND and the suffix.

    Of several flavours the first counts.
    """
    flavour = next((fact.more.get("mpi") for fact in facts), None)
    points: dict[str, list] = {}
    for name, size in _SIZES.items():
        case = f"{place}-{name}-{kind}{suffix}"
        for fact in facts:
            chosen = (fact.case, fact.metric, fact.more.get("mpi")) == (case, "latency_ns", flavour)
            if chosen and fact.more.get("transport") != "tcp":
                points.setdefault(fact.more["way"], []).append((size, fact.value))
    return points


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    if not any(fact.metric == "latency_ns" for fact in facts):
        raise ValueError("there are no latencies to draw")
    note = "Medians of wall or CPU time, as the lines say; nanoseconds against bytes of an access."
    figure = figure_of(15, 11, title, note)
    rows = (("local", ""), ("remote", ""), ("remote", "-target-computes"))
    axes = figure.subplots(len(rows), len(_KINDS), sharey="row")
    for row, (place, suffix) in zip(axes, rows):
        for axis, kind in zip(row, _KINDS):
            _draw_panel(axis, points_of(facts, place, kind, suffix))
            axis.set_title(f"{place}, {kind}{suffix.replace('-', ' ')}", fontsize=9)
        row[0].legend(fontsize=7, frameon=False)
    figure.savefig(file, dpi=130)


def _draw_panel(axis: Axes, points: dict[str, list]) -> None:
    for way, (colour, style) in _WAYS.items():
        if way in points:
            sizes, latencies = zip(*points[way])
            axis.plot(sizes, latencies, style, color=colour, marker="o", markersize=3, label=way)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_xticks(list(_SIZES.values()), list(_SIZES))
    finish(axis)
