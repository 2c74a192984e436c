# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `perdure bench ipv`: what a version of each iteration costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perdure.figures import BLUE, GREY, ORANGE, RED, SILVER, SKY, YELLOW, figure_of, finish
from perdure_bench.facts import Fact
from perdure_bench.hpccg_plot import OVER_NONE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which every kind of colour vision distinguishes.
_COLOURS = {
    "disk": "#000000",
    "block": SILVER,
    "clflush": RED,
    "par-clflush": ORANGE,
    "bypass": YELLOW,
    "ipv-alone": SKY,
    "ipv": BLUE,
}
_MISS_COLOURS = {"stream": BLUE, "stream-evicted": SKY, "copy": YELLOW}
_HIGHEST = 2.0  # bars above leave the picture and say their value
_TIMES_NOTE = (
    "Time of the loop over that of the program alone. A version each iteration, on memory of 1/8 "
    "of DRAM's bandwidth (disk and block: as they are). Medians; lines: quartiles."
)
_MISSES_NOTE = "Misses of the last cache over those of the program alone, modelled ("


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    ratios = [fact for fact in facts if fact.metric == "overhead_ratio" and "way" in fact.more]
    misses = [fact for fact in facts if fact.metric == "last_level_misses_ratio"]
    panels = [panel for panel in ((_draw_times, ratios), (_draw_misses, misses)) if panel[1]]
    if not panels:
        raise ValueError("there are neither run times nor misses to draw")
    figure = figure_of(12, 0.4 + 4.2 * len(panels), title)
    axes = figure.subplots(len(panels), 1, squeeze=False)[:, 0]
    for axis, (draw_panel, shown) in zip(axes, panels, strict=True):
        draw_panel(axis, shown)
    figure.savefig(file, dpi=150)


def _draw_times(axis: Axes, ratios: list[Fact]) -> None:
    shown = {
        way: {fact.case.split("-")[0]: fact for fact in ratios if _shown(fact, way)}
        for way in _COLOURS
    }
    _draw_groups(axis, shown, _COLOURS)
    finish(axis, y_label=OVER_NONE)
    axis.set_title(_TIMES_NOTE, loc="left", fontsize=8, color=GREY)


def _draw_misses(axis: Axes, ratios: list[Fact]) -> None:
    shown = {
        way: {fact.case.split("-")[1]: fact for fact in ratios if fact.more["way"] == way}
        for way in _MISS_COLOURS
    }
    _draw_groups(axis, shown, _MISS_COLOURS)
    finish(axis, y_label="misses over none")
    note = f"{_MISSES_NOTE}{ratios[0].more['modelled']})."
    axis.set_title(note, loc="left", fontsize=8, color=GREY)


def _shown(fact: Fact, way: str) -> bool:
    return fact.more["way"] == way and (
        fact.more["emulated"] == "dram-1/8" or way in ("disk", "block")
    )


def _draw_groups(axis: Axes, shown: dict[str, dict[str, Fact]], colours: dict[str, str]) -> None:
    """A group of bars for each program, in it one for each way: facts by way and program."""
    ways = [way for way in colours if shown[way]]
    programs = list(dict.fromkeys(program for way in ways for program in shown[way]))
    width = 0.84 / len(ways)
    values = [fact.value for way in ways for fact in shown[way].values()]
    bottom = min(0.8, 0.95 * min(values))
    for column, way in enumerate(ways):
        shift = (column - (len(ways) - 1) / 2) * width
        for number, (program, fact) in enumerate(shown[way].items()):
            at = programs.index(program) + shift
            _draw_bar(axis, fact, at, width, bottom, colours[way], way if number == 0 else None)
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.set_xticks(range(len(programs)), programs)
    tops = [fact.ends[1] for way in ways for fact in shown[way].values()]
    axis.set_ylim(bottom, min(_HIGHEST, max(tops)) + 0.35)  # room for values and the legend
    axis.legend(fontsize=8, frameon=False, ncols=len(ways), loc="upper center")


def _draw_bar(
    axis: Axes, fact: Fact, at: float, width: float, bottom: float, colour: str, label: str | None
) -> None:
    height = min(fact.value, _HIGHEST) - bottom
    axis.bar(at, height, width * 0.9, bottom, color=colour, label=label)
    if fact.value > _HIGHEST:
        axis.annotate(
            f"{fact.value:.3g}", (at, _HIGHEST), (0, 2), textcoords="offset points",
            ha="center", fontsize=6, rotation=90,
        )  # fmt: skip
    elif fact.low is not None:
        axis.plot([at, at], [fact.low, min(fact.ends[1], _HIGHEST)], color="black", linewidth=0.8)
