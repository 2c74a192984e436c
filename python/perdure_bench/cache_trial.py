# SPDX-License-Identifier: BSD-3-Clause
"""One trial of `perdure bench kill_cache`: a job that is killed, its recovery, and a comparison."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from perdure.programs import OPEN_MPI, Program, output_of
from perdure.run.attempt import OUR_ENDINGS, Limits
from perdure.run.job import JobResult
from perdure_bench.solver import run_captured

_LIMITS = Limits(timeout_s=60, hang_s=20)
# mpirun gives the survivors of a killed rank a second; that would be half of a campaign.
_ENVIRONMENT = {**OPEN_MPI, "OMPI_MCA_odls_base_sigkill_timeout": "0"}
_PART_KIB = 336  # what a part needs besides its blocks
_WRITES = 100  # of a rank, in each of four stages
_LOG = struct.Struct("<8Q12Q12Q")  # RankLog of cache_job_plan.hpp
_LOG_HEADER_BYTES = 256
_SAID = 2000  # characters: an error comes before what the launcher has to say of it
_KILLED = -signal.SIGKILL  # the exit code of a recovery that was killed


@dataclass(frozen=True)
class CacheJob:
    """A job of cache_job."""

    program: Program
    ranks: int
    nodes: int
    acknowledge: str
    sync: str
    block_bytes: int
    seed: int
    aside: int = 0  # accesses of a rank before the file is cached

    def __str__(self) -> str:
        where = f"{self.program.flavour}, {self.ranks} ranks, {self.nodes} nodes"
        how = f"ack={self.acknowledge}, sync={self.sync}, block={self.block_bytes}"
        how += f", from={self.aside}"
        return f"{where}, {how}, --seed {self.seed}"

    def words(self) -> list:
        """The words of it on the program's command line."""
        shape = ["--ranks", self.ranks, "--nodes", self.nodes, "--block", self.block_bytes]
        shape += ["--seed", self.seed, "--writes", _WRITES]
        return [*shape, "--ack", self.acknowledge, "--sync", self.sync, "--from", self.aside]


@dataclass(frozen=True)
class CacheKill:
    """When a rank (None: all) is killed, how the file is recovered, and when that is killed."""

    rank: int | None
    stage: int
    after_ns: int
    recovery: str  # command, reopen
    recovery_killed_s: float | None

    def __str__(self) -> str:
        who = "all ranks" if self.rank is None else f"rank {self.rank}"
        again = "" if self.recovery_killed_s is None else f", killed at {self.recovery_killed_s} s"
        return f"{who} killed in stage {self.stage} at {self.after_ns} ns, {self.recovery}{again}"

    def words(self) -> list:
        """The words of it on the program's command line."""
        who = ["--kill-all"] if self.rank is None else ["--kill-rank", self.rank]
        return [*who, "--kill-stage", self.stage, "--kill-ns", self.after_ns]


@dataclass
class Outcome:
    """What came of a trial; `killed_at` is the stage, None if the job ended before its kill."""

    killed_at: int | None = None
    wrong: int = 0
    lost: int = 0
    refused: int = 0
    leftovers: int = 0
    full: bool = False
    recovery_killed: bool = False
    recovery_s: float | None = None  # of one that was not disturbed
    by_command: bool = False
    stage_ns: dict[int, int] = field(default_factory=dict)  # stages that a rank completed
    said: str = ""


@dataclass(frozen=True)
class RankLog:
    """How far a rank came."""

    stage: int
    killed_ns: int
    failed_ns: int
    stage_ns: tuple[int, ...]

    def spans(self) -> dict[int, int]:
        """How long each completed stage took; a job that only reopens the file skips some."""
        begun = [(i, at) for i, at in enumerate(self.stage_ns[: self.stage + 1]) if at]
        return {i: end - at for (i, at), (_, end) in zip(begun, begun[1:])}


def read_log(content: bytes, ranks: int) -> list[RankLog]:
    """The log of a job, as its ranks left it."""
    logs = []
    for rank in range(ranks):
        words = _LOG.unpack_from(content, _LOG_HEADER_BYTES + rank * _LOG.size)
        logs.append(RankLog(words[0], words[6], words[7], words[8:20]))
    return logs


def failed_before_kill(logs: list[RankLog]) -> bool:
    """Whether a call failed while all ranks lived."""
    failed = [log.failed_ns for log in logs if log.failed_ns]
    killed = [log.killed_ns for log in logs if log.killed_ns]
    return bool(failed) and (not killed or min(failed) < min(killed))


