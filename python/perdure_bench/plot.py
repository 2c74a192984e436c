# SPDX-License-Identifier: BSD-3-Clause
"""Draws facts: one panel per metric, a bar per case with its quartiles, targets as lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perdure.figures import BLUE, GREY, ORANGE, figure_of, finish
from perdure_bench.facts import Fact, number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEGEND = "bars: medians; grey: quartiles; dashed: target; orange: target missed"
_PANEL_WIDTH, _BAR_HEIGHT, _PANEL_MARGIN = 7.0, 0.32, 1.0  # inches


def metrics_of(facts: list[Fact]) -> dict[tuple[str, str], list[Fact]]:
    """Facts by (metric, unit), in the order of their first appearance."""
    panels: dict[tuple[str, str], list[Fact]] = {}
    for fact in facts:
        panels.setdefault((fact.metric, fact.unit), []).append(fact)
    return panels


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes a figure; the kind follows from the suffix (.png, .svg, .pdf).

    Raises ValueError if there is nothing to draw or the suffix is unknown.
    """
    panels = metrics_of(facts)
    if not panels:
        raise ValueError("there are no facts to draw")
    heights = [_PANEL_MARGIN + _BAR_HEIGHT * len(group) for group in panels.values()]
    figure = figure_of(_PANEL_WIDTH, sum(heights) + 0.8, title, _LEGEND)
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, ((metric, unit), group) in zip(axes, panels.items()):
        _draw_panel(axis, metric, unit, group)
    figure.savefig(file, dpi=150)


def draw_swept(
    axis: Axes, facts: list[Fact], swept: str, label: str, colour: str, style: str = "-"
) -> None:
    """What facts say over one of their fields: a line, and a band of its quartiles."""
    if not facts:
        return
    facts = sorted(facts, key=lambda fact: fact.more[swept])
    places = [fact.more[swept] for fact in facts]
    values = [fact.value for fact in facts]
    axis.plot(places, values, style, color=colour, marker="o", markersize=3, label=label)
    low, high = zip(*(fact.ends for fact in facts))
    axis.fill_between(places, low, high, color=colour, alpha=0.1)


def finish_panel(axis: Axes, title: str, x_label: str, y_label: str) -> None:
    """As finish(), with a title, and a legend if its lines have names."""
    axis.set_title(title, fontsize=9)
    finish(axis, x_label, y_label)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7, frameon=False)


def _draw_panel(axis: Axes, metric: str, unit: str, facts: list[Fact]) -> None:
    places = range(len(facts))
    colours = [ORANGE if fact.holds is False else BLUE for fact in facts]
    axis.barh(places, [fact.value for fact in facts], color=colours, height=0.62)
    for place, fact in zip(places, facts):
        if fact.low is not None and fact.high is not None:
            axis.plot([fact.low, fact.high], [place, place], color=GREY, linewidth=1.5)
        end = max(fact.value, fact.high or 0)
        text = number_text(fact.value) + (" (missed)" if fact.holds is False else "")
        axis.annotate(
            text, (end, place), (4, 0), textcoords="offset points", va="center", fontsize=8
        )
        if isinstance(fact.target, (int, float)):
            ends = [place - 0.42, place + 0.42]
            axis.plot([fact.target] * 2, ends, color="black", linewidth=1.5, linestyle=(0, (2, 1)))
    axis.set_yticks(places, [fact.case for fact in facts])
    axis.invert_yaxis()
    axis.margins(x=0.18)
    finish(axis, f"{metric} ({unit})" if unit else metric, values="x")
