"""`perdure bench ipv`, its part without programs: the update u += r with a version at every sweep,
and what flushing a line costs.

The programs bench/bench_ipv_update and bench/bench_persist measure; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from perdure.bench.facts import Fact
from perdure.bench.programs import run_program


def measure(quick: bool, each: Callable[[Fact], None]) -> None:
    """Hands over each fact; `quick` is a check within a minute. Raises BenchFailed."""
    options = ["--quick"] if quick else []
    run_program("bench_ipv_update", options, each)
    # The paper's table 1 and figure 5: metrics cycles_per_line and ns_per_line.
    run_program("bench_persist", [*options, "--only", "flush"], _as_ipv(each))


def _as_ipv(each: Callable[[Fact], None]) -> Callable[[Fact], None]:
    return lambda fact: each(replace(fact, bench="ipv"))
