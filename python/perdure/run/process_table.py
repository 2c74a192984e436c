# SPDX-License-Identifier: BSD-3-Clause
"""The processes below this one, as /proc shows them: states, exit codes, environments.

Reading is cheap on a node with thousands of foreign processes: those that were once seen to be
nobody's descendants are skipped for _STRANGERS_S, as a stranger never becomes one.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

_STRANGERS_S = 10.0  # a stranger's pid may be given to another process
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting for a device",
    "I": "idle",
    "T": "stopped",
    "t": "stopped by a debugger",
    "Z": "ended, nobody has taken notice",
    "X": "ended",
}

Identity = tuple[int, int]  # pid and start: a pid alone is given again


@dataclass(frozen=True)
class Process:
    """One line of /proc/PID/stat."""

    pid: int
    name: str  # 15 characters, printable
    state: str
    parent: int
    group: int
    session: int
    cpu_ticks: int  # used so far, by all of its threads
    threads: int
    start_ticks: int
    status: int  # of an ended one, as waitpid(2) gives it; 0 too if we may not see it

    @property
    def identity(self) -> Identity:
        return self.pid, self.start_ticks

    @property
    def is_live(self) -> bool:
        """Whether anything of it runs: the first thread may have ended before the others."""
        return self.state not in "ZXx" or self.threads > 1

    @property
    def state_text(self) -> str:
        return _STATES.get(self.state, f"in state {self.state}")

    def __str__(self) -> str:
        return f"{self.pid} {self.name}"


def proc_text(path: str) -> str:
    """What a file below /proc says; nothing if its process has ended or is not ours."""
    try:
        with open(f"/proc/{path}", "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def read_process(pid: int) -> Process | None:
    """The process, or None if there is none."""
    name, _, rest = proc_text(f"{pid}/stat").partition("(")[2].rpartition(") ")
    fields = rest.split()
    if len(fields) < 50:
        return None
    return Process(
        pid=pid,
        name="".join(letter if letter.isprintable() else "?" for letter in name),
        state=fields[0],
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
        status=int(fields[49]),
    )


def read_environment(pid: int) -> dict[str, str]:
    """The environment that a process was started with; empty if it has ended or is not ours."""
    pairs = (entry.partition("=") for entry in proc_text(f"{pid}/environ").split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def pids_of_this_machine() -> list[int]:
    """All pids that this process may see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


class ProcessTable:
    """Finds the descendants of this process, zombies included."""

    def __init__(self) -> None:
        self._strangers: set[int] = set()
        self._strangers_from = time.monotonic()

    def descendants(self, thorough: bool = False) -> dict[int, Process]:
        """Each descendant by its pid. Thorough: looks at strangers anew."""
        now = time.monotonic()
        if thorough or now - self._strangers_from > _STRANGERS_S:
            self._strangers.clear()
            self._strangers_from = now
        read = (read_process(pid) for pid in pids_of_this_machine() if pid not in self._strangers)
        seen = {process.pid: process for process in read if process is not None}
        ours = {os.getpid(): True}
        for pid in seen:
            self._settle(pid, seen, ours)
        del ours[os.getpid()]
        return {pid: seen[pid] for pid, is_ours in sorted(ours.items()) if is_ours}

    def _settle(self, pid: int, seen: dict[int, Process], ours: dict[int, bool]) -> None:
        """Follows the parents of `pid` to one whose side is known, and notes all on the way."""
        way = []
        while pid not in ours and pid in seen and pid not in way:
            way.append(pid)
            pid = seen[pid].parent
        if pid not in ours and pid not in self._strangers and pid != 0:
            return  # a parent ended while we read: the next look tells
        is_ours = ours.get(pid, False)
        for passed in way:
            ours[passed] = is_ours
            if not is_ours:
                self._strangers.add(passed)
