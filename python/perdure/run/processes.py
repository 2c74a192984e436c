# SPDX-License-Identifier: BSD-3-Clause
"""The process tree of an attempt: starts it, finds what is part of it, ends all of it.

The launcher declares itself the subreaper of its descendants: a process whose parent died becomes
a child of the launcher, so that the tree below it is the whole attempt on this machine, whatever
sessions and process groups mpiexec made. What somebody else started here for the attempt
(slurmstepd) is known by its environment, which names the attempt's run directory. Processes on
other machines are out of sight.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import IO

from perdure.run.process_table import (
    Identity,
    Process,
    ProcessTable,
    pids_of_this_machine,
    proc_text,
    read_environment,
    read_process,
)

RUN_DIRECTORY_NAME = "PERDURE_RUN_DIR"
GRACE_S = 5.0  # between SIGTERM and SIGKILL
_KILL_LIMIT_S = 10.0  # then a process counts as impossible to end (a device holds it)
_HUNT_S = 0.05
_PR_SET_CHILD_SUBREAPER = 36


class ProcessesRemain(RuntimeError):
    """Processes of a failed attempt survived SIGKILL."""


def adopt_orphans() -> None:
    """Makes this process the parent of its orphaned descendants; raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, "prctl(PR_SET_CHILD_SUBREAPER): " + os.strerror(code))


def end_descendants() -> None:
    """Ends every process below this one: by SIGTERM, GRACE_S later by SIGKILL.

    Reaps none of them: whoever started one waits for it.
    """
    table = ProcessTable()
    begun = time.monotonic()
    asked: set[Identity] = set()
    while time.monotonic() < begun + GRACE_S + _KILL_LIMIT_S:
        below = table.descendants(thorough=True).values()
        found = [process for process in below if process.is_live]
        if not found:
            return
        too_late = time.monotonic() >= begun + GRACE_S
        for process in found:
            if too_late or process.identity not in asked:
                asked.add(process.identity)
                send(signal.SIGKILL if too_late else signal.SIGTERM, process)
        time.sleep(0.02)


class ProcessTree:
    """All processes of one attempt that run on this machine."""

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        output: IO | int | None = None,
        errors: int | None = None,
    ):
        """Starts `command` in a session of its own with this process's stdin, stdout, stderr.

        `output`, a file, replaces stdout and, without `errors`, stderr too. Raises OSError if it
        can't be started.
        """
        if errors is None and output is not None:
            errors = subprocess.STDOUT
        self._table = ProcessTable()
        self._run_directory = environment.get(RUN_DIRECTORY_NAME)
        self._command = subprocess.Popen(
            command, env=environment, start_new_session=True, stdout=output, stderr=errors
        )

    @property
    def command_pid(self) -> int:
        return self._command.pid

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

    def descendants(self) -> dict[int, Process]:
        """What is below the launcher, by pid, zombies included."""
        return self._table.descendants()

    def member(self, pid: int) -> Process | None:
        """The process if it belongs to the attempt; a page's pid may be one of another host."""
        process = read_process(pid)
        if process is None or parents_of(process) is not None or self._is_marked(pid):
            return process
        return None

    def _is_marked(self, pid: int) -> bool:
        wanted = self._run_directory
        return wanted is not None and read_environment(pid).get(RUN_DIRECTORY_NAME) == wanted

    def live(self) -> list[Process]:
        """Processes of the attempt that exist and are no zombies. Reads every process."""
        below = self._table.descendants(thorough=True)
        others = (pid for pid in pids_of_this_machine() if pid not in below and pid != os.getpid())
        marked = [read_process(pid) for pid in others if self._is_marked(pid)]
        found = [*below.values(), *(process for process in marked if process is not None)]
        return sorted((p for p in found if p.is_live), key=lambda process: process.pid)

    def end(self, wait: Callable[[float], object] = time.sleep) -> list[str]:
        """Ends every process in bounded time and returns "pid name" of each that was alive.

        SIGTERM first, SIGKILL to whatever lives GRACE_S later. `wait(seconds)` may return early.
        Raises ProcessesRemain, naming them, if something survives even SIGKILL.
        """
        found = self.live()
        for process in found:
            send(signal.SIGTERM, process)
            if process.state == "T":
                send(signal.SIGCONT, process)  # or it could not heed the other
        over = self._wait_for_none(GRACE_S, wait)
        deadline = time.monotonic() + _KILL_LIMIT_S
        while not over and time.monotonic() < deadline:
            self._kill()
            over = self._wait_for_none(0.2, wait)
        if not over:
            left = [str(process) for process in self.live()] or ["one that forks without pause"]
            raise ProcessesRemain("these processes survived SIGKILL: " + ", ".join(left))
        self._command.wait()
        return [str(process) for process in found]

    def _wait_for_none(self, limit_s: float, wait: Callable[[float], object]) -> bool:
        """Whether nothing lives any more, at most after `limit_s`.

        What was seen to end since the look before may have left children that no look has met.
        """
        deadline = time.monotonic() + limit_s
        while True:
            ended = self.reap(self._table.descendants())
            if not ended and not self.live():
                return True
            if time.monotonic() >= deadline:
                return False
            if not ended:
                wait(0.05)

    def _kill(self) -> None:
        """Kills groups, each at once so that none of its forks escapes; then whoever is adopted.

        A process that forks and ends all the time in new sessions is gone when its signal comes.
        But each of its children is adopted by this process, at which we look in quick succession.
        """
        for group in self._own_groups():
            try:
                os.killpg(group, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        for process in self.live():
            send(signal.SIGKILL, process)
        deadline = time.monotonic() + _HUNT_S
        while time.monotonic() < deadline:
            for pid in reversed(_children()):
                os.kill(pid, signal.SIGKILL)  # ours until we take its status
                self._take_status(pid)

    def _own_groups(self) -> set[int]:
        """Groups of sessions that were begun inside the attempt, so that all of each is ours."""
        below = self._table.descendants().values()
        return {process.group for process in below if process.session != os.getsid(0)}

    def reap(self, processes: dict[int, Process]) -> int:
        """Takes the exit status of dead children among `processes`, and returns how many it took.

        That of the command is kept.
        """
        ended = [p for p in processes.values() if p.parent == os.getpid() and not p.is_live]
        for process in ended:
            self._take_status(process.pid)
        return len(ended)

    def _take_status(self, pid: int) -> None:
        if pid == self._command.pid:
            self._command.poll()
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _children() -> list[int]:
    """Empty on a kernel without CONFIG_PROC_CHILDREN."""
    return [int(word) for word in proc_text(f"self/task/{os.getpid()}/children").split()]


def parents_of(process: Process) -> list[Process] | None:
    """What it descends from below this process, nearest first; None if it is no descendant."""
    parents: list[Process] = []
    while process.parent != os.getpid():
        above = read_process(process.parent)
        if above is None:
            return None
        parents.append(above)
        process = above
    return parents


def identity_is_live(identity: Identity) -> bool:
    """Whether this very process still runs."""
    process = read_process(identity[0])
    return process is not None and process.identity == identity and process.is_live


def send(number: int, process: Process) -> bool:
    """Sends a signal to a process that still runs; False if it does not, or is not ours."""
    if not identity_is_live(process.identity):
        return False
    try:
        os.kill(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
