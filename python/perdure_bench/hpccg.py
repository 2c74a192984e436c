# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench hpccg`: what protecting a solver costs.

Figures 1 and 2 and Table 2 of the paper on checkpointing with MPI one-sided communication.

A round runs every case once, in a new random order, with a commit every iteration; a ratio compares
runs of one round. Two ranks, one grid each, MPI one-sided halo exchange, pools in memory.

    run_time_ratio         time of the loop over that of none
    iteration_ratio        median time of an iteration over that of none: what is left of the ratio
                           when the machine's interruptions are taken out
    commit_blocking_ratio  median time that a commit kept the solver waiting, over one memcpy of the
                           same bytes at the same place of the loop (case memcpy)
    start_s, restart_s     from having the matrix to the first iteration: cold, and from a version
    restart_ratio          restart over the cold start of none

The part of a run that an emulated device would add is its virtual clock's: bytes over bandwidth and
the latencies of each fence. It does not model the solver's own loads and stores to twin copies.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from perdure.programs import OPEN_MPI, Program, ProgramFailed, output_of
from perdure.progress import progress
from perdure.run.attempt import attempt_environment
from perdure_bench.facts import Fact, in_turn
from perdure_bench.solver import (
    disk_directory,
    find_solvers,
    huge_page_directory,
    last_report,
    pool_directory,
    solve,
)

SUMMARY = "time of a solver with its state protected, over the same without"
_RANKS = 2
_LIMIT_S = 600


@dataclass(frozen=True)
class Case:
    """A protection, and what is claimed of it where the state exceeds 64 MB a rank."""

    name: str
    options: tuple[str, ...]
    run_time: float | None = None
    blocking: float | None = None
    restart: float | None = None

    @property
    def restarts(self) -> bool:
        """Whether a second run can go on from the first."""
        return self.name not in ("none", "memcpy")


NONE = Case("none", ("--protect", "none"))
MEMCPY = Case("memcpy", ("--protect", "memcpy"))
CASES = (
    Case("disk", ("--protect", "disk")),
    Case("copy", ("--protect", "copy"), run_time=1.10, blocking=0.8),
    Case("copy_unchecked", ("--protect", "copy", "--checksum", "off"), 1.10, 0.8),
    Case("async", ("--protect", "async"), run_time=1.05),
    Case("twin", ("--protect", "twin", "--twin-store", "stream"), run_time=1.02, restart=0.1),
    Case("log", ("--protect", "log")),
)
ALL_CASES = (NONE, MEMCPY, *CASES)


@dataclass(frozen=True)
class Size:
    """How much is run: points along an edge of each rank, iterations, rounds.

    Targets are claimed only where the state exceeds 64 MB a rank.
    """

    edge: int
    iterations: int
    rounds: int
    claims: bool


QUICK = Size(48, 10, 3, False)
FULL = Size(144, 12, 7, True)


@dataclass(frozen=True)
class Model:
    """An emulated device of the paper's kind."""

    memory_ns: int
    commit_ns: int
    bandwidth: str  # "full" or GB/s

    @property
    def spec(self) -> str:
        """As `perdure devices` names it."""
        row = "paper-nvm" if self.bandwidth == "full" else "paper-nvm-9.5"
        return f"{row},write_latency_ns={self.memory_ns},commit_latency_ns={self.commit_ns}"

    def __str__(self) -> str:
        speed = "full bandwidth" if self.bandwidth == "full" else f"{self.bandwidth} GB/s"
        return f"memory {self.memory_ns} ns, commit {self.commit_ns} ns, {speed}"


MODELS = tuple(
    Model(memory, commit, bandwidth)
    for bandwidth in ("full", "9.5")
    for memory, commit in ((0, 500), (300, 500), (600, 500), (150, 0), (150, 1000), (150, 2000))
)
EMULATED = ("copy", "twin", "log")
ROWS = ("dram-1/8", "dram-1/32")


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    size = QUICK if quick else FULL
    solver = find_solvers()[0]
    emulated = [case for case in CASES if case.name in EMULATED]
    specs = [str(model.spec) for model in MODELS] + list(ROWS)
    total = size.rounds * (len(CASES) + 2) + size.rounds * len(CASES) + len(specs) * len(emulated)
    with (
        pool_directory() as pools,
        huge_page_directory(pools) as huge,
        progress("bench hpccg", total) as advance,
    ):
        bench = Bench(solver, size, pools, advance)
        bench.about["pool_pages"] = "2 MiB" if huge else "4 KiB"
        rounds = bench.run_rounds()
        yield from _measured_facts(rounds, bench)
        for case in emulated:
            for spec in specs:
                yield _emulated_fact(case, spec, rounds, bench)


