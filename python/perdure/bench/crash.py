"""`perdure bench crash`: crash images of a whole run, each recovered and compared.

The program bench/bench_crash measures; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Callable

from perdure.bench.facts import Fact
from perdure.bench.programs import run_program

SUMMARY = "crash images of a whole run, each recovered and compared"


def measure(quick: bool, each: Callable[[Fact], None]) -> None:
    """Hands over each fact; `quick` is a check within a minute. Raises BenchFailed."""
    run_program("bench_crash", ["--quick"] if quick else [], each)
