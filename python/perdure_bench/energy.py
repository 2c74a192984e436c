# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench energy`: the energy paper's evaluation, and the planner's own speed.

From the paper's constants (data/energy/reference.json, stated or inferred), nothing measured:

    paper   saving_percent   of EPE on ioDrive by profile lookup (abstract: 4.1)
            write_percent, read_percent   of energy per MB on ioDrive (-67.4, -40.2)
            ssd_percent      of EPE on SSD (1.5)
    paper-exact-split, paper-exact-interval, paper-energy-interval   the savings again, with
            restarts at their own power; then the exact optimum; then that of least energy
    figure7-DEVICE-STRATEGY   epe_W; figure8-DEVICE-STRATEGY-OP   J_per_MB; `bandwidth` and
            `power` say whether what they rest on is stated
    table3-DEVICE-OP   GHz that the stated model selects; `paper_GHz` is Table 3's

Measured in this process:

    plan, plan-three-level   seconds for a plan from a profile of 56 points, or of three levels
    simulate, simulate-three-level   intervals_per_s on one core; sigmas from the exact model

And of the node's part: restore-KIND and token (energy_node.py).
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from perdure.energy import reference
from perdure.energy.formulas import levels, model, monte_carlo
from perdure.energy.laws.exponential import Exponential
from perdure.energy.plan.file import document_of
from perdure.energy.plan.planning import Failing, Goal, Place, Request, make_plan
from perdure.energy.profile.file import Point, Profile, Quantity, Setting
from perdure.energy.quantities import Wrong
from perdure.progress import progress
from perdure_bench import energy_node
from perdure_bench.energy_plot import bar_case
from perdure_bench.facts import Fact

SUMMARY = "the energy paper from its constants; speed of planning and simulation"
PLAN_S, LEVELS_S = 0.05, 1.0
INTERVALS_PER_S = 1e7 / 60
SIGMAS = 3.0
_SEED = 20130618
_FREQUENCIES = (800_000, 1_400_000, 1_700_000, 2_100_000)
_WRITERS = (1, 2, 4, 8, 16, 32, 48)


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises Wrong, ProgramFailed."""
    yield from (*paper_facts(), *figure_facts(), *table_facts())
    with progress("bench energy", 4) as advance:
        for measured in (_plan_fact, _levels_fact, _simulate_facts, _simulate_levels_facts):
            yield from measured(quick)
            advance()
    yield from energy_node.measure(quick)


def _fact(case: str, metric: str, value: float, unit: str, **more: Any) -> Fact:
    known = {name: more.pop(name) for name in ("low", "high", "n", "target", "holds")
             if name in more}
    return Fact("energy", case, metric, value, unit, **known, more=more)


def _known(value: float | None) -> float:
    if value is None:
        raise Wrong("data/energy/reference.json lacks a power or a time: take a copy")
    return value


def paper_facts() -> Iterable[Fact]:
    """The paper's four claims from the constants, then with its mistakes taken out."""
    claims = reference.reference()["claims"]
    found = {
        "saving_percent": reference.saving_percent("ioDrive"),
        "write_percent": reference.per_MB_percent("ioDrive", "write"),
        "read_percent": reference.per_MB_percent("ioDrive", "read"),
        "ssd_percent": reference.saving_percent("SSD"),
    }
    for metric, value in found.items():
        claim = claims[metric]["value"]
        yield _fact("paper", metric, value, "%", target=f"{claim:g} rounded",
                    holds=round(value, 1) == claim, modelled="inferred powers")
    for name, problem in reference.corrected().items():
        if name != "paper":
            for metric, device in (("saving_percent", "ioDrive"), ("ssd_percent", "SSD")):
                yield _fact(f"paper-{name}", metric, reference.saving_percent(device, problem),
                            "%", modelled="inferred powers")


def figure_facts() -> Iterable[Fact]:
    """The bars of Figures 7 and 8 that the constants reach."""
    for device, strategies in reference.reference()["devices"].items():
        for strategy in strategies:
            epe_W = _known(reference.outcome(device, strategy).epe_W)
            yield _fact(bar_case(f"figure7-{device}", strategy), "epe_W", epe_W, "W",
                        modelled="inferred powers")  # fmt: skip
            for op in ("write", "read"):
                point = strategies[strategy][op]
                J_per_MB = _known(reference.candidate(device, strategy, op).J_per_MB)
                yield _fact(
                    bar_case(f"figure8-{device}", strategy, op), "J_per_MB", J_per_MB,
                    "J/MB", modelled="inferred powers",
                    bandwidth=point["bandwidth_MBps"]["status"],
                    power=point["power_W"]["status"],
                )


