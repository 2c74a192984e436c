# SPDX-License-Identifier: BSD-3-Clause
"""A job: attempts of one command, restarted after failures."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from perdure.exit_codes import FAILED, LEFT_BEHIND, NO_PROGRAM, NOT_EXECUTABLE, REMAINING
from perdure.run.allocation import NoAllocation, NoAnswer
from perdure.run.attempt import Attempt, AttemptRun, Limits, attempt_environment
from perdure.run.bell import Bell
from perdure.run.directory import run_directory
from perdure.run.left_behind import LeftPart, settle
from perdure.run.live import Live
from perdure.run.log import JobLog
from perdure.run.node_watch import NodeWatch
from perdure.run.page import Phase, RunPages
from perdure.run.placement import NoPlace, placed
from perdure.run.processes import ProcessesRemain, ProcessTree, adopt_orphans
from perdure.run.ranks import signal_name
from perdure.run.rehearsal import Rehearsal
from perdure.run.spread import Spread, TooFewNodes, attempt_name, nodes_text
from perdure.screen import some_of
from perdure.units import seconds_text

_PROCESSES_NAMED = 16
_PATIENCE_S = 180.0  # with a scheduler that does not answer: it may wait for the lost node itself
_ASK_AGAIN_S = 1.0
_ASK_AGAIN_S_MAX = 15.0
_Told = TypeVar("_Told")


@dataclass(frozen=True)
class JobRequest:
    """What the user asked for. `restarts` is how many attempts may follow the first one.

    `environment` is added to the launcher's own; `output`, a file, takes stdout and stderr; or
    `log` gets a copy of them.
    """

    command: list[str]
    restarts: int = 0
    rehearsal: Rehearsal | None = None
    limits: Limits = Limits()
    environment: dict[str, str] = field(default_factory=dict)
    output: IO | None = None
    spread: Spread | None = None
    log: Path | None = None

    @property
    def all_environment(self) -> dict[str, str]:
        return self.environment | (self.spread.allocation.environment if self.spread else {})


@dataclass
class JobResult:
    """What happened; `seconds` includes the cleaning up between attempts."""

    request: JobRequest
    attempts: list[Attempt] = field(default_factory=list)
    began: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    began_s: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    exit_code: int = 0
    rehearsal_happened: bool = False
    requeued: bool = False  # the scheduler is to start the job again
    left_behind: list[LeftPart] = field(default_factory=list)  # of cached files


def run_job(request: JobRequest, live: Live) -> JobResult:
    """Runs attempts until one succeeds, none is left, or a signal asked the launcher to end.

    Everything of an attempt is gone before the next one starts. Main thread only (signals).
    """
    result = JobResult(request)
    adopt_orphans()
    with ExitStack() as held:
        try:
            directory = held.enter_context(run_directory())
            shared = None
            if request.spread is not None:
                shared = held.enter_context(run_directory(request.spread.shared))
            log = held.enter_context(JobLog(request.log, live)) if request.log else None
            bell = held.enter_context(Bell())
            held.enter_context(live)
            try:
                _run_attempts(result, directory, shared, bell, live, log)
                _requeue(result, bell, live)
            finally:
                _settle(result, [place for place in (directory, shared) if place], live)
        except (NoAllocation, NoPlace) as wrong:
            live.say(str(wrong))
            result.exit_code = result.exit_code or FAILED
        except ProcessesRemain as remaining:
            live.say(f"no restart: {remaining}")
            result.exit_code = REMAINING
        except FileNotFoundError:
            live.say(f"there is no program '{request.command[0]}'")
            result.exit_code = NO_PROGRAM
        except PermissionError:
            live.say(f"'{request.command[0]}' can't be executed")
            result.exit_code = NOT_EXECUTABLE
    result.seconds = time.monotonic() - result.began_s
    return result


def _run_attempts(
    result: JobResult,
    directory: Path,
    shared: Path | None,
    bell: Bell,
    live: Live,
    log: JobLog | None,
) -> None:
    request = result.request
    for number in range(1, request.restarts + 2):
        rehearsal = request.rehearsal if number == 1 else None
        name = f"attempt-{number}"
        pages = RunPages.make(directory / name, shared and shared / name)
        environment = attempt_environment(
            pages.path, rehearsal, request.all_environment, pages.shared
        )
        try:
            command, nodes, lost = _place(request, number, environment, bell, live)
        except TooFewNodes as few:
            live.say(str(few))
            result.exit_code = result.exit_code or FAILED
            return
        began_s = time.monotonic() - result.began_s
        tree = _start(request, number, command, environment, log)
        watch = NodeWatch(request.spread.allocation, nodes) if request.spread else None
        run = AttemptRun(number, tree, pages, rehearsal, request.limits, bell, watch)
        attempt = run.run(live)
        if watch is not None:
            watch.close()
        attempt.began_s, attempt.nodes, attempt.lost = began_s, nodes, lost
        if log is not None:
            _log_end(log, attempt)
        result.attempts.append(attempt)
        result.exit_code = attempt.exit_code
        if rehearsal is not None:
            result.rehearsal_happened = _has_happened(rehearsal, attempt)
            if not result.rehearsal_happened:
                live.say(f"the rehearsed failure did not happen: {rehearsal}")
        if attempt.succeeded or attempt.stopped_by is not None:
            return
        attempt.why = attempt.why or attempt.refusal
        again = number <= request.restarts and not attempt.asked_to_end and not attempt.refusal
        _say_failure(attempt, again, live)
        if attempt.refusal and number <= request.restarts:
            live.say("not started again: the same pool would be refused again")
        if request.spread is not None:
            end_steps = request.spread.allocation.end_steps
            _patiently(partial(end_steps, attempt_name(number)), bell, live)
        if not again:
            return


def _start(
    request: JobRequest,
    number: int,
    command: list[str],
    environment: dict[str, str],
    log: JobLog | None,
) -> ProcessTree:
    if log is None:
        return ProcessTree(command, environment, request.output)
    outputs = log.start(number, request.restarts + 1, command)
    try:
        return ProcessTree(command, environment, *outputs)
    finally:
        for end in outputs:
            os.close(end)


def _log_end(log: JobLog, attempt: Attempt) -> None:
    pages = attempt.pages
    restored = max((page.restored_version for page in pages if page.has_restarted), default=None)
    newest = max((page.version for page in pages), default=None)
    text = f"attempt {attempt.number} ended: {ending_text(attempt)}"
    log.end(f"{text}, {attempt.why}" if attempt.why else text, attempt.seconds, restored, newest)


def _settle(result: JobResult, places: list[Path], live: Live) -> None:
    """Saves what the job left of cached files; its exit code says where that could not be."""
    folders = [folder for place in places for folder in sorted(place.glob("attempt-*"))]
    result.left_behind = settle(folders)
    for sentence in dict.fromkeys(left.sentence for left in result.left_behind):
        live.say(sentence)
    if any(left.error for left in result.left_behind):
        result.exit_code = result.exit_code or LEFT_BEHIND


def _place(
    request: JobRequest, number: int, environment: dict[str, str], bell: Bell, live: Live
) -> tuple[list[str], list[str], list[str]]:
    """The attempt's command, its nodes and the lost ones. Raises TooFewNodes, NoPlace."""
    if request.spread is None:
        return request.command, [], []
    nodes, lost = _patiently(request.spread.choose, bell, live)
    if lost:
        live.say(f"attempt {number} runs on {nodes_text(nodes)}; lost: {nodes_text(lost)}")
    spread = request.spread
    if len(nodes) < spread.wanted:
        live.say(f"the job goes on with {len(nodes)} of {spread.wanted} nodes, and fewer ranks")
    command = placed(
        request.command, nodes, attempt_name(number), environment, spread.ranks_per_node
    )
    return command, nodes, sorted(lost)


