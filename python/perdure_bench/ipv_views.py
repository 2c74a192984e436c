# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench ipv`, its part about the loads and stores of tier stream, whose objects lie in the
pool: what they take where that is memory of 1/8 of DRAM's bandwidth, without and with DRAM as a
cache in front of it.

    view_bytes       an iteration loads from the pool so much, and writes back so much beside what
                     is flushed; counted by PROGRAM_misses (bench/cache_model/cache_levels.hpp);
                     cases views-PROGRAM-MEMORY-loaded and -stored
    view_ms          the memory takes so long for both
    overhead_ratio   the loop over the one without versions, by iteration; the memory serves loads
                     and stores while the program computes (PERDURE_IPV=loads=,stores=), so the
                     least that they can take
    added_ratio      the most: nothing of view_ms is hidden

Case views-PROGRAM-MEMORY. Memories: free, loads and stores are at DRAM's speed, as in all other
parts; nvm; dram-cache, 256 MB of DRAM of 16 ways in front, as the paper has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from perdure.programs import make_program
from perdure_bench.facts import Fact, in_turn
from perdure_bench.ipv_breakdown import per_iteration
from perdure_bench.ipv_misses import FULL, QUICK, Caches, Case, Counts, Span, Way, count
from perdure_bench.ipv_programs import DRAM, EIGHTH, NATIVE, Program, programs, run_once
from perdure_bench.ipv_programs import Way as Protection

_FREE = "free"
_STREAM = Way("stream", "stream")
_MEMORIES = {"nvm": _STREAM, "dram-cache": Way("stream-cached", "stream", front=(256 << 20, 16))}
_ROUNDS = 3
_ITERATIONS = 10
_SPAN = Span(warm=3)  # an object has three copies, which change roles


@dataclass(frozen=True)
class Charge:
    """Of an iteration: bytes that the pool's memory gives and gets."""

    loaded: int = 0
    stored: int = 0

    def protection(self, memory: str) -> Protection:
        """In-place versioning in stream, charged so."""
        words = ["helper=off"]
        words += [f"{name}={value}" for name, value in
                  (("loads", self.loaded), ("stores", self.stored)) if value]
        return Protection(memory, ("--protect", "ipv", "--tier", "stream"), {}, True,
                          {"PERDURE_IPV": ",".join(words)}, most=_ITERATIONS)


def chosen(quick: bool, only: tuple[str, ...] = ()) -> list[Program]:
    """Those with large arrays of which boxes are overwritten."""
    names = ("mg",) if quick else ("ft", "mg")
    return [program for program in programs(only) if program.name in names]


def runs(quick: bool, only: tuple[str, ...] = ()) -> int:
    """How many programs will be run, for a progress bar."""
    rounds = 1 if quick else _ROUNDS
    return len(chosen(quick, only)) * (len(_MEMORIES) + rounds * (len(_MEMORIES) + 2))


def measure(
    quick: bool, only: tuple[str, ...], pools: Path, disk: Path, advance: Callable[[], None]
) -> Iterator[Fact]:
    """The facts, a program at a time. Raises ProgramFailed."""
    for program in chosen(quick, only):
        size = ("--class", "S") if quick else program.size
        charges = _charges(program, size, quick, pools, advance)
        rounds = []
        for _ in range(1 if quick else _ROUNDS):
            ways = {NATIVE.name: (NATIVE, DRAM)}
            ways |= {memory: (charge.protection(memory), EIGHTH)
                     for memory, charge in charges.items()}
            ran = {}
            for name in in_turn(ways):
                way, emulation = ways[name]
                words = (*size, "--iterations", str(_ITERATIONS))
                ran[name] = run_once(program, words, way, emulation, pools, disk)
                advance()
            rounds.append(ran)
        yield from facts_of(program.name, QUICK if quick else FULL, charges, rounds)


def _charges(
    program: Program, size: tuple[str, ...], quick: bool, pools: Path, advance: Callable[[], None]
) -> dict[str, Charge]:
    """By memory, what is counted of an iteration."""
    made = make_program(f"{program.stem}_misses", "apps")
    case = Case(program.name, program.stem, size)

    def counted(way: Way) -> Charge:
        counts = count(made, case, way, QUICK if quick else FULL, pools, _SPAN)
        advance()
        return charge_of(counts)

    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as workers:
        found = workers.map(counted, _MEMORIES.values())
        return {_FREE: Charge(), **dict(zip(_MEMORIES, found, strict=True))}


def charge_of(counts: Counts) -> Charge:
    """Of an iteration, from the lines of several.

    A clean line that is flushed writes nothing, but is charged; another that was put out pays.
    """
    each = 64 / _SPAN.measured
    return Charge(round(each * counts.pool_loaded),
                  round(each * max(0, counts.pool_put_out - counts.pool_flushed_clean)))


def facts_of(
    name: str, caches: Caches, charges: dict[str, Charge], rounds: list[dict]
) -> Iterator[Fact]:
    """Of one program; a round has what each run of it reported, by memory, and native."""
    def view_ms(ran: dict, free: dict) -> float:  # the restart begins one, too
        return 1e-6 * (ran["model_ns"] - free["model_ns"]) / (ran["iterations"] + 1)

    def loop_ms(ran: dict) -> float:
        return 1e3 * per_iteration(ran, "loop_s")

    for memory, charge in charges.items():
        case = f"views-{name}-{memory}"
        more = {"emulated": EIGHTH}
        if memory != _FREE:
            more["modelled"] = str(caches)
        ratios = [loop_ms(ran[memory]) / loop_ms(ran[NATIVE.name]) for ran in rounds]
        yield Fact.of("ipv", case, "overhead_ratio", ratios, more=more)
        if memory == _FREE:
            continue
        for part in ("loaded", "stored"):
            value = getattr(charge, part)
            yield Fact("ipv", f"{case}-{part}", "view_bytes", value, "B", more=more)
        times = [view_ms(ran[memory], ran[_FREE]) for ran in rounds]
        yield Fact.of("ipv", case, "view_ms", times, "ms", more=more)
        added = [(loop_ms(ran[_FREE]) + view) / loop_ms(ran[NATIVE.name])
                 for ran, view in zip(rounds, times, strict=True)]
        yield Fact.of("ipv", case, "added_ratio", added, more=more)
