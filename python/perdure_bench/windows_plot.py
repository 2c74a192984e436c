# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of `perdure bench windows`: run times and two sweeps of each application, and the
fence that commits against window size and ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perdure.figures import figure_of, finish
from perdure_bench.facts import Fact
from perdure_bench.hpccg_plot import COLOURS, OVER_NONE, draw_bars, draw_sweep
from perdure_bench.plot import draw_swept, finish_panel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

APPLICATIONS = ("hpccg", "pagerank")


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    if not any(fact.metric == "run_time_ratio" for fact in facts):
        raise ValueError("there are no run times to draw")
    note = "A commit every iteration. Medians; bars and bands: quartiles. Emulation: virtual clock."
    figure = figure_of(13, 12, title, note)
    axes = figure.subplots(3, 3)
    for row, application in zip(axes, APPLICATIONS, strict=False):
        _draw_application(row, application, facts)
    _draw_fences(axes[2], facts)
    figure.savefig(file, dpi=130)


def _draw_application(row: Sequence[Axes], application: str, facts: list[Fact]) -> None:
    ratios = [f for f in facts if f.metric == "run_time_ratio" and f.case.startswith(application)]
    bars, memory, commit = row
    shown = [f for f in ratios if "emulated" not in f.more and not f.case.endswith("-none")]
    scaled = [fact for fact in shown if not fact.case.endswith("-disk")]
    draw_bars(bars, shown, [fact.case.split("-", 1)[1] for fact in shown], scaled)
    finish(bars, y_label=OVER_NONE)
    bars.set_title(f"{application}: measured, in DRAM (dashed: target)", fontsize=9)
    names = {f"{application}-{name}": colour for name, colour in COLOURS.items()}
    draw_sweep(memory, ratios, "memory_latency_ns", "memory latency added (ns)", names)
    draw_sweep(commit, ratios, "commit_latency_ns", "commit latency (ns)", names)
    memory.set_title(f"{application}: emulated, commit latency 500 ns", fontsize=9)
    commit.set_title(f"{application}: emulated, memory latency 150 ns", fontsize=9)


def _draw_fences(row: Sequence[Axes], facts: list[Fact]) -> None:
    sizes = sorted({f.more["window_bytes"] for f in facts if f.metric == "fence_us"})
    for axis, size in zip(row, [*sizes[-3:], None, None, None], strict=False):
        chosen = [f for f in facts if size and f.more.get("window_bytes") == size]
        if not chosen:
            axis.axis("off")
            continue
        for case, colour in (("fence-copy", COLOURS["copy"]), ("fence-twin", COLOURS["twin"])):
            for metric, style in (("fence_us", "-"), ("floor_us", ":")):
                points = [f for f in chosen if f.case == case and f.metric == metric]
                name = f"{case.removeprefix('fence-')}, {'floor' if style == ':' else 'commit'}"
                draw_swept(axis, points, "ranks", name, colour, style)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        ticks = sorted({f.more["ranks"] for f in chosen})
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        ranks = "ranks, on 2 cores" if max(ticks) > 2 else "ranks"
        title = f"a fence that commits {_size_text(size)} a rank"
        finish_panel(axis, title, ranks, "microseconds")


def _size_text(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
