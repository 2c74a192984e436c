# SPDX-License-Identifier: BSD-3-Clause
"""Time and energy over capacities of DRAM and MRAM, by policy.

One pass over the trace gives every capacity exactly under LRU (no MRAM) and MRAM-fixed, and under
the low-power policy wherever it does the same; what is left is replayed point by point, on all
cores.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from perdure.core import load_core
from perdure.sim.machine import Options
from perdure.watching import Stopped, Watch

CURVE_POLICIES = ("lru", "mram_fixed", "low_power")


@dataclass(frozen=True)
class Point:
    """One machine. Times in s, energies in J, capacities in bytes; None where a device is silent.

    `by` says how it was found: "pass", one pass for all capacities, or "run", a replay of its own.
    `trace_share` is how much of the trace it is of, 1 unless the pass was stopped, None if that is
    not known. `partial` marks the points of a sweep that was stopped.
    """

    policy: str
    mram_bytes: int
    dram_bytes: int
    time_s: float | None
    energy_j: float | None
    page_ins: int
    page_outs: int
    by: str
    trace_share: float | None = 1.0
    partial: bool = False

    @property
    def total_bytes(self) -> int:
        """Main memory."""
        return self.mram_bytes + self.dram_bytes


@dataclass(frozen=True)
class KnownPoint(Point):
    """A machine whose devices are not silent."""

    time_s: float
    energy_j: float


def known_points(points: list[Point]) -> list[KnownPoint]:
    """Those whose time and energy are known."""
    return [KnownPoint(**vars(point)) for point in points
            if point.time_s is not None and point.energy_j is not None]


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None or nanoseconds != nanoseconds else nanoseconds / 1e9


class Study:
    """One trace on one set of devices, with the curves of one pass.

    A pass that was stopped raises Stopped, or is kept if `keep_partial`: the curves are then of the
    accesses so far, and nothing is replayed.
    """

    def __init__(
        self, trace: str, options: Options, mram: list[int], watch: Watch,
        keep_partial: bool = False,
    ) -> None:
        core = load_core()
        self.trace = trace
        self.options = options
        self.mram = list(dict.fromkeys([0, *mram]))
        self._watch = watch
        self.curves = core.sim_sweep(
            trace,
            self.mram,
            options.devices,
            clean=options.clean,
            region=options.region,
            progress=watch.of("one pass for all capacities"),
        )
        if self.curves.partial and not keep_partial:
            raise Stopped
        self.trace_share: float | None = 1.0
        if self.curves.partial:
            total = self.curves.accesses_total
            self.trace_share = self.curves.accesses / total if total else None
        self.page_bytes = self.curves.page_bytes
        self.footprint_bytes = self.curves.curves[0].pages * self.page_bytes

    def step(self, wanted_bytes: int | None) -> int:
        """Bytes between capacities of DRAM: a 64th of the program's if none are wanted."""
        page = self.page_bytes
        usual = self.footprint_bytes // 64 // page * page
        return max(page, usual if wanted_bytes is None else wanted_bytes)

    def frames(self, step_bytes: int, mram: int, most_bytes: int | None = None) -> list[int]:
        """Numbers of DRAM frames, a step apart, up to what the program needs or `most_bytes`."""
        curve = self.curves.curves[self.mram.index(mram)]
        last = curve.stack_pages
        if most_bytes is not None:
            last = max(0, most_bytes - mram) // self.page_bytes
        step = max(1, step_bytes // self.page_bytes)
        least = max(1, curve.floor_pages)
        chosen = [frames for frames in range(step, last, step) if frames >= least]
        return [*chosen, last] if last >= least or not chosen else chosen

    def at(self, mram: int, frames: list[int]) -> list[tuple[float | None, float | None]]:
        """Seconds and joules at these numbers of DRAM frames, from the one pass."""
        times, energies = load_core().sim_costs(
            self.curves,
            self.mram.index(mram),
            self.options.devices,
            frames,
            clean=self.options.clean,
            compute_ns=self.options.compute_ns,
        )
        return [(_seconds(time), _seconds(energy)) for time, energy in zip(times, energies)]

    def in_pass(self, policy: str, mram: int, frames: int, values: dict[str, str]) -> bool:
        """Whether the one pass has the point of this policy."""
        if policy == "mram_fixed":
            return values.get("rank", "count") == "count"
        if mram == 0:
            return policy in ("lru", "low_power")
        if policy != "low_power" or set(values) - {"alpha"}:
            return False
        curve = self.curves.curves[self.mram.index(mram)]
        return curve.low_power_equals(frames, float(values.get("alpha", "0.9")))

    def points(
        self, policy: str, mram: int, frames: list[int], values: dict[str, str] | None = None
    ) -> list[Point]:
        """The points of a policy, in the order of `frames`; fewer if the watch was stopped."""
        values = values or {}
        passed = [each for each in frames if self.in_pass(policy, mram, each, values)]
        found = {}
        curve = self.curves.curves[self.mram.index(mram)]
        for each, costs in zip(passed, self.at(mram, passed)):
            found[each] = self._point(policy, mram, each, costs, curve.counters(each), "pass")
        rest = [] if self.curves.partial else [each for each in frames if each not in found]
        for point in self._replay(policy, mram, rest, values):
            found[point.dram_bytes // self.page_bytes] = point
        return [found[each] for each in frames if each in found]

    def _point(
        self, policy: str, mram: int, frames: int, costs: tuple[float | None, float | None],
        counters: Any, by: str,
    ) -> Point:
        return Point(
            policy, mram, frames * self.page_bytes, *costs,
            page_ins=counters.dram.page_ins + counters.mram.page_ins,
            page_outs=counters.dram.page_outs + counters.mram.page_outs,
            by=by,
            trace_share=self.trace_share,
        )

    def _replay(
        self, policy: str, mram: int, frames: list[int], values: dict[str, str]
    ) -> Iterable[Point]:
        if not frames:
            return
        step = self._watch.count(f"{policy}, MRAM {mram >> 20} MiB", len(frames))
        waiting = list(reversed(frames))
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            running: set[Future] = set()
            while (waiting and not self._watch.stopped) or running:
                while waiting and len(running) < (os.cpu_count() or 1) and not self._watch.stopped:
                    running.add(pool.submit(self._run, policy, mram, waiting.pop(), values))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    step()
                    point = each.result()
                    if point is not None:
                        yield point

    def _run(self, policy: str, mram: int, frames: int, values: dict[str, str]) -> Point | None:
        outcome = run_once(
            self.trace,
            self.options,
            policy,
            values,
            dram_bytes=frames * self.page_bytes,
            mram_bytes=mram,
            progress=lambda *_: not self._watch.stopped,
        )
        if outcome.partial:
            return None
        costs = _seconds(outcome.cost.time_ns), _seconds(outcome.cost.energy_nj)
        return self._point(policy, mram, frames, costs, outcome.counters, "run")


def run_once(
    trace: str,
    options: Options,
    policy: str,
    values: dict[str, str],
    *,
    dram_bytes: int,
    mram_bytes: int,
    swap_bytes: int = 0,
    progress: Callable[[int, int], bool] | None = None,
) -> Any:
    """One replay; the Outcome of the module. Raises _core.Error."""
    return load_core().sim_run(
        trace,
        options.devices,
        dram_bytes=dram_bytes,
        mram_bytes=mram_bytes,
        swap_bytes=swap_bytes,
        policy=policy,
        options=values,
        clean=options.clean,
        region=options.region,
        compute_ns=options.compute_ns,
        progress=progress,
    )
