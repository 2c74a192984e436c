# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of `perdure bench matpower`, after the paper's Figures 2 to 8."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.figures import BLUE, GREEN, GREY, RED, figure_of
from perdure_bench.facts import Fact
from perdure_bench.plot import draw_swept, finish_panel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

# Okabe and Ito's colours, which every kind of colour vision distinguishes.
STOCK, CACHED, ASYNC = RED, BLUE, GREEN
_TIMES = (("stock_s", "stock MPI-IO", STOCK), ("cached_s", "cached", CACHED))
_SECONDS = "seconds, open to close"


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    if not any(fact.metric == "time_ratio" for fact in facts):
        raise ValueError("there are no ratios to draw")
    about = facts[0].more
    place = f"{about['nodes']} nodes, {about['ranks']} ranks, {about['file_system']}"
    note = "Medians; bands: quartiles. Dotted: modelled. Dashed: target."
    figure = figure_of(13, 12, f"{title}: {place}", note)
    axes = figure.subplots(3, 3)
    _draw_powers(axes[0], facts)
    _draw_nodes(axes[1], facts)
    _draw_rest(axes[2], facts)
    figure.savefig(file, dpi=130)


def _chosen(facts: list[Fact], pattern: str, metric: str) -> list[Fact]:
    return [f for f in facts if f.metric == metric and re.fullmatch(pattern, f.case)]


def _times(axis: Axes, facts: list[Fact], pattern: str, swept: str) -> None:
    for metric, label, colour in _TIMES:
        draw_swept(axis, _chosen(facts, pattern, metric), swept, label, colour)
    axis.set_ylim(bottom=0)


def _draw_powers(row: Sequence[Axes], facts: list[Fact]) -> None:
    for axis, mode, number in zip(row, ("off", "on"), (3, 6), strict=False):
        _times(axis, facts, rf"p\d+-doc-{mode}", "power")
        finish_panel(axis, f"Figure {number}: delete on close {mode}", "power", _SECONDS)
    axis = row[2]
    for mode, colour in (("off", CACHED), ("on", ASYNC)):
        ratios = _chosen(facts, rf"p\d+-doc-{mode}", "time_ratio")
        draw_swept(axis, ratios, "power", f"delete on close {mode}", colour)
        for fact in ratios:
            if fact.target is not None:
                ends = [fact.more["power"] - 0.4, fact.more["power"] + 0.4]
                axis.plot(ends, [fact.target] * 2, color="black", linestyle=(0, (2, 1)))
    _show_one(axis)
    finish_panel(axis, "ratios by power", "power", "cached over stock")


def _draw_nodes(row: Sequence[Axes], facts: list[Fact]) -> None:
    cases = ((2, "off", 4), (8, "off", 5), (2, "on", 7))
    for axis, (power, mode, number) in zip(row, cases, strict=True):
        _times(axis, facts, rf"p{power}-n\d+-doc-{mode}", "nodes")
        title = f"Figure {number}: power {power}, delete on close {mode}"
        finish_panel(axis, title, "nodes of the graph", _SECONDS)


def _draw_rest(row: Sequence[Axes], facts: list[Fact]) -> None:
    acknowledged, ranks, ratios = row
    waits = _chosen(facts, r"p\d+-doc-off", "cached_s")
    draw_swept(acknowledged, waits, "power", "acknowledged when done", CACHED)
    asked = _chosen(facts, r"p\d+-async", "async_s")
    draw_swept(acknowledged, asked, "power", "acknowledged at once", ASYNC)
    acknowledged.set_ylim(bottom=0)
    finish_panel(acknowledged, "Figure 2: acknowledgement of writes", "power", _SECONDS)
    for metric, label, colour in _TIMES:
        for suffix, style, kind in (("doc-off", "-", ""), ("modelled", ":", ", modelled")):
            points = _chosen(facts, rf"p2-ranks\d+-{suffix}", metric)
            draw_swept(ranks, points, "ranks", label + kind, colour, style)
    ranks.set_yscale("log")
    ranks.tick_params(axis="y", which="minor", labelsize=8)
    _rank_axis(ranks)
    finish_panel(ranks, "Figure 8: power 2 by ranks; modelled: a core for each", "ranks", _SECONDS)
    for power, colour in ((2, CACHED), (8, ASYNC)):
        for suffix, style, kind in (("doc-off", "-", ""), ("modelled", ":", ", modelled")):
            points = _chosen(facts, rf"p{power}-ranks\d+-{suffix}", "time_ratio")
            draw_swept(ratios, points, "ranks", f"power {power}{kind}", colour, style)
    _rank_axis(ratios)
    _show_one(ratios)
    finish_panel(ratios, "ratios by ranks", "ranks", "cached over stock")


def _rank_axis(axis: Axes) -> None:
    from matplotlib.ticker import NullLocator

    axis.set_xscale("log", base=2)
    ticks = [1, 4, 16, 64, 256, 576]
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.xaxis.set_minor_locator(NullLocator())


def _show_one(axis: Axes) -> None:
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.set_ylim(0, max(1.1, axis.get_ylim()[1]))
