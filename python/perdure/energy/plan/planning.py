# SPDX-License-Identifier: BSD-3-Clause
"""From what a user gave to a plan: settings, intervals, patterns, schedules, and their costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from perdure.energy.formulas import levels, model, renewal
from perdure.energy.laws.law import Law
from perdure.energy.plan.settings import (
    Candidate,
    Found,
    FrontPoint,
    Node,
    Outcome,
    Problem,
    Strategy,
    candidates_of,
    check_checkpoint,
    given,
    optimise,
    outcome_of,
    pareto_front,
    strategies,
)
from perdure.energy.profile.file import Profile
from perdure.energy.quantities import Wrong, duration_text

PER_DAY = 86400.0
TOO_LONG = 20  # times the MTBF: e^-20 of the attempts end well
HARDLY = 1e6


@dataclass(frozen=True)
class Failing:
    """How failures come: their law, and the 95 % interval of its mean if that was estimated."""

    law: Law
    mtbf_low_s: float | None = None
    mtbf_high_s: float | None = None
    events: int | None = None

    @property
    def rate_per_s(self) -> float:
        """Of failures in the long run."""
        return 1 / self.law.mean_s


@dataclass(frozen=True)
class Place:
    """One level as a user gave it; seconds or bandwidths of None are looked up in the profile."""

    name: str
    share: float = 1.0
    path: str | None = None
    profile: Profile | None = None
    write_s: float | None = None
    read_s: float | None = None
    write_Bps: float | None = None
    read_Bps: float | None = None
    write_W: float | None = None
    read_W: float | None = None


@dataclass(frozen=True)
class Goal:
    """What is made least, and how; an interval is a rule, or seconds."""

    objective: str = "time"
    formula: str = "exact"
    interval: str | float | None = None
    job_s: float | None = None


@dataclass(frozen=True)
class Request:
    """All that a plan is made from."""

    failing: Failing
    places: tuple[Place, ...]
    node: Node = Node()
    goal: Goal = Goal()
    size_bytes: float | None = None
    writers: int = 1
    every: tuple[int, ...] | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Used:
    """A level of the plan: how often, and at which settings."""

    place: Place
    every: int
    found: Found
    checkpoints_per_day: float


@dataclass(frozen=True)
class Schedule:
    """Work before each checkpoint after a restart, by the hazard rule; the last goes on."""

    works_s: tuple[float, ...]
    expected: renewal.Renewal


@dataclass(frozen=True)
class Plan:
    """The result. Energies are None where a power is not known."""

    request: Request
    work_s: float
    used: tuple[Used, ...]
    time_per_work: float
    epe_W: float | None
    rivals: dict[str, Outcome]
    governors: list[Strategy]
    front: list[FrontPoint]
    patterns: list[levels.Pattern]
    schedule: Schedule | None
    system: levels.System | None = None  # of the levels that are used, where there are several

    @property
    def checkpoints_per_day(self) -> float:
        """Begun, on all levels."""
        return sum(each.checkpoints_per_day for each in self.used)

    @property
    def bytes_per_day(self) -> float | None:
        """Written by the node; None if the size is not known."""
        size = self.request.size_bytes
        return None if size is None else size * self.checkpoints_per_day


def _candidates(request: Request, place: Place, op: str) -> list[Candidate]:
    seconds, speed = getattr(place, f"{op}_s"), getattr(place, f"{op}_Bps")
    size, watts = request.size_bytes, getattr(place, f"{op}_W")
    named = f" of level {place.name}" if len(request.places) > 1 else ""
    if seconds is None and speed is not None:
        if size is None:
            raise Wrong(f"--{op}-bandwidth needs the size of a checkpoint: give --size, as 64GB")
        seconds = size / speed
    if seconds is not None:
        return [given(seconds, watts, request.writers, size or 1e6)]
    if place.profile is not None:
        if size is None:
            raise Wrong("a profile needs the size of a checkpoint: give --size, as 64GB")
        found = candidates_of(place.profile, op, size)
        if watts is not None:
            # What the profile's meter did not see was given by hand.
            found = [each if each.power_W is not None else replace(each, power_W=watts)
                     for each in found]
        return found
    if op == "read":
        request.warnings.append(
            f"the time of a restart{named} is not given (--read-time, --read-bandwidth): taken as "
            "that of a checkpoint"
        )
        found = _candidates(request, place, "write")
        return [replace(each, power_W=watts or each.power_W) for each in found]
    raise Wrong(
        f"how long does a checkpoint{named} take? Give a profile (perdure energy profile), or "
        "--write-time as 130s, or --size and --write-bandwidth as 64GB and 510MB/s"
    )


def problem_of(request: Request, rate_per_s: float) -> Problem:
    """The part of a request that settings do not change."""
    goal, interval = request.goal, request.goal.interval
    if interval is None:
        interval = "young" if goal.formula == "paper" else "optimal"
    return Problem(rate_per_s, request.node, goal.objective, goal.formula, interval)


def _check(request: Request) -> None:
    shaped, several = not request.failing.law.memoryless, len(request.places) > 1
    law = f"--law {request.failing.law.text()}"
    if request.goal.formula == "paper":
        for wrong, what in ((several, "--levels"), (shaped, law),
                            (request.node.downtime_s > 0, "--downtime"),
                            (request.node.overhead_s is not None, "--overhead")):
            if wrong:
                raise Wrong(f"the paper's formulas know nothing of {what}; leave out "
                            "--formula=paper")
    if several:
        for wrong, what in ((shaped, law), (request.node.overhead_s is not None, "--overhead")):
            if wrong:
                raise Wrong(f"{what} is not modelled together with --levels; plan one of them, and "
                            "play the plan with perdure energy simulate")
        if isinstance(request.goal.interval, str) and request.goal.interval != "optimal":
            raise Wrong(f"--interval {request.goal.interval} is a rule for one level; leave it out")
        total = sum(place.share for place in request.places)
        if abs(total - 1) > 1e-6:
            raise Wrong(f"the shares of the levels add up to {total:g}; they must make 1 (100%)")
    elif request.every is not None:
        raise Wrong("--pattern needs --levels")
    scopes = {place.profile.scope for place in request.places
              if place.profile is not None and place.profile.scope is not None}
    if len(scopes) > 1:
        raise Wrong(
            "the profiles' meters see different things (node and package); powers of both can't be "
            "added: measure all with one meter"
        )
    if "package" in scopes and request.node.compute_W is not None:
        request.warnings.append(
            "the profile's meter sees the CPU package alone: --power must be that of the package "
            "too, and what device, memory and fans take is not in the energies"
        )


def _check_sizes(request: Request) -> None:
    """Raises Wrong where a time is so much longer than the MTBF that nothing would be finished."""
    mtbf = 1 / request.failing.rate_per_s
    times = {"an interval (--interval)": request.goal.interval, "downtime": request.node.downtime_s}
    for place in request.places:
        for candidate in _candidates(replace(request, warnings=[]), place, "read"):
            times[f"a restart from level {place.name}"] = candidate.seconds
    for what, seconds in times.items():
        if isinstance(seconds, float) and seconds > TOO_LONG * mtbf:
            raise Wrong(
                f"{what} of {duration_text(seconds)} is more than {TOO_LONG} times the mean time "
                f"between failures of {duration_text(mtbf)}: the run would hardly advance; check "
                "both"
            )


def make_plan(request: Request) -> Plan:
    """The plan of least objective. Raises Wrong with a remedy."""
    _check(request)
    _check_sizes(request)
    with np.errstate(over="ignore", invalid="ignore"):
        plan = _plan(request)
    if not plan.time_per_work < HARDLY or not (plan.epe_W or 0.0) < inf:
        raise Wrong(
            f"the run would take more than {HARDLY:g} times as long as its work: failures come "
            "too often for these checkpoints and restarts; use a faster level, or check the input"
        )
    return plan


def _plan(request: Request) -> Plan:
    if len(request.places) > 1:
        return _plan_levels(request)
    place = request.places[0]
    problem = problem_of(request, request.failing.rate_per_s)
    writes, reads = (_candidates(request, place, op) for op in ("write", "read"))
    found = optimise(problem, writes, reads)
    outcome = found.outcome
    if not request.failing.law.memoryless:
        return _plan_renewal(request, place, found)
    rivals = {
        "time optimum": _at(problem, outcome, objective="time", interval="optimal"),
        "Young": _at(problem, outcome, interval="young"),
        "Daly": _at(problem, outcome, interval="daly"),
    }
    if outcome.epe_W is not None:
        rivals["energy optimum"] = _at(problem, outcome, objective="energy", interval="optimal")
        rivals["least time x energy"] = _at(problem, outcome, objective="edp", interval="optimal")
    return Plan(
        request, outcome.work_s,
        (Used(place, 1, found, outcome.checkpoints_per_day),),
        outcome.time_per_work, outcome.epe_W, rivals,
        strategies(problem, writes, reads), pareto_front(problem, writes, reads), [], None,
    )


def _at(problem: Problem, outcome: Outcome, **changes: Any) -> Outcome:
    return outcome_of(replace(problem, **changes), outcome.write, outcome.read)


def _plan_renewal(request: Request, place: Place, found: Found) -> Plan:
    """The best fixed interval and the hazard rule's schedule, for a law with memory."""
    machine, law = found.outcome.machine, request.failing.law
    if isinstance(request.goal.interval, float):
        work_s = request.goal.interval
    elif request.goal.interval in ("young", "daly"):
        work_s = found.outcome.work_s
    else:
        work_s = renewal.best_fixed_work(machine, law, request.goal.objective)
    known = found.outcome.epe_W is not None
    fixed = renewal.renewal([work_s], machine, law)
    ratio = machine.write_W / machine.compute_W if request.goal.objective == "energy" else 1.0
    works = renewal.hazard_schedule(machine, law, ratio)
    lazy = renewal.renewal(works, machine, law)
    rivals = {}
    young, daly = float(model.young_work(machine)), float(model.daly_work(machine))
    for name, rival in (("Young", young), ("Daly", daly)):
        cost = renewal.renewal([rival], machine, law)
        rivals[name] = replace(
            found.outcome, work_s=rival, time_per_work=cost.time_per_work,
            epe_W=cost.epe_W if known else None, checkpoints_per_day=cost.checkpoints_per_day,
        )
    return Plan(
        request, work_s, (Used(place, 1, found, fixed.checkpoints_per_day),),
        fixed.time_per_work, fixed.epe_W if known else None, rivals, [], [], [],
        Schedule(tuple(works), lazy),
    )


