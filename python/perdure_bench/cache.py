# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench cache`: what single accesses to a cached file cost, against every other way.

bench/file_operations.cpp runs on two ranks, and all ways take turns in one process. Cases are
PLACE-SIZE-ORDER-OPERATION, as in local-8B-random-write; nothing is emulated or modelled.

    latency_ns            of one access, for each way
    speedup_vs_mpiio_FS   stock MPI-IO on tmpfs, disk and gluster over the cached file
    wrapper_ns            the cached file less a memcpy in mapped memory of the same accesses;
                          wrapper_ordered_ns: less one for which the next has to wait
    ratio_to_memcpy       of 1 MiB
    ratio_to_mpi_rma      of another node's part, over MPI_Get or MPI_Put and a flush by what the
                          MPI chooses, which on one machine is shared memory; ratio_to_mpi_rma_tcp:
                          by TCP, which the cache uses between nodes too
    cache_threads_cpu_fraction   of all threads but the main one, of a file that is left alone

Cases that end with -target-computes have an owner that calls MPI every ten milliseconds only. The
part server is a thread that sleeps in the kernel for this reason: it serves meanwhile, where
one-sided calls of MPI may wait for the owner to come to a call. $PERDURE_GLUSTER names a directory
of a mounted GlusterFS, $TMPDIR one on disk. What is in memory is on a tmpfs of huge pages where one
may be mounted: persistent memory is mapped so. The lines name the file systems.

Ratios are of wall time, or of the thread's CPU time if accesses that never wait took much longer
than they computed: then the machine was busy with something else. The lines say which (`clock`),
and have both.
"""

from __future__ import annotations

import json
import operator
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.programs import Program, find_programs
from perdure_bench.facts import Fact
from perdure_bench.solver import (
    file_system_of,
    huge_page_directory,
    job_output,
    pool_directory,
)

SUMMARY = "single accesses to a cached file, against stock MPI-IO, memory and one-sided calls"

_ROUNDS = {False: {"local": 31, "remote": 9}, True: {"local": 3, "remote": 1}}
_LIMIT_S = 500
_BUSY = 1.25  # wall time over CPU time of accesses that never wait
_SMALL = (8, 64)
_LARGE = 1 << 20
_TCP = {
    "UCX_TLS": "tcp,self",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_osc": "pt2pt",
}

WRAPPER_TARGET_NS = 40
MEMCPY_TARGET = 1.05
RMA_TARGET = 2
IDLE_TARGET = 0.01


@dataclass(frozen=True, order=True)
class Access:
    """A kind of access; `target` is what rank 1 does meanwhile, empty if it does the same."""

    bytes: int
    order: str
    operation: str
    target: str = ""

    @property
    def case(self) -> str:
        """Its name in the facts."""
        place = "remote" if self.target else "local"
        suffix = "-target-computes" if self.target == "computes" else ""
        return f"{place}-{size_text(self.bytes)}-{self.order}-{self.operation}{suffix}"


def size_text(size: int) -> str:
    """8B, 4KiB, 1MiB."""
    if size >= 1 << 20:
        return f"{size >> 20}MiB"
    return f"{size >> 10}KiB" if size >= 1 << 10 else f"{size}B"


class Taken:
    """What a run of the program took, by access and way: nanoseconds of each round."""

    def __init__(self, lines: list[str]):
        self.wall: dict[Access, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.cpu: dict[Access, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for line in lines:
            one = json.loads(line)
            key = Access(one["bytes"], one["order"], one["operation"], one["target"])
            self.wall[key][one["way"]].append(one["wall_ns"])
            self.cpu[key][one["way"]].append(one["cpu_ns"])

    def clock(self) -> str:
        """Which of the two can be compared."""
        excess = [
            wall / cpu
            for key, ways in self.wall.items()
            for wall, cpu in zip(ways["mapped"], self.cpu[key]["mapped"])
            if cpu > 0
        ]
        return "cpu" if excess and statistics.mean(excess) > _BUSY else "wall"


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come of every flavour. Raises ProgramFailed."""
    for program in find_programs("bench_file_operations", "bench"):
        with (
            pool_directory() as memory,
            huge_page_directory(memory) as huge,
            tempfile.TemporaryDirectory() as disk,
        ):
            places = Places(memory, Path(disk), huge)
            yield from _measure_flavour(program, places, quick)


@dataclass(frozen=True)
class Places:
    """Directories in memory and on disk."""

    memory: Path
    disk: Path
    huge_pages: bool  # of what is mapped in memory, as persistent memory is


def _measure_flavour(program: Program, places: Places, quick: bool) -> Iterator[Fact]:
    judge = _Judge(program.flavour, not quick)
    rounds = _ROUNDS[quick]
    with gluster_directory() as (gluster, absent):
        systems = {
            "tmpfs": file_system_of(places.memory) + (", huge pages" if places.huge_pages else ""),
            "disk": file_system_of(places.disk),
            "gluster": file_system_of(gluster) if gluster else f"absent: {absent}",
        }
        words = ["--disk", places.disk, "--rounds", rounds["local"]]
        words += ["--gluster", gluster] if gluster else []
        taken = Taken(_run(program, places, ["local", *words]))
    yield from local_facts(judge, taken, systems)
    words = ["remote", "--rounds", rounds["remote"]]
    taken = Taken(_run(program, places, words))
    yield from remote_facts(judge, taken, "ratio_to_mpi_rma")
    if not quick:
        taken = Taken(_run(program, places, words, _TCP))
        yield from remote_facts(judge, taken, "ratio_to_mpi_rma_tcp")
    idle = json.loads(_run(program, places, ["idle"])[-1])
    more = {"threads": idle["threads"], "nodes": 2, "seconds": 2}
    values = [idle["idle"]]
    yield judge.fact("idle", "cache_threads_cpu_fraction", "", values, more, IDLE_TARGET)


