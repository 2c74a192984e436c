# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `perdure bench hpccg`: run times of the protections, and two sweeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perdure.figures import BLUE, GREEN, GREY, ORANGE, RED, figure_of, finish
from perdure_bench.facts import Fact, number_text
from perdure_bench.plot import draw_swept

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"copy": BLUE, "twin": GREEN, "log": RED}
OVER_NONE = "run time over none"
_FIXED = {
    "memory_latency_ns": ("commit_latency_ns", 500),
    "commit_latency_ns": ("memory_latency_ns", 150),
}


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    ratios = [fact for fact in facts if fact.metric == "run_time_ratio"]
    measured = [fact for fact in ratios if "emulated" not in fact.more]
    if not measured:
        raise ValueError("there are no run times to draw")
    note = "A commit every iteration. Medians; bars and bands: quartiles. Emulation: virtual clock."
    figure = figure_of(13, 4.4, title, note)
    bars, memory, commit = figure.subplots(1, 3)
    shown = [fact for fact in measured if fact.case not in ("none", "memcpy")]
    names = [fact.case.replace("_", "\n") for fact in shown]
    draw_bars(bars, shown, names, [fact for fact in shown if fact.case != "disk"])
    bars.set_title("measured, in DRAM (dashed: target)", fontsize=9)
    finish(bars, y_label=OVER_NONE)
    draw_sweep(memory, ratios, "memory_latency_ns", "memory latency added (ns)", COLOURS)
    draw_sweep(commit, ratios, "commit_latency_ns", "commit latency (ns)", COLOURS)
    memory.set_title("emulated, commit latency 500 ns", fontsize=9)
    commit.set_title("emulated, memory latency 150 ns", fontsize=9)
    figure.savefig(file, dpi=150)


def draw_bars(axis: Axes, facts: list[Fact], names: list[str], scaled: list[Fact]) -> None:
    """A bar for each fact, with its quartiles, value and target; orange where it missed that.

    `scaled` facts are shown whole; a bar that leaves the picture says its value in it.
    """
    _show_all(axis, scaled)
    top = axis.get_ylim()[1]
    for place, fact in enumerate(facts):
        missed, over = fact.holds is False, fact.value > top
        axis.bar(place, fact.value, color=ORANGE if missed else BLUE, width=0.62)
        axis.plot([place, place], fact.ends, color=GREY, linewidth=1.5)
        claimed = fact.target if isinstance(fact.target, (int, float)) else 0.0
        value = f"{fact.value:.3g} ↑" if over else number_text(fact.value)  # within the bar
        text = value + ("\nmissed" if missed else "")
        axis.annotate(text, (place, min(top, max(fact.value, fact.ends[1], claimed))),
                      (0, -12 if over else 3), textcoords="offset points", ha="center",
                      fontsize=8, color="white" if over else "black")  # fmt: skip
        if claimed:
            ends = [place - 0.42, place + 0.42]
            axis.plot(ends, [claimed] * 2, color="black", linestyle=(0, (2, 1)))
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.set_xticks(range(len(facts)), names, fontsize=8)


def draw_sweep(
    axis: Axes, facts: list[Fact], swept: str, label: str, cases: dict[str, str]
) -> None:
    """Run times over one property of an emulated device; `cases` have their colours."""
    fixed, value = _FIXED[swept]
    chosen = [f for f in facts if f.more.get(fixed) == value]
    for case, colour in cases.items():
        for bandwidth, style in (("full", "-"), ("9.5", "--")):
            points = [f for f in chosen if f.case == case and f.more["bandwidth"] == bandwidth]
            speed = "full bandwidth" if bandwidth == "full" else "9.5 GB/s"
            name = f"{case.rpartition('-')[2]}, {speed}"
            draw_swept(axis, points, swept, name, colour, style)
    axis.axhline(1, color=GREY, linewidth=0.8)
    axis.set_xlabel(label, fontsize=9)
    _show_all(axis, chosen)
    _legend(axis)
    finish(axis, y_label=OVER_NONE)


def _legend(axis: Axes) -> None:
    """Two columns across the top, in room made for them above the lines."""
    rows = (len(axis.get_legend_handles_labels()[0]) + 1) // 2
    low, high = axis.get_ylim()
    axis.set_ylim(low, high + (high - low) * 0.07 * rows)
    axis.legend(fontsize=6.5, frameon=False, ncols=2, handlelength=2.6, loc="upper center")


def _show_all(axis: Axes, facts: list[Fact]) -> None:
    highest = max([1.1, *(fact.ends[1] for fact in facts)])
    lowest = min([1.0, *(fact.ends[0] for fact in facts)])
    axis.set_ylim(max(0, lowest - 0.1), highest * 1.08)
