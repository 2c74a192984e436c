"""Writes and reads plans; the form is in docs/energy_plan.md. A plan that is read is untrusted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from perdure.energy.formulas.levels import Level, System, check_every
from perdure.energy.formulas.model import Machine
from perdure.energy.formulas.renewal import Renewal
from perdure.energy.laws import law_of_document
from perdure.energy.laws.law import Law
from perdure.energy.plan.planning import Plan
from perdure.energy.plan.settings import FORMULAS, OBJECTIVES, Candidate, Choice, Outcome
from perdure.energy.profile.file import Setting, check_kind, read_document
from perdure.energy.quantities import Wrong, is_number
from perdure.files import write_text

SCHEMA = 1
KIND = "perdure-energy-plan"
SCHEDULE_ENTRIES = 1000


def setting_document(setting: Setting) -> dict:
    """A setting as in profiles."""
    return {"freq_kHz": setting.freq_kHz, "writers": setting.writers}


def _candidate(candidate: Candidate | None) -> dict | None:
    if candidate is None:
        return None
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
        "least_J_per_MB": _candidate(choice.per_MB),
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
        "objective": request.objective,
        "formula": request.formula,
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
        "downtime_s": request.downtime_s,
        "overhead_s": request.overhead_s,
        "compute_W": request.compute_W,
        "down_W": request.down_W,
        "flush_W": request.flush_W,
        "job_s": request.job_s,
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


def write_plan(document: dict, file: Path) -> None:
    """Writes a plan whole or not at all. Raises Wrong."""
    try:
        write_text(file, json.dumps(document, indent=1, allow_nan=False) + "\n")
    except OSError as failure:
        raise Wrong(f"{file}: not written: {failure.strerror or failure}") from None


@dataclass(frozen=True)
class ReadPlan:
    """What simulate and explain need of a plan. `known` is False if a power is not known."""

    document: dict
    source: str
    objective: str
    formula: str
    work_s: float
    every: tuple[int, ...]
    system: System
    machine: Machine  # of its only level, or of its first
    law: Law
    works_s: tuple[float, ...] | None
    time_per_work: float
    epe_W: float | None
    known: bool


def _get(source: str, value: dict, key: str, least: float = 0.0, optional: bool = False):
    found = value.get(key) if isinstance(value, dict) else None
    if found is None and optional:
        return None
    if not is_number(found) or found < least:
        raise Wrong(f"{source}: {key} is {found!r}; it must be a number, at least {least:g}")
    return float(found)


def read_plan(file: Path) -> ReadPlan:
    """The plan in a file. Raises Wrong with file, place and remedy."""
    source = str(file)
    document = read_document(file, "plan")
    check_kind(document, source, KIND, SCHEMA)
    inputs, expected = (document.get(key) for key in ("inputs", "expected"))
    used = document.get("levels")
    given = inputs.get("levels") if isinstance(inputs, dict) else None
    if not isinstance(expected, dict) or not isinstance(used, list) or not isinstance(given, list):
        raise Wrong(f"{source}: no inputs, levels or expected; the plan is cut short: plan again")
    if not used or len(used) != len(given):
        raise Wrong(f"{source}: {len(used)} levels, but inputs of {len(given)}")
    for key, known_words in (("objective", OBJECTIVES), ("formula", FORMULAS)):
        if document.get(key) not in known_words:
            raise Wrong(f"{source}: {key} is {document.get(key)!r}, none of "
                        f"{', '.join(known_words)}")
    every = tuple(int(_get(source, each, "every", 1)) for each in used)
    check_every(every, len(every))
    number = lambda key, least=0.0, optional=False: _get(  # noqa: E731
        source, inputs, key, least, optional
    )
    rate = number("rate_per_s", 1e-300)
    levels = tuple(_level(source, each, rate) for each in given)
    watts = [number("compute_W", 0, True)] + [
        _get(source, each, key, 0, True) for each in given for key in ("write_W", "read_W")
    ]
    known = None not in watts
    compute_W = watts[0] if known else 1.0
    down_W = number("down_W", 0, True) if known else 1.0
    overhead_s = number("overhead_s", 0, True)
    first = levels[0]
    system = System(levels, number("downtime_s"), compute_W,
                    compute_W if down_W is None else down_W)
    machine = Machine(
        rate, first.write_s if overhead_s is None else min(overhead_s, first.write_s),
        first.read_s, system.downtime_s, None if overhead_s is None else first.write_s,
        compute_W, first.write_W, first.read_W, system.down_W,
        number("flush_W") if known else 0.0,
    )
    schedule = document.get("schedule")
    return ReadPlan(
        document, source, document["objective"], document["formula"],
        _get(source, document, "interval_s", 1e-12), every, system, machine,
        law_of_document(inputs.get("law"), 1 / rate, f"{source}: law"), _works(source, schedule),
        _get(source, expected, "time_per_work"),
        _get(source, expected, "energy_per_work_W", 0, True), known,
    )


def _level(source: str, value: dict, rate: float) -> Level:
    watts = [_get(source, value, key, 0, True) for key in ("write_W", "read_W")]
    name = value.get("name") if isinstance(value, dict) else None
    share = _get(source, value, "share")
    return Level(
        str(name), rate * share, _get(source, value, "write_s", 1e-12),
        _get(source, value, "read_s"),
        *(1.0 if None in watts else each for each in watts),
    )


def _works(source: str, schedule) -> tuple[float, ...] | None:
    if schedule is None:
        return None
    works = schedule.get("works_s") if isinstance(schedule, dict) else None
    if not isinstance(works, list) or not works:
        raise Wrong(f"{source}: the schedule has no works_s")
    return tuple(_get(source, {"works_s": each}, "works_s", 1e-12) for each in works)
