# SPDX-License-Identifier: BSD-3-Clause
"""The picture of `perdure bench levels`: what the solver waits and takes, over the pool alone."""

from __future__ import annotations

from pathlib import Path

from perdure.figures import figure_of, finish
from perdure_bench.facts import Fact
from perdure_bench.hpccg_plot import draw_bars


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    if not any(fact.metric == "run_time_ratio" for fact in facts):
        raise ValueError("there are no run times to draw")
    figure = figure_of(10, 4, title)
    for axis, metric in zip(figure.subplots(1, 2), ("blocking_ratio", "run_time_ratio")):
        shown = [fact for fact in facts if fact.metric == metric]
        draw_bars(axis, shown, [fact.case for fact in shown], shown)
        axis.tick_params(axis="x", rotation=30)
        axis.set_title(f"{metric.replace('_', ' ')}, over the pool alone", fontsize=9)
        finish(axis)
    figure.savefig(file, dpi=150)