def _run(program: Program, places: Places, words: list, more: dict | None = None) -> list[str]:
    command = program.command(2, *words, "--memory", places.memory)
    more = {"OMPI_MCA_mpi_yield_when_idle": "0", **(more or {})}
    output = job_output(command, f"file_operations {words[0]}", _LIMIT_S, more)
    return [line for line in output.splitlines() if line.startswith("{")]


@contextmanager
def gluster_directory() -> Iterator[tuple[Path | None, str]]:
    """A directory below $PERDURE_GLUSTER while it is needed, or why there is none."""
    place = os.environ.get("PERDURE_GLUSTER")
    if not place:
        absent = "PERDURE_GLUSTER names no directory of a mounted GlusterFS"
    elif not os.access(place, os.W_OK):
        absent = f"PERDURE_GLUSTER={place} can't be written to"
    else:
        with tempfile.TemporaryDirectory(prefix="perdure-bench-", dir=place) as directory:
            yield Path(directory), ""
        return
    print(f"perdure bench cache: no GlusterFS: {absent}", file=sys.stderr)
    yield None, absent


class _Judge:
    """Makes facts; targets are claimed of full runs only."""

    def __init__(self, flavour: str, claims: bool):
        self._flavour, self._claims = flavour, claims

    def fact(
        self,
        case: str,
        metric: str,
        unit: str,
        values: list[float],
        more: dict,
        at_most: float | None = None,
        at_least: float | None = None,
    ) -> Fact:
        """The median of `values` with its quartiles, and whether it keeps to the limit."""
        target, keeps = (at_most, operator.le) if at_least is None else (at_least, operator.ge)
        claimed = target if self._claims else None
        about = {"mpi": self._flavour, **more}
        return Fact.of("cache", case, metric, values, unit, claimed, keeps, about)


def _ratios(above: list[float], below: list[float]) -> list[float]:
    return [a / b for a, b in zip(above, below)]


def least_speedup(access: Access, system: str) -> float | None:
    """What is claimed against stock MPI-IO."""
    if system == "tmpfs" and access.bytes in _SMALL:
        return 6
    if system == "tmpfs" and access.bytes == 4096:
        return 2
    if system == "disk" and access.bytes in _SMALL:
        return 60 if (access.order, access.operation) == ("random", "write") else None
    return None


def local_facts(judge: _Judge, taken: Taken, systems: dict[str, str]) -> Iterator[Fact]:
    """Of files on one node; `systems` says what tmpfs, disk and gluster are here."""
    clock = taken.clock()
    times, others = (taken.cpu, taken.wall) if clock == "cpu" else (taken.wall, taken.cpu)
    other = "wall" if clock == "cpu" else "cpu"
    for access, ways in times.items():
        cached, rest = ways["cached"], others[access]
        for way, values in ways.items():
            more = {"way": way, f"{other}_ns": statistics.median(rest[way]), "clock": clock}
            more["file_system"] = systems.get(way.split("-")[-1], systems["tmpfs"])
            yield judge.fact(access.case, "latency_ns", "ns", values, more)
        for system, kind in systems.items():
            way = f"mpiio-{system}"
            if way not in ways:
                continue
            speedups = _ratios(ways[way], cached)
            more = {f"{other}_ratio": statistics.median(_ratios(rest[way], rest["cached"]))}
            more |= {"file_system": kind, "clock": clock}
            least, metric = least_speedup(access, system), f"speedup_vs_mpiio_{system}"
            yield judge.fact(access.case, metric, "", speedups, more, at_least=least)
        if access.bytes == _LARGE:
            ratios = _ratios(cached, ways["mapped"])
            more = {f"{other}_ratio": statistics.median(_ratios(rest["cached"], rest["mapped"]))}
            more["clock"] = clock
            yield judge.fact(access.case, "ratio_to_memcpy", "", ratios, more, MEMCPY_TARGET)
            continue
        for way, suffix, target in (
            ("mapped", "", WRAPPER_TARGET_NS),
            ("mapped-ordered", "_ordered", None),
        ):
            costs = [c - m for c, m in zip(cached, ways[way])]
            rest_ns = statistics.median(c - m for c, m in zip(rest["cached"], rest[way]))
            more = {f"{other}_ns": rest_ns, "clock": clock}
            metric = f"wrapper{suffix}_ns"
            yield judge.fact(access.case, metric, "ns", costs, more, target)


def remote_facts(judge: _Judge, taken: Taken, metric: str) -> Iterator[Fact]:
    """Of another node's part. Waiting is what counts, so it is always wall time."""
    transport = "tcp" if metric.endswith("_tcp") else "the MPI's choice"
    for access, ways in taken.wall.items():
        cached, rma = ways["cached"], ways["mpi-rma"]
        for way, values in ways.items():
            if way == "cached" and transport == "tcp":
                continue  # it has its fact already
            more = {"way": way, "cpu_ns": statistics.median(taken.cpu[access][way])}
            more |= {"transport": transport} if way == "mpi-rma" else {}
            yield judge.fact(access.case, "latency_ns", "ns", values, more)
        more = {"clock": "wall"}
        yield judge.fact(access.case, metric, "", _ratios(cached, rma), more, RMA_TARGET)