def table_facts() -> Iterable[Fact]:
    """Table 3 as the model has it, beside the paper's."""
    for each in reference.table_3():
        yield _fact(f"table3-{each.device}-{each.op}", "GHz", each.model_kHz / 1e6, "GHz",
                    paper_GHz=each.paper_kHz / 1e6, modelled="power and bandwidth by frequency")


def full_profile() -> Profile:
    """A full grid made from the paper's device model, in memory."""
    points = []
    for op, peak in (("write", 510.0), ("read", 735.0)):
        for freq in _FREQUENCIES:
            for writers in _WRITERS:
                crowd = (16 / writers) ** 0.8 if writers > 16 else 1.0
                speed = peak * crowd * (0.8 if writers == 1 else 1.0) / (1 + 0.35e6 / freq)
                watts = 200 * (1 + 0.3 * (freq / 2.1e6) ** 2) + 2.6 * writers
                measured = (Quantity(value, 0.98 * value, 1.02 * value, 3)
                            for value in (speed, watts, watts / speed))
                bandwidth, power, energy = measured
                points.append(Point(op, Setting(freq, writers), bandwidth, power, energy))
    return Profile(tuple(points), {}, "a full grid")


def _request(places: tuple[Place, ...]) -> Request:
    """The paper's problem with these levels, for least energy."""
    return Request(
        Failing(Exponential(1 / reference.constant("rate_per_s"))), places,
        reference.problem().node, Goal("energy"), reference.constant("size_bytes"),
    )


def plan_request() -> Request:
    """The paper's problem with that profile."""
    return _request((Place("local", profile=full_profile()),))


def levels_request() -> Request:
    """Three levels with the paper's failure rate: local flash, a neighbour, a file system."""
    costs = (("local", 0.70, 128.0, 87.0, 258.0), ("partner", 0.25, 290.0, 200.0, 280.0),
             ("pfs", 0.05, 1200.0, 900.0, 240.0))
    places = tuple(Place(name, share, write_s=write_s, read_s=read_s, write_W=watts, read_W=watts)
                   for name, share, write_s, read_s, watts in costs)
    return _request(places)


def _timed(run: Callable[[], object], rounds: int) -> list[float]:
    run()  # imports are not planning
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return times


def _seconds_fact(case: str, request: Callable[[], Request], rounds: int, limit: float) -> Fact:
    times = _timed(lambda: document_of(make_plan(request())), rounds)
    return Fact.of("energy", case, "seconds", times, "s", limit, operator.lt)


def _plan_fact(quick: bool) -> Iterable[Fact]:
    yield _seconds_fact("plan", plan_request, 5 if quick else 31, PLAN_S)


def _levels_fact(quick: bool) -> Iterable[Fact]:
    yield _seconds_fact("plan-three-level", levels_request, 3 if quick else 11, LEVELS_S)


def _played(
    case: str, play: Callable[[int, int], monte_carlo.Played], expected: float, quick: bool
) -> Iterable[Fact]:
    """Rate and distance from the model; each round has a seed of its own."""
    rates, sigmas, rounds = [], [], 3 if quick else 5
    count = 10**6 if quick else 10**7
    for turn in range(rounds):
        began = time.perf_counter()
        played = play(count, _SEED + turn)
        rates.append(played.intervals / (time.perf_counter() - began))
        away = played.time_per_work.value - expected
        sigmas.append(abs(away) / played.time_per_work.sigma)
    seed = {"seed": _SEED}
    yield Fact.of("energy", case, "intervals_per_s", rates, "1/s", INTERVALS_PER_S, operator.ge,
                  seed)  # fmt: skip
    yield Fact.of("energy", case, "sigmas", sigmas, target=SIGMAS, more=seed)


def _simulate_facts(quick: bool) -> Iterable[Fact]:
    outcome = reference.outcome("ioDrive", "profile lookup", reference.corrected()["exact-split"])
    machine, work_s = outcome.machine, outcome.work_s
    law = Exponential(1 / machine.rate_per_s)
    return _played(
        "simulate",
        lambda count, seed: monte_carlo.play(machine, [work_s], law, count, seed),
        float(model.time_per_work(work_s, machine)), quick,
    )


def _simulate_levels_facts(quick: bool) -> Iterable[Fact]:
    request = levels_request()
    rate = request.failing.rate_per_s
    system = levels.System(
        tuple(levels.Level(place.name, rate * place.share, *map(_known, (
            place.write_s, place.read_s, place.write_W, place.read_W,
        ))) for place in request.places),
        compute_W=_known(request.node.compute_W),
    )
    every, work_s = (1, 2, 10), 4068.0
    law = Exponential(1 / rate)
    return _played(
        "simulate-three-level",
        lambda count, seed: monte_carlo.play_levels(system, every, work_s, law, count, seed),
        levels.expected(system, every, work_s).time_per_work, quick,
    )
