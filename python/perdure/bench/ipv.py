"""`perdure bench ipv`: in-place versioning against programs without versions."""

from __future__ import annotations

from collections.abc import Callable

from perdure.bench import ipv_compile, ipv_programs, ipv_update
from perdure.bench.facts import Fact
from perdure.bench.hpccg import disk_directory
from perdure.bench.ipv_plot import draw  # noqa: F401  `perdure bench --plot` takes it from here
from perdure.bench.progress import progress
from perdure.bench.solver import huge_page_directory, pool_directory

SUMMARY = "in-place versioning: seven programs, a memory-bound update, flushing, compiling"


def measure(quick: bool, each: Callable[[Fact], None]) -> None:
    """Hands over each fact; `quick` is a check within minutes. Raises BenchFailed."""
    with (
        pool_directory() as pools,
        huge_page_directory(pools),
        progress("bench ipv, programs", ipv_programs.runs(quick)) as advance,
    ):
        for fact in ipv_programs.measure_programs(quick, pools, disk_directory(), advance):
            each(fact)
    ipv_update.measure(quick, each)
    ipv_compile.measure(quick, each)
