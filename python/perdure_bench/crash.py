# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench crash`: crash images of a whole run, each recovered and compared.

The program bench/bench_crash measures; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Callable

from perdure_bench.facts import Fact, run_program

SUMMARY = "crash images of a whole run, each recovered and compared"


def measure(quick: bool, each: Callable[[Fact], None]) -> None:
    """Hands over each fact; `quick` is a check within a minute. Raises ProgramFailed."""
    run_program("bench_crash", ["--quick"] if quick else [], each)
