# SPDX-License-Identifier: BSD-3-Clause
"""Plays plans with random failures: an independent check of the formulas, and of other laws.

Nothing of the formulas is used: failures are drawn, time and energy are added up, many runs at
once in numpy arrays. One level is played gap by gap, each gap between failures being one sample
(the clock renews); several levels are played run by run, each until a number of patterns is done.
Ratios have confidence intervals by the delta method. A seed gives the same samples again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Protocol

import numpy as np

from perdure.energy.formulas.levels import System, newest, pattern_of
from perdure.energy.formulas.model import Machine
from perdure.energy.quantities import Wrong

BATCH_GAPS = 200_000
BATCH_RUNS = 20_000
SEGMENTS_MAX = 1_000_000
CONFIDENCE = 1.959963984540054  # of a normal variable, 95 %


class Gaps(Protocol):
    """Where gaps between failures come from: a law, or a log."""

    down_inside: ClassVar[bool]  # whether the gaps contain the downtime after the failure

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        """Gaps at random."""


@dataclass(frozen=True)
class Observed:
    """Gaps drawn with replacement from those of a log."""

    name: ClassVar[str] = "observed"
    down_inside: ClassVar[bool] = True

    gaps_s: tuple[float, ...]

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        """Gaps at random."""
        return random.choice(np.array(self.gaps_s), count)


@dataclass(frozen=True)
class Mean:
    """A ratio of means and half of its 95 % interval."""

    value: float
    spread: float

    @property
    def sigma(self) -> float:
        """Its standard error."""
        return self.spread / CONFIDENCE


@dataclass(frozen=True)
class Played:
    """What came out. `intervals` were begun; `complete` is False if it was stopped."""

    time_per_work: Mean
    epe_W: Mean
    intervals: int
    failures: int
    samples: int
    complete: bool


class _Sums:
    """Sums and products of (work, time, energy) over samples."""

    def __init__(self) -> None:
        self.count = self.intervals = self.failures = 0
        self._sums = np.zeros(3)
        self._products = np.zeros((3, 3))

    def add(self, work: Any, time: Any, energy: Any, intervals: int, failures: int) -> None:
        columns = np.stack((work, time, energy))
        self.count += columns.shape[1]
        self.intervals += int(intervals)
        self.failures += int(failures)
        self._sums += columns.sum(axis=1)
        self._products += columns @ columns.T

    def ratio(self, row: int) -> Mean:
        """Of row (1 time, 2 energy) over work, by the delta method."""
        if self._sums[0] <= 0:
            return Mean(float("inf"), float("inf"))
        value = self._sums[row] / self._sums[0]
        products = self._products
        squares = products[row, row] - 2 * value * products[row, 0] + value**2 * products[0, 0]
        spread = CONFIDENCE * sqrt(max(0.0, squares)) / self._sums[0]
        if self.count > 1:
            spread *= sqrt(self.count / (self.count - 1))
        return Mean(float(value), float(spread))

    def played(self, complete: bool) -> Played:
        return Played(
            self.ratio(1), self.ratio(2), self.intervals, self.failures, self.count, complete
        )


def _gap_costs(
    gaps: np.ndarray, machine: Machine, schedule: Sequence[float], down_inside: bool
) -> tuple[Any, Any, Any, int]:
    """Work kept, time, energy and intervals begun of each gap between failures.

    `schedule` is the work before each checkpoint; the last entry goes on. With `down_inside` the
    gaps of a log include the downtime after the failure.
    """
    down = np.full(gaps.shape, machine.downtime_s)
    if down_inside:
        down = np.minimum(down, gaps)
        gaps = gaps - down
    works = np.asarray(schedule, dtype=float)
    ends = np.cumsum(works + machine.write_s)
    begun_work = np.concatenate(([0.0], np.cumsum(works)))
    last, step = works[-1], works[-1] + machine.write_s
    over = machine.overlap_s

    def finished(elapsed: np.ndarray) -> tuple[Any, Any]:
        """Checkpoints that ended by then, and the work before them."""
        if ends.size == 1:
            count = np.floor(elapsed / step)
            return count, count * last
        count = np.searchsorted(ends, elapsed, side="right")
        more = np.where(count == ends.size, np.floor((elapsed - ends[-1]) / step), 0.0)
        return count + more, begun_work[count] + more * last

    reading = np.minimum(gaps, machine.read_s)
    left = gaps - reading
    count, before = finished(left)
    current = last if ends.size == 1 else works[np.minimum(count.astype(int), works.size - 1)]
    into = left - before - count * machine.write_s
    computing = before + np.minimum(into, current)
    writing = count * machine.write_s + np.maximum(into - current, 0.0)
    kept, flushing = before, 0.0
    if over > 0:
        kept = finished(np.maximum(left - over, 0.0))[1]
        flushing = np.maximum(count - 1, 0) * over + np.where(count > 0, np.minimum(into, over), 0)
    energy = (
        down * machine.down_W
        + reading * machine.read_W
        + computing * machine.compute_W
        + writing * machine.write_W
        + flushing * machine.flush_W
    )
    begun = count + (left > 0)
    return kept, down + gaps, energy, int(begun.sum())


def play(
    machine: Machine,
    schedule: Sequence[float],
    source: Gaps,
    intervals: int,
    seed: int,
    progress: Callable[[int, int], bool] = lambda done, total: True,
) -> Played:
    """Plays one level until so many checkpoint intervals were begun; `progress` False stops it."""
    random, sums, each = np.random.default_rng(seed), _Sums(), 1.0
    while sums.intervals < intervals:
        wanted = int((intervals - sums.intervals) / each) + 1
        most = BATCH_GAPS if sums.count else 1000
        gaps = source.draw(random, max(1000, min(most, wanted)))
        sums.add(*_gap_costs(gaps, machine, schedule, source.down_inside), gaps.size)
        each = sums.intervals / sums.count if sums.intervals else 1.0
        if not progress(min(sums.intervals, intervals), intervals):
            return sums.played(False)
        if sums.count > 200 * BATCH_GAPS and sums.intervals < sums.count / 1000:
            break  # restarts take longer than failures leave time: hardly an interval begins
    return sums.played(True)


def replay(machine: Machine, schedule: Sequence[float], gaps_s: Sequence[float]) -> Played:
    """One level on a log's gaps, in their order, once."""
    sums = _Sums()
    gaps = np.asarray(gaps_s, dtype=float)
    sums.add(*_gap_costs(gaps, machine, schedule, True), gaps.size)
    return sums.played(True)


