# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench ipv`: where the time of a version goes. Figures 7 and 13 of the paper.

    breakdown_ms          of an iteration; case PROGRAM-WAY-PART
    overlapped_percent    of what an iteration waits for its version without a helper thread, so
                          much is hidden by one; case PROGRAM; negative: there is more to wait for,
                          as the persistence point and first stores may wait for the helper

Parts: persist, waiting at the persistence point, and for a copy that is flushed copy and flush
instead; swap, the pages that an address shows are changed; rest, all else that the loop takes
longer than the program alone: first stores, rows, and values that are no longer in the caches. Less
than 0: noise is larger. memory is no part of the sum: the time that the emulated memory takes,
waited for or hidden. For in-place versioning the bytes of an iteration are facts as well, metric
`bytes`: copied, flushed and streamed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from perdure_bench.facts import Fact

WAYS = ("clflush", "par-clflush", "bypass", "ipv", "ipv-alone")
_SUMS = ("first_stores_ns", "swap_ns", "copied_bytes", "flushed_bytes", "streamed_bytes")


def values_of(report: Path) -> dict:
    """Of a report of in-place versioning: each object's last tier, and sums over the objects."""
    objects = json.loads(report.read_text(encoding="utf-8"))["objects"]
    values = {"tiers": {item["name"]: item["tier"] for item in objects}}
    return values | {name: sum(item[name] for item in objects) for name in _SUMS}


def per_iteration(ran: dict, name: str) -> float:
    """A figure of a run, by iteration."""
    return ran.get(name, 0) / ran["iterations"]


def breakdown_facts(case: str, runs: list[tuple[dict, dict]], more: dict) -> Iterator[Fact]:
    """Of one way: runs, each with the unprotected one of its round."""
    persist = [1e3 * per_iteration(ran, "persist_s") for ran, _ in runs]
    copy = [1e3 * per_iteration(ran, "copy_s") for ran, _ in runs]
    parts = {"persist": persist}
    if any(copy):
        parts = {"copy": copy, "flush": [a - b for a, b in zip(persist, copy, strict=True)]}
    if runs[0][0].get("tiers"):
        parts["swap"] = [1e-6 * per_iteration(ran, "swap_ns") for ran, _ in runs]
    longer = [
        1e3 * (per_iteration(ran, "loop_s") - per_iteration(native, "loop_s"))
        for ran, native in runs
    ]
    known = [sum(values) for values in zip(*parts.values(), strict=True)]
    parts["rest"] = [a - b for a, b in zip(longer, known, strict=True)]
    parts["memory"] = [1e-6 * per_iteration(ran, "model_ns") for ran, _ in runs]
    for part, values in parts.items():
        yield Fact.of("ipv", f"{case}-{part}", "breakdown_ms", values, "ms", more=more)
    if "swap" not in parts:
        return
    for kind in ("copied", "flushed", "streamed"):
        values = [per_iteration(ran, f"{kind}_bytes") for ran, _ in runs]
        yield Fact.of("ipv", f"{case}-{kind}", "bytes", values, "B", more=more)


def overlap_fact(program: str, beside: list[dict], alone: list[dict], more: dict) -> Fact | None:
    """None if nothing is waited for."""
    waits = [per_iteration(ran, "persist_s") for ran in alone]
    if not all(waits):
        return None
    left = [
        per_iteration(ran, "persist_s") + 1e-9 * per_iteration(ran, "first_stores_ns")
        for ran in beside
    ]
    hidden = [100 * (1 - still / wait) for still, wait in zip(left, waits, strict=True)]
    return Fact.of("ipv", program, "overlapped_percent", hidden, "%", more=more)
