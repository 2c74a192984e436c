# SPDX-License-Identifier: BSD-3-Clause
"""The programs of `perdure bench ipv`: what a persistent version of each iteration costs them.

Figures 2, 3, 4, 6, 7, 12 and 13 of the paper on in-place versioning. A round runs the ways to
protect a program in a new random order, the main ones in each round, the others in one or two of
the three; a ratio compares runs of one round, by iteration.

    overhead_ratio     time of the loop over that of the program without protection, compiled by the
                       same compiler; case PROGRAM is in-place versioning as it comes, with an idle
                       core, on NVM of 1/8 of DRAM's bandwidth; the other cases name the way
    settled_ratio      the same, as no iteration tries something out; older runs had such ones
    floor_ratio        the least that bytes over bandwidth allow: a version's time in the memory
                       passes while the next iteration computes, so 1 unless it is longer than that
    persist_ms         an iteration is kept waiting so long for its version, seen inside the program
    ends_ms            before and after the loop: the pool is opened, with all objects, and closed
    iteration_ms       of the unprotected program
    breakdown_ms, bytes, overlapped_percent    see ipv_breakdown.py

Ways: disk, a file a version, synced, on a disk; block, the same on memory; clflush, a copy that is
flushed line by line; par-clflush, by two threads; bypass, a copy past the caches; ipv, in-place
versioning as it comes, in tier copy, where a core is idle; ipv-alone, the same without a thread
that flushes; and the single tiers. disk, block and single tiers make fewer iterations. 1/8 and
1/32: a write takes as long as that bandwidth allows, from when it begins here; the memory works
while the program computes, and a fence waits for what is left. Its queue has no end, except in the
cases whose memory is named with write_queue_bytes: 16 KB, as a module of Optane has them for
writes, or 4 KB, as 64 lines in the write queue of a DDR channel; there a write waits while the
queue is full. The program's own loads and stores are at DRAM's speed, whatever the way.

Each run is of a new copy of the program: which pages of memory its text gets decides up to 12 % of
a loop (BT on an EPYC), and they stay as long as the file does.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from perdure.programs import find_program, output_of
from perdure_bench.facts import Fact, in_turn
from perdure_bench.ipv_breakdown import WAYS as BROKEN_DOWN
from perdure_bench.ipv_breakdown import (
    breakdown_facts,
    overlap_fact,
    per_iteration,
    values_of,
)

_LIMIT_S = 600
DRAM, EIGHTH, THIRTY_SECOND = "dram", "dram-1/8", "dram-1/32"
OPTANE_QUEUE = "dram-1/8,write_queue_bytes=16384"
DDR_QUEUE = "dram-1/8,write_queue_bytes=4096"


@dataclass(frozen=True)
class Program:
    """A program, and how much of it is run: enough iterations for a choice of tiers to settle."""

    name: str
    stem: str
    size: tuple[str, ...]
    iterations: int
    quick_iterations: int

    def options(self, quick: bool, most: int | None = None) -> tuple[str, ...]:
        """On the command line, with at most `most` iterations."""
        iterations = self.quick_iterations if quick else self.iterations
        flag = "--steps" if self.name == "eddy" else "--iterations"
        return (*self.size, flag, str(min(iterations, most or iterations)))


def _npb(name: str, iterations: int, quick: int) -> Program:
    return Program(name, f"npb_{name}", ("--class", "A"), iterations, quick)


PROGRAMS = (
    _npb("cg", 60, 40),
    _npb("mg", 60, 15),
    _npb("ft", 60, 15),
    _npb("bt", 40, 15),
    _npb("sp", 60, 40),
    _npb("lu", 60, 40),
    Program("eddy", "eddy", ("--n", "256"), 800, 800),
)


@dataclass(frozen=True)
class Way:
    """A way to protect a program. `rounds` by emulation; `most`: iterations."""

    name: str
    options: tuple[str, ...]
    rounds: dict[str, int]
    transformed: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    on_disk: bool = False
    most: int | None = None


def _ipv(name: str, tier: str, helper: str | None, rounds: dict[str, int],
         most: int | None = None) -> Way:
    settings = {} if helper is None else {"PERDURE_IPV": f"helper={helper}"}
    return Way(name, ("--protect", "ipv", "--tier", tier), rounds, True, settings, most=most)


_ROUNDS = 5  # of what has a target
_ONCE = {EIGHTH: 1}
_TIER_ITERATIONS = 10
_DISK_ITERATIONS = 5
_CLFLUSH = {"PERDURE_FLUSH": "clflush"}
NATIVE = Way("native", ("--protect", "none"), {DRAM: _ROUNDS})
WAYS = (
    Way("disk", ("--protect", "disk"), {DRAM: 1}, on_disk=True, most=_DISK_ITERATIONS),
    Way("block", ("--protect", "disk"), {DRAM: 1}, most=_DISK_ITERATIONS),
    Way("clflush", ("--protect", "flush"), {EIGHTH: 2, THIRTY_SECOND: 1}, environment=_CLFLUSH),
    Way("par-clflush", ("--protect", "flush", "--threads", "2"), _ONCE, environment=_CLFLUSH),
    Way("bypass", ("--protect", "ipv", "--tier", "copy"),
        {DRAM: 2, EIGHTH: _ROUNDS, THIRTY_SECOND: 1}, environment={"PERDURE_IPV": "helper=off"}),
    _ipv("ipv", "auto", None, {DRAM: 2, EIGHTH: _ROUNDS, THIRTY_SECOND: 2, OPTANE_QUEUE: 1}),
    _ipv("ipv-alone", "auto", "off",
         {EIGHTH: _ROUNDS, THIRTY_SECOND: 1, OPTANE_QUEUE: 1, DDR_QUEUE: 1}),
    _ipv("stream", "stream", "off", _ONCE, _TIER_ITERATIONS),
    _ipv("stream-helper", "stream", "on", _ONCE, _TIER_ITERATIONS),
    _ipv("copy-helper", "copy", "on", _ONCE, _TIER_ITERATIONS),
)
_CHOOSING = ("ipv", "ipv-alone")
_RUNTIME_ALONE = f"-bypass-{EIGHTH}"  # no compiler of ours, no thread
_QUICK_ROUNDS = ("clflush", "bypass", *_CHOOSING), _CHOOSING
Pair = tuple[Way, str]


def programs(only: tuple[str, ...] = ()) -> list[Program]:
    """Those that `only` names; none: all."""
    return [program for program in PROGRAMS if not only or program.name in only]


def runs(quick: bool, only: tuple[str, ...] = ()) -> int:
    """How many programs will be run, for a progress bar."""
    return len(programs(only)) * sum(len(pairs) for pairs in rounds_of(quick))


def rounds_of(quick: bool) -> list[list[Pair]]:
    """What each round runs. Ways that are not run in all are spread over them."""
    if quick:
        return [[(NATIVE, DRAM), *((way, EIGHTH) for way in WAYS if way.name in names)]
                for names in _QUICK_ROUNDS]
    all_rounds: list[list[Pair]] = [[] for _ in range(_ROUNDS)]
    for place, (way, emulation) in enumerate(pairs_of(quick)):
        for number in range(way.rounds[emulation]):
            all_rounds[(place + number) % _ROUNDS].append((way, emulation))
    return all_rounds


def pairs_of(quick: bool) -> list[Pair]:
    """All ways with their emulations, the unprotected program first."""
    if quick:
        return rounds_of(quick)[0]
    return [(way, emulation) for way in (NATIVE, *WAYS) for emulation in way.rounds]


def measure_programs(
    quick: bool, only: tuple[str, ...], pools: Path, disk: Path, advance: Callable[[], None]
) -> Iterator[Fact]:
    """The facts, a program at a time. Raises ProgramFailed."""
    ratios: dict[str, list[float]] = {"": [], "-alone": [], _RUNTIME_ALONE: []}
    for program in programs(only):
        rounds = []
        for pairs in rounds_of(quick):
            ran = {}
            for way, emulation in in_turn(pairs):
                words = program.options(quick, way.most)
                ran[way.name, emulation] = run_once(program, words, way, emulation, pools, disk)
                advance()
            rounds.append(ran)
        for fact in facts_of(program, rounds, quick):
            if fact.metric == "overhead_ratio" and fact.case.startswith(program.name):
                suffix = fact.case.removeprefix(program.name)
                if suffix in ratios:
                    ratios[suffix].append(fact.value)
            yield fact
    if not only:
        yield from average_facts(ratios, quick)


def average_facts(ratios: dict[str, list[float]], quick: bool) -> Iterator[Fact]:
    """Over all programs, from the ratios of each."""
    for suffix, target in (("", 1.02), ("-alone", 1.04), (_RUNTIME_ALONE, 1.03)):
        mean = statistics.fmean(ratios[suffix])
        claimed = None if quick else target
        holds = None if claimed is None else mean <= claimed
        more = {"emulated": EIGHTH, "programs": len(ratios[suffix])}
        case = "runtime-alone" if suffix == _RUNTIME_ALONE else f"average{suffix}"
        yield Fact("ipv", case, "overhead_ratio", mean, "", None, None, 1, claimed,
                   holds, more)


def run_once(
    program: Program, options: tuple[str, ...], way: Way, emulation: str, pools: Path, disk: Path
) -> dict:
    """What a run reports. Raises ProgramFailed."""
    variant = "ipv" if way.transformed else "clang"
    path = find_program(f"{program.stem}_{variant}", "apps")
    copy = disk / path.name
    pool = (disk if way.on_disk else pools) / "pool"
    words = [copy, *options, *way.options, "--json"]
    if way is not NATIVE:
        words += ["--pool", pool]
    if emulation != DRAM:
        words += ["--emulate", emulation, "--delay", "drain"]
    report = pools / "report.json"
    if "ipv" in way.options:
        words += ["--ipv-report", report]
    surroundings = {**os.environ, **way.environment}
    try:
        shutil.copy2(path, copy)
        output = output_of(words, f"{path.name} {way.name}", surroundings, _LIMIT_S)
        facts = json.loads(output.splitlines()[-1])
        return facts | (values_of(report) if "ipv" in way.options else {})
    finally:
        shutil.rmtree(pool, ignore_errors=True)
        copy.unlink(missing_ok=True)
        report.unlink(missing_ok=True)


def facts_of(program: Program, rounds: list[dict], quick: bool) -> Iterator[Fact]:
    """Of one program; a round has what each run of it reported, by way and emulation."""
    about = {"options": " ".join(program.options(quick))}
    native = ("native", DRAM)
    times = [1e3 * per_iteration(ran[native], "loop_s") for ran in rounds]
    yield Fact.of("ipv", f"{program.name}-native", "iteration_ms", times, "ms", more=about)
    for way, emulation in pairs_of(quick):
        if way is NATIVE:
            continue
        pair = way.name, emulation
        ran = [(around[pair], around[native]) for around in rounds if pair in around]
        more = {"options": " ".join(program.options(quick, way.most)), "way": way.name,
                "emulated": emulation, "state_mb": ran[0][0]["state_bytes"] / 1e6}
        if "tiers" in ran[0][0]:
            more["tiers"] = ran[-1][0]["tiers"]
        case, target = _case(program, way, emulation, quick)
        ratios = [per_iteration(a, "loop_s") / per_iteration(b, "loop_s") for a, b in ran]
        yield Fact.of("ipv", case, "overhead_ratio", ratios, target=target, more=more)
        if way.name in _CHOOSING:
            yield Fact.of("ipv", case, "settled_ratio", ratios, more=more)
        if way.name in _CHOOSING:
            ends = [1e3 * (a["open_s"] + a["close_s"]) for a, _ in ran]
            yield Fact.of("ipv", case, "ends_ms", ends, "ms", more=more)
            floors = [max(1.0, 1e-9 * per_iteration(a, "model_ns") / per_iteration(b, "loop_s"))
                      for a, b in ran]
            yield Fact.of("ipv", case, "floor_ratio", floors, more=more)
        times = [1e3 * per_iteration(a, "persist_s") for a, _ in ran]
        yield Fact.of("ipv", case, "persist_ms", times, "ms", more=more)
        if emulation == EIGHTH and way.name in BROKEN_DOWN:
            yield from breakdown_facts(f"{program.name}-{way.name}", ran, more)
    beside, alone = ([around[name, EIGHTH] for around in rounds] for name in ("ipv", "ipv-alone"))
    hidden = overlap_fact(program.name, beside, alone, about | {"emulated": EIGHTH})
    if hidden is not None:
        yield hidden


def _case(program: Program, way: Way, emulation: str, quick: bool) -> tuple[str, float | None]:
    """The name that others read, and what is claimed there."""
    if emulation == EIGHTH and way.name == "ipv":
        return program.name, None if quick else 1.05
    if emulation == EIGHTH and way.name == "ipv-alone":
        return f"{program.name}-alone", None if quick else 1.10
    return f"{program.name}-{way.name}-{emulation}", None
