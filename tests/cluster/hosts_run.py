# SPDX-License-Identifier: BSD-3-Clause
"""Starts of hosts_job on hosts, by MPICH's launcher, and what they say."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from hosts import Hosts, until
from jobs import BUILD, MPICH

PROGRAM = MPICH.program("tests/cluster", "hosts_job")
PRELOADED = (
    BUILD / "tests/mpi_yield/libperdure_mpi_yield.so",  # ranks that wait let others run
    BUILD / "tests/cluster/libhosts_clock_shift.so",
)
SILENCE_S = 300.0  # a job that says nothing for so long, on a loaded machine, hangs


class Hung(Exception):
    """A job said nothing for SILENCE_S."""


@dataclass(frozen=True)
class Settings:
    """Of a job, the same in all of its starts."""

    folder: Path  # shared by all hosts
    name: str
    seed: int
    ranks_per_host: int = 1
    levels: str = ""
    wait_every: int = 5
    pace_us: int = 8000
    has_file: bool = False

    @property
    def stop(self) -> Path:
        return self.folder / f"{self.name}.stop"


@dataclass
class Said:
    """Of one start, by all of its ranks."""

    opening: int = 0  # ranks
    restarted: list[int] = field(default_factory=list)
    committed: int = 0
    levels: int = 0
    closed: int = 0  # ranks
    lines: int = 0


class Start:
    """One start of a job, from mpiexec to its end."""

    def __init__(self, hosts: Hosts, settings: Settings, nodes: list[str], number: int):
        self._hosts, self.settings, self.nodes = hosts, settings, list(nodes)
        self.ranks = len(nodes) * settings.ranks_per_host
        self._acks = settings.folder / "acks"
        self._acks.mkdir(mode=0o700, parents=True, exist_ok=True)
        for file in self._acks.glob(f"{settings.name}.*"):
            file.unlink()
        self.output_file = settings.folder / f"{settings.name}.output.{number}"
        self._mpiexec = hosts.popen(self._words(), MPICH.environment(hosts.root), self.output_file)

    def _words(self) -> list:
        settings = self.settings
        words = [MPICH.program_mpiexec, "-launcher", "ssh", "-launcher-exec",
                 self._hosts.enter_script, "-hosts", ",".join(self.nodes),
                 "-ppn", settings.ranks_per_host, "-n", self.ranks,
                 "-genv", "UCX_LOG_LEVEL", "error",
                 "-genv", "LD_PRELOAD", ":".join(str(path) for path in PRELOADED)]  # fmt: skip
        if settings.levels:
            words += ["-genv", "PERDURE_LEVELS", settings.levels]
        words += [PROGRAM, self._hosts.nvm / "pool", settings.folder, settings.name, settings.seed,
                  settings.wait_every, settings.pace_us]  # fmt: skip
        return words + ["file"] * settings.has_file

    @property
    def output(self) -> str:
        return self.output_file.read_text(errors="replace") if self.output_file.exists() else ""

    def said(self) -> Said:
        said = Said()
        for rank in range(self.ranks):
            file = self._acks / f"{self.settings.name}.{rank}"
            text = file.read_text() if file.exists() else ""
            for what, step in re.findall(r"^(\w+) (\d+)\n", text, re.M):
                said.lines += 1
                if what == "restarted":
                    said.restarted.append(int(step))
                elif what in ("committed", "levels"):
                    setattr(said, what, max(getattr(said, what), int(step)))
                elif what in ("opening", "closed"):
                    setattr(said, what, getattr(said, what) + 1)
        return said

    def exit_code(self) -> int | None:
        return self._mpiexec.poll()

    def wait_for(self, condition) -> bool:
        """Until condition(said) holds; False if the job ended before. Its patience is by progress:
        Hung if the job says nothing more."""
        seen, since = (0, 0), time.monotonic()
        while True:
            ended = self.exit_code() is not None
            said = self.said()
            if condition(said):
                return True
            if ended:
                return False
            now = (said.lines, len(self.output))
            if now != seen:
                seen, since = now, time.monotonic()
            if time.monotonic() - since > SILENCE_S:
                raise Hung(f"nothing for {SILENCE_S:.0f} s after {said}: {self.output[-2000:]}")
            time.sleep(0.02)

    def wait_for_steps(self, more: int) -> bool:
        last = self.said().committed + more
        return self.wait_for(lambda said: said.committed >= last)

    def kill(self) -> None:
        """All of its processes, on all hosts that are up, and mpiexec."""
        for node in self.nodes:
            if self._hosts.is_up(node):
                self._hosts.signal(node, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._mpiexec.pid, signal.SIGKILL)
        self._mpiexec.wait()
        until(self._is_gone)

    def _is_gone(self) -> bool:
        """A process that was about to start another one is killed again."""
        up = [node for node in self.nodes if self._hosts.is_up(node)]
        for node in up:
            self._hosts.signal(node, signal.SIGKILL)
        return not any(self._hosts.processes(node) for node in up)

    def end(self) -> int:
        """Asks it to end in order; its exit code."""
        self.settings.stop.touch()
        self.wait_for(lambda _: False)
        self.settings.stop.unlink()
        try:
            return self._mpiexec.wait(60)
        except subprocess.TimeoutExpired as error:
            raise Hung("mpiexec did not end") from error
