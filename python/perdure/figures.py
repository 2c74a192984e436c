# SPDX-License-Identifier: BSD-3-Clause
"""What all pictures have in common: their colours, titles and axes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from perdure.screen import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which every kind of colour vision distinguishes.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
RED, SKY, YELLOW = "#D55E00", "#56B4E9", "#F0E442"
COLOURS = (BLUE, ORANGE, GREEN, PINK, RED, SKY, "#000000")  # of lines without a colour of their own
GREY, SILVER = "#555555", "#999999"
_TITLE_COLUMNS = 10.7  # an inch


def finish(
    axis: Axes,
    x_label: str | None = None,
    y_label: str | None = None,
    values: Literal["x", "y"] = "y",
) -> None:
    """Labels, small numbers, no frame above and to the right, and thin lines to read values by."""
    if x_label is not None:
        axis.set_xlabel(x_label, fontsize=9)
    if y_label is not None:
        axis.set_ylabel(y_label, fontsize=9)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.grid(axis=values, color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)


def draw_lines(axis: Axes, rows: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """A line through the points of each row, or its only point, in a colour of its own; the legend
    has their names."""
    for (name, points), colour in zip(rows.items(), COLOURS):
        places, values = zip(*points)
        axis.plot(places, values, "" if len(points) > 1 else "o", color=colour, label=drawn(name))


def figure_of(width: float, height: float, title: str, note: str = "") -> Figure:
    """A figure with a title above and a note, if any, below; no display is needed."""
    from matplotlib.backends import backend_agg  # noqa: F401
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    lines = textwrap.fill(drawn(title), int(_TITLE_COLUMNS * width))
    figure.suptitle(lines, x=0.01, ha="left", fontsize=11, fontweight="bold")
    if note:
        figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color=GREY)
    return figure
