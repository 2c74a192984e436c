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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from perdure.programs import Program, ProgramFailed
from perdure.progress import progress
from perdure_bench.facts import Fact, in_turn
from perdure_bench.solver import (
    disk_directory,
    find_solvers,
    huge_page_directory,
    job_output,
    last_report,
    pool_directory,
    solve,
)

SUMMARY = "time of a solver with its state protected, over the same without"
RANKS = 2
_LIMIT_S = 900


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

    @property
    def places(self) -> tuple[str, ...]:
        """Which of Bench's places the state goes to, as options of the program."""
        return ("--disk-dir",) if self.name == "disk" else ("--pool",) if self.restarts else ()


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

    @property
    def about(self) -> dict:
        """What a fact says of it."""
        return {
            "emulated": str(self),
            "memory_latency_ns": self.memory_ns,
            "commit_latency_ns": self.commit_ns,
            "bandwidth": self.bandwidth,
        }

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
    specs = [*(model.spec for model in MODELS), *ROWS]
    total = runs_of(ALL_CASES, size.rounds) + len(specs) * len(emulated)
    with (
        pool_directory() as pools,
        huge_page_directory(pools) as huge,
        progress("bench hpccg", total) as advance,
    ):
        bench = Bench(Hpccg(solver, size.edge), size.iterations, pools, advance)
        rounds = bench.run_rounds(ALL_CASES, size.rounds)
        said = Said("hpccg", "", {**bench.application.about, **pages_text(huge)}, size.claims)
        yield from said.measured(ALL_CASES, rounds)
        for case in emulated:
            for spec in specs:
                yield said.emulated(case, spec, bench, rounds)


def pages_text(huge: bool) -> dict[str, str]:
    """Of pools, as a fact says it."""
    return {"pool_pages": "2 MiB" if huge else "4 KiB"}


def runs_of(cases: Sequence[Case], rounds: int) -> int:
    """How many runs Bench.run_rounds() makes."""
    return rounds * sum(1 + case.restarts for case in cases)


class Application(Protocol):
    """A program whose state can be protected."""

    @property
    def name(self) -> str: ...

    @property
    def about(self) -> dict:
        """What every fact says of its setting."""

    def command(self, iterations: int, options: Sequence[object]) -> list[str]: ...

    def report(self, printed: str) -> dict:
        """What it printed, under the names that hpccg has for it."""


class Hpccg:
    """hpccg, with one grid of edge^3 points for each rank."""

    name = "hpccg"

    def __init__(self, program: Program, edge: int):
        self._program, self._edge = program, edge
        self.about = {"mpi": program.flavour, "ranks": RANKS, "edge": edge}

    def command(self, iterations: int, options: Sequence[object]) -> list[str]:
        return solve(self._program, RANKS, self._edge, iterations, *options)

    def report(self, printed: str) -> dict:
        return last_report(printed)


Round = dict[str, dict]  # the report of each case, by its name


class Bench:
    """Runs an application; every run begins with no pool unless it is a restart."""

    def __init__(
        self, application: Application, iterations: int, pools: Path, advance: Callable[[], None]
    ):
        self.application, self._iterations = application, iterations
        self._pools, self._advance = pools, advance
        self._places = {"--pool": pools / "pool", "--disk-dir": disk_directory() / "disk"}

    def run_rounds(self, cases: Sequence[Case], rounds: int) -> list[Round]:
        """The reports of each round; those of cases that restart also have "restart_s"."""
        return [
            {case.name: self._run_and_restart(case) for case in in_turn(cases)}
            for _ in range(rounds)
        ]

    def model_ns_per_commit(self, case: Case, spec: str) -> float:
        """What an emulated device adds to a commit: the same in every commit but the first."""
        try:
            report = self._run(case, 3, "--emulate", spec)
        finally:
            self._forget()
        return report["model_ns"] / report["commits"]

    def _run_and_restart(self, case: Case) -> dict:
        try:
            report = self._run(case, self._iterations)
            if case.restarts:
                again = self._run(case, self._iterations + 1)
                if again["restored_version"] == 0 and case.name != "disk":
                    name = self.application.name
                    raise ProgramFailed(f"{name}, {case.name}: nothing was restored")
                report["restart_s"] = again["restart_s"]
            return report
        finally:
            self._forget()

    def _run(self, case: Case, iterations: int, *more: str) -> dict:
        places = [word for name in case.places for word in (name, self._places[name])]
        command = self.application.command(iterations, [*case.options, *places, *more])
        output = job_output(command, f"{self.application.name}, {case.name}", _LIMIT_S)
        self._advance()
        return self.application.report(output)

    def _forget(self) -> None:
        for path in self._places.values():
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class Said:
    """Makes facts of rounds; their cases are `prefix` and the name of a case."""

    bench: str
    prefix: str
    about: dict
    claims: bool

    def measured(self, cases: Sequence[Case], rounds: list[Round]) -> Iterator[Fact]:
        for case in cases:
            yield from self._of_case(case, rounds)

    def _of_case(self, case: Case, rounds: list[Round]) -> Iterator[Fact]:
        ran = [(around[case.name], around["none"]) for around in rounds]
        copies = [around["memcpy"] for around in rounds if "memcpy" in around]  # the yardstick

        def fact(
            metric: str, values: list[float], unit: str = "", target: float | None = None
        ) -> Fact:
            claimed = target if self.claims else None
            name = self.prefix + case.name
            return Fact.of(self.bench, name, metric, values, unit, claimed, more=self.about)

        loops = [a["loop_s"] / none["loop_s"] for a, none in ran]
        yield fact("run_time_ratio", loops, "", case.run_time)
        medians = [a["iteration_median_s"] / none["iteration_median_s"] for a, none in ran]
        yield fact("iteration_ratio", medians)
        if case.name != "none":
            commits = [a["commit_median_s"] for a, _ in ran]
            if copies:
                blocking = [a / copy["commit_median_s"] for a, copy in zip(commits, copies)]
                yield fact("commit_blocking_ratio", blocking, "", case.blocking)
            yield fact("commit_ms", [seconds * 1e3 for seconds in commits], "ms")
        yield fact("start_s", [a["start_s"] for a, _ in ran], "s")
        if case.restarts:
            yield fact("restart_s", [a["restart_s"] for a, _ in ran], "s")
        if case.restarts and copies:
            ratios = [a["restart_s"] / none["start_s"] for a, none in ran]
            yield fact("restart_ratio", ratios, "", case.restart)

    def emulated(self, case: Case, spec: str, bench: Bench, rounds: list[Round]) -> Fact:
        """run_time_ratio with the virtual clock's time added to every commit that was measured."""
        added_s = bench.model_ns_per_commit(case, spec) * 1e-9
        ran = [(around[case.name], around["none"]) for around in rounds]
        ratios = [(a["loop_s"] + added_s * a["commits"]) / none["loop_s"] for a, none in ran]
        model = next((model.about for model in MODELS if model.spec == spec), {"emulated": spec})
        more = {**self.about, **model, "model_ms_per_commit": added_s * 1e3}
        return Fact.of(self.bench, self.prefix + case.name, "run_time_ratio", ratios, more=more)
