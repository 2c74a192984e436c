# SPDX-License-Identifier: BSD-3-Clause
"""One attempt of a job: from the start of its command until nothing of it runs any more."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path

from perdure.exit_codes import ENDED_BY_US, SIGNALLED, UNCLOSED
from perdure.run.bell import ENDING, Bell
from perdure.run.leftovers import remove_leftovers
from perdure.run.live import Live
from perdure.run.node_watch import NodeWatch
from perdure.run.page import Phase, RunPage, RunPages
from perdure.run.processes import RUN_DIRECTORY_NAME, ProcessTree
from perdure.run.ranks import RankWatch
from perdure.run.rehearsal import Rehearsal
from perdure.run.stall import StallWatch
from perdure.run.totals import History
from perdure.screen import one_line

OUR_ENDINGS = ("timeout", "hang", "stall", "lost")
_POLL_S = 0.2
_POLL_S_PER_RANK = 0.002
_POLL_S_AT_START = 0.02  # a rank must be seen alive for its loss to be noticed
_POLL_S_TO_KILL = 0.005  # while the clock of a timed kill has not begun
_START_S = 30.0
_LOOK_S = 1.0  # between looks at the processes
_LOOKS_PER_HANG = 5
_LOOK_SHARE = 0.01  # of a processor, and _LOOK_SHARE_AT_START: what looking may use
_LOOK_SHARE_AT_START = 0.05
_LEAVE_S = 5.0  # until a file system shows what a node has written
_LONGEST_STEP_S = 5.0  # of the clock of losses: while the launcher itself is stopped, none counts


@dataclass(frozen=True)
class Limits:
    """When an attempt is ended: after `timeout_s`, `hang_s` after a rank was lost or its launcher
    stuck, or when no rank has progressed for `stall_s`."""

    timeout_s: float | None = None
    hang_s: float = 30.0
    stall_s: float | None = None


@dataclass
class Attempt:
    """What is known of an attempt once it is over; times in seconds."""

    number: int
    began_s: float = 0.0  # after the job's begin
    seconds: float = 0.0
    started_s: float | None = None  # from its start until all ranks computed
    ended: str = ""  # "exit", "signal", "unclosed", or one of OUR_ENDINGS
    why: str | None = None  # what was seen, if it did not end by itself
    status: int = 0  # exit code, or minus a signal's number
    killed_by_rehearsal: bool = False
    stopped_by: int | None = None  # the ending signal that the launcher was sent
    asked_to_end: bool = False  # the ranks were, by SIGUSR1
    is_ending: bool = False  # and rank 0 knows it
    nodes: list[str] = field(default_factory=list)  # where it was started, if that was chosen
    lost: list[str] = field(default_factory=list)  # nodes that it had to do without
    pages: list[RunPage] = field(default_factory=list)
    history: History = field(default_factory=History)
    processes_ended: list[str] = field(default_factory=list)
    shared_memory_removed: list[str] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        return self.ended == "exit" and self.status == 0

    @property
    def refusal(self) -> str | None:
        """Why a pool was refused, if the next attempt would hear the same."""
        refused = [page for page in self.pages if page.phase == Phase.refused]
        if self.succeeded or not refused:
            return None
        return f"rank {refused[0].rank}: {one_line(refused[0].refusal)}"

    @property
    def exit_code(self) -> int:
        """As a shell says it: 128 + the signal's number; ENDED_BY_US if we ended it."""
        if self.ended in OUR_ENDINGS:
            return ENDED_BY_US
        if self.ended == "unclosed":
            return UNCLOSED
        return self.status if self.status >= 0 else SIGNALLED - self.status


def attempt_environment(
    directory: Path, rehearsal: Rehearsal | None, more: dict[str, str], shared: Path | None = None
) -> dict[str, str]:
    """The launcher's environment, `more`, where to put run pages, and the rehearsed failure."""
    environment = {**os.environ, **more, RUN_DIRECTORY_NAME: str(directory)}
    environment.pop("PERDURE_RUN_SHARED", None)
    if shared is not None:
        environment["PERDURE_RUN_SHARED"] = str(shared)
    environment.pop("PERDURE_KILL", None)
    if rehearsal is not None:
        environment.update(rehearsal.environment)
    return environment


