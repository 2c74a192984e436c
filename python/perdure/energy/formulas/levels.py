# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints on several levels: exact expected time and energy, and the best pattern.

Level 0 is the cheapest. Failures of class m need the newest checkpoint on level m or above. A
pattern is n segments of work; after segment k the checkpoint goes to the highest level whose
`every` divides k, and the last one to the top. Failures are exponential and strike in work,
checkpoints and restarts. Expected cost from each segment and each restart until the pattern's end
is one linear system of 2n unknowns, as Markov rewards; docs/energy_inside.md writes it out.

A restart reads from the level on which the checkpoint is. Pure functions; times in s.

`expected` eliminates the unknowns by hand, block by block from the inside: a pattern is a nest of
equal blocks, so its cost grows with the number of levels and not with that of segments. The tests
compare that with the solved system.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import exp, expm1, inf, isfinite, log, log1p, sqrt

import numpy as np

from perdure.energy.quantities import Wrong

SEGMENTS_MAX = 10**9
BRACKETS_MAX = 60
WORTH = 1e-7  # a smaller gain is no reason to look further: the optimum is flat


@dataclass(frozen=True)
class Level:
    """One place for checkpoints and the rate of failures for which it is the cheapest remedy."""

    name: str
    rate_per_s: float
    write_s: float
    read_s: float
    write_W: float = 1.0
    read_W: float = 1.0


@dataclass(frozen=True)
class System:
    """Levels from the cheapest to the safest, and what does not depend on them."""

    levels: tuple[Level, ...]
    downtime_s: float = 0.0
    compute_W: float = 1.0
    down_W: float = 1.0

    @property
    def rate_per_s(self) -> float:
        """Of all failures."""
        return sum(level.rate_per_s for level in self.levels)

    def only(self, kept: tuple[int, ...]) -> System:
        """The system with these levels; failures of a dropped one are met by the next above."""
        levels, waiting = [], 0.0
        for index, level in enumerate(self.levels):
            waiting += level.rate_per_s
            if index in kept:
                levels.append(
                    Level(level.name, waiting, level.write_s, level.read_s, level.write_W,
                          level.read_W)
                )
                waiting = 0.0
        if waiting:
            raise ValueError("the top level cannot be dropped")
        return System(tuple(levels), self.downtime_s, self.compute_W, self.down_W)


def pattern_of(every: tuple[int, ...]) -> list[int]:
    """The level of the checkpoint after each segment; `every` ascends, each divides the next."""
    return [
        max(level for level, step in enumerate(every) if segment % step == 0)
        for segment in range(1, every[-1] + 1)
    ]


def newest(at: list[int], levels: int) -> np.ndarray:
    """For each boundary and class of failure, the boundary that is restarted from."""
    found = np.zeros((len(at), levels), dtype=int)
    last = [0] * levels
    for boundary, level in enumerate(at):
        for class_ in range(level + 1):
            last[class_] = boundary
        found[boundary] = last
    return found


@dataclass(frozen=True)
class Expected:
    """For one unit of work: time, energy in J/s of work, checkpoints begun on each level."""

    time_per_work: float
    epe_W: float
    checkpoints_per_work_s: tuple[float, ...]


@dataclass(frozen=True)
class _Block:
    """A stretch of the pattern, entered at its begin: it is passed, or left by a failure.

    `leaves[m]` is the chance of leaving for a failure of class m; `cost` is what it takes until
    then: time, energy, checkpoints on each level.
    """

    passes: float
    leaves: tuple[float, ...]
    cost: np.ndarray


def _segment(system: System, level: int, work_s: float) -> _Block:
    """One segment and its checkpoint; any failure leaves it."""
    rate, of = system.rate_per_s, system.levels[level]
    fails = -expm1(-rate * (work_s + of.write_s))
    begins = exp(-rate * work_s)
    cost = np.zeros(2 + len(system.levels))
    cost[0] = fails / rate
    cost[1] = -expm1(-rate * work_s) / rate * system.compute_W
    cost[1] += begins * -expm1(-rate * of.write_s) / rate * of.write_W
    cost[2 + level] = begins
    leaves = tuple(fails * each.rate_per_s / rate for each in system.levels)
    return _Block(exp(-rate * (work_s + of.write_s)), leaves, cost)


