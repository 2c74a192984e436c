# SPDX-License-Identifier: BSD-3-Clause
"""Makes a profile: which cases are measured, what their samples come to, where it was.

By default coordinates are searched one after the other: writers at the clock as it is, then clocks
at the best number of writers, then that number's neighbours at the best clock. The grid is all.
"""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from perdure.energy.profile.file import KIND, OPERATIONS, SCHEMA, machine_here
from perdure.energy.profile.measuring import (
    PAGE,
    Case,
    SampleStore,
    Target,
    idle_watts,
    measure_cases,
)
from perdure.energy.quantities import Wrong

WRITERS = (1, 2, 4, 8, 16)
CLOCKS = 5
SPREAD_MAX = 0.10  # of a point that counts as settled: standard deviation over mean
_SAMPLE_MAX = 1 << 30
_SHARE_MIN = 1 << 20  # of one process


@dataclass(frozen=True)
class Wish:
    """What is to be measured."""

    ops: tuple[str, ...] = OPERATIONS
    writers: tuple[int, ...] = WRITERS
    repeats: int = 3
    grid: bool = False
    max_bytes: int = 8 << 30


def clocks_of(policies: list[dict]) -> list[int]:
    """Clocks that can be set, kHz; the driver's steps, or some between least and most."""
    if not policies or not all(policy["settable"] for policy in policies):
        return []
    steps = sorted({step for policy in policies for step in policy["steps_kHz"]})
    if steps:
        return steps
    least = max(policy["least_kHz"] or 0 for policy in policies)
    most = min(policy["most_kHz"] or 0 for policy in policies)
    if not 0 < least < most:
        return []
    return [round((least + (most - least) * i / (CLOCKS - 1)) / 1e5) * 100_000
            for i in range(CLOCKS)]


def sample_bytes_of(wish: Wish, clocks: list[int]) -> int:
    """Bytes of each sample, so that no more is written than was allowed. Raises Wrong."""
    points = len(wish.writers) * (len(clocks) or 1) if wish.grid else (
        len(wish.writers) + len(clocks) + 2 * bool(clocks))
    samples = points * wish.repeats * ("write" in wish.ops) + ("read" in wish.ops)
    most = min(_SAMPLE_MAX, wish.max_bytes // max(samples, 1))
    each = most // PAGE * PAGE
    least = max(wish.writers) * _SHARE_MIN
    if each < least:
        raise Wrong(f"--max-bytes of {wish.max_bytes / 1e6:.6g} MB is too little for {samples} "
                    f"samples of at least {least / 1e6:.6g} MB; allow "
                    f"{least * samples / 1e6:.6g} MB, or fewer writers or repeats")
    return each


def first_cases(wish: Wish, clocks: list[int]) -> list[Case]:
    """What is measured whatever comes out."""
    all_clocks = clocks if wish.grid and clocks else [None]
    return [Case(op, clock, writers)
            for op in wish.ops for clock in all_clocks for writers in wish.writers]


def quantity(values: list[float]) -> dict:
    """mean, sd, n and the ends of its 95 % confidence interval (Student); null for one value."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return {"mean": mean, "sd": None, "n": len(values), "low": None, "high": None}
    from scipy import stats

    sd = statistics.stdev(values)
    half = float(stats.t.ppf(0.975, len(values) - 1)) * sd / len(values) ** 0.5
    return {"mean": mean, "sd": sd, "n": len(values), "low": mean - half, "high": mean + half}


def point_of(store: SampleStore, case: Case) -> dict:
    """The point of a case, as profiles have it."""
    samples = store.of(case)
    rates = [sample.bandwidth_MBps for sample in samples]
    watts = [each for each in (sample.power_W for sample in samples) if each is not None]
    joules = [each for each in (sample.energy_J_per_MB for sample in samples) if each is not None]
    load = statistics.fmean(sample.load_1min for sample in samples)
    bandwidth = quantity(rates)
    settled = bandwidth["sd"] is not None and bandwidth["sd"] <= SPREAD_MAX * bandwidth["mean"]
    return {
        "op": case.op,
        "freq_kHz": case.freq_kHz,
        "writers": case.writers,
        "bytes": samples[0].bytes,
        "bandwidth_MBps": bandwidth,
        "power_W": quantity(watts) if len(watts) == len(samples) else None,
        "energy_J_per_MB": quantity(joules) if len(joules) == len(samples) else None,
        "cpu_s_per_GB": quantity([sample.cpu_s_per_GB for sample in samples]),
        "settled": settled,
        "load_1min": load,
    }


def best_case(store: SampleStore, cases: list[Case]) -> Case:
    """With least energy, or the fastest where no energy is known."""
    points = {case: point_of(store, case) for case in cases}
    if all(point["energy_J_per_MB"] is not None for point in points.values()):
        return min(cases, key=lambda case: points[case]["energy_J_per_MB"]["mean"])
    return max(cases, key=lambda case: points[case]["bandwidth_MBps"]["mean"])


def search(
    target: Target, total: Any, wish: Wish, clocks: list[int], store: SampleStore,
    advance: Callable[[], None],
) -> list[Case]:
    """Measures; returns the cases in the order of a table."""
    cases = first_cases(wish, clocks)
    measure_cases(target, total, cases, wish.repeats, store, advance)
    if wish.grid or not clocks:
        return cases
    for op in wish.ops:
        best = best_case(store, [case for case in cases if case.op == op])
        more = [Case(op, clock, best.writers) for clock in clocks]
        measure_cases(target, total, more, wish.repeats, store, advance)
        clock = best_case(store, more).freq_kHz
        place = wish.writers.index(best.writers)
        beside = [Case(op, clock, wish.writers[i])
                  for i in (place - 1, place + 1) if 0 <= i < len(wish.writers)]
        measure_cases(target, total, beside, wish.repeats, store, advance)
        cases += more + beside
    return cases


def count_samples(wish: Wish, clocks: list[int]) -> int:
    """For the progress bar; the search's neighbours may be one less."""
    cases = len(first_cases(wish, clocks))
    if not wish.grid and clocks:
        cases += len(wish.ops) * (len(clocks) + 2)
    return cases * wish.repeats


def fingerprint_of(target: Target, total: Any, policies: list[dict]) -> dict:
    """Where it was measured; null for what is not known."""
    storage = target.storage
    return {
        **machine_here(),
        "machine": platform.machine(),
        "cpufreq_driver": policies[0]["driver"] if policies else None,
        "governor": policies[0]["governor"] if policies else None,
        "path": str(target.path.resolve()),
        "device": {
            "name": storage["name"] or None,
            "model": storage["model"] or None,
            "firmware": storage["firmware"] or None,
        },
        "file_system": {"type": storage["file_system"], "options": storage["options"]},
        "io_mode": target.io_mode,
        "meter": None if total is None else {"name": total.name, "scope": total.scope},
    }


def make_profile(
    target: Target, total: Any, wish: Wish, clocks: list[int], policies: list[dict],
    store: SampleStore, advance: Callable[[], None],
) -> dict:
    """Measures all of it and returns the document."""
    before = idle_watts(total)
    cases = search(target, total, wish, clocks, store, advance)
    after = idle_watts(total)
    idle = None
    if before and after:
        idle = {name: {key: quantity(watts)[key] for key in ("mean", "sd", "n")}
                for name, watts in (("before", before), ("after", after))}
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "fingerprint": fingerprint_of(target, total, policies),
        "idle_power_W": idle,
        "points": [point_of(store, case) for case in dict.fromkeys(cases)],
    }


