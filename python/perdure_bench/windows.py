# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench windows`: what persistent MPI windows cost.

The paper on checkpointing with MPI one-sided communication: its Figures 1 and 2 and Table 2 with
HPCCG, 3 and 4 and Table 3 with PageRank, and what it left open: double buffering by the library,
and the logged mode. Cases are named APPLICATION-PROTECTION.

A round runs every case once, in a new random order, with a commit every iteration; a ratio compares
runs of one round and one application. Two ranks, pools in memory.

    run_time_ratio      time of the loop over that of none
    iteration_ratio     median time of an iteration over that of none: what is left of the ratio
                        when the machine's interruptions are taken out
    commit_ms           median time that a commit kept the application waiting
    start_s, restart_s  from having the matrix or graph to the first iteration: cold, from a version
    fence_us, floor_us  a fence that commits, by window size and number of ranks; and the least it
                        can take: MPI's own fence, one MPI_Allreduce of 8 bytes, and a memcpy (copy)
    ratio_to_plain      of single operations (windows_micro.py)

PageRank ranks the web graph cnr-2000 where it is found ($PERDURE_TEST_GRAPH, or shared/data beside
the clone), else an R-MAT graph of 4 million nodes. The part of a run that an emulated device would
add is its virtual clock's; it does not model loads and stores of the application itself.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from perdure.programs import CLONE, OPEN_MPI, Program, find_programs, output_of
from perdure.progress import progress
from perdure.run.attempt import attempt_environment
from perdure_bench import windows_micro
from perdure_bench.facts import Fact, in_turn, reported
from perdure_bench.hpccg import MODELS, Model
from perdure_bench.solver import disk_directory, huge_page_directory, last_report, pool_directory
from perdure_bench.windows_fence import fence_facts, fence_runs

SUMMARY = "cost of MPI windows that survive"
PROTECTIONS = ("none", "disk", "copy", "twin", "log")
EMULATED = ("copy", "twin", "log")
TWIN_TARGET = 1.02  # of run_time_ratio
_RANKS = 2
_LIMIT_S = 900


@dataclass(frozen=True)
class Size:
    """How much is run."""

    edge: int  # hpccg: points along an edge of each rank
    hpccg_iterations: int
    pagerank_iterations: int
    hpccg_rounds: int
    pagerank_rounds: int  # more, as a run takes half a second
    claims: bool


QUICK = Size(48, 10, 30, 3, 3, False)
FULL = Size(144, 12, 150, 7, 15, True)


@dataclass(frozen=True)
class Outcome:
    """What a run reported; times in seconds."""

    loop: float
    iteration: float
    commit: float
    start: float
    commits: int
    model_ns: float


class Hpccg:
    """HPCCG with p as a persistent window, x and r as arrays of its pool."""

    name = "hpccg"

    def __init__(self, program: Program, size: Size):
        self._program, self.iterations = program, size.hpccg_iterations
        self.rounds = size.hpccg_rounds
        self._edge = str(size.edge)
        self.about = {"mpi": program.flavour, "ranks": _RANKS, "edge": size.edge}

    def command(self, protection: str, iterations: int, options: list[str]) -> list[str]:
        words = [*[self._edge] * 3, "--protect", protection, "--iterations", str(iterations)]
        if protection in EMULATED:
            words.append("--windows")
        return self._program.command(_RANKS, *words, "--json", *options)

    @staticmethod
    def outcome(printed: str) -> Outcome:
        report = last_report(printed)
        start = report["restart_s"] if report["restored_version"] else report["start_s"]
        return Outcome(
            report["loop_s"],
            report["iteration_median_s"],
            report["commit_median_s"],
            start,
            report["commits"],
            report["model_ns"],
        )


class Pagerank:
    """PageRank; the shares of the ranks are a persistent window."""

    name = "pagerank"

    def __init__(self, program: Program, size: Size):
        self._program, self.iterations = program, size.pagerank_iterations
        self.rounds = size.pagerank_rounds
        graph = find_web_graph()
        self._graph = [str(graph)] if graph else ["--rmat", "22", "--edge-factor", "16"]
        self.about = {
            "mpi": program.flavour,
            "ranks": _RANKS,
            "graph": graph.name if graph else "R-MAT 22",
        }

    def command(self, protection: str, iterations: int, options: list[str]) -> list[str]:
        words = [*self._graph, "--protect", protection, "--iterations", str(iterations)]
        return self._program.command(_RANKS, *words, "--json", *options)

    @staticmethod
    def outcome(printed: str) -> Outcome:
        facts = reported(printed, "pagerank", "loop_s")

        def value(metric: str) -> float:
            return facts[metric].value if metric in facts else 0.0

        return Outcome(
            value("loop_s"),
            value("iteration_s"),
            value("commit_s"),
            value("start_s") or value("restart_s"),
            facts["commit_s"].n if "commit_s" in facts else 0,
            value("model_ns"),
        )