def _restart(system: System, level: int, upto: int) -> _Block:
    """Restarting from a checkpoint on `level`, again after every failure of class <= `upto`."""
    rate, of = system.rate_per_s, system.levels[level]
    fails = -expm1(-rate * of.read_s)
    beyond = [fails * each.rate_per_s / rate if class_ > upto else 0.0
              for class_, each in enumerate(system.levels)]
    ends = exp(-rate * of.read_s) + sum(beyond)
    cost = np.zeros(2 + len(system.levels))
    cost[0] = system.downtime_s + fails / rate
    cost[1] = system.downtime_s * system.down_W + fails / rate * of.read_W
    return _Block(
        exp(-rate * of.read_s) / ends, tuple(each / ends for each in beyond), cost / ends
    )


def _closed(block: _Block, restart: _Block, class_: int) -> _Block:
    """The block with failures of `class_` met at its begin, as often as they come."""
    again = block.leaves[class_]
    leaves = tuple(
        0.0 if m <= class_ else own + again * restart.leaves[m]
        for m, own in enumerate(block.leaves)
    )
    ends = block.passes + sum(leaves)  # 1 - again * restart.passes, without cancellation
    return _Block(
        block.passes / ends, tuple(each / ends for each in leaves),
        (block.cost + again * restart.cost) / ends,
    )


def _chain(blocks: list[tuple[_Block, int]]) -> _Block:
    """Blocks one after the other, each so many times."""
    passes, leaves = 1.0, np.zeros(len(blocks[0][0].leaves))
    cost: np.ndarray = np.zeros_like(blocks[0][0].cost)
    for block, times in blocks:
        left = sum(block.leaves)
        through = exp(times * log1p(-left)) if left < 0.5 else block.passes**times
        visits = passes * (times if left == 0 else (1 - block.passes**times) / left
                           if left >= 0.5 else -expm1(times * log1p(-left)) / left)
        cost = cost + visits * block.cost
        leaves = leaves + visits * np.array(block.leaves)
        passes *= through
    return _Block(passes, tuple(map(float, leaves)), cost)


def expected(system: System, every: tuple[int, ...], work_s: float) -> Expected:
    """Exact, over one pattern with segments of `work_s`; infinite where it is never passed."""
    count = len(system.levels)
    # blocks[start, end]: from a checkpoint on level `start` to one on level `end`.
    blocks = {
        (start, end): _segment(system, end, work_s) for start in range(count)
        for end in range(count)
    }
    try:
        for level in range(count):
            closed = {
                (start, end): _closed(block, _restart(system, start, level), level)
                for (start, end), block in blocks.items() if start >= level and end >= level
            }
            if level == count - 1:
                cost = closed[level, level].cost / (every[-1] * work_s)
                return Expected(float(cost[0]), float(cost[1]), tuple(map(float, cost[2:])))
            times = every[level + 1] // every[level]
            blocks = {
                (start, end): _chain(
                    [(closed[start, end], 1)] if times == 1 else
                    [(closed[start, level], 1), (closed[level, level], times - 2),
                     (closed[level, end], 1)]
                )
                for start in range(level + 1, count) for end in range(level + 1, count)
            }
    except (ZeroDivisionError, OverflowError):
        pass
    return Expected(inf, inf, (inf,) * count)


def value(found: Expected, objective: str) -> float:
    """What is made least."""
    return {
        "time": found.time_per_work,
        "energy": found.epe_W,
        "edp": found.epe_W * found.time_per_work,
    }[objective]


@dataclass(frozen=True)
class Pattern:
    """A pattern, its interval and what it costs; `kept` are the levels that are used."""

    kept: tuple[int, ...]
    every: tuple[int, ...]
    work_s: float
    expected: Expected
    value: float


