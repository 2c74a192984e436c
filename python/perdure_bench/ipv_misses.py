# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench ipv`, its part about caches: figure 14 of the in-place-versioning paper.

    last_level_misses_ratio   misses of the last cache over those of the program without versions
    first_level_misses_ratio  the same of the first one
    last_level_miss_rate      of 100 accesses of the last cache so many miss; the paper's quantity

Case misses-PROGRAM-WAY. Counted in one iteration, after two that warm the caches, by the programs
PROGRAM_misses, which simulate them (bench/cache_model/hooks.cpp says what is modelled): what runs
beside does not matter. Ways: none, without versions; stream and copy, that tier;
stream-evicted, where flushing a line takes it out of the caches, as clflush does.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from perdure.programs import ProgramFailed, make_program, output_of
from perdure_bench.facts import Fact

_LIMIT_S = 600
_SETTINGS = "helper=off,remap=off"


@dataclass(frozen=True)
class Caches:
    """The two levels: bytes and ways."""

    first: tuple[int, int]
    last: tuple[int, int]

    def __str__(self) -> str:
        levels = [f"{size >> 10} KiB of {ways} ways" for size, ways in (self.first, self.last)]
        return f"caches: {levels[0]}, {levels[1]}"


# One core of the paper's Xeon E5-2630 v3; for class S a last level that its arrays don't fit in.
FULL = Caches((32 << 10, 8), (20 << 20, 20))
QUICK = Caches((32 << 10, 8), (256 << 10, 8))


@dataclass(frozen=True)
class Span:
    """Iterations that warm the caches, and those that are counted after them."""

    warm: int = 2
    measured: int = 1

    def iterations_of(self, name: str) -> tuple[str, str]:
        """On the command line of a program."""
        flag = "--steps" if name == "eddy" else "--iterations"
        return flag, str(self.warm + self.measured + 1)


_SPAN = Span()


@dataclass(frozen=True)
class Case:
    """A program and its size."""

    name: str
    stem: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Way:
    """None, or a tier of in-place versioning; `front`: DRAM before the pool, bytes and ways."""

    name: str
    tier: str | None = None
    flush: str = "keeps"
    front: tuple[int, int] | None = None


@dataclass(frozen=True)
class Counts:
    """Lines that were touched in the measured iterations, and not found in a cache; and what the
    pool's memory gave and got of them (bench/cache_model/cache_levels.hpp)."""

    lines: int
    first_misses: int
    last_misses: int
    runtime_last_misses: int  # of last_misses, those of the runtime's copies
    pool_loaded: int = 0
    pool_put_out: int = 0
    pool_flushed_clean: int = 0

    @property
    def last_rate(self) -> float:
        """Of 100 accesses of the last cache so many miss."""
        return 100 * self.last_misses / self.first_misses


NONE = Way("none")
WAYS = (NONE, Way("stream", "stream"), Way("stream-evicted", "stream", "evicts"),
        Way("copy", "copy"))
_NPB = ("cg", "mg", "ft", "bt", "sp", "lu")
_QUICK_PROGRAMS = ("mg", "sp")


def cases(quick: bool, only: tuple[str, ...] = ()) -> list[Case]:
    """The programs that are run; `only` names some, none: all."""
    size = "S" if quick else "A"
    all_of_them = [Case(name, f"npb_{name}", ("--class", size)) for name in _NPB]
    all_of_them.append(Case("eddy", "eddy", ("--n", "64" if quick else "1024")))
    wanted = only or (_QUICK_PROGRAMS if quick else ())
    return [case for case in all_of_them if not wanted or case.name in wanted]


def runs(quick: bool, only: tuple[str, ...] = ()) -> int:
    """How many programs will be run, for a progress bar."""
    return len(cases(quick, only)) * len(WAYS)


def measure(
    quick: bool, only: tuple[str, ...], pools: Path, advance: Callable[[], None]
) -> Iterator[Fact]:
    """The facts, a program at a time. Raises ProgramFailed."""
    caches = QUICK if quick else FULL
    for case in cases(quick, only):
        program = make_program(f"{case.stem}_misses", "apps")  # before the ways

        def run(way: Way, case: Case = case, program: Path = program) -> Counts:
            counts = count(program, case, way, caches, pools)
            advance()
            return counts

        with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as workers:
            counted = dict(zip(WAYS, workers.map(run, WAYS), strict=True))
        yield from facts_of(case, caches, counted)


def count(
    program: Path, case: Case, way: Way, caches: Caches, pools: Path, span: Span = _SPAN
) -> Counts:
    """Runs the program PROGRAM_misses. Raises ProgramFailed."""
    pool = pools / f"misses-{case.name}-{way.name}"
    report = pool.with_suffix(".json")
    words = [str(program), *case.options, *span.iterations_of(case.name), "--json"]
    if way.tier is not None:
        words += ["--protect", "ipv", "--tier", way.tier, "--pool", str(pool)]
    levels = zip(("first", "last"), (caches.first, caches.last), strict=True)
    model = ",".join(f"{name}={size}:{ways}" for name, (size, ways) in levels)
    model += f",report={report},flush={way.flush},warm={span.warm},measured={span.measured}"
    if way.front is not None:
        model += ",front={}:{}".format(*way.front)
    surroundings = {**os.environ, "PERDURE_CACHE_MODEL": model, "PERDURE_IPV": _SETTINGS}
    name = f"{program.name} {way.name}"
    try:
        output_of(words, name, surroundings, _LIMIT_S)
        if not report.exists():
            raise ProgramFailed(f"{name} counted nothing")
        return counts_of(report.read_text(encoding="utf-8"))
    finally:
        shutil.rmtree(pool, ignore_errors=True)
        report.unlink(missing_ok=True)


def counts_of(report: str) -> Counts:
    """What the model wrote."""
    counted = json.loads(report)
    program, runtime = counted["program"], counted["runtime"]
    names = ("lines", "first_misses", "last_misses")
    sums = {name: program[name] + runtime[name] for name in names}
    pool = {f"pool_{name}": value for name, value in counted["pool"].items()}
    return Counts(**sums, runtime_last_misses=runtime["last_misses"], **pool)


def facts_of(case: Case, caches: Caches, counted: dict[Way, Counts]) -> Iterator[Fact]:
    """Ratios and rates of one program, from the counts by way."""
    none = counted[NONE]
    if none.last_misses == 0:
        raise ProgramFailed(f"{case.name} fits the caches ({caches}); nothing can be compared")
    for way, counts in counted.items():
        options = " ".join((*case.options, *_SPAN.iterations_of(case.name)))
        more = {"modelled": str(caches), "options": options, "way": way.name,
                "lines": counts.lines, "runtime_share": counts.runtime_last_misses
                / counts.last_misses}
        name = f"misses-{case.name}-{way.name}"
        if way is not NONE:
            for metric, value in (
                ("last_level_misses_ratio", counts.last_misses / none.last_misses),
                ("first_level_misses_ratio", counts.first_misses / none.first_misses),
            ):
                yield Fact("ipv", name, metric, value, "", more=more)
        yield Fact("ipv", name, "last_level_miss_rate", counts.last_rate, "%", more=more)
