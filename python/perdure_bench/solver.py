# SPDX-License-Identifier: BSD-3-Clause
"""apps/hpccg, and where its pools lie, as the benchmarks and the demonstration run it."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perdure.programs import OPEN_MPI, Program, ProgramFailed, find_programs, output_of
from perdure.run.job import JobRequest, JobResult, run_job
from perdure.run.live import Live
from perdure.run.processes import RUN_DIRECTORY_NAME

PROTECTIONS = ("copy", "async", "twin", "log")  # that keep the state in a pool
_OF_A_LAUNCHER = (RUN_DIRECTORY_NAME, "PERDURE_RUN_SHARED", "PERDURE_KILL")


def solve(
    solver: Program, ranks: int, edge: int, iterations: int, *options: object
) -> list[str]:
    """The job: `ranks` ranks of edge^3 points each, ending with a JSON object."""
    grid = [edge, edge, edge, "--iterations", iterations]
    return solver.command(ranks, *grid, "--json", *options)


def find_solvers() -> list[Program]:
    """hpccg of every MPI flavour."""
    return find_programs("hpccg")


def last_report(output: str) -> dict:
    """The JSON object that ends the output of a job; raises ProgramFailed without one."""
    for line in reversed(output.splitlines()):
        if line.startswith('{"program": '):
            return json.loads(line)
    raise ProgramFailed(f"the job did not report; it printed: {output[-300:].strip()}")


def job_output(
    command: Sequence[object], name: str, limit_s: float, more: Mapping[str, str] = {}
) -> str:
    """What a job prints, with `more` in its environment. Raises ProgramFailed as output_of()."""
    around = {key: value for key, value in os.environ.items() if key not in _OF_A_LAUNCHER}
    return output_of(command, name, {**around, **OPEN_MPI, **more}, limit_s)


def run_captured(command: list[str], **asked: Any) -> tuple[JobResult, str]:
    """Runs a job as `perdure run` does, and what it printed; `asked` is more of a JobRequest."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        result = run_job(JobRequest(command, **asked, output=output), Live())
        output.seek(0)
        return result, output.read()


def disk_directory() -> Path:
    """A place on a disk, not in memory: $PERDURE_BENCH_DISK, else in the home directory."""
    place = Path(os.environ.get("PERDURE_BENCH_DISK") or Path.home() / ".cache" / "perdure-bench")
    place.mkdir(parents=True, exist_ok=True)
    return place


def file_system_of(path: Path, mounts: str = "") -> str:
    """The kind of file system that holds `path`, by /proc/mounts or such text: ext4, glusterfs…"""
    path, found = path.resolve(), (0, "unknown")
    for line in (mounts or Path("/proc/mounts").read_text(encoding="utf-8")).splitlines():
        _, point, kind = line.split()[:3]
        point = point.replace("\\040", " ")
        if path == Path(point) or Path(point) in path.parents:
            found = max(found, (len(point), kind.removeprefix("fuse.")), key=lambda pair: pair[0])
    return found[1]


@contextmanager
def pool_directory() -> Iterator[Path]:
    """An empty directory for pools, in memory: $PERDURE_BENCH_DIR, /dev/shm, else $TMPDIR."""
    parent = os.environ.get("PERDURE_BENCH_DIR")
    if not parent and os.access("/dev/shm", os.W_OK):
        parent = "/dev/shm"
    with tempfile.TemporaryDirectory(prefix="perdure-bench-", dir=parent or None) as path:
        yield Path(path)


@contextmanager
def huge_page_directory(directory: Path) -> Iterator[bool]:
    """Puts a tmpfs of huge pages on `directory` while it lasts; False where that is not allowed.

    Persistent memory is mapped by huge pages (DAX), and so is the memory that protections are
    compared with; an ordinary tmpfs is not, and costs TLB misses that are not the protection's.
    """
    words = ["mount", "-t", "tmpfs", "-o", "huge=always,mode=0700", "perdure-bench", str(directory)]
    mounted = os.geteuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(directory)], check=False)
