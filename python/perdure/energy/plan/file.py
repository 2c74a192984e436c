# SPDX-License-Identifier: BSD-3-Clause
"""Writes and reads plans; the form is in docs/energy_plan.md. A plan that is read is untrusted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from perdure.energy.documents import Section, read_document
from perdure.energy.formulas.levels import Level, System, check_every
from perdure.energy.formulas.model import Machine
from perdure.energy.formulas.renewal import Renewal
from perdure.energy.laws import law_of_document
from perdure.energy.laws.law import Law
from perdure.energy.plan.planning import Plan
from perdure.energy.plan.settings import FORMULAS, OBJECTIVES, Candidate, Choice, Outcome
from perdure.energy.profile.file import Setting
from perdure.energy.quantities import Wrong

SCHEMA = 1
KIND = "perdure-energy-plan"
SCHEDULE_ENTRIES = 1000


def setting_document(setting: Setting) -> dict:
    """A setting as in profiles."""
    return {"freq_kHz": setting.freq_kHz, "writers": setting.writers}


def _candidate(candidate: Candidate) -> dict:
    return {
        **setting_document(candidate.setting),
        "seconds": candidate.seconds,
        "power_W": candidate.power_W,
        "J_per_MB": candidate.J_per_MB,
    }


def _choice(choice: Choice) -> dict:
    return {
        "chosen": _candidate(choice.chosen),
        "best": _candidate(choice.best),
        "least_J_per_MB": None if choice.per_MB is None else _candidate(choice.per_MB),
        "unplanned": setting_document(choice.default),
        "alike": [setting_document(setting) for setting in choice.alike],
        "candidates": [
            {**_candidate(each), "value": value, "half_interval": spread}
            for each, value, spread in choice.values
        ],
    }


def outcome_document(outcome: Outcome) -> dict:
    """What an interval costs."""
    return {
        "interval_s": outcome.work_s,
        "time_per_work": outcome.time_per_work,
        "energy_per_work_W": outcome.epe_W,
        "checkpoints_per_day": outcome.checkpoints_per_day,
    }


def _renewal(found: Renewal, known: bool) -> dict:
    return {
        "time_per_work": found.time_per_work,
        "energy_per_work_W": found.epe_W if known else None,
        "checkpoints_per_day": found.checkpoints_per_day,
    }


def document_of(plan: Plan) -> dict:
    """A plan as JSON values: what the library needs first, then how it came about."""
    request = plan.request
    known = plan.epe_W is not None
    document = {
        "schema": SCHEMA,
        "kind": KIND,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "objective": request.goal.objective,
        "formula": request.goal.formula,
        "interval_s": plan.work_s,
        "levels": [
            {
                "name": each.place.name,
                "every": each.every,
                "path": each.place.path,
                "write": setting_document(each.found.write.chosen.setting),
                "read": setting_document(each.found.read.chosen.setting),
                "checkpoints_per_day": each.checkpoints_per_day,
            }
            for each in plan.used
        ],
        "expected": {
            "time_per_work": plan.time_per_work,
            "energy_per_work_W": plan.epe_W,
            "checkpoints_per_day": plan.checkpoints_per_day,
            "bytes_per_day": plan.bytes_per_day,
        },
        "inputs": _inputs(plan),
        "compared": {name: outcome_document(each) for name, each in plan.rivals.items()},
        "governors": [
            {"name": each.name, "low": outcome_document(each.low),
             "high": outcome_document(each.high)}
            for each in plan.governors
        ],
        "front": [
            {"time_per_work": each.time_per_work, "energy_per_work_W": each.epe_W,
             "interval_s": each.work_s, "write": setting_document(each.write),
             "read": setting_document(each.read)}
            for each in plan.front
        ],
        "patterns": [
            {"levels": [request.places[i].name for i in each.kept], "every": list(each.every),
             "interval_s": each.work_s, "time_per_work": each.expected.time_per_work,
             "energy_per_work_W": each.expected.epe_W if known else None}
            for each in plan.patterns
        ],
        "choice": [
            {"level": each.place.name, "write": _choice(each.found.write),
             "read": _choice(each.found.read)}
            for each in plan.used
        ],
    }
    if plan.schedule is not None:
        document["schedule"] = {
            "works_s": list(plan.schedule.works_s[:SCHEDULE_ENTRIES]),
            "expected": _renewal(plan.schedule.expected, known),
        }
    return document


def _inputs(plan: Plan) -> dict:
    """What the plan was made from, as far as simulate and explain need it."""
    request, failing = plan.request, plan.request.failing
    return {
        "size_bytes": request.size_bytes,
        "rate_per_s": failing.rate_per_s,
        "law": failing.law.document(),
        "mtbf_low_s": failing.mtbf_low_s,
        "mtbf_high_s": failing.mtbf_high_s,
        "failures": failing.events,
        "downtime_s": request.node.downtime_s,
        "overhead_s": request.node.overhead_s,
        "compute_W": request.node.compute_W,
        "down_W": request.node.down_W,
        "flush_W": request.node.flush_W,
        "job_s": request.goal.job_s,
        "levels": [_level_inputs(plan, index) for index in range(len(plan.used))],
    }


def _level_inputs(plan: Plan, index: int) -> dict:
    """A used level's costs; failures of a level that is not used count for the next above."""
    used = plan.used[index]
    outcome = used.found.outcome
    names = [place.name for place in plan.request.places]
    place = names.index(used.place.name)
    before = names.index(plan.used[index - 1].place.name) if index else -1
    share = sum(each.share for each in plan.request.places[before + 1 : place + 1])
    return {
        "name": used.place.name,
        "share": share,
        "write_s": outcome.write.seconds,
        "read_s": outcome.read.seconds,
        "write_W": outcome.write.power_W,
        "read_W": outcome.read.power_W,
        "profile": None if used.place.profile is None else used.place.profile.source,
    }


