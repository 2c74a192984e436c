# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench kill_cache`: jobs that write to a cached file, killed at random moments.

The job is tests/mpiio/cache_job.cpp: its ranks write small and large pieces that share grains and
blocks, sync, let the file grow, close it and open it again. One random rank, or all of them, are
sent SIGKILL while they write, sync or close. Then the file is recovered, by `perdure cache recover`
or by being opened again; in a quarter of the trials the first recovery is killed too. In another
quarter, where mounting is allowed, the parts have room for a fourth of the file. At the end every
byte is compared with what the writes that were acknowledged and those under way allow.

    kills      jobs that were killed; a trial whose kill came too late is drawn again
    wrong      bytes that no order of events explains: a torn small write, others' bytes changed
    lost       bytes of acknowledged writes that are not there
    refused    a recovery that failed, or a job that ended before its kill
    leftovers  parts in the pool after the recovery; the campaign looks at its own directory only

With `ack=async` a write to another node counts as acknowledged from the next sync on.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from perdure.programs import Program, find_programs
from perdure_bench.cache_trial import CacheJob, CacheKill, Outcome, Trial
from perdure_bench.facts import Fact
from perdure_bench.kill import FAULTS, Trials, run_campaign

SUMMARY = "jobs that write to cached files killed at random moments, and what was recovered"
_KILLS, _KILLS_QUICK = 300, 12
# The stages of cache_job_plan.hpp at which a kill of each kind aims.
STAGES = {"writes": (1, 3, 5, 9), "sync": (2, 6), "close": (7, 10)}
_ACKNOWLEDGE = ("sync", "async", "durable")
_KILLED_ALL = 0.25  # of the trials
_RECOVERY_KILLED = 0.25
_ON_DISK = 0.25
_FULL = 0.25  # where a small file system can be mounted
_SPAN_NS = 2_000_000.0  # of a stage that was not timed yet


def measure(quick: bool, seed: int = 1) -> Iterator[Fact]:
    """The outcomes per acknowledgement, then of all. Raises ProgramFailed."""
    wanted = _KILLS_QUICK if quick else _KILLS
    programs = find_programs("cache_job", "tests/mpiio")
    return run_campaign("kill_cache", CacheCampaign, programs, wanted, seed)


class CacheCampaign(Trials):
    """Trials of a cached file, by acknowledgement."""

    def __init__(self, programs: list[Program], pools: Path, draw: random.Random):
        super().__init__(programs, pools, draw, _ACKNOWLEDGE)
        self._span_ns: dict[tuple, float] = {}  # of a stage, by what it depends on
        self._recovery_s: dict[bool, float] = {}

    def run_trial(self, kills_left: int) -> None:
        """One trial; it kills one job at most."""
        del kills_left
        job = self._draw_job()
        kind = self._fewest(tuple(STAGES))
        kill = self._draw_kill(job, kind)
        with tempfile.TemporaryDirectory(prefix="perdure-bench-") as disk:
            on_disk = self._draw.random() < _ON_DISK
            full = self._draw.random() < _FULL
            place = Path(disk) if on_disk else None
            trial = Trial(job, kill, self._pools / "trial", place, full)
            try:
                outcome = trial.run()
            finally:
                shutil.rmtree(self._pools / "trial", ignore_errors=True)
        self.trials += 1
        self._learn(job, outcome)
        counted = Counter({name: getattr(outcome, name) for name in FAULTS})
        counted["trials"] = 1
        if outcome.killed_at is not None:
            counted += Counter(kills=1, recoveries_killed=int(outcome.recovery_killed))
            counted += Counter([job.program.flavour, f"ranks_{job.ranks}", f"nodes_{job.nodes}"])
            counted += Counter([kind_of(outcome.killed_at), kill.recovery, f"sync_{job.sync}"])
            counted += Counter(all_ranks=int(kill.rank is None), on_disk=int(on_disk))
            counted += Counter(full=int(outcome.full))
        if any(counted[name] for name in FAULTS):
            self._say_fault(job, kill, outcome)
        self._count(job.acknowledge, counted)

    def _fewest(self, kinds: tuple[str, ...]) -> str:
        counted = self.counts["all"]
        fewest = min(counted[f"in_{kind}"] for kind in kinds)
        return self._draw.choice([k for k in kinds if counted[f"in_{k}"] == fewest])

    def _draw_job(self) -> CacheJob:
        draw = self._draw
        ranks = draw.choice((2, 4))
        # An MPI that spins is slow with more ranks than cores, so it gets fewer of those trials.
        more = 5 * self._yielding() if ranks > 2 else []
        return CacheJob(
            program=draw.choice(self._programs + more),
            ranks=ranks,
            nodes=draw.choice((1, 2, 3) if ranks > 2 else (1, 2)),
            acknowledge=self._draw_due(),
            sync=draw.choice(("file", "nvm")),
            block_bytes=draw.choice((16384, 65536, 1 << 20)),
            seed=draw.getrandbits(40),
            aside=draw.choice((0, 0, 30, 150)),
        )

    def _draw_kill(self, job: CacheJob, kind: str) -> CacheKill:
        draw = self._draw
        stage = draw.choice(STAGES[kind])
        recovery = draw.choice(("command", "reopen"))
        span = self._span_ns.get(_span_key(job, stage), _SPAN_NS)
        at_command = recovery == "command"
        recovery_s = self._recovery_s.get(at_command, 0.02 if at_command else 0.002)
        killed = draw.random() < _RECOVERY_KILLED
        return CacheKill(
            rank=None if draw.random() < _KILLED_ALL else draw.randrange(job.ranks),
            stage=stage,
            after_ns=int(draw.uniform(0, span)),
            recovery=recovery,
            recovery_killed_s=draw.uniform(0, recovery_s) if killed else None,
        )

    def _learn(self, job: CacheJob, outcome: Outcome) -> None:
        """How long stages last, so that the next kill falls into one."""
        for stage, nanoseconds in outcome.stage_ns.items():
            self._span_ns[_span_key(job, stage)] = nanoseconds
        if outcome.recovery_s is not None:
            self._recovery_s[outcome.by_command] = outcome.recovery_s

    def _say_fault(self, job: CacheJob, kill: CacheKill, outcome: Outcome) -> None:
        print(f"perdure bench kill_cache: {outcome}: {job}, {kill}", file=sys.stderr)


def _span_key(job: CacheJob, stage: int) -> tuple:
    return stage, job.program.flavour, job.nodes > 1, job.acknowledge, job.sync


def kind_of(stage: int) -> str:
    """What a job was doing: in_writes, in_sync, in_close, or in_other."""
    for kind, stages in STAGES.items():
        if stage in stages:
            return f"in_{kind}"
    return "in_other"