@dataclass(frozen=True)
class _Track:
    """A pattern as places on a line: segment i begins at begin[i] and ends at end[i]."""

    segments: int
    end: np.ndarray
    begin: np.ndarray
    energy: np.ndarray  # of the segments before i
    write_W: np.ndarray
    read_s: np.ndarray
    read_W: np.ndarray
    back: np.ndarray
    work_s: float
    compute_W: float


def _track(system: System, every: tuple[int, ...], work_s: float) -> _Track:
    pattern = pattern_of(every)
    at = [len(system.levels) - 1, *pattern[:-1]]
    of = system.levels
    write_s = np.array([of[level].write_s for level in pattern])
    write_W = np.array([of[level].write_W for level in pattern])
    end = np.cumsum(work_s + write_s)
    energy = np.cumsum(work_s * system.compute_W + write_s * write_W)
    return _Track(
        len(pattern), end, end - work_s - write_s, np.concatenate(([0.0], energy)), write_W,
        np.array([of[level].read_s for level in at]),
        np.array([of[level].read_W for level in at]),
        newest(at, len(of)), work_s, system.compute_W,
    )


def _place(track: _Track, line: np.ndarray) -> tuple[Any, Any]:
    """Segments finished, and energy used, on the way from 0 to a place on the line."""
    length = track.end[-1]
    rounds = np.floor(line / length)
    rest = line - rounds * length
    segment = np.minimum(np.searchsorted(track.end, rest, side="right"), track.segments - 1)
    into = rest - track.begin[segment]
    used = (
        rounds * track.energy[-1]
        + track.energy[segment]
        + np.minimum(into, track.work_s) * track.compute_W
        + np.maximum(into - track.work_s, 0.0) * track.write_W[segment]
    )
    return (rounds * track.segments).astype(np.int64) + segment, used


