# SPDX-License-Identifier: BSD-3-Clause
"""The paper's Figures 3 to 6: time by policy, concentration of accesses, time and energy against
capacity."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from perdure.figures import draw_lines, figure_of, finish
from perdure.files import save_figure
from perdure.sim.locality import Concentration
from perdure.sim.sweep import KnownPoint

_MIB = 1 << 20


def _save(figure: Any, file: Path | BinaryIO) -> None:
    """To a file by its ending, or to a stream as SVG."""
    if isinstance(file, Path):
        save_figure(figure, file, dpi=130)
    else:
        figure.savefig(file, format="svg")


def fit_scale(axis: Any, values: list[float], times: float = 5) -> None:
    """Shows what is up to `times` the least, from 0 on; beyond, the lines leave the picture.

    Where that would be most of them the scale is logarithmic, and all is shown.
    """
    if not values:
        return
    shown = sum(value <= min(values) * times for value in values)
    if 2 * shown < len(values) and min(values) > 0:
        from matplotlib.ticker import LogLocator

        axis.set_yscale("log")
        axis.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")
        axis.tick_params(which="minor", labelsize=8)
    else:
        axis.set_ylim(0, min(max(values), min(values) * times) * 1.08)


def draw_policies(points: list[KnownPoint], title: str, file: Path | BinaryIO) -> None:
    """Figure 3: time against DRAM, a line for each policy, at one capacity of MRAM."""
    figure = figure_of(6.4, 4.2, title, "Each point is a machine; lines join those of one policy.")
    axis = figure.subplots()
    rows: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        rows.setdefault(point.policy, []).append((point.dram_bytes / _MIB, point.time_s))
    draw_lines(axis, rows)
    fit_scale(axis, [point.time_s for point in points])
    axis.legend(fontsize=8, frameon=False)
    finish(axis, f"DRAM, MiB (beside {points[0].mram_bytes >> 20} MiB of MRAM)", "time, s")
    _save(figure, file)


def draw_locality(curves: dict[str, Concentration], file: Path | BinaryIO) -> None:
    """Figure 4: share of accesses on the hottest share of pages, a line for each program."""
    figure = figure_of(5.6, 4.2, "Concentration of memory accesses", "Pages by number of accesses.")
    axis = figure.subplots()
    draw_lines(axis, {name: [(100 * pages, 100 * accesses) for pages, accesses
                             in zip(curve.pages, curve.accesses)]
                      for name, curve in curves.items()})  # fmt: skip
    axis.set_xlim(0, 100)
    axis.set_ylim(0, 102)
    axis.legend(fontsize=8, frameon=False, loc="lower right")
    finish(axis, "hottest pages, % of those touched", "accesses, %")
    _save(figure, file)


def draw_capacities(
    points: list[KnownPoint], title: str, file: Path | BinaryIO, marked: KnownPoint | None
) -> None:
    """Figures 5 and 6: time and energy against main memory, a line for each capacity of MRAM."""
    figure = figure_of(
        11, 4.4, title, "Main memory is DRAM and MRAM. What is not there is swapped to flash."
    )
    axes = figure.subplots(1, 2)
    for axis, value, label in (
        (axes[0], "time_s", "time, s"),
        (axes[1], "energy_j", "energy of the memory, J"),
    ):
        rows: dict[str, list[tuple[float, float]]] = {}
        for point in points:
            size = point.mram_bytes
            name = f"{size >> 20} MiB MRAM" if size else "no MRAM"
            rows.setdefault(name, []).append((point.total_bytes / _MIB, getattr(point, value)))
        draw_lines(axis, rows)
        if marked is not None:
            axis.plot(
                [marked.total_bytes / _MIB], [getattr(marked, value)], "o", color="black",
                markersize=6, fillstyle="none", label="least energy in the budget",
            )
        fit_scale(axis, [getattr(point, value) for point in points])
        axis.legend(fontsize=8, frameon=False)
        finish(axis, "DRAM and MRAM, MiB", label)
    _save(figure, file)
