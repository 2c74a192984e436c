# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench veloc`: checkpoints and restarts through VELOC's client interface.

One source, bench/veloc.c, is linked with libperdure_veloc and, where VELOC is installed (in
$VELOC_DIR, /usr/local, /usr or /opt/veloc), with VELOC's own library as well. A second,
bench/twin_commits.c, does the same steps with Perdure's own interface and an array in twin mode
(cases -twin). Their jobs take turns in one run, in a new random order each round. All have their
scratch in memory and drain each checkpoint to the same kind of directory in the background (VELOC
by its veloc-backend, without erasure codes); what is on its way is waited for between checkpoints,
which is not measured.

    blocked, restart   milliseconds that the slowest rank waited: linked with Perdure
    whole              the same of a step: the stores to all of the region, and the checkpoint
    blocked_veloc, restart_veloc, whole_veloc   VELOC's program
    ratio_to_veloc     of neighbours in time
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perdure.files import remove, write_text
from perdure.programs import CLONE, Program, ProgramFailed, find_programs, output_of
from perdure.progress import progress
from perdure_bench.facts import Fact, take_turns
from perdure_bench.solver import job_output, pool_directory

SUMMARY = "checkpoints through VELOC's interface and in twin mode, and by VELOC"
_TARGETS = {"": 1.0, "-twin": 0.1}  # of checkpoints, by the end of the case's name
_RANKS = 2
_BYTES = 64 << 20
_CHECKPOINTS = 6
_LIMIT_S = 120
_METRICS = {"checkpoint": "blocked", "step": "whole", "restart": "restart"}
_VELOC = "veloc"  # the job that is linked with its own library
_PLACES = ("/usr/local", "/usr", "/opt/veloc")
_SHARED = Path("/dev/shm")
_LIBRARIES = {"mpich": "libmpich.so", "openmpi": "libmpi.so.40"}


@dataclass(frozen=True)
class Veloc:
    """VELOC's own library and daemon, and the MPI that it was built with."""

    prefix: Path
    library: Path
    flavour: str

    @property
    def backend(self) -> Path:
        return self.prefix / "bin/veloc-backend"


