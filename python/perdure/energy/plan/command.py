"""`perdure energy plan`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

from perdure.energy import quantities as q
from perdure.energy.output import refusing, table, warn, watts_text
from perdure.energy.plan.file import document_of, write_plan
from perdure.energy.plan.options import (
    AsJson,
    DownPower,
    Downtime,
    Failures,
    FlushPower,
    Folders,
    Formula,
    Front,
    Interval,
    Job,
    Levels,
    Merge,
    Mtbf,
    Objective,
    OtherMachine,
    Output,
    Overhead,
    Pattern,
    Plot,
    Power,
    Profiles,
    Rate,
    ReadBandwidth,
    ReadPower,
    ReadTime,
    Share,
    Size,
    Weibull,
    WriteBandwidth,
    WritePower,
    Writers,
    WriteTime,
)
from perdure.energy.plan.planning import (
    Failing,
    Place,
    Plan,
    Request,
    make_plan,
    paths_of,
    profiles_to_places,
)
from perdure.energy.plan.settings import FORMULAS, OBJECTIVES, RULES
from perdure.energy.profile.file import check_machine, read_profile
from perdure.screen import bold, console, say


def plan(
    profiles: Profiles = None,
    size: Size = None,
    mtbf: Mtbf = None,
    rate: Rate = None,
    failures: Failures = None,
    merge: Merge = "0s",
    weibull: Weibull = None,
    power: Power = None,
    write_time: WriteTime = None,
    read_time: ReadTime = None,
    write_bandwidth: WriteBandwidth = None,
    read_bandwidth: ReadBandwidth = None,
    write_power: WritePower = None,
    read_power: ReadPower = None,
    writers: Writers = None,
    downtime: Downtime = "0s",
    down_power: DownPower = None,
    overhead: Overhead = None,
    flush_power: FlushPower = "0W",
    levels: Levels = None,
    share: Share = None,
    pattern: Pattern = None,
    path: Folders = None,
    objective: Objective = "time",
    formula: Formula = "exact",
    interval: Interval = None,
    job: Job = None,
    other_machine: OtherMachine = False,
    output: Output = None,
    as_json: AsJson = False,
    plot: Plot = None,
    front: Front = None,
) -> None:
    """How often to checkpoint, at which frequency and with how many writers.

    Sizes, times and powers need their units. Ends with 1 where the input can't be planned with.

    Examples: perdure energy plan disk.json --size 64GB --mtbf 14.66h --power 471W -o plan.json;
    perdure energy plan --write-time 130s --read-time 90s --failures log.csv;
    perdure energy plan --levels local,partner,pfs --share 70%,25%,5% --mtbf 14.66h
    --write-time 128s,290s,20min --read-time 87s,200s,15min
    """
    words = SimpleNamespace(**locals())
    with refusing():
        request = _request(words)
        made = make_plan(request)
        document = document_of(made)
        for note in dict.fromkeys(request.warnings):
            warn(note)
        if output is not None:
            write_plan(document, output)
        _draw(made, plot, front)
        if as_json:
            print(json.dumps(document, indent=2, allow_nan=False))
        else:
            _print(made)


def _request(words: SimpleNamespace) -> Request:
    """The options as numbers. Raises Wrong."""
    for name, known in (("objective", OBJECTIVES), ("formula", FORMULAS)):
        if getattr(words, name) not in known:
            raise q.Wrong(f"--{name} {getattr(words, name)}: there are {', '.join(known)}")
    names = q.parse_list(words.levels, str) or ["local"]
    if len(set(names)) != len(names):
        raise q.Wrong(f"--levels {words.levels}: each level needs a name of its own")
    notes: list[str] = []
    profiles = [read_profile(file) for file in words.profiles or []]
    for profile in profiles:
        check_machine(profile, words.other_machine, notes.append)
    maybe = lambda text, parse: None if text is None else parse(text)  # noqa: E731
    interval = words.interval
    if interval is not None and interval not in RULES:
        interval = _positive(interval, "--interval")
    return Request(
        failing=_failing(words, notes),
        places=tuple(profiles_to_places(profiles, _places(names, words))),
        size_bytes=maybe(words.size, q.parse_size),
        downtime_s=q.parse_time(words.downtime),
        compute_W=maybe(words.power, q.parse_power_drawn),
        down_W=maybe(words.down_power, q.parse_power),
        flush_W=q.parse_power(words.flush_power),
        overhead_s=maybe(words.overhead, lambda text: _positive(text, "--overhead")),
        writers=words.writers or os.cpu_count() or 1,
        objective=words.objective,
        formula=words.formula,
        interval=interval,
        every=_every(words.pattern),
        job_s=maybe(words.job, lambda text: _positive(text, "--job")),
        warnings=notes,
    )


def _positive(text: str, option: str) -> float:
    seconds = q.parse_time(text)
    if seconds <= 0:
        raise q.Wrong(f"{option} {text}: it must be more than nothing")
    return seconds


def _every(pattern: str | None) -> tuple[int, ...] | None:
    values = q.parse_list(pattern, q.parse_count)
    return None if values is None else tuple(values)


def _failing(words: SimpleNamespace, notes: list[str]) -> Failing:
    """How often failures come, from the one of three options that was given."""
    mtbf, rate, failures, weibull = words.mtbf, words.rate, words.failures, words.weibull
    if sum(each is not None for each in (mtbf, rate, failures)) != 1:
        raise q.Wrong("say how often failures come, in one way: --mtbf 14.66h, --rate 1.9e-5/s or "
                      "--failures FILE")
    if failures is not None:
        from perdure.energy.plan.failures import estimate, read_failures

        found = estimate(read_failures(failures, q.parse_time(words.merge)))
        notes += [each for each in found.warnings if weibull is None or "--weibull" not in each]
        return Failing(1 / found.mtbf_s, weibull, float(found.low_s), float(found.high_s),
                       found.events)
    if mtbf is not None:
        return Failing(1 / _positive(mtbf, "--mtbf"), weibull)
    return Failing(q.parse_rate(rate), weibull)


_OF_EACH = {
    "write_s": ("write_time", q.parse_time),
    "read_s": ("read_time", q.parse_time),
    "write_Bps": ("write_bandwidth", q.parse_bandwidth),
    "read_Bps": ("read_bandwidth", q.parse_bandwidth),
    "write_W": ("write_power", q.parse_power_drawn),
    "read_W": ("read_power", q.parse_power_drawn),
}


def _places(names: list[str], words: SimpleNamespace) -> list[Place]:
    count = len(names)
    values: dict[str, list] = {}
    for key, (name, parse) in _OF_EACH.items():
        option = f"--{name.replace('_', '-')}"
        found = q.parse_list(getattr(words, name),
                             lambda word, p=parse: None if word == "-" else p(word))
        found = found or [None] * count
        if len(found) != count:
            raise q.Wrong(f"{option} has {len(found)} values for {count} levels")
        values[key] = found
    for kind in ("write_s", "read_s"):
        for each in values[kind]:
            if each is not None and each <= 0:
                raise q.Wrong("a checkpoint or restart takes more than no time")
    shares = q.parse_list(words.share, q.parse_share)
    if shares is None and count > 1:
        raise q.Wrong("--levels needs --share: which part of the failures each level is the "
                      "cheapest remedy for, as 70%,25%,5%")
    shares = shares or [1.0]
    if len(shares) != count:
        raise q.Wrong(f"--share has {len(shares)} values for {count} levels")
    paths = paths_of(words.path, count)
    return [
        Place(name, shares[i], paths[i], None, *(values[key][i] for key in _OF_EACH))
        for i, name in enumerate(names)
    ]


def _draw(made: Plan, plot: Path | None, front: Path | None) -> None:
    if plot is None and front is None:
        return
    from perdure.energy.plan import plots

    for file, draw in ((plot, plots.draw_interval), (front, plots.draw_front)):
        if file is not None:
            try:
                draw(made, file)
            except ValueError as failure:
                raise q.Wrong(f"{file} was not drawn: {failure}") from None
            say(f"drawn: {file}", err=True)


def _print(made: Plan) -> None:
    out, request = console(), made.request
    failing = request.failing
    out.print(bold(f"a checkpoint after every {q.duration_text(made.work_s)} of work ",
                   f"(least {request.objective})"))
    rows = table("level", "every", "write", "read", "takes", "restart", "per day",
                 left=("level", "write", "read"))
    for each in made.used:
        outcome = each.found.outcome
        rows.add_row(
            each.place.name, str(each.every), outcome.write.setting.text(),
            outcome.read.setting.text(), q.duration_text(outcome.write.seconds),
            q.duration_text(outcome.read.seconds), f"{each.checkpoints_per_day:.4g}",
        )
    out.print(rows)
    written = made.bytes_per_day
    out.print(
        f"MTBF {q.duration_text(1 / failing.rate_per_s)}; "
        f"{q.percent_text(made.time_per_work - 1)} more time than work; "
        f"energy per effective time {watts_text(made.epe_W)}"
        + (f"; {written / 1e9:.4g} GB written a day" if written is not None else "")
    )
    if failing.mtbf_low_s is not None:
        out.print(f"MTBF from {failing.events} gaps; 95 %: {q.duration_text(failing.mtbf_low_s)} "
                  f"to {q.duration_text(failing.mtbf_high_s)}")
    if request.job_s is not None:
        joules = "" if made.epe_W is None else f" and {made.epe_W * request.job_s / 3.6e6:.4g} kWh"
        out.print(f"a job of {q.duration_text(request.job_s)} is expected to take "
                  f"{q.duration_text(request.job_s * made.time_per_work)}{joules} a node")
    if made.schedule is not None:
        lazy = made.schedule.expected
        first = ", ".join(q.duration_text(work) for work in made.schedule.works_s[:5])
        out.print(f"after a restart, by the hazard rule: {first}, …; "
                  f"{q.percent_text(lazy.time_per_work - 1)} more time than work, "
                  f"{lazy.checkpoints_per_day:.4g} checkpoints a day"
                  + ("" if made.epe_W is None else f", {watts_text(lazy.epe_W)}"))
    _print_rivals(made, out)


def _print_rivals(made: Plan, out) -> None:
    if made.rivals:
        rows = table("interval by", "work", "more time", "energy", "checkpoints a day",
                     left=("interval by",))
        for name, each in made.rivals.items():
            rows.add_row(name, q.duration_text(each.work_s), q.percent_text(each.time_per_work - 1),
                         watts_text(each.epe_W), f"{each.checkpoints_per_day:.4g}")
        out.print(rows)
    if made.governors:
        rows = table("all processes write, governor", "more time", "energy", "plan saves",
                     left=("all processes write, governor",))
        for each in made.governors:
            ends = [each.low] if each.low == each.high else [each.low, each.high]
            saved = [1 - (made.time_per_work / end.time_per_work if end.epe_W is None
                          or made.epe_W is None else made.epe_W / end.epe_W) for end in ends]
            rows.add_row(
                each.name,
                " to ".join(q.percent_text(end.time_per_work - 1) for end in ends),
                " to ".join(watts_text(end.epe_W) for end in ends),
                " to ".join(q.percent_text(each) for each in saved),
            )
        out.print(rows)
    if len(made.patterns) > 1:
        rows = table("levels", "every", "work", "more time", "energy", left=("levels", "every"))
        for each in made.patterns:
            rows.add_row(
                ", ".join(made.request.places[i].name for i in each.kept),
                ", ".join(map(str, each.every)), q.duration_text(each.work_s),
                q.percent_text(each.expected.time_per_work - 1),
                watts_text(None if made.epe_W is None else each.expected.epe_W),
            )
        out.print(rows)
