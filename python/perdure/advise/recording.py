# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program as it is, and looks at it from outside; MPI-IO and windows are recorded inside.

The library that is preloaded writes what PERDURE_RECORD asks for (cache/record.py), and leaves a
program without MPI alone. The looks are a thread's, which takes _SHARE of a processor: it sleeps so
many times as long as a look took. The job itself is run as `perdure run` runs one, so that Ctrl-C
ends all of it and nothing of it stays.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from perdure.advise.memory import ProcessMemory
from perdure.advise.written import Written, WrittenFiles, folders_in
from perdure.cache.preload import NoLibrary, find_library, preloading
from perdure.cache.record import NoRecord, Run, read_records
from perdure.programs import program_path
from perdure.run.job import JobRequest, run_job
from perdure.run.launchers import is_launcher_or_daemon, rank_variables, world_size
from perdure.run.live import Live
from perdure.run.process_table import Process, ProcessTable, read_environment
from perdure.units import seconds_text

_FIRST_S = 0.1
_LONGEST_S = 20.0
_SHARE = 0.01  # of a processor, for looks
_LOOKS_MIN = 8  # and as many at least since half of the time until now
_TICK_S = 0.02
_SHELLS = ("sh", "bash", "dash", "zsh", "env", "time", "timeout", "perdure", "taskset", "numactl")
_SHOWN_S = 2.0


@dataclass
class Seen:
    """What was seen of one process; memory stays readable when it has ended."""

    process: Process
    memory: ProcessMemory
    is_rank: bool
    ranks: int = 1  # of its job, where its launcher says so
    all_here: bool = True
    cpu_ticks: int = 0


@dataclass
class Recording:
    """A recorded run. Times in seconds."""

    command: list[str]
    exit_code: int = 0
    run_s: float = 0.0
    stopped: bool = False  # by a signal to us
    began_s: float = 0.0
    processes: list[Seen] = field(default_factory=list)
    files: list[Written] = field(default_factory=list)
    written_bytes: int = 0
    mpi: Run = field(default_factory=lambda: Run([]))
    preloaded: str = ""  # why not, if not
    looks: int = 0
    looking_s: float = 0.0  # of a processor, the launcher's own work included

    @property
    def ranks(self) -> list[Seen]:
        """The processes that compute: those of MPI, else those that used the processor most."""
        ranks = [each for each in self.processes if each.is_rank]
        most = max((each.cpu_ticks for each in self.processes), default=0)
        return ranks or [each for each in self.processes if each.cpu_ticks * 2 >= most]


class _Looks(threading.Thread):
    """The looks at a job's processes, until stop()."""

    def __init__(self, command: list[str], folder: str) -> None:
        super().__init__(daemon=True)
        self.seen: dict[tuple[int, int], Seen] = {}
        self.files = WrittenFiles((folder, "/dev/shm/perdure-run-"))
        self.looks = 0
        self._ended = threading.Event()
        self._table = ProcessTable()
        for place in (os.getcwd(), *folders_in(command)):
            self.files.watch(place)

    def run(self) -> None:
        began, due = time.monotonic(), 0.0
        shows = sys.stderr.isatty()
        while not self._ended.wait(_TICK_S):
            self.files.take_events()
            if time.monotonic() < due:
                continue
            before = time.thread_time()
            with suppress(OSError):
                self._look()
            took = time.thread_time() - before
            now = time.monotonic()
            most = max((now - began) / (2 * _LOOKS_MIN), _FIRST_S)
            due = now + min(max(took / _SHARE, _FIRST_S, most / 4), most, _LONGEST_S)
            if shows and now - began >= _SHOWN_S:
                self._show(now - began)

    def stop(self) -> None:
        self._ended.set()
        self.join()
        self.files.take_events()
        self.files.close()
        for each in self.seen.values():
            each.memory.close()
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[2K")

    def _show(self, seconds: float) -> None:
        text = f"perdure: recording, {seconds_text(seconds)}, {self.looks} looks"
        sys.stderr.write(f"\r\033[2K{text}\r")
        sys.stderr.flush()

    def _look(self) -> None:
        below = self._table.descendants()
        parents = {process.parent for process in below.values() if process.is_live}
        for process in below.values():
            name = process.name
            if not process.is_live or is_launcher_or_daemon(name) or name in _SHELLS:
                continue
            seen = self.seen.get(process.identity)
            if seen is None:
                seen = self.seen[process.identity] = _met(process)
            seen.is_rank = seen.is_rank and process.pid not in parents
            seen.cpu_ticks = process.cpu_ticks
            seen.memory.look()
        self.files.look([seen.process.pid for seen in self.seen.values()])
        self.looks += bool(self.seen)


def _met(process: Process) -> Seen:
    environment = read_environment(process.pid)
    is_rank = bool(rank_variables(environment))
    ranks, here = world_size(environment) if is_rank else (1, True)
    return Seen(process, ProcessMemory(process.pid), is_rank, max(ranks, 1), here)


def record(command: list[str], output: IO | None = None) -> Recording:
    """Runs `command` to its end; `output` takes what it prints. Main thread only (signals).

    Raises NoProgram or NotExecutable if it can't be started.
    """
    program_path(command[0])
    made = Recording(command)
    with tempfile.TemporaryDirectory(prefix="perdure-advise-") as folder:
        surroundings = {"PERDURE_RECORD": f"{folder}/record"}
        try:
            surroundings |= preloading(find_library())
        except NoLibrary as lacking:
            made.preloaded = str(lacking)
        looks = _Looks(command, folder)
        looks.start()
        began_s = time.process_time()
        try:
            done = run_job(JobRequest(command, environment=surroundings, output=output), Live())
        finally:
            looks.stop()
        made.looking_s = time.process_time() - began_s
        with suppress(NoRecord):
            made.mpi = read_records([Path(folder) / "record"])
    attempt = done.attempts[-1] if done.attempts else None
    made.exit_code = done.exit_code
    made.run_s = attempt.seconds if attempt else done.seconds
    made.stopped = attempt is not None and attempt.stopped_by is not None
    made.began_s = done.began_s + (attempt.began_s if attempt else 0.0)
    made.processes = list(looks.seen.values())
    made.files = list(looks.files.found.values())
    made.written_bytes = sum(looks.files.bytes_by_pid.values())
    made.looks = looks.looks
    return made
