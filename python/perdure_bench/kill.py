# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench kill`: jobs killed at random moments, restarted, and compared bit for bit.

Each trial draws an MPI, a number of ranks, a protection and a rank, and sends it SIGKILL: one half
of the kills at a random moment of the solver's loop, from outside, the other half at one of the
points of a random commit. In some trials the restarted attempt is killed too. The last attempt's
answer is compared with one of an undisturbed run.

    kills      ranks that were killed; a trial whose kill came too late is drawn again
    wrong      the answer differs in any bit
    lost       restart gave an older version than one that a rank had seen committed
    refused    the last attempt did not end well
    leftovers  files in /dev/shm that the job left behind
"""

from __future__ import annotations

import random
import shutil
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from perdure.programs import Program, ProgramFailed
from perdure.progress import progress
from perdure.run.rehearsal import POINTS, Rehearsal
from perdure_bench.facts import Fact
from perdure_bench.solver import PROTECTIONS, find_solvers, pool_directory
from perdure_bench.trial import ITERATIONS, Job, run_killed, try_out

SUMMARY = "jobs killed at random moments, their restarts and their answers"
FAULTS = ("wrong", "lost", "refused", "leftovers")
_RANKS = (2, 4)
_KILLS, _KILLS_QUICK = 500, 12
_KILLED_TWICE = 0.15  # of the trials
_TRIALS_PER_KILL = 6  # that happened; with more of them something is wrong with the campaign
# An MPI that spins is slow with more ranks than cores, so it gets fewer of those trials, and none
# in the short form.
_YIELDING = "openmpi"


def measure(quick: bool, seed: int = 1) -> Iterator[Fact]:
    """The outcomes per protection, then of all. Raises ProgramFailed."""
    wanted = _KILLS_QUICK if quick else _KILLS
    return run_campaign("kill", partial(Campaign, quick=quick), find_solvers(), wanted, seed)


class Trials(ABC):
    """Draws and runs trials; `counts` are the outcomes by case, and of "all"."""

    def __init__(
        self, programs: list[Program], pools: Path, draw: random.Random, cases: tuple[str, ...]
    ):
        self._programs, self._pools, self._draw, self._cases = programs, pools, draw, cases
        self.trials = 0
        self.counts: dict[str, Counter[str]] = {case: Counter() for case in (*cases, "all")}

    @property
    def kills(self) -> int:
        return self.counts["all"]["kills"]

    @abstractmethod
    def run_trial(self, kills_left: int) -> None:
        """One trial with at most `kills_left` kills."""

    def _count(self, case: str, found: Counter[str]) -> None:
        for name in (case, "all"):
            self.counts[name].update(found)

    def _draw_due(self) -> str:
        """One of the cases with the fewest kills."""
        fewest = min(self.counts[case]["kills"] for case in self._cases)
        return self._draw.choice([c for c in self._cases if self.counts[c]["kills"] == fewest])

    def _yielding(self) -> list[Program]:
        """The programs of the MPI that does not spin with more ranks than cores."""
        return [program for program in self._programs if program.flavour == _YIELDING]


def run_campaign(
    bench: str,
    kind: Callable[[list[Program], Path, random.Random], Trials],
    programs: list[Program],
    wanted: int,
    seed: int,
) -> Iterator[Fact]:
    """Runs trials until `wanted` ranks were killed, and yields the outcomes."""
    print(f"perdure bench {bench}: seed {seed}", file=sys.stderr, flush=True)
    with pool_directory() as pools, progress(f"bench {bench}", wanted) as advance:
        campaign = kind(programs, pools, random.Random(seed))
        while (done := campaign.kills) < wanted:
            campaign.run_trial(wanted - done)
            advance(campaign.kills - done)
            if campaign.trials > wanted * _TRIALS_PER_KILL:
                raise ProgramFailed(f"only {campaign.kills} of {campaign.trials} jobs were killed")
    for case, counted in campaign.counts.items():
        yield from _facts(bench, case, counted, seed, wanted if case == "all" else None)


class Campaign(Trials):
    """Trials of a solver, by protection.

    Another kind of job has protections and a make_job of its own.
    """

    protections: tuple[str, ...] = PROTECTIONS
    make_job: type[Job] = Job

    def __init__(
        self, solvers: list[Program], pools: Path, draw: random.Random, quick: bool = False
    ):
        super().__init__(solvers, pools, draw, self.protections)
        self._quick = quick
        self._loop_s: dict[Job, float] = {}
        self._answer: dict[tuple, str] = {}  # by the problem

    def run_trial(self, kills_left: int) -> None:
        job = self._draw_job()
        twice = kills_left > 1 and self._draw.random() < _KILLED_TWICE
        kills = [self._draw_kill(job, number) for number in range(1 + twice)]
        if job.problem not in self._answer:
            self._run_undisturbed(job)
        self.trials += 1
        ran, faults = try_out(job, kills, self._pools / "trial", self._answer[job.problem])
        if sum(faults.values()):
            _say_fault(job, kills, faults)
        if not ran.killed and ran.exit_code == 0:
            self._loop_s[job] = ran.report["loop_s"]  # it was undisturbed, and newer
        self._count(job.protect, faults)
        self._count(job.protect, _kinds(job, ran.killed))

    def _draw_job(self) -> Job:
        ranks = self._draw.choice(_RANKS)
        yielding, solvers = self._yielding(), self._programs
        if ranks > min(_RANKS) and yielding:
            solvers = yielding if self._quick else solvers + 3 * yielding
        return self.make_job(self._draw.choice(solvers), ranks, self._draw_due())

    def _draw_kill(self, job: Job, number: int) -> Rehearsal:
        """The `number`-th kill of a trial, of the kind of which there were fewer so far."""
        rank, counted = self._draw.randrange(job.ranks), self.counts["all"]
        chosen = counted["in_commit"] + counted["in_call"]
        if (counted["at_random"] > chosen) != bool(number):
            point, iteration = self._draw.choice(POINTS), self._draw.randint(1, ITERATIONS)
            return Rehearsal(rank, point, iteration=iteration)
        if job not in self._loop_s:
            self._run_undisturbed(job)
        return Rehearsal(rank, "", seconds=self._draw.uniform(0, self._loop_s[job]))

    def _run_undisturbed(self, job: Job) -> None:
        pool = self._pools / "undisturbed"
        ran = run_killed(job, [], pool)
        shutil.rmtree(pool)
        if ran.exit_code != 0:
            raise ProgramFailed(f"{job} ended with {ran.exit_code}: {ran.printed[-300:].strip()}")
        self._loop_s[job] = ran.report["loop_s"]
        answer = self._answer.setdefault(job.problem, ran.report["hash"])
        if answer != ran.report["hash"]:
            raise ProgramFailed(f"undisturbed runs differ in their answers: {job}")


def _kinds(job: Job, killed: list[Rehearsal]) -> Counter:
    counted = Counter(kills=len(killed), restarts_killed=max(0, len(killed) - 1))
    counted["trials"] += 1
    for rehearsal in killed:
        chosen = "in_commit" if rehearsal.in_commit else "in_call"
        counted["at_random" if rehearsal.iteration is None else chosen] += 1
        counted[job.solver.flavour] += 1
        counted[f"ranks_{job.ranks}"] += 1
    return counted


def _say_fault(job: Job, kills: list[Rehearsal], faults: Counter) -> None:
    found = ", ".join(f"{name} {count}" for name, count in faults.items() if count)
    print(f"perdure bench kill: {found}: {job}, {'; '.join(map(str, kills))}", file=sys.stderr)


def _facts(
    bench: str, case: str, counted: Counter, seed: int, wanted: int | None
) -> list[Fact]:
    """`wanted` is how many kills were asked for, if that is known of the case."""
    kinds = {name: n for name, n in counted.items() if name not in ("kills", *FAULTS)}
    targets = {"kills": wanted, **dict.fromkeys(FAULTS, 0)}
    facts = []
    for metric, target in targets.items():
        value = counted[metric]
        holds = None if target is None else value == target
        more = {"seed": seed, **kinds}
        facts.append(Fact(bench, case, metric, value, "", n=counted["kills"], target=target,
                          holds=holds, more=more))  # fmt: skip
    return facts