def find_web_graph() -> Path | None:
    """Base name of the web graph's files; None if they aren't here."""
    named = os.environ.get("PERDURE_TEST_GRAPH")
    for base in ([Path(named)] if named else []) + [CLONE.parent / "shared/data/cnr-2000"]:
        if base.with_name(base.name + ".graph").is_file():
            return base
    return None


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    size = QUICK if quick else FULL
    applications: list[Hpccg | Pagerank] = [
        Hpccg(find_programs("hpccg")[0], size),
        Pagerank(find_programs("pagerank")[0], size),
    ]
    models = MODELS[::5] if quick else MODELS
    runs = sum(application.rounds for application in applications) * len(PROTECTIONS)
    runs += len(applications) * len(models) * len(EMULATED)
    with (
        pool_directory() as pools,
        huge_page_directory(pools) as huge,
        progress("bench windows", runs + fence_runs(quick)) as advance,
    ):
        for application in applications:
            bench = Bench(application, pools, advance)
            bench.about["pool_pages"] = "2 MiB" if huge else "4 KiB"
            rounds = bench.run_rounds(application.rounds)
            yield from _measured(bench, rounds, size.claims)
            for protection in EMULATED:
                for model in models:
                    yield _emulated(bench, protection, model, rounds)
        yield from fence_facts(quick, pools, advance)
    yield from windows_micro.measure(quick)


class Bench:
    """Runs one application; every run begins with no pool unless it is a restart."""

    def __init__(self, application: Hpccg | Pagerank, pools: Path, advance: Callable[[], None]):
        self.application, self._pools, self._advance = application, pools, advance
        self.about = dict(application.about)

    def run_rounds(self, rounds: int) -> list[dict[str, tuple[Outcome, Outcome | None]]]:
        """For each round, by protection, a run and its restart."""
        return [
            {protection: self._run_and_restart(protection) for protection in in_turn(PROTECTIONS)}
            for _ in range(rounds)
        ]

    def model_ns_per_commit(self, protection: str, model: Model) -> float:
        """What an emulated device adds to a commit."""
        try:
            outcome = self._run(protection, 3, "--emulate", model.spec)
        finally:
            self._forget()
        self._advance()
        return outcome.model_ns / outcome.commits

    def _run_and_restart(self, protection: str) -> tuple[Outcome, Outcome | None]:
        iterations = self.application.iterations
        try:
            first = self._run(protection, iterations)
            again = None if protection == "none" else self._run(protection, iterations + 1)
        finally:
            self._forget()
        self._advance()
        return first, again

    def _run(self, protection: str, iterations: int, *more: str) -> Outcome:
        places = []
        if protection in EMULATED:
            places = ["--pool", str(self._pools / "pool")]
        elif protection == "disk":
            places = ["--disk-dir", str(disk_directory() / "disk")]
        command = self.application.command(protection, iterations, [*places, *more])
        environment = attempt_environment(self._pools, None, OPEN_MPI)
        del environment["PERDURE_RUN_DIR"]
        name = f"{self.application.name}, {protection}"
        return self.application.outcome(output_of(command, name, environment, _LIMIT_S))

    def _forget(self) -> None:
        for path in (self._pools / "pool", disk_directory() / "disk"):
            shutil.rmtree(path, ignore_errors=True)


def _measured(bench: Bench, rounds: list, claims: bool) -> Iterator[Fact]:
    for protection in PROTECTIONS:
        yield from _facts_of_protection(bench, protection, rounds, claims)


def _facts_of_protection(
    bench: Bench, protection: str, rounds: list, claims: bool
) -> Iterator[Fact]:
    case = f"{bench.application.name}-{protection}"
    ran = [(around[protection], around["none"][0]) for around in rounds]

    def fact(
        metric: str, values: list[float], unit: str = "", target: float | None = None
    ) -> Fact:
        claimed = target if claims else None
        return Fact.of("windows", case, metric, values, unit, claimed, more=bench.about)

    target = TWIN_TARGET if protection == "twin" else None
    yield fact("run_time_ratio", [a.loop / n.loop for (a, _), n in ran], "", target)
    yield fact("iteration_ratio", [a.iteration / n.iteration for (a, _), n in ran])
    yield fact("start_s", [a.start for (a, _), _ in ran], "s")
    if protection != "none":
        yield fact("commit_ms", [a.commit * 1e3 for (a, _), _ in ran], "ms")
        yield fact("restart_s", [again.start for (_, again), _ in ran], "s")


def _emulated(bench: Bench, protection: str, model: Model, rounds: list) -> Fact:
    """run_time_ratio with the virtual clock's time added to every commit of the measured runs."""
    added_s = bench.model_ns_per_commit(protection, model) * 1e-9
    ratios = []
    for around in rounds:
        outcome, _ = around[protection]
        ratios.append((outcome.loop + added_s * outcome.commits) / around["none"][0].loop)
    more = {
        "emulated": str(model),
        "model_ms_per_commit": added_s * 1e3,
        "memory_latency_ns": model.memory_ns,
        "commit_latency_ns": model.commit_ns,
        "bandwidth": model.bandwidth,
    }
    case = f"{bench.application.name}-{protection}"
    return Fact.of("windows", case, "run_time_ratio", ratios, more=bench.about | more)
