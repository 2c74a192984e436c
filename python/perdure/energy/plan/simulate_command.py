# SPDX-License-Identifier: BSD-3-Clause
"""`perdure energy simulate`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict
from math import isclose
from typing import Annotated, Any

import typer

from perdure.documents import print_json
from perdure.energy import quantities as q
from perdure.energy.formulas.monte_carlo import (
    Gaps,
    Mean,
    Observed,
    Played,
    play,
    play_levels,
    replay,
)
from perdure.energy.laws.law import Law
from perdure.energy.output import warn
from perdure.energy.plan.file import ReadPlan, read_plan
from perdure.energy.plan.options import FailureOptions, PlanFile
from perdure.exit_codes import INTERRUPTED
from perdure.option_groups import AsJson, grouped
from perdure.screen import console, say
from perdure.tables import table
from perdure.watching import watching

SEEDS = 2**32


@grouped
def simulate(
    plan: PlanFile,
    failures: FailureOptions,
    intervals: Annotated[
        str, typer.Option(metavar="N", help="How many checkpoint intervals are played.")
    ] = "1e6",
    fixed: Annotated[
        bool, typer.Option("--fixed", help="Keep the interval, where the plan has a schedule.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=SEEDS - 1, help="The seed of the failures.",
                     show_default="another each time"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play a plan with random failures: time and energy with 95 % intervals.

    Failures are those that were planned for, unless options name others; a list of failures is
    replayed, and its gaps are drawn from. Ctrl-C prints what was played so far and ends with 130.

    Examples: perdure energy simulate plan.json --intervals 1e7 --seed 7;
    perdure energy simulate plan.json --law weibull:shape=0.7; perdure energy simulate plan.json
    --failures log.csv
    """
    count = q.parse_count(intervals)
    read = read_plan(plan)
    chosen = secrets.randbelow(SEEDS) if seed is None else seed
    observed, law = failures.observed(), failures.law_instead_of(read.law)
    gaps: Gaps = law if observed is None else observed
    schedule = (read.work_s,) if fixed or read.schedule is None else read.schedule.works_s
    with watching() as watch:
        if not as_json:
            say(f"perdure: seed {chosen}", err=True)
        played = _play(read, schedule, gaps, count, chosen, watch.of("playing"))
    document = _document(read, played, None if observed else law, chosen, fixed)
    if observed and len(read.every) == 1 and document["time_per_work"]:
        replayed = replay(read.machine, schedule, observed.gaps_s)
        document["in_order"] = _in_order(replayed, read.known)
    if as_json:
        print_json("energy-simulate", document)
    else:
        _print(document)
    if not played.complete:
        warn("stopped; this is what was played so far")
        raise typer.Exit(INTERRUPTED)


def _play(
    read: ReadPlan, schedule: tuple[float, ...], gaps: Gaps, count: int, seed: int,
    progress: Callable[[int, int], bool],
) -> Played:
    if len(read.every) == 1:
        return play(read.machine, schedule, gaps, count, seed, progress)
    return play_levels(read.system, read.every, read.work_s, gaps, count, seed, progress)


def _mean(mean: Mean, known: bool = True) -> dict | None:
    if not known or mean.value == float("inf"):
        return None
    return {"value": mean.value, "low": mean.value - mean.spread, "high": mean.value + mean.spread}


def _document(
    read: ReadPlan, played: Played, law: Law | None, seed: int, fixed: bool
) -> dict[str, Any]:
    expected = read.expected if fixed or read.schedule is None else read.schedule.expected
    same = law is not None and law.with_mean(read.law.mean_s) == read.law and isclose(
        law.mean_s, read.law.mean_s, rel_tol=1e-12)
    document: dict[str, Any] = {
        "failures": Observed.name if law is None else law.text(),
        "law": None if law is None else law.document(),
        "seed": seed,
        "intervals": played.intervals,
        "failures_played": played.failures,
        "samples": played.samples,
        "complete": played.complete,
        "time_per_work": _mean(played.time_per_work),
        "energy_per_work_W": _mean(played.epe_W, read.known),
        "planned": asdict(expected),
        "planned_for_these_failures": same,
        "sigmas": None,
        "in_order": None,
    }
    if same and played.time_per_work.sigma > 0 and document["time_per_work"] is not None:
        away = played.time_per_work.value - expected.time_per_work
        document["sigmas"] = away / played.time_per_work.sigma
    return document


def _in_order(replayed: Played, known: bool) -> dict[str, Any]:
    return {
        "time_per_work": replayed.time_per_work.value,
        "energy_per_work_W": replayed.epe_W.value if known else None,
        "failures": replayed.failures,
    }


def _print(document: dict) -> None:
    out = console()
    out.print(f"{document['intervals']:,} intervals, {document['failures_played']:,} failures "
              f"({document['failures']}), seed {document['seed']}".replace(",", " "))
    rows = table("", "played", "95 % interval", "planned", left=("",))
    for name, key, unit in (("time over work", "time_per_work", ""),
                            ("energy per effective time", "energy_per_work_W", " W")):
        found, planned = document[key], document["planned"].get(key)
        text = "not known" if planned is None else f"{planned:.6g}{unit}"
        if found is None:
            rows.add_row(name, "not known", "", text)
        else:
            rows.add_row(name, f"{found['value']:.6g}{unit}",
                         f"{found['low']:.6g} to {found['high']:.6g}", text)
    out.print(rows)
    if document["sigmas"] is not None:
        out.print(f"the plan's time is {abs(document['sigmas']):.2f} standard errors away")
    elif not document["planned_for_these_failures"]:
        out.print("the plan was made for other failures than these")
    in_order = document["in_order"]
    if in_order is not None:
        joules = in_order["energy_per_work_W"]
        out.print(f"the log in its order, once: time over work {in_order['time_per_work']:.6g}"
                  + ("" if joules is None else f", {joules:.6g} W"))
