"""`perdure energy simulate`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT, getsignal, signal
from typing import Annotated

import typer
from rich.progress import Progress

from perdure.energy import quantities as q
from perdure.energy.formulas import monte_carlo
from perdure.energy.formulas.monte_carlo import Mean, Played
from perdure.energy.formulas.renewal import Weibull, check_shape
from perdure.energy.output import INTERRUPTED, refusing, table, warn
from perdure.energy.plan.file import ReadPlan, read_plan
from perdure.screen import console, say

SEEDS = 2**32


def simulate(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Of perdure energy plan -o.")],
    weibull: Annotated[
        float | None,
        typer.Option(metavar="SHAPE", help="Weibull failures.",
                     show_default="as planned"),
    ] = None,
    failures: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Replay a list of failures, and draw from its gaps.",
                     show_default=False),
    ] = None,
    mtbf: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Instead of the planned one.", show_default=False),
    ] = None,
    intervals: Annotated[
        str, typer.Option(metavar="N", help="How many checkpoint intervals are played.")
    ] = "1e6",
    fixed: Annotated[
        bool, typer.Option("--fixed", help="Keep the interval, where the plan has a schedule.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(min=0, max=SEEDS - 1, help="Of the failures.",
                     show_default="another each time"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Play a plan with random failures: time and energy with 95 % intervals.

    Ctrl-C prints what was played so far and ends with 130.

    Examples: perdure energy simulate plan.json --intervals 1e7 --seed 7;
    perdure energy simulate plan.json --weibull 0.7; perdure energy simulate plan.json --failures
    log.csv
    """
    with refusing():
        read = read_plan(plan)
        chosen = secrets.randbelow(SEEDS) if seed is None else seed
        if failures is not None and (weibull is not None or mtbf is not None):
            raise q.Wrong("--failures says when failures come; leave out --weibull and --mtbf")
        law, replayed = _law(read, weibull, failures, mtbf)
        count = q.parse_count(intervals)
        with _watching(count) as progress:
            if not as_json:
                say(f"perdure: seed {chosen}", err=True)
            played = _play(read, law, count, chosen, fixed, progress)
        in_order = None
        if replayed is not None and len(read.every) == 1:
            in_order = monte_carlo.replay(read.machine, _schedule(read, fixed), replayed)
        document = _document(read, played, in_order, law, chosen, fixed)
        if as_json:
            print(json.dumps(document, indent=2, allow_nan=False))
        else:
            _print(document)
    if not played.complete:
        warn("stopped; this is what was played so far")
        raise typer.Exit(INTERRUPTED)


def _law(read: ReadPlan, weibull: float | None, failures: Path | None, mtbf: str | None):
    """The law of the failures, and the gaps of a log."""
    if failures is not None:
        from perdure.energy.plan.failures import read_failures

        gaps = read_failures(failures).gaps_s
        return monte_carlo.Observed(gaps), gaps
    mean_s = 1 / read.machine.rate_per_s if mtbf is None else q.parse_time(mtbf)
    if mean_s <= 0:
        raise q.Wrong(f"--mtbf {mtbf}: it must be more than nothing")
    shape = read.shape if weibull is None else weibull
    if shape is None:
        return monte_carlo.Exponential(mean_s), None
    return Weibull(check_shape(shape), mean_s), None


def _schedule(read: ReadPlan, fixed: bool) -> tuple[float, ...]:
    return read.works_s if read.works_s is not None and not fixed else (read.work_s,)


def _play(read: ReadPlan, law, count: int, seed: int, fixed: bool, progress) -> Played:
    if len(read.every) == 1:
        return monte_carlo.play(
            read.machine, _schedule(read, fixed), law, count, seed, progress
        )
    return monte_carlo.play_levels(
        read.system, read.every, read.work_s, law, count, seed, progress
    )


@contextmanager
def _watching(total: int) -> Iterator[Callable[[int, int], bool]]:
    """A bar on a terminal; Ctrl-C makes the callback say False."""
    screen, stopped = console(stderr=True), []
    before = getsignal(SIGINT)
    signal(SIGINT, lambda *_: stopped.append(True))
    try:
        with Progress(console=screen, transient=True, disable=not screen.is_terminal) as bar:
            task = bar.add_task("playing", total=total)

            def progress(done: int, _total: int) -> bool:
                bar.update(task, completed=done)
                return not stopped

            yield progress
    finally:
        signal(SIGINT, before)


def _mean(mean: Mean, known: bool = True) -> dict | None:
    if not known or mean.value == float("inf"):
        return None
    return {"value": mean.value, "low": mean.value - mean.spread, "high": mean.value + mean.spread}


def _document(read: ReadPlan, played: Played, in_order, law, seed: int, fixed: bool) -> dict:
    expected = {"time_per_work": read.time_per_work, "energy_per_work_W": read.epe_W}
    if read.works_s is not None and not fixed:
        expected = {key: read.document["schedule"]["expected"].get(key) for key in expected}
    same = isinstance(law, monte_carlo.Exponential) and read.shape is None
    same = same or (isinstance(law, Weibull) and law.shape == read.shape)
    same = same and abs(law.mean_s * read.machine.rate_per_s - 1) < 1e-12
    document = {
        "failures": type(law).__name__.lower(),
        "weibull_shape": law.shape if isinstance(law, Weibull) else None,
        "seed": seed,
        "intervals": played.intervals,
        "failures_played": played.failures,
        "samples": played.samples,
        "complete": played.complete,
        "time_per_work": _mean(played.time_per_work),
        "energy_per_work_W": _mean(played.epe_W, read.known),
        "planned": expected,
        "planned_for_these_failures": same,
        "sigmas": None,
        "in_order": None,
    }
    if same and played.time_per_work.sigma > 0 and document["time_per_work"] is not None:
        away = played.time_per_work.value - expected["time_per_work"]
        document["sigmas"] = away / played.time_per_work.sigma
    if in_order is not None and document["time_per_work"] is not None:
        document["in_order"] = {
            "time_per_work": in_order.time_per_work.value,
            "energy_per_work_W": in_order.epe_W.value if read.known else None,
            "failures": in_order.failures,
        }
    return document


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
