# SPDX-License-Identifier: BSD-3-Clause
"""Time and energy of a run with checkpoints under exponential failures: formulas, nothing else.

Notation: T is the work between two checkpoints, C the time that the program stands still for one
(overhead), L >= C the time until it can be restarted from (latency), R the time of a restart, D
downtime before each restart, lambda the rate of failures. Failures may strike in work, checkpoints
and restarts, not in downtime. Times in s, powers in W, energies in J, rates in 1/s.

Both the expected time and the expected energy of one interval have the form P e^(lambda T) + Q
(class `Cost`), so one equation, (1 - x) e^x = 1 - (P + Q) / P with x = lambda T, gives every
optimum. Sources: Vaidya, On Checkpoint Latency, 1995 (chain and total); Saito, Sato, Sato and
Matsuoka, FTXS 2013 ("the paper": sojourn times, J, EPE); Young 1974; Daly 2006. The split into
states, energy optimum and downtime are derived in docs/energy_inside.md and tested by simulation.

Functions take floats or numpy arrays and broadcast. They check nothing: see plan/settings.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Numbers = Any  # a float, or an array of them

SERIES_BELOW = 1e-6  # of lambda C: from here on four terms are more exact than any iteration


@dataclass(frozen=True)
class Machine:
    """What one interval costs; each field is a float or an array.

    `latency_s` None means C: the program waits until the checkpoint can be used.
    `flush_W` is the power above `compute_W` while a checkpoint is written beside the computation.
    """

    rate_per_s: Numbers
    write_s: Numbers
    read_s: Numbers
    downtime_s: Numbers = 0.0
    latency_s: Numbers = None
    compute_W: Numbers = 1.0
    write_W: Numbers = 1.0
    read_W: Numbers = 1.0
    down_W: Numbers = 1.0
    flush_W: Numbers = 0.0

    @property
    def overlap_s(self) -> Numbers:
        """How long a checkpoint is written beside the computation: L - C."""
        return 0.0 if self.latency_s is None else self.latency_s - self.write_s


@dataclass(frozen=True)
class Sojourn:
    """Expected seconds in each state for one interval of work T.

    `redo` is work that a failure took away although the next checkpoint had begun (latency).
    """

    compute: Numbers
    write: Numbers
    flush: Numbers
    redo: Numbers
    read: Numbers
    down: Numbers

    @property
    def total(self) -> Numbers:
        """Expected time of the interval."""
        return self.compute + self.write + self.flush + self.redo + self.read + self.down

    def energy(self, machine: Machine) -> Numbers:
        """Expected energy of the interval, each state at its own power."""
        return (
            (self.compute + self.redo) * machine.compute_W
            + self.write * machine.write_W
            + self.flush * (machine.compute_W + machine.flush_W)
            + self.read * machine.read_W
            + self.down * machine.down_W
        )


def _stay(rate: Numbers, seconds: Numbers) -> Numbers:
    """Mean stay in a state that ends after `seconds` or with a failure: (1 - e^-ls) / l."""
    return -np.expm1(-rate * seconds) / rate


def sojourn_exact(work_s: Numbers, machine: Machine) -> Sojourn:
    """Expected time in each state. Sum = Vaidya's total (1995, eq. 4), and downtime:
    e^(l (L - C + R)) (e^(l (T + C)) - 1) / l, and D for each failure.

    A failure leads to a restart, whichever state it strikes. With latency, the interval is
    work of T - (L - C), the checkpoint, and work of L - C beside its completion, which is redone
    after a failure. Energy paper, section 6, states A, C and R; the split is ours.
    """
    rate, over = machine.rate_per_s, machine.overlap_s
    whole = work_s + machine.write_s
    starts = np.exp(rate * whole)  # of the part before the checkpoint
    failures = np.expm1(rate * whole) * np.exp(rate * (over + machine.read_s))
    checkpoints = starts * np.exp(-rate * (work_s - over))
    return Sojourn(
        compute=starts * _stay(rate, work_s - over),
        write=checkpoints * _stay(rate, machine.write_s),
        flush=checkpoints * np.exp(-rate * machine.write_s) * _stay(rate, over),
        redo=failures * np.exp(-rate * machine.read_s) * _stay(rate, over),
        read=failures * _stay(rate, machine.read_s),
        down=failures * machine.downtime_s,
    )


def sojourn_paper(work_s: Numbers, machine: Machine) -> Sojourn:
    """The sojourn times as the energy paper prints them (section 6); no downtime, no latency.

    Their sum is that of `sojourn_exact`, but restarts after failures in state A are counted as
    A, at its power; only those after failures in C are counted as R.
    """
    rate, write_s, read_s = machine.rate_per_s, machine.write_s, machine.read_s
    none = np.zeros_like(work_s * 1.0)
    return Sojourn(
        compute=np.exp(rate * (write_s + read_s)) * np.expm1(rate * work_s) / rate,
        write=np.expm1(rate * write_s) / rate + none,
        flush=none,
        redo=none,
        read=np.expm1(rate * write_s) * np.expm1(rate * read_s) / rate + none,
        down=none,
    )


SPLITS = {"exact": sojourn_exact, "paper": sojourn_paper}


def time_per_work(work_s: Numbers, machine: Machine, formula: str = "exact") -> Numbers:
    """Expected time over useful work; 1 would be a run without failures and checkpoints."""
    return SPLITS[formula](work_s, machine).total / work_s


def epe(work_s: Numbers, machine: Machine, formula: str = "exact") -> Numbers:
    """Energy per effective unit time in W (the paper's EPE, section 7.2)."""
    return SPLITS[formula](work_s, machine).energy(machine) / work_s


@dataclass(frozen=True)
class Cost:
    """P e^(lambda T) + Q; `start` is P + Q, the cost of a checkpoint without work.

    Kept as P and P + Q, both sums of positive terms: their difference loses no digits.
    """

    growth: Numbers
    start: Numbers


def time_cost(machine: Machine) -> Cost:
    """The total of `sojourn_exact` as a Cost, except for a factor that does not depend on T."""
    c = machine.rate_per_s * machine.write_s
    return Cost(growth=np.exp(c), start=np.expm1(c))


def energy_cost(machine: Machine, formula: str = "exact") -> Cost:
    """The energy of an interval as a Cost.

    exact: a failure costs K = W_R (e^(lR) - 1)/l + W_D D e^(lR), and where C = L the optimum is
    that of (1 - x) e^x = 1 - (1 - e^(-lC)) (W_C + l K) / (W_A + l K).
    """
    rate, over = machine.rate_per_s, machine.overlap_s
    c, r = rate * machine.write_s, rate * machine.read_s
    if formula == "paper":
        start = np.expm1(c) / rate * (machine.write_W + machine.read_W * np.expm1(r))
        return Cost(growth=machine.compute_W * np.exp(c + r) / rate, start=start)
    kept = np.exp(rate * over)
    restart_J = kept * (
        machine.read_W * np.expm1(r) / rate + machine.down_W * machine.downtime_s * np.exp(r)
    )
    redo_J = machine.compute_W * np.expm1(rate * over) / rate
    wait_J = kept * np.expm1(c) / rate * machine.write_W
    beside_J = np.expm1(rate * over) / rate * machine.flush_W
    return Cost(
        growth=np.exp(c) * (machine.compute_W / rate + redo_J + restart_J),
        start=wait_J + beside_J + np.expm1(c) * restart_J,
    )


def _small_root(c: Numbers) -> Numbers:
    """x of x + log(1 - x) = -c by its series, the first terms of which are Young's and Daly's."""
    s = np.sqrt(2 * c)
    return s - s**2 / 3 + s**3 / 36 + s**4 / 270


def _newton_near_zero(c: Numbers) -> Numbers:
    """The same by Newton's method from the series: for c up to about 1."""
    x = np.minimum(_small_root(c), 0.9)
    for _ in range(40):
        step = (x + np.log1p(-x) + c) * (1 - x) / x
        x = np.clip(x + step, 1e-300, 1 - 1e-16)
        if np.all(np.abs(step) <= 4e-16 * x):
            break
    return x


def _newton_near_one(beta: Numbers) -> Numbers:
    """x of (1 - x) e^x = beta for beta < 1, through y = 1 - x = (beta / e) e^y."""
    scaled = beta / np.e
    y = scaled * 1.0
    for _ in range(200):
        grown = scaled * np.exp(y)
        step = (grown - y) / (1 - grown)
        y = y + step
        if np.all(np.abs(step) <= 4e-16 * np.maximum(1.0, np.abs(y))):
            break
    return 1 - y


def interval_root(ratio: Numbers) -> Numbers:
    """x > 0 of (1 - x) e^x = 1 - ratio, for ratio > 0: x = 1 + W0((ratio - 1) / e).

    ratio = 1 - e^(-lambda C) gives the time-optimal x = lambda T. Accurate to rounding for
    lambda C from 1e-300 to 700, where library Lambert W loses digits at its branch point.
    """
    ratio = np.asarray(ratio, dtype=float)
    with np.errstate(all="ignore"):
        c = -np.log1p(-np.minimum(ratio, 0.5))
        near_zero = np.where(c < SERIES_BELOW, _small_root(c), _newton_near_zero(c))
        near_one = _newton_near_one(1 - np.maximum(ratio, 0.5))
    return np.where(ratio < 0.5, near_zero, near_one)[()]


def optimal_work(cost: Cost, machine: Machine) -> Numbers:
    """The T that makes `cost` over T least; not below L - C, which latency needs."""
    root = interval_root(cost.start / cost.growth)
    return np.maximum(root / machine.rate_per_s, machine.overlap_s)


def time_optimal_work(machine: Machine) -> Numbers:
    """T of least time: (1 + W0(-e^(-1 - lambda C))) / lambda, whatever R and D are."""
    return optimal_work(time_cost(machine), machine)


def energy_optimal_work(machine: Machine, formula: str = "exact") -> Numbers:
    """T of least energy; to first order sqrt(2 C W_C / (lambda W_A))."""
    return optimal_work(energy_cost(machine, formula), machine)


def young_work(machine: Machine) -> Numbers:
    """sqrt(2 C / lambda): Young 1974, and the paper's T_A (section 6)."""
    return np.sqrt(2 * machine.write_s / machine.rate_per_s)


def daly_work(machine: Machine) -> Numbers:
    """Daly 2006, higher order; the first terms of the exact root's series."""
    mtbf = 1 / machine.rate_per_s
    ratio = machine.write_s / (2 * mtbf)
    higher = np.sqrt(2 * machine.write_s * mtbf) * (1 + np.sqrt(ratio) / 3 + ratio / 9)
    return np.where(machine.write_s < 2 * mtbf, higher - machine.write_s, mtbf)[()]


def edp_optimal_work(machine: Machine, formula: str = "exact") -> Numbers:
    """T of least energy x time: between the two optima, where both slopes cancel.

    Bisection on the logarithm's derivative; time and energy each have one minimum.
    """
    time, energy = time_cost(machine), energy_cost(machine, formula)
    rate = machine.rate_per_s
    ends = np.broadcast_arrays(optimal_work(time, machine), optimal_work(energy, machine))
    low, high = np.minimum(*ends), np.maximum(*ends)
    for _ in range(60):
        middle = 0.5 * (low + high)
        slope = -2 / middle
        for cost in (time, energy):
            value = cost.growth * np.expm1(rate * middle) + cost.start
            slope = slope + rate * cost.growth * np.exp(rate * middle) / value
        low, high = np.where(slope > 0, low, middle), np.where(slope > 0, middle, high)
    return (0.5 * (low + high))[()]
