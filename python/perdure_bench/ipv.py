# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench ipv`: in-place versioning against programs without versions."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.progress import progress
from perdure_bench import ipv_compile, ipv_misses, ipv_programs, ipv_update, ipv_views
from perdure_bench.facts import Fact
from perdure_bench.solver import disk_directory, huge_page_directory, pool_directory

SUMMARY = "in-place versioning: seven programs, their caches, an update, flushing, compiling"

# What --only may name: parts, and programs of the first two and of the last one.
PARTS = ("times", "misses", "update", "compile", "pairs", "views", "growth")
TIMES, MISSES, UPDATE, COMPILE, PAIRS, VIEWS, GROWTH = PARTS
ONLY = (*(program.name for program in ipv_programs.PROGRAMS), *PARTS)


def chosen(only: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts and the programs that `only` asks for; programs: none means all.

    Programs without a part are run for what there is of each program: times and misses.
    """
    parts = tuple(name for name in only if name in PARTS)
    programs = tuple(name for name in only if name not in PARTS)
    if not parts:
        parts = (TIMES, MISSES) if programs else PARTS
    return parts, programs


def measure(quick: bool, only: tuple[str, ...] = ()) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within minutes. Raises ProgramFailed."""
    parts, programs = chosen(only)
    if TIMES in parts:
        with (
            pool_directory() as pools,
            huge_page_directory(pools),
            progress("bench ipv, programs", ipv_programs.runs(quick, programs)) as advance,
        ):
            yield from ipv_programs.measure_programs(
                quick, programs, pools, disk_directory(), advance
            )
    if MISSES in parts:
        with (
            pool_directory() as pools,
            progress("bench ipv, caches", ipv_misses.runs(quick, programs)) as advance,
        ):
            yield from ipv_misses.measure(quick, programs, pools, advance)
    if UPDATE in parts:
        with pool_directory() as pools:
            yield from ipv_update.measure_small_pages(quick, pools)
            with huge_page_directory(pools) as huge:
                yield from ipv_update.measure(quick, pools, huge)
    if PAIRS in parts:
        with pool_directory() as pools:
            yield from ipv_update.measure_pairs(quick, pools)
    if GROWTH in parts:
        with pool_directory() as pools:
            yield from ipv_update.measure_growth(quick, pools)
    if VIEWS in parts:
        with (
            pool_directory() as pools,
            huge_page_directory(pools),
            progress("bench ipv, views", ipv_views.runs(quick, programs)) as advance,
        ):
            yield from ipv_views.measure(quick, programs, pools, disk_directory(), advance)
    if COMPILE in parts:
        yield from ipv_compile.measure(quick)
