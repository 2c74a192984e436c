# SPDX-License-Identifier: BSD-3-Clause
"""What a commit costs where pools are to be: measured, by as many processes as ranks share it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.core import load_core
from perdure.failures import Failed

_BYTES_MAX = 1 << 30  # of all processes together; more is a matter of proportion
_BYTES_MIN = 1 << 12
_PROCESSES_MAX = 64
_LIMIT_S = 120
# Not by -m, which would look for modules in the folder that the user is in first.
_PROGRAM = """
import json, sys
sys.path, *asked = json.loads(sys.argv[1])
from perdure.advise.commits import main
main(*asked)
"""
_COPIES = 3  # of the program's own memory and the pool's, in mode copy


class NotMeasured(Failed):
    """A commit could not be tried; the sentence says why."""


@dataclass(frozen=True)
class Medium:
    """What a directory lies on."""

    path: str
    kind: str  # "DAX", "tmpfs", or what the core calls an ordinary file
    file_system: str

    @property
    def in_memory(self) -> bool:
        return self.kind in ("DAX", "tmpfs")

    @property
    def survives(self) -> str:
        """What a version here survives."""
        return "processes, not the node" if self.kind == "tmpfs" else "a loss of power"


@dataclass(frozen=True)
class Commit:
    """A commit of `bytes` of each rank, each as long as the slowest rank took.

    `seconds` is the lower quartile of some: what disturbs a machine makes them longer only.
    """

    mode: str
    share: float
    bytes: int
    seconds: float
    low_s: float  # quartiles
    high_s: float
    open_s: float
    restart_s: float
    scaled: float = 1.0  # what was measured is so many times smaller

    @property
    def spread(self) -> float:
        """How far apart the quartiles are, over the lower one."""
        return (self.high_s - self.low_s) / self.seconds if self.seconds else 0.0


def medium_of(place: Path) -> Medium:
    """Raises perdure._core.Error if the directory can't have pools."""
    core = load_core()
    kind = core.try_medium(str(place))["kind"]
    return Medium(str(place.resolve()), kind, core.energy_storage(str(place))["file_system"])


def measure_commit(
    medium: Medium, ranks: int, size: int, mode: str, share: float
) -> Commit:
    """Commits arrays of `size` bytes of each of `ranks` ranks of this node. Raises NotMeasured."""
    processes = max(min(ranks, _PROCESSES_MAX), 1)
    place = Path(medium.path)
    status = os.statvfs(place)
    room = min(_BYTES_MAX, status.f_bavail * status.f_frsize // (2 * _COPIES))
    tried = max(min(size, room // processes), _BYTES_MIN)
    with tempfile.TemporaryDirectory(prefix="perdure-advise-", dir=place) as folder:
        asked = [tried, mode, share, medium.in_memory]
        found = _run(Path(folder), processes, asked)
    rounds = zip(*(each["commits_s"] for each in found))
    seconds = sorted(max(each) for each in rounds)  # a commit waits for the slowest rank
    scale = size / tried if size > tried else 1.0
    low, high = (seconds[len(seconds) * part // 4] * scale for part in (1, 3))
    open_s, restart_s = (max(each[name] for each in found) * scale
                         for name in ("open_s", "restart_s"))  # fmt: skip
    return Commit(mode, share, size, low, low, high, open_s, restart_s, scale)


def _run(folder: Path, processes: int, asked: list[Any]) -> list[dict]:
    surroundings = {key: value for key, value in os.environ.items()
                    if not key.startswith(("PERDURE_", "LD_PRELOAD"))}
    running: list[subprocess.Popen] = []
    try:
        for number in range(processes):
            given = json.dumps([sys.path, str(folder / str(number)), *asked])
            words = [sys.executable, "-I", "-c", _PROGRAM, given]
            running.append(subprocess.Popen(words, env=surroundings, text=True,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE))
        return _together(running)
    finally:
        for each in running:
            each.kill()
            each.communicate()


def _together(running: list[subprocess.Popen]) -> list[dict]:
    for each in running:
        assert each.stdout is not None
        if each.stdout.readline() != "ready\n":
            said = each.communicate(timeout=_LIMIT_S)[1].strip().splitlines()
            why = said[-1] if said else "it ended without a word"
            raise NotMeasured(f"commits could not be tried: {why}")
    for each in running:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    try:
        printed = [each.communicate(timeout=_LIMIT_S)[0] for each in running]
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"commits took more than {_LIMIT_S} s; choose a faster place") from None
    return [json.loads(text) for text in printed]
