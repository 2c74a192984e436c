# SPDX-License-Identifier: BSD-3-Clause
"""Draws a profile: throughput, CPU time and joules per MB against writers, with error bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure.figures import COLOURS, figure_of, finish
from perdure.files import save_figure

_PANELS = (
    ("bandwidth_MBps", "throughput, MB/s"),
    ("energy_J_per_MB", "energy, J/MB"),
    ("power_W", "power, W"),
    ("cpu_s_per_GB", "CPU time, s/GB"),
)


def _clock_text(khz: int | None) -> str:
    return "clock as it is" if khz is None else f"{khz / 1e6:.4g} GHz"


def _note(document: dict) -> str:
    fingerprint = document["fingerprint"]
    device = fingerprint["device"]["name"]
    meter = fingerprint["meter"]
    known = "no meter: energy is not known" if meter is None else (
        f"energy: {meter['name']} ({meter['scope']})")
    unsettled = sum(not point["settled"] for point in document["points"])
    note = (f"{device}, {fingerprint['file_system']['type']}, {fingerprint['io_mode']}; {known}. "
            "Bars: 95 % confidence.")
    return note + (f" Hollow: not settled ({unsettled})." if unsettled else "")


def draw_profile(document: dict, file: Path) -> None:
    """Writes the figure; its kind follows from the suffix. Raises ValueError."""
    points = document["points"]
    panels = [(key, label) for key, label in _PANELS if any(point.get(key) for point in points)]
    title = f"Reading and writing {document['fingerprint']['path']}"
    figure = figure_of(5.2 * len(panels), 4.2, title, _note(document))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    groups = list(dict.fromkeys((point["op"], point["freq_kHz"]) for point in points))
    for axis, (key, label) in zip(axes, panels):
        for number, (op, khz) in enumerate(groups):
            rows = sorted((point for point in points if (point["op"], point["freq_kHz"]) ==
                           (op, khz) and point.get(key)), key=lambda point: point["writers"])
            _draw_group(axis, rows, key, f"{op}, {_clock_text(khz)}", number)
        _finish(axis, points, label)
    axes[0].legend(fontsize=8, frameon=False)
    save_figure(figure, file, dpi=130)


def _draw_group(axis: Any, rows: list[dict], key: str, label: str, number: int) -> None:
    colour = COLOURS[number % len(COLOURS)]
    # A little apart, so that the error bars of two lines don't lie on each other.
    places = [row["writers"] * (1 + 0.03 * (number - 0.5)) for row in rows]
    means = [row[key]["mean"] for row in rows]
    ends = [
        [mean - (row[key]["low"] if row[key]["low"] is not None else mean)
         for mean, row in zip(means, rows)],
        [(row[key]["high"] if row[key]["high"] is not None else mean) - mean
         for mean, row in zip(means, rows)],
    ]
    ends[0] = [min(end, mean) for end, mean in zip(ends[0], means)]  # nothing is below 0
    axis.errorbar(places, means, yerr=ends, color=colour, linewidth=1.4, capsize=3, label=label)
    for place, mean, row in zip(places, means, rows):
        axis.plot([place], [mean], "o", color=colour, markersize=5,
                  markerfacecolor=colour if row["settled"] else "white")


def _finish(axis: Any, points: list[dict], label: str) -> None:
    writers = sorted({point["writers"] for point in points})
    axis.set_xscale("log", base=2)
    axis.set_xticks(writers, [str(each) for each in writers], fontsize=8)
    axis.minorticks_off()
    axis.set_ylim(bottom=0)
    finish(axis, "processes at a time", label)
