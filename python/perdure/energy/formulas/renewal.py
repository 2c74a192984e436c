# SPDX-License-Identifier: BSD-3-Clause
"""Failures that are not exponential: renewal formulas, schedules, the hazard rule.

A failure renews the clock, so a run is a row of independent gaps between failures. With survival
S, mean gap M and a schedule T_1, T_2, … counted from the last restart,

    useful share U = sum T_i S(R + (L - C) + sum_{j<=i} (T_j + C)) / (M + D),

exactly; energy is the same kind of sum. A constant hazard gives Vaidya's result. Valid for a job
if its failures really renew; many nodes of different ages come close to exponential. Hazard rule
("lazy checkpointing", Tiwari, Gupta, Vazhkudai, DSN 2014): T = sqrt(2 C / h(age)), with h taken in
the middle of the interval and its checkpoint, which also holds where h is 0 at age 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np

from perdure.energy.formulas.model import Machine
from perdure.energy.laws.law import Law
from perdure.energy.quantities import Wrong

TAIL = 1e-13  # of survival: what comes after adds nothing that a double would show
INTERVALS_MAX = 4_000_000
HAZARD_LEAST = 1e-300  # in place of one that is 0 in floats


@dataclass(frozen=True)
class Renewal:
    """Long-run means under a schedule. `useful` is the share of time that becomes work."""

    useful: float
    time_per_work: float
    epe_W: float
    checkpoints_per_day: float


def renewal(schedule: Sequence[float], machine: Machine, law: Law) -> Renewal:
    """Exact long-run time and energy; after its last entry a schedule goes on with that one."""
    ends = _ends(schedule, machine, law)
    works = np.full(ends.size, float(schedule[-1]))
    works[: len(schedule)] = schedule[: ends.size]
    over = machine.overlap_s
    begins = np.maximum(ends - works - machine.write_s, 0.0)  # rounding may go below
    lived_end, lived_begin = law.lived(ends), law.lived(begins)
    lived_write = law.lived(ends - machine.write_s)
    work_s = float(np.sum(works * law.survival(ends + over)))
    writing_s = float(np.sum(lived_end - lived_write))
    computing_s = float(np.sum(lived_write - lived_begin))
    flushing_s = float(np.sum(law.lived(ends + over) - lived_end)) if over else 0.0
    reading_s = float(law.lived(machine.read_s))
    begun = float(np.sum(law.survival(ends - machine.write_s)))
    cycle_s = law.mean_s + machine.downtime_s
    energy_J = (
        machine.read_W * reading_s
        + machine.compute_W * computing_s
        + machine.write_W * writing_s
        + machine.flush_W * flushing_s
        + machine.down_W * machine.downtime_s
    )
    return Renewal(work_s / cycle_s, cycle_s / work_s, energy_J / work_s, begun / cycle_s * 86400)


def _ends(schedule: Sequence[float], machine: Machine, law: Law) -> np.ndarray:
    """Ages at which checkpoints end, up to where nothing survives."""
    first = machine.read_s + np.cumsum(np.asarray(schedule, dtype=float) + machine.write_s)
    step = schedule[-1] + machine.write_s
    more = max(0.0, (law.reached(TAIL) - first[-1]) / step)
    if more > INTERVALS_MAX:
        raise Wrong(
            f"with --law {law.text()} a gap may hold {more:.0e} checkpoints; that is too many to "
            "sum up: take a law with fewer long gaps, or plan with exponential failures"
        )
    return np.concatenate((first, first[-1] + step * np.arange(1, int(more) + 2)))


def hazard_schedule(machine: Machine, law: Law, ratio: float = 1.0) -> list[float]:
    """Work before each checkpoint after a restart, by the hazard rule.

    `ratio` is W_C / W_A for least energy, 1 for least time. Ends where nothing survives; the last
    interval goes on from there.
    """
    schedule: list[float] = []
    age, end = machine.read_s, law.reached(TAIL)
    work_s = sqrt(2 * machine.write_s * ratio * law.mean_s)
    while age < end and len(schedule) < INTERVALS_MAX:
        work_s = _hazard_work(machine, law, ratio, age, work_s)
        work_s = max(work_s, machine.overlap_s)
        schedule.append(work_s)
        age += work_s + machine.write_s
        if law.memoryless and len(schedule) > 1:
            break
    return schedule


def _hazard_work(machine: Machine, law: Law, ratio: float, age: float, guess: float) -> float:
    """T of T^2 h(age + (T + C)/2) = 2 C ratio, by the secant method in log T."""
    target = log(2 * machine.write_s * ratio)

    def excess(u: float) -> float:
        work_s = exp(u)
        hazard = float(law.hazard(age + 0.5 * (work_s + machine.write_s)))
        return 2 * u + log(max(hazard, HAZARD_LEAST)) - target

    u, slope = log(guess), 2.0
    found = excess(u)
    for _ in range(100):
        step = max(-2.0, min(2.0, found / slope))
        u -= step
        if abs(step) < 1e-13:
            break
        before, found = found, excess(u)
        slope = (before - found) / step or slope
    return exp(u)


def best_fixed_work(machine: Machine, law: Law, objective: str = "time") -> float:
    """The single interval of least time, energy or product of both, by Brent's method."""
    from scipy.optimize import minimize_scalar

    def cost(log_s: float) -> float:
        found = renewal([exp(log_s)], machine, law)
        if objective == "time":
            return found.time_per_work
        return found.epe_W * (found.time_per_work if objective == "edp" else 1.0)

    middle = log(sqrt(2 * machine.write_s * law.mean_s))
    low = log(machine.overlap_s) if machine.overlap_s > 0 else middle - 2.5
    found = minimize_scalar(
        cost, bounds=(max(low, middle - 2.5), max(low, middle) + 2.5), method="bounded",
        options={"xatol": 1e-6},
    )
    return exp(found.x)
