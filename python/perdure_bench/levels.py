# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench levels`: what it costs to keep versions on other nodes and on a file system.

hpccg with a pool in copy mode, a commit every iteration, every 10th version taken. Each rank is a
pretended node of its own on one machine (PERDURE_NODE_ID), so the messages go through memory; what
they cost on a network is not modelled, nor is a parallel file system: the drain writes to a
directory of a disk. A case has 4 ranks, or as many as there are cores if its scheme can do with
them; where ranks outnumber the cores nothing is claimed, as what is done beside the solver then
delays other ranks. A round runs every case once, in a new random order, and the cases of which
nothing is claimed only every third one; with --quick there are fewer rounds and iterations of the
same problem, without those cases. A ratio compares runs of one round with equally many ranks.

    blocking_ratio  time that all commits kept the solver waiting, over that with the pool alone
    floor_ratio     the same, over a memcpy of the committed bytes at the same places of the loop
    run_time_ratio  time of the loop, over that with the pool alone
    cpu_ratio       processor time of the busiest rank in the loop, its threads' and its waiting for
                    other ranks included, over the same: other programs move it less
    whole, drained  the newest version that all ranks had whole, or was in the directory, at the end
    wrong, lost, refused   of case patterns: nodes lost at any call of a small job (node_losses)
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from perdure.programs import Program, ProgramFailed, find_program
from perdure.progress import progress
from perdure_bench.facts import Fact, in_turn
from perdure_bench.solver import (
    disk_directory,
    find_solvers,
    job_output,
    last_report,
    pool_directory,
    solve,
)

SUMMARY = "what versions on other nodes and on a file system cost, and what survives"
_LIMIT_S = 900
_SEED = 23
_ON_A_NODE_OF_ITS_OWN = (
    'PERDURE_NODE_ID=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}; export PERDURE_NODE_ID; exec "$@"'
)
# A rank sends and stores in proportion; 1.05 is claimed where a rank's state is 64 MB or more.
_RUN_TIME_TARGET = 1.05


@dataclass(frozen=True)
class Case:
    """What is kept where; the floor is a memcpy instead of a commit."""

    name: str
    redundancy: str = "off"
    drain: bool = False
    target: float | None = None
    protect: str = "copy"
    ranks_min: int = 2

    def levels(self, every: int, directory: Path) -> str:
        """The value of PERDURE_LEVELS."""
        text = f"redundancy={self.redundancy};every={every};patience=300s"
        return f"{text};drain={directory}" if self.drain else text


L1 = Case("l1")
FLOOR = Case("memcpy", protect="memcpy")
CASES = (
    Case("partner", "partner", target=_RUN_TIME_TARGET),
    Case("xor", "xor:4", target=_RUN_TIME_TARGET, ranks_min=4),
    Case("rs", "rs:2+2", ranks_min=4),
    Case("drain", drain=True, target=_RUN_TIME_TARGET),
    Case("partner-drain", "partner", drain=True, target=_RUN_TIME_TARGET),
    Case("xor-drain", "xor:4", drain=True, target=_RUN_TIME_TARGET, ranks_min=4),
)
PATTERNS = (("partner", 4), ("xor:3", 6), ("rs:2+2", 4), ("rs:3+3", 6))


@dataclass(frozen=True)
class Size:
    """Iterations, rounds, trials of each pattern. Other problems would have other ratios."""

    iterations: int
    rounds: int
    trials: int
    whole: bool  # claims something, and has the cases with more ranks than cores


RANKS = 4  # the most
EDGE = 140  # points along an edge of a rank's part
EVERY = 10  # versions that are taken
QUICK = Size(60, 1, 20, False)
FULL = Size(120, 10, 1000, True)


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    size = QUICK if quick else FULL
    solvers = find_solvers()
    # Ranks may outnumber the cores: the MPI whose waiting ranks give theirs away.
    solver = next((s for s in solvers if s.flavour.startswith("openmpi")), solvers[0])
    with pool_directory() as pools:
        bench = Bench(solver, size, pools)
        total = sum(len(bench.runs_of(number)) for number in range(size.rounds)) + len(PATTERNS)
        with progress("bench levels", total) as advance:
            yield from _facts(bench.run_rounds(advance), bench)
            for scheme, nodes in PATTERNS:
                yield from _patterns(scheme, nodes, size.trials, pools)
                advance()


