# SPDX-License-Identifier: BSD-3-Clause
"""The pictures of `perdure bench memsim`: the paging paper's Figures 3 to 6."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.figures import draw_lines, figure_of
from perdure.sim.plot import fit_scale
from perdure_bench.facts import Fact
from perdure_bench.plot import finish_panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MIB = 1 << 20
_PROGRAMS = ("cg", "mg", "sp", "hpl")


def draw(facts: list[Fact], title: str, file: Path) -> None:
    """Writes the figure; raises ValueError if there is nothing to draw."""
    programs = _with(facts, "sweep_energy_j", _PROGRAMS)
    if not programs:
        raise ValueError("there are no sweeps to draw")
    compared = [name for name in ("cg", "mg")
                if _with(facts, "policy_time_s", [f"{name}-lru"])]
    concentrated = _with(facts, "hot_share", _PROGRAMS)
    first = [*compared, *(["locality"] if concentrated else [])]
    columns = max(len(programs), len(first))
    note = "Modelled: the paging paper's devices and cache. Lines end where they are off the scale."
    figure = figure_of(3.75 * columns, 11, title, note)
    grid = figure.add_gridspec(3, columns)
    for column, name in enumerate(first):
        axis = figure.add_subplot(grid[0, column])
        if name == "locality":
            _draw_locality(axis, facts)
        else:
            _draw_policies(axis, name, facts)
    for column, program in enumerate(programs):
        time, energy = (figure.add_subplot(grid[row, column]) for row in (1, 2))
        _draw_sweep(time, program, facts, lambda fact: fact.more["time_s"], "time, s")
        _draw_sweep(energy, program, facts, lambda fact: fact.value, "energy, J")
    figure.savefig(file, dpi=90)


def _with(facts: list[Fact], metric: str, cases: Iterable[str]) -> list[str]:
    """The cases that have such facts: what was not run gets no panel."""
    found = {fact.case for fact in facts if fact.metric == metric}
    return [case for case in cases if case in found]


def _draw_policies(axis: Axes, program: str, facts: list[Fact]) -> None:
    rows = {policy: [(f.more["dram_bytes"] / _MIB, f.value) for f in facts
                     if f.metric == "policy_time_s" and f.case == f"{program}-{policy}"]
            for policy in ("lru", "mram_fixed", "low_power")}  # fmt: skip
    draw_lines(axis, rows)
    fit_scale(axis, [value for row in rows.values() for _, value in row])
    finish_panel(axis, f"{program}: policies beside MRAM", "DRAM, MiB", "time, s")


def _draw_locality(axis: Axes, facts: list[Fact]) -> None:
    curves = {fact.case: json.loads(fact.more["curve"]) for fact in facts
              if fact.metric == "hot_share" and fact.case in _PROGRAMS}  # fmt: skip
    draw_lines(axis, {program: [(100 * x, 100 * y) for x, y in curves[program]]
                      for program in _PROGRAMS if program in curves})  # fmt: skip
    finish_panel(axis, "concentration of accesses", "hottest pages, %", "accesses, %")


def _draw_sweep(
    axis: Axes, program: str, facts: list[Fact], value: Callable[[Fact], float], label: str
) -> None:
    rows: dict[str, list[tuple[float, float]]] = {}
    for fact in facts:
        if (fact.metric, fact.case) == ("sweep_energy_j", program):
            size = fact.more["mram_bytes"]
            name = f"{size / _MIB:.3g} MiB MRAM" if size else "no MRAM"
            rows.setdefault(name, []).append((fact.more["total_bytes"] / _MIB, value(fact)))
    draw_lines(axis, rows)
    fit_scale(axis, [each for row in rows.values() for _, each in row], times=7)
    finish_panel(axis, program, "DRAM and MRAM, MiB", label)