class AttemptRun:
    """Runs one attempt and fills in its Attempt."""

    def __init__(
        self,
        number: int,
        tree: ProcessTree,
        pages: RunPages,
        rehearsal: Rehearsal | None,
        limits: Limits,
        bell: Bell,
        nodes: NodeWatch | None = None,
    ):
        self._attempt = Attempt(number)
        self._pages = pages
        self._rehearsal = rehearsal
        self._limits = limits
        self._bell = bell
        self._nodes = nodes
        self._first_computing: float | None = None
        self._began = time.monotonic()
        self._tree = tree
        self._ranks = RankWatch(tree)
        self._clock = _Clock()
        self._stall = StallWatch(self._clock.now_s, limits.stall_s)
        self._lost_since: dict[Hashable, float] = {}
        self._next_look = 0.0

    def run(self, live: Live) -> Attempt:
        """Waits for the end, cleans up after a failure. Raises ProcessesRemain."""
        attempt = self._attempt
        while not attempt.ended:
            attempt.pages = self._pages.read()
            self._ranks.note_pages(attempt.pages)
            self._note_progress(live)
            live.show(attempt.number, attempt.pages)
            if not self._look_for_end():
                self._forward_signals(live)
                self._bell.wait(self._pause_s())
        attempt.seconds = time.monotonic() - self._began
        live.clear()
        if attempt.succeeded:
            self._check_closed()
        if not attempt.succeeded or attempt.stopped_by is not None:
            self._clean_up()  # hydra may end with 0 after Ctrl-C while ranks still live
        attempt.pages = self._pages.read_all()
        attempt.history.note(attempt.seconds, attempt.pages)
        attempt.is_ending = self._pages.is_ending()
        return attempt

    def _check_closed(self) -> None:
        """srun has been seen to end with 0 although a node was lost."""
        if self._pages.shared is None:
            return
        deadline = time.monotonic() + _LEAVE_S
        while (why := self._pages.unclosed()) is not None and time.monotonic() < deadline:
            self._bell.wait(_POLL_S)
        if why is not None:
            self._attempt.ended, self._attempt.why = "unclosed", why

    def _look_for_end(self) -> bool:
        attempt, status = self._attempt, self._tree.exit_status()
        timeout_s = self._limits.timeout_s
        if status is not None:
            attempt.status = status
            attempt.ended = "exit" if status >= 0 else "signal"
        elif timeout_s is not None and time.monotonic() - self._began > timeout_s:
            attempt.ended = "timeout"
        elif (why := self._hang()) is not None:
            attempt.ended, attempt.why = "hang", why
        elif lost := self._nodes and self._nodes.lost(attempt.pages, self._clock.now_s):
            attempt.ended, attempt.why = "lost", f"lost: {', '.join(sorted(lost))}"
        elif self._stall.is_over(self._clock.now_s):
            attempt.ended = "stall"
            attempt.why = self._stall.text(self._clock.now_s, self._ranks.state_of)
        return bool(attempt.ended)

    def _hang(self) -> str | None:
        """Looks at the processes if it is time to; a sentence if a loss has lasted too long."""
        began = time.monotonic()
        if began < self._next_look:
            return None
        used = time.process_time()
        lost = self._ranks.losses(self._attempt.pages, self._clock.now_s)
        took = time.process_time() - used
        now = self._clock.now_s
        self._lost_since = {key: self._lost_since.get(key, now) for key in lost}
        starting = began - self._began < _START_S
        period = 0.0 if starting else min(_LOOK_S, self._limits.hang_s / _LOOKS_PER_HANG)
        share = _LOOK_SHARE_AT_START if starting else _LOOK_SHARE
        self._next_look = began + max(period, took / share)
        for key, since in self._lost_since.items():
            if now - since > self._limits.hang_s:
                return lost[key]
        return None

    def _note_progress(self, live: Live) -> None:
        attempt, now = self._attempt, time.monotonic()
        pages = attempt.pages
        attempt.history.note(now - self._began, pages)
        if self._first_computing is None and any(page.has_restarted for page in pages):
            self._first_computing = now
        complete = pages and len(pages) >= pages[0].ranks
        if complete and attempt.started_s is None and all(page.has_restarted for page in pages):
            attempt.started_s = now - self._began
        self._clock.advance()
        self._stall.look(pages, self._clock.now_s)
        warning = self._stall.warning(self._clock.now_s, self._ranks.state_of)
        if warning is not None:
            live.say(warning)
        self._kill_when_due(now)

    def _kill_when_due(self, now: float) -> None:
        due_s, rehearsal = self._kill_in_s(now), self._rehearsal
        if due_s is None or due_s > 0 or rehearsal is None:
            return
        if not self._attempt.killed_by_rehearsal:
            self._attempt.killed_by_rehearsal = self._ranks.kill(rehearsal.rank)

    def _kill_in_s(self, now: float) -> float | None:
        rehearsal = self._rehearsal
        if rehearsal is None or rehearsal.seconds is None or self._first_computing is None:
            return None
        return self._first_computing + rehearsal.seconds - now

    def _pause_s(self) -> float:
        pages = self._attempt.pages
        pause = _POLL_S + _POLL_S_PER_RANK * len(pages)
        starting = not pages or len(pages) < pages[0].ranks or self._first_computing is None
        if starting and time.monotonic() - self._began < _START_S:
            pause = _POLL_S_AT_START
        if self._rehearsal is not None and self._rehearsal.seconds is not None:
            due_s = self._kill_in_s(time.monotonic())
            if due_s is None and pause == _POLL_S_AT_START:
                pause = _POLL_S_TO_KILL
            elif due_s is not None and due_s > 0:
                pause = min(pause, due_s)
        return pause

    def _forward_signals(self, live: Live) -> None:
        for number in self._bell.take():
            if number == signal.SIGUSR1:
                self._ask_to_end(live)
            elif number not in ENDING or self._attempt.stopped_by is None:
                self._tree.forward(number)
            else:
                self._attempt.processes_ended += self._tree.end(self._bell.wait)
            if number in ENDING and self._attempt.stopped_by is None:
                self._attempt.stopped_by = number

    def _ask_to_end(self, live: Live) -> None:
        if not self._attempt.asked_to_end:
            live.say("SIGUSR1: the ranks are asked to end after one more commit")
        self._attempt.asked_to_end = True
        self._pages.ask_to_end()

    def _clean_up(self) -> None:
        attempt = self._attempt
        attempt.processes_ended += self._tree.end(self._bell.wait)
        if attempt.stopped_by is None:
            ending = [number for number in self._bell.take() if number in ENDING]
            attempt.stopped_by = ending[0] if ending else None
        attempt.shared_memory_removed = remove_leftovers(self._pages.made_s)


class _Clock:
    """Seconds during which this process has watched: not those for which it was stopped."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._before = time.monotonic()

    def advance(self) -> None:
        now = time.monotonic()
        self.now_s += min(now - self._before, _LONGEST_STEP_S)
        self._before = now