def _batch(
    system: System, track: _Track, source: Gaps, random: np.random.Generator, runs: int,
    patterns: int, sums: _Sums,
) -> None:
    """Plays `runs` runs of `patterns` patterns, all at once, and adds them to the sums."""
    shares = np.cumsum([level.rate_per_s for level in system.levels]) / system.rate_per_s
    goal = patterns * track.end[-1]
    time, energy = np.zeros(runs), np.zeros(runs)
    at = np.zeros(runs, dtype=np.int64)  # the boundary that is restarted from
    alive, intervals, failures, first = np.arange(runs), 0, 0, True
    while alive.size:
        here = at[alive]
        gap = source.draw(random, alive.size)
        down = np.full(alive.size, 0.0 if first else system.downtime_s)
        if source.down_inside:
            down = np.minimum(down, gap)
            gap = gap - down
        boundary = here % track.segments
        reading = np.minimum(gap, 0.0 if first else track.read_s[boundary])
        origin = here // track.segments * track.end[-1] + track.begin[boundary]
        reached = np.minimum(origin + gap - reading, goal)
        done = origin + gap - reading >= goal
        passed, used = _place(track, reached)
        # A multiple of the length, divided by it, may come out below the whole number.
        passed = np.maximum(passed, here)
        energy[alive] += (
            down * system.down_W + reading * track.read_W[boundary]
            + used - _place(track, origin)[1]
        )
        time[alive] += down + reading + reached - origin
        intervals += int((passed - here + (~done & (gap > reading))).sum())
        failures += int((~done).sum())
        class_ = np.searchsorted(shares, random.random(alive.size) * shares[-1], side="right")
        class_ = np.minimum(class_, len(shares) - 1)
        start = passed // track.segments * track.segments
        at[alive] = start + track.back[passed % track.segments, class_]
        alive, first = alive[~done], False
    work = np.full(runs, patterns * track.segments * track.work_s)
    sums.add(work, time, energy, intervals, failures)


def play_levels(
    system: System,
    every: tuple[int, ...],
    work_s: float,
    source: Gaps,
    intervals: int,
    seed: int,
    progress: Callable[[int, int], bool] = lambda done, total: True,
) -> Played:
    """Plays a pattern of several levels until so many checkpoint intervals were begun.

    A run starts with a checkpoint on the top level and with a fresh clock of failures. Raises
    Wrong where the pattern is too long.
    """
    if every[-1] > SEGMENTS_MAX:
        raise Wrong(f"a pattern of {every[-1]} checkpoints is too long to be played; the longest "
                    f"has {SEGMENTS_MAX}")
    random, sums = np.random.default_rng(seed), _Sums()
    track = _track(system, every, work_s)
    # Long enough for some failures, short enough that the last runs of a batch are not alone.
    patterns = max(1, round(3 / (system.rate_per_s * float(track.end[-1]))))
    each = float(patterns * track.segments)
    while sums.intervals < intervals:
        runs = max(200, min(BATCH_RUNS, int((intervals - sums.intervals) / each) + 1))
        _batch(system, track, source, random, runs, patterns, sums)
        each = sums.intervals / sums.count
        if not progress(min(sums.intervals, intervals), intervals):
            return sums.played(False)
    return sums.played(True)
