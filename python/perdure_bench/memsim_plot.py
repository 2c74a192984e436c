"""The pictures of `perdure bench memsim`: the paging paper's Figures 3 to 6."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.figures import COLOURS, GREY, finish
from perdure.sim.plot import fit_scale
from perdure_bench.facts import Fact

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIB = 1 << 20
_PROGRAMS = ("cg", "mg", "sp", "hpl")


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    from matplotlib.backends import backend_agg  # noqa: F401  no display is needed
    from matplotlib.figure import Figure

    if not any(fact.metric == "sweep_energy_j" for fact in facts):
        raise ValueError("there are no sweeps to draw")
    figure = Figure(figsize=(15, 11), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    note = "Modelled: the paging paper's devices and cache. Lines end where they are off the scale."
    figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color=GREY)
    axes = figure.subplots(3, 4)
    for axis, program in zip(axes[0], ("cg", "mg")):
        _draw_policies(axis, program, facts)
    _draw_locality(axes[0][2], facts)
    axes[0][3].set_axis_off()
    for column, program in enumerate(_PROGRAMS):
        _draw_sweep(axes[1][column], program, facts, lambda fact: fact.more["time_s"], "time, s")
        _draw_sweep(axes[2][column], program, facts, lambda fact: fact.value, "energy, J")
    figure.savefig(file, dpi=110)


def _finish(axis: Axes, title: str, x_label: str, y_label: str) -> None:
    axis.set_title(title, fontsize=9)
    finish(axis, x_label, y_label)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7, frameon=False)


def _draw_policies(axis: Axes, program: str, facts: list[Fact]) -> None:
    values = []
    for policy, colour in zip(("lru", "mram_fixed", "low_power"), COLOURS):
        row = [f for f in facts
               if f.metric == "policy_time_s" and f.case == f"{program}-{policy}"]
        values += [fact.value for fact in row]
        axis.plot([f.more["dram_bytes"] / _MIB for f in row], [f.value for f in row],
                  color=colour, label=policy)
    fit_scale(axis, values)
    _finish(axis, f"{program}: policies beside MRAM", "DRAM, MiB", "time, s")


def _draw_locality(axis: Axes, facts: list[Fact]) -> None:
    for program, colour in zip(_PROGRAMS, COLOURS):
        for fact in facts:
            if (fact.metric, fact.case) == ("hot_share", program):
                curve = json.loads(fact.more["curve"])
                axis.plot([100 * x for x, _ in curve], [100 * y for _, y in curve], color=colour,
                          label=program)
    _finish(axis, "concentration of accesses", "hottest pages, %", "accesses, %")


def _draw_sweep(
    axis: Axes, program: str, facts: list[Fact], value: Callable[[Fact], float], label: str
) -> None:
    rows: dict[float, list[Fact]] = {}
    for fact in facts:
        if (fact.metric, fact.case) == ("sweep_energy_j", program):
            rows.setdefault(fact.more["mram_bytes"], []).append(fact)
    for (size, row), colour in zip(rows.items(), COLOURS):
        name = f"{size / _MIB:.3g} MiB MRAM" if size else "no MRAM"
        axis.plot([f.more["total_bytes"] / _MIB for f in row], [value(f) for f in row],
                  color=colour, label=name)
    fit_scale(axis, [value(fact) for row in rows.values() for fact in row])
    _finish(axis, program, "DRAM and MRAM, MiB", label)
