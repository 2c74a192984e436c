# SPDX-License-Identifier: BSD-3-Clause
"""What the protections of a solver cost, in a few interleaved rounds."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from perdure.programs import Program
from perdure.units import seconds_text
from perdure_bench import hpccg
from perdure_bench.facts import quartiles

NOISY = 0.1  # of the ratio: quartiles that are further apart say nothing of a small overhead
_NAMES = ("disk", "copy", "twin", "log")
CASES = (hpccg.NONE, *(case for name in _NAMES for case in hpccg.CASES if case.name == name))
PLACES = {
    "none": "memory, lost with the job",
    "disk": "memory; files with fsync",
    "copy": "memory; copied to the pool",
    "twin": "the pool, twice; flushed",
    "log": "memory; changes are copied",
}


@dataclass(frozen=True)
class Cost:
    """Of one protection; medians over the rounds, with quartiles of the ratio.

    Times in seconds; a time is None where there is none.
    """

    name: str
    iteration_s: float
    ratio: float  # of an iteration's median time to that of none in the same round
    low: float
    high: float
    commit_s: float | None
    restart_s: float | None

    @property
    def overhead(self) -> str:
        """As overhead_text(), where the quartiles are close enough for a figure to mean much."""
        noisy = self.high - self.low > NOISY * self.ratio
        return "too noisy" if noisy else overhead_text(self.ratio)


def runs_of(size: hpccg.Size) -> int:
    """How many runs measure_costs() makes."""
    return hpccg.runs_of(CASES, size.rounds)


def measure_costs(
    solver: Program, size: hpccg.Size, pools: Path, advance: Callable[[], None]
) -> list[Cost]:
    """Runs every case once a round, each restarted once. Raises ProgramFailed."""
    application = hpccg.Hpccg(solver, size.edge)
    bench = hpccg.Bench(application, size.iterations, pools, advance)
    rounds = bench.run_rounds(CASES, size.rounds)
    return [_cost(case.name, rounds) for case in CASES]


def _cost(name: str, rounds: list[dict[str, dict]]) -> Cost:
    reports = [around[name] for around in rounds]

    def median(field: str) -> float:
        return statistics.median(report[field] for report in reports)

    ratios = [
        around[name]["iteration_median_s"] / around["none"]["iteration_median_s"]
        for around in rounds
    ]
    low, middle, high = quartiles(ratios)
    commit_s = None if name == "none" else median("commit_median_s")
    restart_s = None if name == "none" else median("restart_s")
    return Cost(name, median("iteration_median_s"), middle, low, high, commit_s, restart_s)


def overhead_text(ratio: float) -> str:
    """A ratio of 1.034 as "+3.4 %", one of 5 as "5.0 times"."""
    percent = round((ratio - 1) * 100, 1) + 0.0  # no minus before a zero
    return f"{ratio:.1f} times" if ratio >= 3 else f"{percent:+.1f} %"


def _spread_text(low: float, high: float) -> str:
    return f"{round((low - 1) * 100):+d} to {round((high - 1) * 100):+d} %"


def costs_table(costs: list[Cost]) -> Table:
    """One row per protection, for a terminal of 100 columns.

    An overhead below zero tells that the machine was busy, and no overhead that it was too busy.
    """
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("protection", no_wrap=True)
    for name in ("iteration", "overhead", "quartiles", "commit waits", "restart"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("the state lies in", no_wrap=True)
    for cost in costs:
        table.add_row(
            cost.name,
            seconds_text(cost.iteration_s),
            "" if cost.name == "none" else cost.overhead,
            "" if cost.name == "none" else _spread_text(cost.low, cost.high),
            "" if cost.commit_s is None else seconds_text(cost.commit_s),
            "" if cost.restart_s is None else seconds_text(cost.restart_s),
            PLACES[cost.name],
        )
    return table
