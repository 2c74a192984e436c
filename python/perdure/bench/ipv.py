"""`perdure bench ipv`: in-place versioning against programs without versions."""

from __future__ import annotations

from collections.abc import Callable

from perdure.bench import ipv_update
from perdure.bench.facts import Fact

SUMMARY = "in-place versioning: a memory-bound update, and flushing a line"


def measure(quick: bool, each: Callable[[Fact], None]) -> None:
    """Hands over each fact; `quick` is a check within a minute. Raises BenchFailed."""
    ipv_update.measure(quick, each)
