"""`perdure bench hpccg`: what protecting a solver costs, against the solver alone.

Each round runs every case once, in a new random order; a ratio compares runs of one round. The
targets are those of docs/figures.md.
"""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perdure.bench.facts import Fact
from perdure.bench.programs import BenchFailed
from perdure.bench.solver import OPEN_MPI, Solver, find_solvers, last_report, pool_directory
from perdure.run.attempt import attempt_environment

SUMMARY = "time of a solver with its state protected, over the same without"
_RANKS = 2
_LIMIT_S = 600
_SEED = 20


@dataclass(frozen=True)
class Case:
    """A protection that commits each `every` iterations; `target` bounds time over none."""

    protect: str
    every: int
    target: float | None = None

    def __str__(self) -> str:
        return f"{self.protect} every {self.every}"


NONE = Case("none", 1)
CASES = (
    Case("copy", 1, 1.35),
    Case("copy", 5, 1.05),
    Case("async", 1, 1.10),
    Case("async", 5, 1.03),
    Case("twin", 1, 1.10),
    Case("twin", 5, 1.03),
    Case("log", 1),
    Case("disk", 1),
    Case("disk", 5),
)


@dataclass(frozen=True)
class Size:
    """How much is run: points along an edge of each rank, iterations, rounds."""

    edge: int
    iterations: int
    rounds: int


QUICK = Size(40, 20, 3)
FULL = Size(96, 60, 9)


def measure(quick: bool, each: Callable[[Fact], None]) -> None:
    """Hands over time over none and commit time per case. Raises BenchFailed."""
    size = QUICK if quick else FULL
    solver = find_solvers()[0]
    order = random.Random(_SEED)
    rounds: list[dict[Case, dict]] = []
    with pool_directory() as pools:
        for _ in range(size.rounds):
            cases = [NONE, *CASES]
            order.shuffle(cases)
            rounds.append({case: _run(solver, size, case, pools) for case in cases})
    more = {"mpi": solver.flavour, "ranks": _RANKS, "edge": size.edge}
    for case in CASES:
        for fact in _facts(case, rounds, more):
            each(fact)


def _run(solver: Solver, size: Size, case: Case, pools: Path) -> dict:
    """hpccg's report of one run with a new pool."""
    pool, disk = pools / "pool", pools / "disk"
    options = ["--protect", case.protect, "--every", case.every, "--pool", pool, "--disk-dir", disk]
    command = solver.command(_RANKS, size.edge, size.iterations, *options)
    environment = attempt_environment(pools, None, OPEN_MPI)
    del environment["PERDURE_RUN_DIR"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise BenchFailed(f"hpccg, {case}: not done after {_LIMIT_S} s") from None
    finally:
        for path in (pool, disk):
            shutil.rmtree(path, ignore_errors=True)
    if done.returncode != 0:
        raise BenchFailed(f"hpccg, {case}: ended with {done.returncode}: {done.stderr[-300:]}")
    return last_report(done.stdout)


def _facts(case: Case, rounds: list[dict[Case, dict]], more: dict) -> list[Fact]:
    ratios = [ran[case]["loop_s"] / ran[NONE]["loop_s"] for ran in rounds]
    commits = [ran[case]["commit_median_s"] * 1e3 for ran in rounds]
    target = case.target
    holds = None if target is None else statistics.median(ratios) <= target
    return [
        Fact("hpccg", str(case), "time over none", *_spread(ratios, ""), target, holds, more),
        Fact("hpccg", str(case), "commit", *_spread(commits, "ms"), more=more),
    ]


def _spread(values: list[float], unit: str) -> tuple:
    """(median, unit, lower quartile, upper quartile, count)."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, unit, low, high, len(values)