def _patiently(question: Callable[[], _Told], bell: Bell, live: Live) -> _Told:
    """What the scheduler says, which is asked again. Raises NoAnswer after _PATIENCE_S."""
    deadline, pause_s = time.monotonic() + _PATIENCE_S, _ASK_AGAIN_S
    while True:
        try:
            return question()
        except NoAnswer as failed:
            if time.monotonic() > deadline or bell.rings_for_the_end:
                raise
            if pause_s == _ASK_AGAIN_S:
                live.say(f"{failed}; asking again for {seconds_text(_PATIENCE_S)}")
        bell.wait(pause_s)
        pause_s = min(2 * pause_s, _ASK_AGAIN_S_MAX)


def _requeue(result: JobResult, bell: Bell, live: Live) -> None:
    """Asks the scheduler to start the job again, if it did not end by itself and may yet."""
    spread, last = result.request.spread, result.attempts[-1] if result.attempts else None
    if spread is None or not spread.requeue or (last and last.stopped_by is not None):
        return
    ended_early = last is not None and last.asked_to_end and last.is_ending
    if last is not None and last.succeeded and not ended_early:
        return
    usable = partial(spread.allocation.usable, spread.wanted)
    if not ended_early and not _patiently(usable, bell, live)[1]:
        live.say("the job is not put back into the queue: no node is lost, so it would fail again")
        return
    live.say("the job goes back into the queue")
    result.requeued = True
    _patiently(spread.allocation.requeue, bell, live)


def _has_happened(rehearsal: Rehearsal, attempt: Attempt) -> bool:
    """Whether the rank was killed: by the launcher, or by itself, as a rule inside a commit."""
    if rehearsal.iteration is None:
        return attempt.killed_by_rehearsal
    phase = Phase.committing if rehearsal.in_commit else Phase.computing
    inside = [page.rank for page in attempt.pages if page.phase == phase]
    return not attempt.succeeded and rehearsal.rank in inside


def _say_failure(attempt: Attempt, restarting: bool, live: Live) -> None:
    sentence = f"attempt {attempt.number}: {ending_text(attempt)} after "
    sentence += seconds_text(attempt.seconds)
    if attempt.pages:
        sentence += f", version {max(page.version for page in attempt.pages)} committed"
    if attempt.why is not None:
        sentence += f"; {attempt.why}"
    if attempt.processes_ended:
        sentence += f"; ended what was left: {some_of(attempt.processes_ended, _PROCESSES_NAMED)}"
    live.say(sentence + ("; starting again" if restarting else ""))


def ending_text(attempt: Attempt) -> str:
    """How an attempt ended: "exit 0", "SIGKILL", "hang", "stall", "timeout"."""
    if attempt.ended == "exit":
        return f"exit {attempt.status}"
    if attempt.ended == "signal":
        return signal_name(-attempt.status)
    return attempt.ended