class Bench:
    """Runs hpccg, every time with no pool and an empty directory of the drain."""

    def __init__(self, solver: Program, size: Size, pools: Path):
        self.solver, self.size, self.pools = solver, size, pools
        self.cores = len(os.sched_getaffinity(0))
        self.drain = disk_directory() / "levels"
        counts = sorted({self.ranks(case) for case in CASES})
        self.runs = [(case, self.ranks(case)) for case in CASES]
        self.runs += [(case, ranks) for case in (L1, FLOOR) for ranks in counts]

    def ranks(self, case: Case) -> int:
        """Of a run of the case."""
        return min(RANKS, max(case.ranks_min, self.cores))

    def runs_of(self, number: int) -> list[tuple[Case, int]]:
        """Those of a round."""
        others = self.size.whole and number % 3 == 0
        return [run for run in self.runs if others or run[1] <= self.cores]

    def run_rounds(self, advance: Callable[[], None]) -> list[dict[tuple[str, int], dict]]:
        """For each round, the report of each case with each number of ranks."""
        rounds = []
        for number in range(self.size.rounds):
            reports = {}
            for case, ranks in in_turn(self.runs_of(number)):
                reports[case.name, ranks] = self._run(case, ranks)
                advance()
            rounds.append(reports)
        return rounds

    def _run(self, case: Case, ranks: int) -> dict:
        size = self.size
        self.drain.mkdir(parents=True, exist_ok=True)
        options = ("--protect", case.protect, "--pool", self.pools / "pool")
        words = solve(self.solver, ranks, EDGE, size.iterations, *options)
        program = words.index(str(self.solver.program))
        command = [*words[:program], "sh", "-c", _ON_A_NODE_OF_ITS_OWN, "sh", *words[program:]]
        more = {"PERDURE_LEVELS": case.levels(EVERY, self.drain)}
        try:
            return last_report(job_output(command, f"hpccg, {case.name}", _LIMIT_S, more))
        finally:
            shutil.rmtree(self.pools / "pool", ignore_errors=True)
            shutil.rmtree(self.drain, ignore_errors=True)


def _facts(rounds: list[dict[tuple[str, int], dict]], bench: Bench) -> Iterator[Fact]:
    total = "commit_total_s"
    for case, ranks in bench.runs:
        if case is FLOOR:
            continue
        names = (case.name, L1.name, FLOOR.name)
        ran = [
            tuple(around[name, ranks] for name in names)
            for around in rounds
            if (case.name, ranks) in around
        ]
        if not ran:
            continue
        claims = bench.size.whole and ranks <= bench.cores
        more = {
            "mpi": bench.solver.flavour,
            "ranks": ranks,
            "cores": bench.cores,
            "edge": EDGE,
            "state_bytes_per_rank": ran[0][0]["state_bytes_per_rank"],
        }

        def fact(
            metric: str,
            values: list[float],
            unit: str = "",
            target: float | None = None,
            case: Case = case,
            claims: bool = claims,
            more: dict = more,
        ) -> Fact:
            claimed = target if claims else None
            return Fact.of("levels", case.name, metric, values, unit, claimed, more=more)

        if case is not L1:
            yield fact("blocking_ratio", [a[total] / one[total] for a, one, _ in ran])
            times = [a["loop_s"] / one["loop_s"] for a, one, _ in ran]
            yield fact("run_time_ratio", times, target=case.target)
            yield fact("cpu_ratio", [a["loop_cpu_s"] / one["loop_cpu_s"] for a, one, _ in ran])
        yield fact("floor_ratio", [a[total] / floor[total] for a, _, floor in ran])
        yield fact("blocking_ms", [1e3 * a[total] / a["commits"] for a, _, _ in ran], "ms")


def _patterns(scheme: str, nodes: int, trials: int, pools: Path) -> Iterator[Fact]:
    words = [find_program("node_losses", "tests/levels"), "--scheme", scheme, "--nodes", nodes]
    done = subprocess.run(  # ends with 1 where something was wrong, which is a fact
        [str(word) for word in (*words, "--trials", trials)],
        capture_output=True,
        text=True,
        env={**os.environ, "PERDURE_TEST_SEED": str(_SEED), "PERDURE_TEST_DIR": str(pools)},
        check=False,
    )
    try:
        counts = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise ProgramFailed(f"node_losses {scheme}: {done.stderr[-300:]}") from None
    more = {"scheme": scheme, "nodes": nodes, "refused_rightly": counts["refused_rightly"]}
    for metric in ("wrong", "lost", "refused"):
        value = counts[metric]
        yield Fact(
            "levels", "patterns", metric, value, "", n=trials, target=0, holds=value == 0, more=more
        )