class Trial:
    """A job and its kill in an empty `place`; the cached file is there or in `disk`.

    `full`: the pool has room for a fourth of the file, so that the rest passes through to it,
    where a small file system may be mounted for that.
    """

    def __init__(
        self, job: CacheJob, kill: CacheKill, place: Path, disk: Path | None, full: bool = False
    ):
        self._job, self._kill, self._full = job, kill, full
        self._file = (disk or place) / "file"
        self._place, self._pool, self._log = place, place / "pool", place / "log"

    def run(self) -> Outcome:
        """Runs all of it; raises ProgramFailed if there is nothing to judge."""
        self._place.mkdir()
        self._ask("--make")
        if not self._full:
            return self._run()
        kib = self._job.nodes * _PART_KIB + self._file.stat().st_size // 4096
        self._pool.mkdir()
        options = f"size={kib}k,mode=0700"
        mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(self._pool)]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            return self._run()
        try:
            return self._run(full=True)
        finally:
            subprocess.run(["umount", "-l", self._pool], check=True)

    def _run(self, full: bool = False) -> Outcome:
        outcome = Outcome(full=full)
        ran, said = self._launch("--log", self._log, *self._kill.words())
        self._judge_job(ran, said, outcome)
        if outcome.killed_at is not None and not outcome.refused:
            self._recover(outcome)
        if not outcome.refused:
            verdict = json.loads(self._ask("--verify", "--log", self._log))
            outcome.wrong, outcome.lost = verdict["wrong"], verdict["lost"]
            outcome.said += f"; {verdict}" if outcome.wrong or outcome.lost else ""
            left = [str(path) for path in self._pool.rglob("*") if path.is_file()]
            outcome.leftovers = len(left)
            outcome.said += f"; left behind: {', '.join(left)}" if left else ""
        return outcome

    def _words(self, *words: object) -> list[str]:
        place = ["--file", self._file, "--pool", self._pool]
        return [str(word) for word in (*words, *place, *self._job.words())]

    def _ask(self, *words: object) -> str:
        command = [str(self._job.program.program), *self._words(*words)]
        return output_of(command, f"cache_job {words[0]}", limit_s=60)

    def _launch(self, *words: object, ranks: int | None = None) -> tuple[JobResult, str]:
        command = self._job.program.command(ranks or self._job.ranks, *self._words(*words))
        result, said = run_captured(command, limits=_LIMITS, environment=_ENVIRONMENT)
        if result.attempts and result.attempts[-1].stopped_by is not None:
            raise KeyboardInterrupt
        return result, said

    def _judge_job(self, ran: JobResult, said: str, outcome: Outcome) -> None:
        logs = read_log(self._log.read_bytes(), self._job.ranks)
        for log in logs:
            outcome.stage_ns.update(log.spans())
        victims = [log.stage for log in logs if log.killed_ns]
        if ran.exit_code != 0 and victims:
            outcome.killed_at = victims[0]
        if failed_before_kill(logs) or (ran.exit_code != 0 and not victims) or _overdue(ran):
            outcome.refused = 1
            outcome.said = said[-_SAID:].strip()

    def _recover(self, outcome: Outcome) -> None:
        """Recovery until it is done; one that is killed is followed by one of the other kind."""
        killed_s, kind = self._kill.recovery_killed_s, self._kill.recovery
        if killed_s is not None:
            self._recover_once(kind, killed_s, outcome)
            kind = "reopen" if kind == "command" else "command"
        self._recover_once(kind, None, outcome)

    def _recover_once(self, kind: str, killed_s: float | None, outcome: Outcome) -> None:
        by_command = kind == "command"
        attempt = self._recover_by_command if by_command else self._recover_by_reopening
        code, seconds, said = attempt(killed_s)
        if code == _KILLED:
            outcome.recovery_killed = True
        elif code != 0:
            outcome.refused = 1
            outcome.said = said[-_SAID:].strip()
        else:
            outcome.by_command, outcome.recovery_s = by_command, seconds

    def _recover_by_reopening(self, killed_s: float | None) -> tuple[int, float, str]:
        """By the next open of the file, which is killed in rank 0's call if asked for."""
        log = self._place / "reopen-log"
        words = ["--reopen", "--log", log]
        if killed_s is not None:
            words += ["--kill-rank", 0, "--kill-stage", 0, "--kill-ns", int(killed_s * 1e9)]
        ran, said = self._launch(*words, ranks=max(2, self._job.nodes))
        own = read_log(log.read_bytes(), 1)[0] if log.exists() else None
        log.unlink(missing_ok=True)
        if own is None:
            return 1, 0.0, said
        code = _KILLED if ran.exit_code != 0 and own.killed_ns and not own.failed_ns else None
        return code or ran.exit_code, own.spans().get(0, 0) * 1e-9, said

    def _recover_by_command(self, killed_s: float | None) -> tuple[int, float, str]:
        """By `perdure cache recover`, in a child whose interpreter has already started."""
        began = time.monotonic()
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            child = os.fork()
            if child == 0:
                _end_as_command(self._pool, output.fileno())
            if killed_s is not None:
                time.sleep(killed_s)
                os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            output.seek(0)
            return code, time.monotonic() - began, output.read()


def _overdue(ran: JobResult) -> bool:
    return any(attempt.ended in OUR_ENDINGS for attempt in ran.attempts)


def _end_as_command(pool: Path, output: int) -> None:
    """Turns this process into the command; does not return."""
    import typer

    from perdure.cache import command

    code = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        command.recover([pool], None, as_it_is=True)
        code = 0
    except typer.Exit as ended:
        code = ended.exit_code
    finally:
        os._exit(code)
