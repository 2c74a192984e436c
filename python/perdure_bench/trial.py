# SPDX-License-Identifier: BSD-3-Clause
"""One trial of `perdure bench kill`: a job that is killed once or twice, and what came of it."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from perdure.programs import OPEN_MPI, Program
from perdure.run.attempt import Attempt, Limits
from perdure.run.rehearsal import Rehearsal
from perdure_bench.shared_memory import SharedMemoryWatch
from perdure_bench.solver import last_report, run_captured, solve

EDGE, ITERATIONS = 32, 16
_LIMITS = Limits(timeout_s=120, hang_s=20)
# mpirun gives the survivors of a killed rank a second; that would be half of a campaign.
# Of Open MPI's own accord a dynamic window has no more than 64 attached regions.
_ENVIRONMENT = {
    **OPEN_MPI,
    "OMPI_MCA_odls_base_sigkill_timeout": "0",
    "OMPI_MCA_osc_rdma_max_attach": "100000",
}


@dataclass(frozen=True)
class Job:
    """A kind of job: what an undisturbed run is known of."""

    solver: Program
    ranks: int
    protect: str

    def __str__(self) -> str:
        return f"{self.solver.flavour}, {self.ranks} ranks, {self.protect}"

    @property
    def problem(self) -> tuple:
        """Jobs of one problem have one answer."""
        return (self.ranks,)

    @property
    def environment(self) -> dict[str, str]:
        """What its ranks need of MPI."""
        return _ENVIRONMENT

    def command(self, pool: Path) -> list[str]:
        """The job with its state in `pool`."""
        options = ("--protect", self.protect, "--pool", pool)
        return solve(self.solver, self.ranks, EDGE, ITERATIONS, *options)


@dataclass
class Ran:
    """A job that was run: its attempts, in order, and how it ended.

    `killed` are the failures that did happen.
    """

    attempts: list[Attempt]
    killed: list[Rehearsal]
    exit_code: int
    printed: str

    @property
    def report(self) -> dict:
        """The job's; raises ProgramFailed if it made none."""
        return last_report(self.printed)


def run_killed(job: Job, kills: list[Rehearsal], pool: Path) -> Ran:
    """Runs the job, killing attempt i as kills[i] says, until an attempt ends undisturbed.

    The launcher itself restarts the last one. A kill that does not happen ends the job early.
    """
    ran = Ran([], [], 0, "")
    for number in range(max(1, len(kills))):
        rehearsal = kills[number] if kills else None
        now = run_attempt(job, rehearsal, pool, restart=number == len(kills) - 1)
        ran = Ran(ran.attempts + now.attempts, ran.killed + now.killed, now.exit_code, now.printed)
        if len(ran.killed) <= number:
            break
    return ran


def run_attempt(
    job: Job, rehearsal: Rehearsal | None, pool: Path, restart: bool = False
) -> Ran:
    """Runs the job, killing a rank as `rehearsal` says; with `restart` it is then started again."""
    result, printed = run_captured(
        job.command(pool),
        restarts=int(restart),
        rehearsal=rehearsal,
        limits=_LIMITS,
        environment=job.environment,
    )
    ran = Ran(result.attempts, [], result.exit_code, printed)
    if result.attempts and result.attempts[-1].stopped_by is not None:
        raise KeyboardInterrupt
    # A rank that was sent the signal when its job had done all but ending was not killed.
    if rehearsal and result.rehearsal_happened and not result.attempts[0].succeeded:
        ran.killed.append(rehearsal)
    return ran


def try_out(job: Job, kills: list[Rehearsal], pool: Path, answer: str) -> tuple[Ran, Counter]:
    """Runs a trial and counts what went wrong; removes the pool."""
    watch = SharedMemoryWatch()
    try:
        ran = run_killed(job, kills, pool)
    finally:
        shutil.rmtree(pool, ignore_errors=True)
    counted = judge(ran, answer)
    left = watch.leftovers()
    if left:
        print(f"perdure bench kill: left in /dev/shm: {', '.join(left)}", file=sys.stderr)
    counted["leftovers"] = len(left)
    return ran, counted


def judge(ran: Ran, answer: str) -> Counter:
    """ "wrong", "lost" and "refused" of a job whose undisturbed answer is known."""
    counted = Counter(lost=lost_restarts(ran.attempts))
    if ran.exit_code != 0:
        counted["refused"] = 1
    else:
        counted["wrong"] = int(ran.report["hash"] != answer)
    return counted


def lost_restarts(attempts: list[Attempt]) -> int:
    """How many attempts were given an older version than some rank had seen committed before.

    A rank's page has a version once its commit returned there, or its restart did.
    """
    lost = committed = 0
    for attempt in attempts:
        restored = [page.restored_version for page in attempt.pages if page.has_restarted]
        lost += bool(restored) and min(restored) < committed
        committed = max([committed, *(page.version for page in attempt.pages)])
    return lost
