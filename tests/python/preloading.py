# SPDX-License-Identifier: BSD-3-Clause
"""For the tests of what is preloaded: runs a job, and tells what it printed."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from conftest import BUILD, ROOT

PRELOAD = BUILD / "src/capi/libperdure_preload.so"
RIGHT = "right 201\n"  # of tests/preload/plain.c on two ranks
_ASKED = ("PERDURE_WINDOWS", "PERDURE_CACHE", "PERDURE_POOL", "PERDURE_RECORD", "LD_PRELOAD")


def flavour(name: str) -> Path:
    """The library for one MPI."""
    return BUILD / f"src/capi/libperdure_mpi_{name}.so"


@dataclass
class Job:
    """How a job of two ranks ended; `folder` is where it may have made pools and files."""

    folder: Path
    code: int
    out: str
    err: str

    def was_right(self) -> None:
        assert (self.code, self.out) == (0, RIGHT), self.err

    def made(self) -> tuple[bool, bool]:
        """Whether a window was persistent, and whether a file was cached."""
        return any(self.folder.glob("windows/**/job")), any(self.folder.glob("report.*"))


def run_job(
    launcher: str | Path,
    command: list,
    folder: Path,
    libraries: list[Path],
    ask: bool = False,
    inherit: bool = False,
    **environment: str,
) -> Job:
    """Runs `command FILE` on two ranks with `libraries` preloaded, into the launcher too if asked.

    With `ask` every window is to be persistent and every file cached.
    """
    surroundings = {k: v for k, v in os.environ.items() if k not in _ASKED} | environment
    if ask:
        (folder / "cache").mkdir(exist_ok=True)
        surroundings["PERDURE_WINDOWS"] = f"pool={folder}/windows;mode=copy;commit=fence"
        surroundings["PERDURE_CACHE"] = f"files=*;directory={folder}/cache"
        surroundings["PERDURE_CACHE_REPORT"] = f"{folder}/report"
    preload = ":".join(map(str, libraries))
    words = [launcher, "-n", "2"]
    if inherit:
        surroundings["LD_PRELOAD"] = preload
    elif libraries:
        words += [ROOT / "tests/add_preload.sh", preload]  # beside what the launcher loads
    done = subprocess.run(
        [*map(str, words), *map(str, command), str(folder / "file")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=surroundings,
    )
    return Job(folder, done.returncode, done.stdout, done.stderr)


def stands_aside(job: Job, *words: str) -> None:
    """The program had its right end, and one line of the whole job names each of `words`."""
    job.was_right()
    lines = job.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("Perdure stands aside: this program has ")
    assert all(word in lines[0] for word in words), lines[0]
    assert job.made() == (False, False)
