# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench persist`: flush, copy and commit primitives against memcpy and libpmem.

The program bench/bench_persist measures; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Callable

from perdure_bench.facts import Fact, run_program

SUMMARY = "flush, copy and commit primitives against memcpy and libpmem"


def measure(quick: bool, each: Callable[[Fact], None]) -> None:
    """Hands over each fact; `quick` is a check within a minute. Raises ProgramFailed."""
    run_program("bench_persist", ["--quick"] if quick else [], each)
