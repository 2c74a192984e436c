"""MPI programs, above all apps/hpccg, as the benchmarks and the demonstration run them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.bench.programs import BenchFailed, build_trees, find_program

PROTECTIONS = ("copy", "async", "twin", "log")  # that keep the state in a pool

# Open MPI wants to be told that it may run as root, on fewer cores than ranks, and yield.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


@dataclass(frozen=True)
class Program:
    """An MPI program of one flavour with that MPI's launcher."""

    flavour: str
    program: Path
    launcher: str

    def command(self, ranks: int, *words) -> list[str]:
        """The job with `ranks` ranks."""
        return [str(word) for word in (self.launcher, "-n", ranks, self.program, *words)]


@dataclass(frozen=True)
class Solver(Program):
    """hpccg."""

    def command(self, ranks: int, edge: int, iterations: int, *options) -> list[str]:
        """The job: `ranks` ranks of edge^3 points each, ending with a JSON object."""
        grid = [edge, edge, edge, "--iterations", iterations]
        return super().command(ranks, *grid, "--json", *options)


def find_programs(stem: str, folder: str = "apps", kind: type = Program) -> list:
    """STEM_FLAVOUR of every MPI flavour that was built; raises BenchFailed if there is none."""
    for tree in build_trees():
        programs = sorted((tree / folder).glob(f"**/{stem}_*"))
        programs = [p for p in programs if p.is_file() and os.access(p, os.X_OK)]
        programs = [p for p in programs if not p.name.endswith("_test")]
        if programs:
            return [_with_launcher(tree, path, stem, kind) for path in programs]
    return [_with_launcher(None, find_program(stem, folder), stem, kind)]


def find_solvers() -> list[Solver]:
    """hpccg of every MPI flavour."""
    return find_programs("hpccg", kind=Solver)


def _with_launcher(tree: Path | None, program: Path, stem: str, kind: type) -> Program:
    flavour = program.name.removeprefix(f"{stem}_")
    launcher = _launcher_of_build(tree, flavour) or shutil.which(f"mpiexec.{flavour}")
    launcher = launcher or shutil.which("mpiexec")
    if launcher is None:
        raise BenchFailed(f"there is no mpiexec for {program}")
    return kind(flavour, program, launcher)


def _launcher_of_build(tree: Path | None, flavour: str) -> str | None:
    """The launcher that CMake found for a flavour."""
    if tree is None or not (tree / "CMakeCache.txt").exists():
        return None
    cache = (tree / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(rf"^PERDURE_MPIEXEC_{re.escape(flavour)}:\w+=(.+)$", cache, re.MULTILINE)
    return found.group(1) if found else None


def last_report(output: str) -> dict:
    """The JSON object that ends the output of a job; raises BenchFailed without one."""
    for line in reversed(output.splitlines()):
        if line.startswith('{"program": '):
            return json.loads(line)
    raise BenchFailed(f"the job did not report; it printed: {output[-300:].strip()}")


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