def best_work(system: System, every: tuple[int, ...], objective: str, guess_s: float) -> float:
    """The segment's work of least objective for one pattern; its logarithm to 1e-5."""
    from scipy.optimize import minimize_scalar

    def cost(log_s: float) -> float:
        found = value(expected(system, every, exp(log_s)), objective)
        return found if isfinite(found) else 1e300

    low, high = log(guess_s) - 1.2, log(guess_s) + 1.2
    for _ in range(BRACKETS_MAX):
        found = minimize_scalar(
            cost, bounds=(low, high), method="bounded", options={"xatol": 1e-5}
        )
        if found.x - low < 1e-3:
            low, high = low - 2.0, low + 0.1
        elif high - found.x < 1e-3:
            low, high = high - 0.1, high + 2.0
        else:
            break
    return exp(found.x)


def first_order(system: System, objective: str) -> list[float]:
    """Period of each level, sqrt(2 C W_C / (lambda W_A)), without W for time."""
    periods = []
    for level in system.levels:
        cost = level.write_s
        if objective == "energy":
            cost *= level.write_W / system.compute_W
        rate = max(level.rate_per_s, 1e-3 * system.rate_per_s)
        periods.append(sqrt(2 * cost / rate))
    return periods


def _every(steps: list[int]) -> tuple[int, ...]:
    every, product = [], 1
    for step in [1, *steps]:
        product *= step
        every.append(product)
    return tuple(every)


def _search(system: System, kept: tuple[int, ...], objective: str) -> Pattern:
    """Descends over the steps between levels, one at a time; the optimum is flat and unimodal."""
    periods = first_order(system, objective)
    steps = [
        max(1, round(higher / lower)) for lower, higher in zip(periods, periods[1:])
    ]
    while np.prod(steps, dtype=float) > SEGMENTS_MAX:
        steps[int(np.argmax(steps))] = max(1, max(steps) // 2)
    seen: dict[tuple[int, ...], Pattern] = {}

    def look(every: tuple[int, ...], guess_s: float) -> Pattern:
        if every not in seen:
            work_s = best_work(system, every, objective, guess_s)
            found = expected(system, every, work_s)
            seen[every] = Pattern(kept, every, work_s, found, value(found, objective))
        return seen[every]

    best = look(_every(steps), min(periods))
    moved = True
    while moved:
        moved = False
        for place in range(len(steps)):
            far = max(2, steps[place] // 4)
            for step in (far, -far, 1, -1):
                tried = list(steps)
                tried[place] += step
                every = _every(tried)
                if tried[place] < 1 or every[-1] > SEGMENTS_MAX:
                    continue
                found = look(every, best.work_s)
                if found.value < best.value * (1 - WORTH):
                    best, steps, moved = found, tried, True
    return best


def best_pattern(
    system: System, objective: str, every: tuple[int, ...] | None = None
) -> list[Pattern]:
    """The best pattern of every set of levels that has the top one; the best of all first.

    `every` fixes the pattern of all levels; then only its interval is searched.
    """
    count = len(system.levels)
    if every is not None:
        check_every(every, count)
        kept = tuple(range(count))
        work_s = best_work(system, every, objective, min(first_order(system, objective)))
        found = expected(system, every, work_s)
        return [Pattern(kept, every, work_s, found, value(found, objective))]
    sets = [(*lower, count - 1) for size in range(count)
            for lower in combinations(range(count - 1), size)]
    patterns = [_search(system.only(kept), kept, objective) for kept in sets]
    return sorted(patterns, key=lambda pattern: pattern.value)


def check_every(every: tuple[int, ...], levels: int) -> None:
    """Raises Wrong unless `every` has a number for each level, 1 first, each dividing the next."""
    shown = ",".join(map(str, every))
    if len(every) != levels:
        raise Wrong(f"the pattern {shown} has {len(every)} numbers for {levels} levels")
    if every[0] != 1 or any(high % low for low, high in zip(every, every[1:])):
        raise Wrong(
            f"the pattern {shown} must begin with 1, and each number must divide the next, as in "
            "1,2,10: every checkpoint local, every 2nd to the partner, every 10th to the last level"
        )
    if every[-1] > SEGMENTS_MAX:
        raise Wrong(f"the pattern {shown} is longer than {SEGMENTS_MAX} checkpoints")
