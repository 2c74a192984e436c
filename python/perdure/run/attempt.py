"""One attempt of a job: from the start of its command until nothing of it runs any more."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from perdure.run.bell import ENDING, Bell
from perdure.run.leftovers import remove_leftovers
from perdure.run.live import Live
from perdure.run.page import RunPage, read_pages
from perdure.run.processes import ProcessTree
from perdure.run.rehearsal import Rehearsal

ENDED_BY_US = 124  # exit code, as of timeout(1)
_POLL_S = 0.2
_POLL_S_PER_RANK = 0.002
_POLL_S_AT_START = 0.02  # a rank must be seen alive for its loss to be noticed
_POLL_S_TO_KILL = 0.005  # while the clock of a timed kill has not begun
_START_S = 30.0


@dataclass(frozen=True)
class Limits:
    """When an attempt is ended: after `timeout_s`, or `hang_s` after a rank was lost."""

    timeout_s: float | None = None
    hang_s: float = 30.0


@dataclass
class Attempt:
    """What is known of an attempt once it is over; times in seconds."""

    number: int
    seconds: float = 0.0
    started_s: float | None = None  # from its start until all ranks computed
    ended: str = ""  # "exit", "signal", "timeout", "hang"
    status: int = 0  # exit code, or minus a signal's number
    killed_by_rehearsal: bool = False
    stopped_by: int | None = None  # the ending signal that the launcher was sent
    pages: list[RunPage] = field(default_factory=list)
    processes_ended: list[str] = field(default_factory=list)
    shared_memory_removed: list[str] = field(default_factory=list)

    @property
    def succeeded(self) -> bool:
        return self.ended == "exit" and self.status == 0

    @property
    def exit_code(self) -> int:
        """As a shell says it: 128 + the signal's number; ENDED_BY_US after timeout or hang."""
        if self.ended in ("timeout", "hang"):
            return ENDED_BY_US
        return self.status if self.status >= 0 else 128 - self.status


def attempt_environment(
    directory: Path, rehearsal: Rehearsal | None, more: dict[str, str]
) -> dict[str, str]:
    """The launcher's environment, `more`, where to put run pages, and the rehearsed failure."""
    environment = {**os.environ, **more, "PERDURE_RUN_DIR": str(directory)}
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
        directory: Path,
        rehearsal: Rehearsal | None,
        limits: Limits,
        bell: Bell,
    ):
        self._attempt = Attempt(number)
        self._directory = directory
        self._rehearsal = rehearsal
        self._limits = limits
        self._bell = bell
        self._first_computing: float | None = None
        self._lost_since: float | None = None
        self._began = time.monotonic()
        self._tree = tree

    def run(self, live: Live) -> Attempt:
        """Waits for the end, cleans up after a failure. Raises ProcessesRemain."""
        attempt = self._attempt
        while not attempt.ended:
            attempt.pages = read_pages(self._directory)
            self._tree.note_ranks(attempt.pages)
            self._note_progress()
            live.show(attempt.number, attempt.pages)
            if not self._look_for_end():
                self._forward_signals()
                self._bell.wait(self._pause_s())
        attempt.seconds = time.monotonic() - self._began
        live.clear()
        if not attempt.succeeded or attempt.stopped_by is not None:
            self._clean_up()  # hydra may end with 0 after Ctrl-C while ranks still live
        attempt.pages = read_pages(self._directory)
        return attempt

    def _look_for_end(self) -> bool:
        attempt, status = self._attempt, self._tree.exit_status()
        if status is not None:
            attempt.status = status
            attempt.ended = "exit" if status >= 0 else "signal"
        elif self._is_over(self._limits.timeout_s, self._began):
            attempt.ended = "timeout"
        elif self._is_over(self._limits.hang_s, self._lost_since):
            attempt.ended = "hang"
        return bool(attempt.ended)

    @staticmethod
    def _is_over(limit_s: float | None, since: float | None) -> bool:
        return limit_s is not None and since is not None and time.monotonic() - since > limit_s

    def _note_progress(self) -> None:
        attempt, now = self._attempt, time.monotonic()
        pages = attempt.pages
        if self._first_computing is None and any(page.has_restarted for page in pages):
            self._first_computing = now
        if attempt.started_s is None and pages and len(pages) >= pages[0].ranks:
            if all(page.has_restarted for page in pages):
                attempt.started_s = now - self._began
        if not self._tree.lost_ranks(pages):
            self._lost_since = None
        elif self._lost_since is None:
            self._lost_since = now
        self._kill_when_due(now)

    def _kill_when_due(self, now: float) -> None:
        due_s = self._kill_in_s(now)
        if due_s is not None and due_s <= 0 and not self._attempt.killed_by_rehearsal:
            self._attempt.killed_by_rehearsal = self._tree.kill_rank(self._rehearsal.rank)

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

    def _forward_signals(self) -> None:
        for number in self._bell.take():
            if number not in ENDING or self._attempt.stopped_by is None:
                self._tree.forward(number)
            else:
                self._attempt.processes_ended += self._tree.end(self._bell.wait)
            if number in ENDING and self._attempt.stopped_by is None:
                self._attempt.stopped_by = number

    def _clean_up(self) -> None:
        attempt = self._attempt
        attempt.processes_ended += self._tree.end(self._bell.wait)
        if attempt.stopped_by is None:
            ending = [number for number in self._bell.take() if number in ENDING]
            attempt.stopped_by = ending[0] if ending else None
        since = self._directory.stat().st_ctime
        attempt.shared_memory_removed = remove_leftovers(since)


def signal_name(number: int) -> str:
    """ "SIGKILL" for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