class Bench:
    """Runs hpccg; every run begins with no pool unless it is a restart."""

    def __init__(self, solver: Program, size: Size, pools: Path, advance: Callable[[], None]):
        self.solver, self.size, self.pools, self.advance = solver, size, pools, advance
        # What every fact says of its setting.
        self.about = {"mpi": solver.flavour, "ranks": _RANKS, "edge": size.edge}

    def run_rounds(self, cases: tuple[Case, ...] = ALL_CASES) -> list[dict[str, dict]]:
        """For each round, each case's report; those that restart also have "restart_s"."""
        return [
            {case.name: self._run_and_restart(case) for case in in_turn(cases)}
            for _ in range(self.size.rounds)
        ]

    def model_ns_per_commit(self, case: Case, spec: str) -> float:
        """What an emulated device adds to a commit: the same in every commit but the first."""
        try:
            report = self._run(case.options, 3, "--emulate", spec)
        finally:
            self._forget()
        return report["model_ns"] / report["commits"]

    def _run_and_restart(self, case: Case) -> dict:
        try:
            report = self._run(case.options, self.size.iterations)
            if case.restarts:
                again = self._run(case.options, self.size.iterations + 1)
                if again["restored_version"] == 0 and case.name != "disk":
                    raise ProgramFailed(f"hpccg, {case.name}: nothing was restored")
                report["restart_s"] = again["restart_s"]
            return report
        finally:
            self._forget()

    def _run(self, case_options: tuple[str, ...], iterations: int, *more: str) -> dict:
        places = ("--pool", self.pools / "pool", "--disk-dir", disk_directory() / "disk")
        options = (*case_options, *places, *more)
        command = solve(self.solver, _RANKS, self.size.edge, iterations, *options)
        environment = attempt_environment(self.pools, None, OPEN_MPI)
        del environment["PERDURE_RUN_DIR"]
        output = output_of(command, f"hpccg {case_options}", environment, _LIMIT_S)
        self.advance()
        return last_report(output)

    def _forget(self) -> None:
        for path in (self.pools / "pool", disk_directory() / "disk"):
            shutil.rmtree(path, ignore_errors=True)


def _measured_facts(rounds: list[dict[str, dict]], bench: Bench) -> Iterator[Fact]:
    for case in ALL_CASES:
        yield from _facts_of_case(case, rounds, bench)


def _facts_of_case(case: Case, rounds: list[dict[str, dict]], bench: Bench) -> Iterator[Fact]:
    ran = [(around[case.name], around["none"], around["memcpy"]) for around in rounds]

    def fact(
        metric: str, values: list[float], unit: str = "", target: float | None = None
    ) -> Fact:
        claimed = target if bench.size.claims else None
        return Fact.of("hpccg", case.name, metric, values, unit, claimed, more=bench.about)

    yield fact(
        "run_time_ratio", [a["loop_s"] / n["loop_s"] for a, n, _ in ran], "", case.run_time
    )
    medians = [a["iteration_median_s"] / n["iteration_median_s"] for a, n, _ in ran]
    yield fact("iteration_ratio", medians)
    if case is not NONE:
        blocking = [a["commit_median_s"] / m["commit_median_s"] for a, _, m in ran]
        yield fact("commit_blocking_ratio", blocking, "", case.blocking)
        yield fact("commit_ms", [a["commit_median_s"] * 1e3 for a, _, _ in ran], "ms")
    yield fact("start_s", [a["start_s"] for a, _, _ in ran], "s")
    if case.restarts:
        yield fact("restart_s", [a["restart_s"] for a, _, _ in ran], "s")
        ratios = [a["restart_s"] / n["start_s"] for a, n, _ in ran]
        yield fact("restart_ratio", ratios, "", case.restart)


def _emulated_fact(case: Case, spec: str, rounds: list[dict[str, dict]], bench: Bench) -> Fact:
    """run_time_ratio with the virtual clock's time added to every commit of the measured runs."""
    added_s = bench.model_ns_per_commit(case, spec) * 1e-9
    ratios = [
        (around[case.name]["loop_s"] + added_s * around[case.name]["commits"])
        / around["none"]["loop_s"]
        for around in rounds
    ]
    model = next((model for model in MODELS if model.spec == spec), None)
    more = {"emulated": str(model) if model else spec, "model_ms_per_commit": added_s * 1e3}
    if model:
        more |= {
            "memory_latency_ns": model.memory_ns,
            "commit_latency_ns": model.commit_ns,
            "bandwidth": model.bandwidth,
        }
    return Fact.of("hpccg", case.name, "run_time_ratio", ratios, more=bench.about | more)