def wear_text(written: int, capacity: int) -> str:
    """What measuring costs a flash device: its makers state its life in writes of its capacity."""
    share = written / max(capacity, 1)
    return (f"at most {written / 1e9:.3g} GB are written: {share:.2g} of one write of the whole "
            f"device ({capacity / 1e9:.4g} GB)")


def merge_profiles(documents: list[dict], sources: list[str]) -> dict:
    """One profile of the points of several; a point that is in two is the later one's.

    Raises Wrong unless they are of one machine, device, way of I/O and meter.
    """
    first = documents[0]
    for document, source in zip(documents[1:], sources[1:]):
        for key in ("cpu_model", "cpus", "io_mode", "meter", "device", "file_system"):
            if document["fingerprint"].get(key) != first["fingerprint"].get(key):
                raise Wrong(f"{source} and {sources[0]} differ in {key}: they can't be one profile")
    ordered = sorted(documents, key=lambda document: document.get("created") or "")
    points = {(point["op"], point["freq_kHz"], point["writers"]): point
              for document in ordered for point in document["points"]}
    return {**ordered[-1], "points": list(points.values())}


def default_file(storage: dict) -> Path:
    """perdure-energy-DEVICE.json, here."""
    name = "".join(c if c.isalnum() else "-" for c in storage["name"].strip(":"))
    return Path(f"perdure-energy-{name}.json")


def check_free(target: Target, wish: Wish) -> None:
    """Raises Wrong where the samples don't fit."""
    free = target.free_bytes()
    needed = target.sample_bytes * (("read" in wish.ops) + ("write" in wish.ops))
    if free is not None and needed > free * 0.9:
        raise Wrong(f"{target.path} has {free / 1e6:.6g} MB left and {needed / 1e6:.6g} MB are "
                    "needed at a time; lower --max-bytes")
