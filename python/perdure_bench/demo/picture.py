# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `perdure demo`: the killed job in time, and the costs of the protections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.figures import BLUE, GREEN, GREY, ORANGE, RED, SILVER
from perdure.units import seconds_text
from perdure_bench.demo.costs import Cost
from perdure_bench.demo.killing import RANKS, Killing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"disk": SILVER, "copy": BLUE, "twin": GREEN, "log": ORANGE}
_RATIO_SHOWN = 3.0  # a longer bar leaves the picture, and says its value


def draw(killing: Killing, costs: list[Cost], file: Path) -> None:
    """Writes the figure; the kind follows from the suffix. Raises ValueError for unknown ones."""
    from matplotlib.backends import backend_agg  # noqa: F401  no display is needed
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(12, 6.4), layout=ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.08))
    verdict = killing.verdict[0].upper() + killing.verdict[1:]
    title = f"A rank was killed in a commit. The job went on. {verdict}."
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold",
                    color="black" if killing.equal else RED)  # fmt: skip
    note = (
        "A demonstration on a small grid; the figures to quote are those of `perdure bench hpccg`. "
        "Bars and points: medians; lines: quartiles. Pools in memory, files on a disk."
    )
    figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color=GREY)
    halves: Any = figure.subfigures(2, 1, height_ratios=(1, 1.35), hspace=0.04)
    above, below = halves
    _draw_job(above.subplots(), killing)
    ratios, commits, restarts = below.subplots(1, 3)
    protected = [cost for cost in costs if cost.name != "none"]
    _draw_ratios(ratios, protected)
    _draw_times(commits, protected, [cost.commit_s for cost in protected])
    commits.set_title("a commit keeps the solver waiting", fontsize=9, loc="left")
    _draw_times(restarts, protected, [cost.restart_s for cost in protected])
    restarts.set_title("a restart, until the first iteration", fontsize=9, loc="left")
    figure.savefig(file, dpi=150)


def _draw_job(axis: Axes, killing: Killing) -> None:
    first_s, second_s = killing.attempts_s
    second_began_s = killing.seconds - second_s
    inside: dict[str, Any] = {"va": "center", "ha": "left", "fontsize": 8.5, "color": "white"}
    pad = killing.seconds * 0.006
    axis.barh(0, killing.undisturbed_s, color=GREY, height=0.5)
    axis.text(pad, 0, f"undisturbed, {seconds_text(killing.undisturbed_s)}", **inside)
    axis.barh(1, first_s, color=BLUE, height=0.5)
    axis.text(pad, 1, f"first attempt, {seconds_text(first_s)}", **inside)
    axis.barh(1, second_s, left=second_began_s, color=GREEN, height=0.5)
    restarted = f"restarted from version {killing.restored}, restored in "
    restarted += seconds_text(killing.restart_s)
    axis.text(second_began_s + pad * 2.5, 1, restarted, **inside)
    axis.plot([first_s], [1], marker="X", color=RED, markersize=15, markeredgecolor="white")
    label = f"SIGKILL to {killing.rehearsal};\nversion {killing.committed} was committed"
    axis.annotate(label, (first_s, 1.25), (0, 4), textcoords="offset points", ha="center",
                  va="bottom", fontsize=8.5, color=RED)  # fmt: skip
    ends = (killing.undisturbed_s, killing.seconds)
    for row, (end, answer) in enumerate(zip(ends, killing.answers)):
        axis.text(end + pad, row, f"answer {answer}", va="center", fontsize=9, family="monospace")
    axis.set_xlim(0, max(ends) * 1.22)
    axis.set_ylim(-0.5, 2.1)
    axis.set_yticks([])
    axis.set_xlabel("seconds, with the start of the MPI job", fontsize=9)
    axis.set_title(killing.setting, fontsize=9, loc="left")
    _clean(axis, ("top", "right", "left"))


def _draw_ratios(axis: Axes, costs: list[Cost]) -> None:
    # With room for a text above.
    top = min(_RATIO_SHOWN, max([1.2, *(cost.high for cost in costs)])) * 1.12
    inside = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    for place, cost in enumerate(costs):
        axis.bar(place, cost.ratio, color=_COLOURS[cost.name], width=0.62)
        axis.plot([place] * 2, [cost.low, cost.high], color="black", linewidth=1.2)
        over = max(cost.ratio, cost.high) > top * 0.97
        text = cost.overhead + (" ↑" if over else "")
        axis.annotate(text, (place, top if over else cost.high), (0, -16 if over else 3),
                      textcoords="offset points", ha="center", fontsize=9,
                      bbox=inside if over else None)  # fmt: skip
    axis.axhline(1, color=GREY, linewidth=0.9)
    axis.set_ylim(0, top)
    axis.set_title(f"an iteration, over one without protection; {RANKS} ranks", fontsize=9,
                   loc="left")  # fmt: skip
    _name_bars(axis, costs)


def _draw_times(axis: Axes, costs: list[Cost], times_s: list[float | None]) -> None:
    """Points on a scale with its values: the length of a bar would mean nothing on it."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    shown_s = [max(time_s or 0.0, 1e-6) for time_s in times_s]
    for place, (cost, time_s) in enumerate(zip(costs, shown_s)):
        axis.plot([place], [time_s], "o", color=_COLOURS[cost.name], markersize=9)
        axis.annotate(seconds_text(time_s), (place, time_s), (0, 7), textcoords="offset points",
                      ha="center", fontsize=9)  # fmt: skip
    axis.set_yscale("log")
    axis.set_ylim(min(shown_s) / 2.5, max(shown_s) * 3)
    axis.set_xlim(-0.5, len(costs) - 0.5)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda time_s, _: seconds_text(time_s)))
    axis.yaxis.set_minor_formatter(NullFormatter())
    _name_bars(axis, costs)


def _name_bars(axis: Axes, costs: list[Cost]) -> None:
    axis.set_xticks(range(len(costs)), [cost.name for cost in costs], fontsize=9)
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    _clean(axis, ("top", "right"))


def _clean(axis: Axes, sides: tuple[str, ...]) -> None:
    axis.tick_params(labelsize=8)
    axis.set_axisbelow(True)
    for side in sides:
        axis.spines[side].set_visible(False)