@dataclass(frozen=True)
class Costs:
    """What a unit of work is expected to cost; None where a power is not known."""

    time_per_work: float
    energy_per_work_W: float | None


@dataclass(frozen=True)
class ReadSchedule:
    """Work before each checkpoint after a restart; the last goes on."""

    works_s: tuple[float, ...]
    expected: Costs


@dataclass(frozen=True)
class ReadPlan:
    """What simulate and explain need of a plan. `known` is False if a power is not known."""

    whole: Section
    source: str
    objective: str
    formula: str
    work_s: float
    every: tuple[int, ...]
    system: System
    machine: Machine  # of its only level, or of its first
    law: Law
    expected: Costs
    schedule: ReadSchedule | None
    known: bool


def read_plan(file: Path) -> ReadPlan:
    """The plan in a file. Raises Wrong with file, place and remedy."""
    source = str(file)
    document = read_document(file, "plan")
    whole = Section(f"{source}: ", document)
    whole.check_kind(KIND, SCHEMA)
    used, inputs, expected = (document.get(key) for key in ("levels", "inputs", "expected"))
    given = inputs.get("levels") if isinstance(inputs, dict) else None
    if not isinstance(expected, dict) or not isinstance(used, list) or not isinstance(given, list):
        raise Wrong(f"{source}: no inputs, levels or expected; the plan is cut short: plan again")
    if not used or len(used) != len(given):
        raise Wrong(f"{source}: {len(used)} levels, but inputs of {len(given)}")
    every = tuple(Section(f"{source}: level {i}.", each).whole("every")
                  for i, each in enumerate(used))
    check_every(every, len(every))
    costs = whole.section("inputs")
    levels = [Section(f"{costs.place}level {i}.", each) for i, each in enumerate(given)]
    watts = [costs.maybe("compute_W"), *(level.maybe(key) for level in levels
                                         for key in ("write_W", "read_W"))]
    known, rate = None not in watts, costs.number("rate_per_s", 1e-300)
    system = _system(costs, levels, rate, known)
    return ReadPlan(
        whole=whole,
        source=source,
        objective=whole.word("objective", OBJECTIVES),
        formula=whole.word("formula", FORMULAS),
        work_s=whole.number("interval_s", 1e-12),
        every=every,
        system=system,
        machine=_machine(costs, system, known),
        law=law_of_document(costs.values.get("law"), 1 / rate, f"{source}: law"),
        expected=_costs(whole.section("expected")),
        schedule=_schedule(whole.section("schedule")) if whole.has("schedule") else None,
        known=known,
    )


def _system(costs: Section, levels: list[Section], rate: float, known: bool) -> System:
    """The levels with their rates. Where a power is not known all are 1."""

    def watts(section: Section, key: str) -> float:
        return section.number(key) if known else 1.0

    made = tuple(
        Level(str(level.values.get("name")), rate * level.number("share"),
              level.number("write_s", 1e-12), level.number("read_s"),
              watts(level, "write_W"), watts(level, "read_W"))
        for level in levels
    )
    down = "down_W" if costs.has("down_W") else "compute_W"
    return System(made, costs.number("downtime_s"), watts(costs, "compute_W"), watts(costs, down))


def _machine(costs: Section, system: System, known: bool) -> Machine:
    """What one interval costs on the first level."""
    first, overhead_s = system.levels[0], costs.maybe("overhead_s")
    return Machine(
        rate_per_s=costs.number("rate_per_s", 1e-300),
        write_s=first.write_s if overhead_s is None else min(overhead_s, first.write_s),
        read_s=first.read_s,
        downtime_s=system.downtime_s,
        latency_s=None if overhead_s is None else first.write_s,
        compute_W=system.compute_W,
        write_W=first.write_W,
        read_W=first.read_W,
        down_W=system.down_W,
        flush_W=costs.number("flush_W") if known else 0.0,
    )


def _costs(section: Section) -> Costs:
    return Costs(section.number("time_per_work"), section.maybe("energy_per_work_W"))


def _schedule(section: Section) -> ReadSchedule:
    works = section.values.get("works_s")
    if not isinstance(works, list) or not works:
        raise Wrong(f"{section.place}works_s is {works!r}; it must be a list of times")
    return ReadSchedule(
        tuple(Section(section.place, {"works_s": each}).number("works_s", 1e-12) for each in works),
        _costs(section.section("expected")),
    )