def _plan_levels(request: Request) -> Plan:
    """Settings are chosen for each level as if it were alone, then pattern and interval."""
    rate, founds, made = request.failing.rate_per_s, [], []
    for place in request.places:
        writes, reads = (_candidates(request, place, op) for op in ("write", "read"))
        alone = replace(problem_of(request, rate * place.share), interval="optimal")
        check_checkpoint(
            min(each.seconds for each in writes), rate, f"a checkpoint on level {place.name}"
        )
        found = optimise(alone, writes, reads)
        founds.append(found)
        machine = found.outcome.machine
        made.append(
            levels.Level(place.name, rate * place.share, float(machine.write_s),
                         float(machine.read_s), machine.write_W, machine.read_W)
        )
    known = all(found.outcome.epe_W is not None for found in founds)
    compute_W = request.node.compute_W if known and request.node.compute_W is not None else 1.0
    down_W = request.node.down_W if known and request.node.down_W is not None else compute_W
    system = levels.System(tuple(made), request.node.downtime_s, compute_W, down_W)
    if isinstance(request.goal.interval, float):
        patterns = [_fixed_pattern(request, system, request.goal.interval)]
    else:
        patterns = levels.best_pattern(system, request.goal.objective, request.every)
    best = patterns[0]
    used = tuple(
        Used(request.places[place], every, founds[place],
             begun / best.expected.time_per_work * PER_DAY)
        for place, every, begun in zip(best.kept, best.every, best.expected.checkpoints_per_work_s)
    )
    _warn_of_short_job(request, system, best)
    return Plan(
        request, best.work_s, used, best.expected.time_per_work,
        best.expected.epe_W if known else None, {}, [], [], patterns, None, system.only(best.kept),
    )


