# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of `perdure bench energy`: Figures 7 and 8 of the paper, from its constants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perdure.figures import BLUE, ORANGE, figure_of, finish
from perdure_bench.facts import Fact

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STRATEGIES = (("performance", ORANGE), ("profile lookup", BLUE))
_DEVICES = ("SSD", "ioDrive")
_NOTE = (
    "From data/energy/reference.json; solid: from stated values alone, hatched: with an inferred "
    "power or bandwidth.\nNot drawn, as nothing says how high they were: all bars of the HDD, of "
    "powersave and of ondemand."
)


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    from matplotlib.patches import Patch

    epe = [fact for fact in facts if fact.metric == "epe_W"]
    energy = [fact for fact in facts if fact.metric == "J_per_MB"]
    if not epe or not energy:
        raise ValueError("there are no bars of Figures 7 and 8 to draw")
    figure = figure_of(13, 4.8, title, _NOTE)
    axes = figure.subplots(1, 2, width_ratios=(1, 1.7))
    _bars(axes[0], [(device, [_one(epe, f"figure7-{device}", name) for name, _ in _STRATEGIES])
                    for device in _DEVICES], "{:.1f}")
    axes[0].set_title("Figure 7: energy per effective time, 48 processes", fontsize=9, loc="left")
    finish(axes[0], "axis cut at 450 W", "EPE, W")
    axes[0].axhline(471.1, color="black", linewidth=1, linestyle=(0, (3, 2)),
                    label="computing alone: 471.1 W (stated)")
    axes[0].legend(fontsize=8, frameon=False, loc="upper right")
    _bars(axes[1], [
        (f"{device}, {op}", [_one(energy, f"figure8-{device}", name, op)
                             for name, _ in _STRATEGIES])
        for op in ("write", "read") for device in _DEVICES
    ], "{:.2f}")
    axes[1].set_title("Figure 8: energy per MB, 48 processes", fontsize=9, loc="left")
    finish(axes[1], "", "J/MB")
    axes[1].margins(y=0.18)
    axes[0].set_ylim(450, 1.03 * max(fact.value for fact in epe))
    handles = [Patch(facecolor=colour, label=name) for name, colour in _STRATEGIES]
    axes[1].legend(handles=handles, fontsize=8, frameon=False, loc="upper right")
    figure.savefig(file, dpi=130)


def bar_case(figure: str, strategy: str, op: str | None = None) -> str:
    """The case of a bar, as in figure8-SSD-profile-lookup-write."""
    return "-".join(filter(None, (figure, strategy.replace(" ", "-"), op)))


def _one(facts: list[Fact], case: str, strategy: str, op: str | None = None) -> Fact:
    for fact in facts:
        if fact.case == bar_case(case, strategy, op):
            return fact
    raise ValueError(f"there is no fact of {case}, {strategy}")


def _bars(axis: Axes, groups: list[tuple[str, list[Fact]]], form: str) -> None:
    """Two bars for each group; hatched where anything in the value is inferred."""
    for place, (_, pair) in enumerate(groups):
        for fact, (_, colour), shift in zip(pair, _STRATEGIES, (-0.2, 0.2)):
            words = (fact.more.get("bandwidth"), fact.more.get("power"))
            stated = words == ("stated", "stated")
            axis.bar(place + shift, fact.value, 0.36, color=colour, edgecolor="white",
                     hatch=None if stated else "///", linewidth=0.5)
            parts = "" if words == (None, None) else f"\nMB/s {words[0]}\nW {words[1]}"
            axis.annotate(form.format(fact.value) + parts, (place + shift, fact.value), (0, 3),
                          textcoords="offset points", ha="center", va="bottom", fontsize=7)
    axis.set_xticks(range(len(groups)), [name for name, _ in groups])
