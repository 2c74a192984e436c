# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of plans: cost against the interval, and the front of time and energy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from perdure.energy.formulas import levels, model, renewal
from perdure.energy.plan.planning import Plan
from perdure.failures import Wrong
from perdure.figures import BLUE, GREY, ORANGE, figure_of, finish
from perdure.files import save_figure
from perdure.screen import drawn

_POINTS = 121  # an odd number: the plan itself is one of them
_SPAN = 6.0  # shown around the plan's interval, as a factor


def _curve(plan: Plan, works: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Time over work and EPE (or None) at each interval."""
    known, law = plan.epe_W is not None, plan.request.failing.law
    machine, formula = plan.used[0].found.outcome.machine, plan.request.goal.formula
    if plan.system is None and law.memoryless:
        times = model.time_per_work(works, machine, formula)
        return times, model.epe(works, machine, formula) if known else None
    found: list[levels.Expected | renewal.Renewal] = [
        renewal.renewal([work], machine, law) if plan.system is None
        else levels.expected(plan.system, plan.patterns[0].every, work)
        for work in works.tolist()
    ]
    times = np.array([each.time_per_work for each in found])
    return times, np.array([each.epe_W for each in found]) if known else None


def _hours(works: np.ndarray) -> tuple[float, str]:
    """Works in a unit that reads well, and its name."""
    for unit, seconds in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if works[len(works) // 2] >= seconds:
            return seconds, unit
    return 1e-3, "ms"


def draw_interval(plan: Plan, file: Path) -> None:
    """Time and energy against the interval, with both optima. Raises ValueError for the suffix."""
    least = plan.used[0].found.outcome.machine.overlap_s if not plan.patterns else 0.0
    works = np.geomspace(max(plan.work_s / _SPAN, least), plan.work_s * _SPAN, _POINTS)
    times, powers = _curve(plan, works)
    seconds, unit = _hours(works)
    figure = figure_of(
        10 if powers is not None else 5.6, 4.0, "Cost against the interval",
        "Expected values of the model. "
        + ("" if powers is not None else "Without powers there is no energy."),
    )
    axes = figure.subplots(1, 2 if powers is not None else 1, squeeze=False)[0]
    places = [int(np.argmin(times))] + ([int(np.argmin(powers))] if powers is not None else [])
    panels = [(axes[0], 100 * (times - 1), "time beyond the work, %")]
    if powers is not None:
        panels.append((axes[1], powers, "energy per effective time (EPE), W"))
    for axis, values, label in panels:
        axis.plot(works / seconds, values, color=GREY, linewidth=1.5)
        for place, name, colour, mark in zip(places, ("least time", "least energy"),
                                             (BLUE, ORANGE), ("o", "s")):
            axis.plot(works[place] / seconds, values[place], mark, color=colour, markersize=7,
                      label=drawn(name))
        own = np.interp(np.log(plan.work_s), np.log(works), values)
        axis.plot(plan.work_s / seconds, own, "D", color="black", fillstyle="none",
                  markersize=10, label="this plan")
        axis.set_xscale("log")
        low, high = values.min(), values.max()
        axis.set_ylim(low - 0.08 * (min(high, _top(low, values)) - low),
                      min(high, _top(low, values)))
        _plain_ticks(axis, works / seconds)
        finish(axis, f"work between checkpoints, {unit}", label)
        axis.legend(fontsize=8, frameon=False)
    save_figure(figure, file, dpi=130)


def _top(low: float, values: np.ndarray) -> float:
    """Shows the valley: the lower of both ends, or a little above the least value."""
    return max(min(values[0], values[-1]) * 1.02, low + 0.3 * (values.max() - low))


def _plain_ticks(axis: Any, shown: np.ndarray) -> None:
    """Numbers on a logarithmic axis as people write them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    steps = [base * 10.0**power for power in range(-6, 9) for base in (1, 2, 5)]
    axis.xaxis.set_major_locator(
        FixedLocator([step for step in steps if shown[0] <= step <= shown[-1]])
    )
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def draw_front(plan: Plan, file: Path) -> None:
    """The Pareto front with the plan and the governors. Raises ValueError without energies."""
    if not plan.front:
        raise Wrong("there is no front: it needs one level, exponential failures and powers "
                         "(--power, and a profile with a meter or --write-power, --read-power)")
    rivals = [each for each in plan.governors if each.low == each.high]
    figure = figure_of(10 if rivals else 5.6, 4.2, "Plans that no other beats in time and energy",
                       "Each point is a setting and an interval, by the means of the profile. A "
                       "plan may lie above where the gain is within the profile's uncertainty.")
    axes = figure.subplots(1, 2 if rivals else 1, squeeze=False)[0]
    times = [100 * (each.time_per_work - 1) for each in plan.front]
    for axis in axes:
        axis.plot(times, [each.epe_W for each in plan.front], "o-", color=BLUE, markersize=4,
                  linewidth=1, label="front")
        axis.plot(100 * (plan.time_per_work - 1), plan.epe_W, "D", color="black",
                  fillstyle="none", markersize=10,
                  label=f"this plan (least {plan.request.goal.objective})")
    for each, mark in zip(rivals, "sv^"):
        axes[-1].plot(100 * (each.low.time_per_work - 1), each.low.epe_W, mark, color=ORANGE,
                      label=f"all processes write, {each.name}")
    for axis in axes:
        axis.legend(fontsize=8, frameon=False)
        finish(axis, "time beyond the work, %", "energy per effective time (EPE), W")
    save_figure(figure, file, dpi=130)