def find_veloc() -> Veloc | None:
    """The first that is installed."""
    for place in filter(None, (os.environ.get("VELOC_DIR"), *_PLACES)):
        for library in sorted(Path(place).glob("lib*/**/libveloc-client.so")):
            needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=False)
            for flavour, name in _LIBRARIES.items():
                if name in needed.stdout and (Path(place) / "bin/veloc-backend").exists():
                    return Veloc(Path(place), library, flavour)
    return None


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within a minute. Raises ProgramFailed."""
    veloc = find_veloc()
    programs = {program.flavour: program for program in find_programs("bench_veloc", "bench")}
    flavours = [veloc.flavour] if veloc and veloc.flavour in programs else list(programs)[:1]
    if not flavours:
        raise ProgramFailed("there is no bench_veloc; build it first")
    program = programs[flavours[0]]
    rounds = 2 if quick else 15
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as lasting, pool_directory() as pools:
        jobs = {
            "": _job(program, pools / "perdure", Path(lasting) / "perdure"),
            "-twin": _twin_job(program.flavour, pools / "twin", Path(lasting) / "twin"),
        }
        with _veloc_beside(veloc, program, pools, Path(lasting)) as theirs:
            samples = _take_turns({**jobs, **theirs}, rounds)
    yield from _facts(samples, {"ranks": _RANKS, "mpi": program.flavour})


def _facts(samples: dict[str, dict[str, list[int]]], more: dict) -> Iterator[Fact]:
    theirs = samples.pop(_VELOC, {})
    for kind, metric in _METRICS.items():
        others = theirs.get(kind, [])
        if others:
            yield _milliseconds(f"{kind}-64MiB", f"{metric}_veloc", others, more)
        for end, of_job in samples.items():
            case = f"{kind}-64MiB{end}"
            yield _milliseconds(case, metric, of_job[kind], more)
            if others:
                ratios = [mine / other for mine, other in zip(of_job[kind], others)]
                target = _TARGETS[end] if kind == "checkpoint" else None
                yield Fact.of("veloc", case, "ratio_to_veloc", ratios, target=target, more=more)


def _milliseconds(case: str, metric: str, samples_ns: list[int], more: dict) -> Fact:
    return Fact.of("veloc", case, metric, [ns / 1e6 for ns in samples_ns], "ms", more=more)


def _job(program: Program, scratch: Path, lasting: Path) -> list[str]:
    """The words of a job with a configuration of its own."""
    scratch.mkdir()
    lasting.mkdir()
    config = scratch.with_suffix(".cfg")
    text = f"scratch = {scratch}\npersistent = {lasting}\nmode = async\n"
    write_text(config, text + "scratch_versions = 2\nmax_versions = 2\n")
    return program.command(_RANKS, config, _BYTES, _CHECKPOINTS)


def _twin_job(flavour: str, pool: Path, lasting: Path) -> list[str]:
    """The job with an array in twin mode, whose every version is drained."""
    programs = find_programs("bench_twin_commits", "bench")
    program = next((each for each in programs if each.flavour == flavour), None)
    if program is None:
        raise ProgramFailed(f"there is no bench_twin_commits_{flavour}; build it first")
    levels = f"redundancy=off;every=1;drain={lasting}"
    return program.command(_RANKS, pool, levels, _BYTES, _CHECKPOINTS)


@contextmanager
def _veloc_beside(
    veloc: Veloc | None, program: Program, pools: Path, lasting: Path
) -> Iterator[dict[str, list[str]]]:
    """The job of VELOC, whose daemon runs meanwhile; none where it is not installed."""
    if veloc is None or veloc.flavour != program.flavour:
        yield {}
        return
    if (_SHARED / f"veloc-socket-{os.uname().nodename}-{os.getuid()}").exists():
        raise ProgramFailed("a veloc-backend of this user is running; end it first")
    own = pools / "bench_veloc_own"
    folder = veloc.library.parent
    source = str(CLONE / "bench/veloc.c")
    linked = [f"-L{folder}", "-lveloc-client", f"-Wl,-rpath,{folder}"]
    words = [f"mpicc.{veloc.flavour}", "-O2", f"-I{veloc.prefix}/include", source, *linked]
    output_of([*words, "-o", own], "the compiler of VELOC's program")
    job = _job(Program(program.flavour, own, program.launcher), pools / "veloc", lasting / "veloc")
    found = ["env", f"LD_LIBRARY_PATH={folder}", f"VELOC_BIN={veloc.backend.parent}"]
    before = set(_SHARED.glob("veloc-*"))
    # The daemon leaves the launcher's group; started by a job it would keep mpiexec waiting.
    start = [*found, str(veloc.backend), str(pools / "veloc.cfg"), "--disable-ec"]
    subprocess.run(start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    try:
        yield {_VELOC: [*found, *job]}
    finally:
        _end_daemons(veloc.backend, pools / "veloc.cfg")
        for left in set(_SHARED.glob("veloc-*")) - before:
            with suppress(OSError):
                remove(left)


def _end_daemons(backend: Path, config: Path) -> None:
    """Those that were started with this configuration."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0] == os.fsencode(backend) and os.fsencode(config) in words:
                os.kill(int(process.name), signal.SIGTERM)


def _take_turns(jobs: dict[str, list[str]], rounds: int) -> dict[str, dict[str, list[int]]]:
    """Nanoseconds by job and kind; the first round is for warming up."""
    with progress("bench veloc", (rounds + 1) * len(jobs)) as advance:
        ways = {name: partial(_run, words) for name, words in jobs.items()}
        ran = take_turns(ways, rounds, advance)
    return {name: {kind: [int(ns) for found in of_job for its_kind, ns in found if its_kind == kind]
                   for kind in _METRICS} for name, of_job in ran.items()}  # fmt: skip


def _run(words: list[str]) -> list[tuple[str, str]]:
    output = job_output(words, words[-4], _LIMIT_S)
    time.sleep(0.2)  # VELOC's daemon goes on after its job
    return re.findall(rf"^({'|'.join(_METRICS)}) (\d+)$", output, re.MULTILINE)
