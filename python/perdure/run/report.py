# SPDX-License-Identifier: BSD-3-Clause
"""What a job did, in lines for people and as JSON (keys: docs/run.md)."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict

from perdure.about import version_text
from perdure.documents import fields
from perdure.run.attempt import Attempt
from perdure.run.job import JobResult, ending_text
from perdure.run.page import Phase
from perdure.run.ranks import signal_name
from perdure.run.totals import totals
from perdure.screen import Screen, plain, some_of
from perdure.units import bytes_text, rate_text, seconds_text

_RANKS_NAMED = 8


def unclosed(attempt: Attempt) -> list[int]:
    """Ranks that ended, and had not closed their pool."""
    return [page.rank for page in attempt.pages if page.phase != Phase.closed]


def job_json(result: JobResult) -> dict:
    """The statistics of a job as plain values; times in seconds, sizes in bytes."""
    rehearsal = result.request.rehearsal
    stopped = result.attempts[-1].stopped_by if result.attempts else None
    return {
        "command": result.request.command,
        "perdure": version_text(),
        "host": platform.node(),
        "began": result.began.isoformat(timespec="seconds"),
        "exit_code": result.exit_code,
        "completed": stopped is None and bool(result.attempts) and result.attempts[-1].succeeded,
        "stopped_by": signal_name(stopped) if stopped else None,
        "seconds": round(result.seconds, 6),
        "restarts": max(0, len(result.attempts) - 1),
        "requeued": result.requeued,
        "levels": _levels(result),
        "plan": result.request.environment.get("PERDURE_ENERGY_PLAN"),
        "rehearsal": rehearsal
        and {**asdict(rehearsal), "happened": result.rehearsal_happened},
        "left_behind": [left.as_json() for left in result.left_behind],
        "attempts": [_attempt_json(attempt) for attempt in result.attempts],
    }


def _levels(result: JobResult) -> str | None:
    """What is asked for beyond the pool; None: what the library does by default."""
    return result.request.environment.get("PERDURE_LEVELS") or os.environ.get("PERDURE_LEVELS")


def _attempt_json(attempt: Attempt) -> dict:
    sums = totals(attempt.pages)
    return {
        "attempt": attempt.number,
        **fields(attempt, ("ended", "why", "nodes", "lost", "asked_to_end", "exit_code")),
        "signal": signal_name(-attempt.status) if attempt.ended == "signal" else None,
        "began_s": round(attempt.began_s, 6),
        "seconds": round(attempt.seconds, 6),
        "start_s": None if attempt.started_s is None else round(attempt.started_s, 6),
        **asdict(sums),
        "commit_share": _share(sums.commit_s, attempt),
        "ranks_unclosed": unclosed(attempt),
        **fields(attempt, ("processes_ended", "shared_memory_removed")),
        "history": attempt.history.as_json(),
    }


def _share(commit_s: float, attempt: Attempt) -> float:
    """Part of the attempt, from its start to its end, that the slowest rank spent in commits."""
    return round(commit_s / attempt.seconds, 6) if attempt.seconds > 0 else 0.0


def print_report(result: JobResult, console: Screen) -> None:
    """Each attempt in lines of "name  value", and a line for what is not of one attempt."""
    for attempt in result.attempts:
        for name, value in _lines(attempt).items():
            console.print(f"{name:<12}{value}")
    levels = _levels(result)
    if levels is not None or result.request.spread is not None:
        console.print(f"levels: {plain(levels or 'a copy of every 10th version on another node')}")
    removed = [name for attempt in result.attempts for name in attempt.shared_memory_removed]
    if removed:
        console.print(f"removed from /dev/shm: {', '.join(removed)}")
    if len(result.attempts) > 1:
        console.print(f"{len(result.attempts)} attempts in {seconds_text(result.seconds)}")
    if result.attempts and not any(attempt.pages for attempt in result.attempts):
        if "LD_PRELOAD" in result.request.environment:
            console.print("no pool was opened: MPI files alone were cached or recorded")
        else:
            console.print("no rank reported: the program does not use Perdure, or runs elsewhere "
                          "(`perdure doctor` shows which MPI is whose)")


def _lines(attempt: Attempt) -> dict[str, str]:
    """What an attempt did, for people."""
    sums = totals(attempt.pages)
    lines = {f"attempt {attempt.number}": f"{ending_text(attempt)}, after "
             f"{seconds_text(attempt.seconds)}"}
    if not sums.ranks_reporting:
        return lines
    restored = f"version {sums.restored_version}" if sums.restored_version else "nothing"
    if sums.restored_version is not None:
        lines["  restored"] = f"{restored}, in {seconds_text(sums.restart_s)}"
    iteration = "" if sums.iteration is None else f", iteration {sums.iteration}"
    lines["  newest"] = f"version {sums.version}{iteration}"
    share = f"{_share(sums.commit_s, attempt):.1%}"
    lines["  commits"] = (
        f"{sums.commits} in {seconds_text(sums.commit_s)} ({share}), "
        f"{bytes_text(sums.commit_bytes)} at {rate_text(sums.commit_bytes, sums.commit_s)}"
    )
    if attempt.succeeded and (ranks := unclosed(attempt)):
        lines["  not closed"] = f"the pool of ranks {some_of(ranks, _RANKS_NAMED)}"
    return lines
