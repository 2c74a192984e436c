"""What the axes of all pictures have in common."""

from __future__ import annotations


def finish(axis, x_label: str | None = None, y_label: str | None = None) -> None:
    """Labels, small numbers, no frame above and to the right, and thin lines to read values by."""
    if x_label is not None:
        axis.set_xlabel(x_label, fontsize=9)
    if y_label is not None:
        axis.set_ylabel(y_label, fontsize=9)
    axis.tick_params(labelsize=8)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
