"""The process tree of an attempt: starts it, knows its ranks, ends all of it.

The launcher declares itself the subreaper of its descendants: a rank whose parent died becomes a
child of the launcher, so that the tree below it is the whole attempt on this machine, whatever
sessions and process groups mpiexec made. Ranks that somebody else started here (slurmstepd) are
known by their run pages. Processes on other machines are out of sight.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from typing import IO

import psutil

from perdure.run.page import Phase, RunPage

GRACE_S = 5.0  # between SIGTERM and SIGKILL
_KILL_LIMIT_S = 10.0  # then a process counts as impossible to end (a device holds it)
_PR_SET_CHILD_SUBREAPER = 36


class ProcessesRemain(RuntimeError):
    """Processes of a failed attempt survived SIGKILL."""


def adopt_orphans() -> None:
    """Makes this process the parent of its orphaned descendants; raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, "prctl(PR_SET_CHILD_SUBREAPER): " + os.strerror(code))


class ProcessTree:
    """All processes of one attempt that run on this machine."""

    def __init__(self, command: list[str], environment: dict[str, str], output: IO | None = None):
        """Starts `command` in a session of its own with this process's stdin, stdout, stderr.

        `output`, a file, replaces stdout and stderr. Raises OSError if it can't be started.
        """
        errors = subprocess.STDOUT if output is not None else None
        self._started = time.time()
        self._command = subprocess.Popen(
            command, env=environment, start_new_session=True, stdout=output, stderr=errors
        )
        self._ranks: dict[int, psutil.Process] = {}

    def exit_status(self) -> int | None:
        """The command's exit code, minus a signal's number, or None while it runs."""
        return self._command.poll()

    def forward(self, number: int) -> None:
        """Passes a signal on: SIGINT as a terminal does, to the group; others to the command."""
        try:
            if number == signal.SIGINT:
                os.killpg(self._command.pid, number)
            else:
                os.kill(self._command.pid, number)
        except ProcessLookupError:
            pass

    def note_ranks(self, pages: Iterable[RunPage]) -> None:
        """Remembers the processes of ranks that run here; a page alone may be another host's."""
        for page in pages:
            known = self._ranks.get(page.rank)
            if known is not None and known.pid == page.pid:
                continue
            process = self._own_process(page.pid)
            if process is not None:
                self._ranks[page.rank] = process

    def _own_process(self, pid: int) -> psutil.Process | None:
        try:
            process = psutil.Process(pid)
            ours = process.uids().real == os.getuid()
            return process if ours and process.create_time() > self._started - 1 else None
        except psutil.Error:
            return None

    def lost_ranks(self, pages: Iterable[RunPage]) -> list[int]:
        """Ranks that were seen alive, are gone, and had not closed their pool."""
        open_ranks = {page.rank for page in pages if page.phase != Phase.closed}
        return sorted(
            rank
            for rank, process in self._ranks.items()
            if rank in open_ranks and not _is_live(process)
        )

    def kill_rank(self, rank: int) -> bool:
        """Sends SIGKILL to a rank; False if it is not known to run here."""
        process = self._ranks.get(rank)
        if process is None or not _is_live(process):
            return False
        process.kill()
        return True

    def live(self) -> list[psutil.Process]:
        """Processes of the attempt that exist and are no zombies."""
        found = {process.pid: process for process in psutil.Process().children(recursive=True)}
        found.update((process.pid, process) for process in self._ranks.values())
        return [process for _, process in sorted(found.items()) if _is_live(process)]

    def end(self, wait: Callable[[float], object] = time.sleep) -> list[str]:
        """Ends every process in bounded time and returns "pid name" of each that was alive.

        SIGTERM first, SIGKILL to whatever lives GRACE_S later. `wait(seconds)` may return early.
        Raises ProcessesRemain, naming them, if something survives even SIGKILL.
        """
        ended = [_named(process) for process in self.live()]
        _send(signal.SIGTERM, self.live())
        if not self._wait_for_none(GRACE_S, wait):
            deadline = time.monotonic() + _KILL_LIMIT_S
            while self.live() and time.monotonic() < deadline:
                _send(signal.SIGKILL, self.live())
                self._wait_for_none(0.2, wait)
        left = self.live()
        if left:
            raise ProcessesRemain(
                "these processes survived SIGKILL: " + ", ".join(_named(p) for p in left)
            )
        self._command.wait()
        return ended

    def _wait_for_none(self, limit_s: float, wait: Callable[[float], object]) -> bool:
        deadline = time.monotonic() + limit_s
        while True:
            self._bury()
            if not self.live():
                return True
            if time.monotonic() >= deadline:
                return False
            wait(0.05)

    def _bury(self) -> None:
        """Takes the exit status of dead children; the command's is kept."""
        self._command.poll()
        for child in psutil.Process().children():
            try:
                if child.pid != self._command.pid and not _is_live(child):
                    os.waitpid(child.pid, os.WNOHANG)
            except ChildProcessError:
                continue


def _is_live(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _send(number: int, processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        try:
            process.send_signal(number)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _named(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {process.name()}"
    except psutil.Error:
        return f"{process.pid} ?"
