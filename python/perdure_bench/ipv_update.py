# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench ipv`, its part without programs: the update u += r with a version at every sweep,
a double-buffered flow as a pair and copied, an array that grows, and what flushing a line costs.

The programs bench/bench_ipv_update, bench_ipv_lbm, bench_ipv_grow and bench_persist measure;
nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perdure_bench.facts import Fact, run_program

_CLAIMED_MIB = "128"


def measure_pairs(quick: bool, pools: Path) -> Iterator[Fact]:
    """The cases lbm-copy and lbm-pair, on memory as it is and of 1/8 of DRAM's bandwidth."""
    size = ["--iterations", "60", "--rounds", "2"] if quick else []
    for emulated in ([], ["--emulate", "dram-1/8"]):
        yield from run_program("bench_ipv_lbm", [*size, *emulated, "--dir", str(pools)])


def measure_growth(quick: bool, pools: Path) -> Iterator[Fact]:
    """The cases grow-copy and grow-stream: run_time_ratio, over the same without versions."""
    size = ["--iterations", "60", "--rounds", "2"] if quick else []
    yield from run_program("bench_ipv_grow", [*size, "--dir", str(pools)])


def measure_small_pages(quick: bool, pools: Path) -> Iterator[Fact]:
    """The case update-128MiB-4k: `pools` and all arrays are on pages of 4 KiB."""
    options = ["--quick"] if quick else []
    options += ["--mib", _CLAIMED_MIB, "--pages", "4k", "--dir", str(pools)]
    for fact in run_program("bench_ipv_update", options):
        if fact.case.endswith("-4k"):
            yield fact


def measure(quick: bool, pools: Path, huge: bool) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within a minute. Raises ProgramFailed.

    `huge`: `pools` has huge pages. The arrays that are compared with get them as well.
    """
    options = ["--quick"] if quick else []
    pages = ["--huge-pages", "--pages", "huge"] if huge else []
    yield from run_program("bench_ipv_update", [*options, *pages, "--dir", str(pools)])
    # The paper's table 1 and figure 5: metrics cycles_per_line and ns_per_line.
    for fact in run_program("bench_persist", [*options, "--only", "flush"]):
        yield replace(fact, bench="ipv")