def _fixed_pattern(
    request: Request, system: levels.System, work_s: float
) -> levels.Pattern:
    if request.every is None:
        raise Wrong("a fixed --interval with --levels needs a --pattern, as 1,2,10")
    levels.check_every(request.every, len(system.levels))
    found = levels.expected(system, request.every, work_s)
    kept = tuple(range(len(system.levels)))
    return levels.Pattern(kept, request.every, work_s, found,
                          levels.value(found, request.goal.objective))


def _warn_of_short_job(request: Request, system: levels.System, best: levels.Pattern) -> None:
    job_s = request.goal.job_s
    if job_s is None:
        return
    for place, every in zip(best.kept, best.every):
        period_s = every * best.work_s
        if period_s > job_s:
            lost = system.only(best.kept).levels[best.kept.index(place)].rate_per_s * job_s
            request.warnings.append(
                f"level {request.places[place].name}: its first checkpoint would come after "
                f"{duration_text(period_s)}, but the job ends after "
                f"{duration_text(job_s)}; {lost:.2g} failures that need it are expected "
                "in the job: plan without that level if losing the job then is acceptable"
            )


def profiles_to_places(profiles: list[Profile], places: list[Place]) -> list[Place]:
    """Gives profiles, in order, to the levels that have no times of their own. Raises Wrong."""
    bare = [place for place in places if place.write_s is None and place.write_Bps is None]
    if len(profiles) > len(bare):
        raise Wrong(
            f"{len(profiles)} profiles for {len(bare)} levels whose times are not given; give one "
            "profile for each of them"
        )
    waiting = iter(profiles)
    return [replace(place, profile=next(waiting, None)) if place in bare else place
            for place in places]


def paths_of(text: str | None, count: int) -> list[str | None]:
    """The folder of each level, or None for all."""
    paths: list[str | None] = [None] * count if text is None else list(text.split(","))
    if len(paths) != count:
        raise Wrong(f"--path has {len(paths)} folders for {count} levels")
    return [None if path is None or path in ("", "-") else str(Path(path)) for path in paths]
