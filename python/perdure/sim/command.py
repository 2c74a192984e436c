"""The verbs `perdure sim run|sweep|optimise|locality|policies`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from perdure.core import load_core
from perdure.screen import bold, console, say
from perdure.sim.machine import DEFAULT_PRESET, Options, Stopped, devices_named, fail, watching
from perdure.sim.optimise import Optimum, optimise
from perdure.sim.quantities import (
    joules_text,
    mib_text,
    parse_budget,
    parse_bytes,
    parse_options,
)
from perdure.sim.sweep import CURVE_POLICIES, Point, Study, run_once
from perdure.units import seconds_text

_TABLE_COLUMNS = 200  # where stdout is no terminal

app = typer.Typer(
    help="Replay a trace on memory that does not exist yet: time and energy on DRAM, MRAM and "
    "flash, and the capacities with least energy.",
    no_args_is_help=True,
)

INTERRUPTED = 130

Trace = Annotated[Path, typer.Argument(metavar="TRACE", help="What `perdure trace` recorded.")]
Preset = Annotated[
    str, typer.Option(metavar="NAME", help="Parts that go together; see `perdure sim policies`.")
]
DramPart = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE", help="Instead of the preset's DRAM; see `perdure devices`.",
        show_default=False,
    ),
]
MramPart = Annotated[
    str | None,
    typer.Option(metavar="DEVICE", help="Instead of the preset's MRAM.", show_default=False),
]
FlashPart = Annotated[
    str | None,
    typer.Option(metavar="DEVICE", help="Instead of the preset's flash.", show_default=False),
]
MixLevels = Annotated[
    bool, typer.Option("--mix-levels", help="Allow numbers of chips beside those of modules.")
]
Clean = Annotated[
    bool,
    typer.Option(
        "--first-touch-clean",
        help="Pages come from a file in flash: first touches read it, clean ones cost no write.",
    ),
]
Region = Annotated[
    str, typer.Option(metavar="NAME", help="Only what was recorded in this region of interest.")
]
Compute = Annotated[
    float | None,
    typer.Option(
        metavar="S", min=0, help="Computation besides memory.  [default: the trace's]",
        show_default=False,
    ),
]
PolicyValues = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="Of the policy; may be repeated."),
]
Step = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Between capacities of DRAM.  [default: a 64th of the program's]",
        show_default=False,
    ),
]
Mram = Annotated[
    str, typer.Option(metavar="SIZE,…", help="Capacities of MRAM, besides none.")
]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
Plot = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw it (.png, .svg, .pdf).", show_default=False),
]

DEFAULT_MRAM = "64MiB,128MiB,256MiB"


def options_of(preset, dram_part, mram_part, flash_part, mix, clean, region, compute) -> Options:
    devices = devices_named(preset, dram_part, mram_part, flash_part, mix)
    for warning in devices.warnings:
        say(f"perdure: {warning}", err=True)
    return Options(devices, clean, region, None if compute is None else compute * 1e9)


def capacities(text: str) -> list[int]:
    return [parse_bytes(word) for word in text.split(",") if word.strip()]


def _step(text: str | None, study: Study) -> int:
    if text:
        return max(study.page_bytes, parse_bytes(text))
    return max(study.page_bytes, study.footprint_bytes // 64 // study.page_bytes * study.page_bytes)


@app.command("run", no_args_is_help=True)
def run(
    trace: Trace,
    dram: Annotated[str, typer.Option(metavar="SIZE", help="Capacity of DRAM.")],
    mram: Annotated[str, typer.Option(metavar="SIZE", help="Capacity of MRAM.")] = "0",
    swap: Annotated[
        str, typer.Option(metavar="SIZE", help="Of flash, for its wear.  [default: the program's]")
    ] = "0",
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="See `perdure sim policies`.")
    ] = "lru",
    option: PolicyValues = None,
    preset: Preset = DEFAULT_PRESET,
    dram_part: DramPart = None,
    mram_part: MramPart = None,
    flash_part: FlashPart = None,
    mix_levels: MixLevels = False,
    first_touch_clean: Clean = False,
    region: Region = "",
    compute: Compute = None,
    as_json: AsJson = False,
) -> None:
    """Replay a trace on one machine, under one policy.

    Example: perdure sim run cg.ptrace --dram 64MiB --mram 128MiB --policy low_power --option
    alpha=0.9
    """
    core = load_core()
    try:
        options = options_of(
            preset, dram_part, mram_part, flash_part, mix_levels, first_touch_clean, region, compute
        )
        with watching() as watch:
            outcome = run_once(
                str(trace),
                options,
                policy,
                parse_options(option),
                dram_bytes=parse_bytes(dram),
                mram_bytes=parse_bytes(mram),
                swap_bytes=parse_bytes(swap),
                progress=watch.of("replaying"),
            )
    except (core.Error, ValueError) as failure:
        raise fail(failure) from None
    if as_json:
        print(json.dumps(outcome_json(outcome), indent=2))
    else:
        _print_outcome(outcome)
    if outcome.partial:
        say("perdure: stopped; this is what the accesses so far cost", err=True)
        raise typer.Exit(INTERRUPTED)


def outcome_json(outcome) -> dict:
    """A run as plain values: times in ns, energies in nJ, null where a device is silent."""
    cost = outcome.cost
    places = {}
    for name in ("dram", "mram"):
        counters = getattr(outcome.counters, name)
        places[name] = {
            field: getattr(counters, field)
            for field in (
                "reads",
                "writes",
                "page_ins",
                "first_touches",
                "page_outs",
                "clean_evictions",
                "moved_in",
            )
        }
    return {
        "policy": outcome.policy,
        "options": outcome.options,
        "dram_frames": outcome.dram_frames,
        "mram_frames": outcome.mram_frames,
        "pages": outcome.pages,
        "records": outcome.records,
        "hits": outcome.hits,
        "counters": places,
        "time_ns": cost.time_ns,
        "memory_ns": cost.memory_ns,
        "swap_ns": cost.swap_ns,
        "energy_nj": cost.energy_nj,
        "dynamic_nj": cost.dynamic_nj,
        "static_nj": cost.static_nj,
        "lifetime_runs": cost.lifetime_runs,
        "lifetime_s": cost.lifetime_s,
        "terms": [
            {field: getattr(term, field) for field in ("name", "count", "unit_ns", "unit_nj",
                                                       "ns", "nj")}
            for term in cost.terms
        ],
        "unknown": cost.unknown,
        "mram_hit_rate": [
            {"accesses": accesses, "share": to_mram / accesses}
            for accesses, to_mram in outcome.mram_hit_rate
            if accesses
        ],
        "is_bound": outcome.is_bound,
        "partial": outcome.partial,
        "warnings": outcome.warnings,
    }


def _or_unknown(value: float | None, text) -> str:
    return "not known" if value is None else text(value / 1e9)


def _print_outcome(outcome) -> None:
    out = console(_TABLE_COLUMNS)
    chosen = "".join(f", {name} {value}" for name, value in outcome.options.items())
    if outcome.partial:
        accesses = sum(
            place.reads + place.writes for place in (outcome.counters.dram, outcome.counters.mram)
        )
        out.print(f"partial: stopped after {accesses:,} accesses".replace(",", " "))
    out.print(
        f"{outcome.policy}{chosen}: {outcome.dram_frames} frames of DRAM, {outcome.mram_frames} of "
        f"MRAM, {outcome.pages} pages touched"
    )
    for warning in outcome.warnings:
        out.print(f"note: {warning}")
    if outcome.is_bound:
        out.print("a bound, not a policy that a system could have")
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("", "DRAM", "MRAM"):
        table.add_column(name, justify="left" if name == "" else "right")
    for field in (
        "reads",
        "writes",
        "first_touches",
        "page_ins",
        "page_outs",
        "clean_evictions",
        "moved_in",
    ):
        values = (getattr(getattr(outcome.counters, place), field) for place in ("dram", "mram"))
        texts = (f"{value:,}".replace(",", " ") for value in values)
        table.add_row(field.replace("_", " "), *texts)
    out.print(table)
    cost = outcome.cost
    terms = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("term", "count", "ns each", "nJ each", "time", "energy"):
        terms.add_column(name, justify="left" if name == "term" else "right")
    for term in cost.terms:
        terms.add_row(
            term.name,
            f"{term.count:,.6g}".replace(",", " "),
            "" if term.unit_ns is None else f"{term.unit_ns:g}",
            "" if term.unit_nj is None else f"{term.unit_nj:g}",
            "" if term.ns is None else seconds_text(term.ns / 1e9),
            "" if term.nj is None else joules_text(term.nj / 1e9),
        )
    out.print(terms)
    out.print(
        f"time {_or_unknown(cost.time_ns, seconds_text)}, "
        f"energy {_or_unknown(cost.energy_nj, joules_text)} "
        f"(dynamic {_or_unknown(cost.dynamic_nj, joules_text)}, "
        f"static {_or_unknown(cost.static_nj, joules_text)})"
    )
    if cost.lifetime_runs is not None:
        out.print(f"flash is worn out after {cost.lifetime_runs:.4g} such runs")
    for name in cost.unknown:
        out.print(f"not known: {name}")


@app.command("sweep", no_args_is_help=True)
def sweep(
    trace: Trace,
    mram: Mram = DEFAULT_MRAM,
    policy: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="May be repeated.  [default: low_power]",
                     show_default=False),
    ] = None,
    option: PolicyValues = None,
    step: Step = None,
    up_to: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Of main memory.  [default: what the program touches]",
                     show_default=False),
    ] = None,
    preset: Preset = DEFAULT_PRESET,
    dram_part: DramPart = None,
    mram_part: MramPart = None,
    flash_part: FlashPart = None,
    mix_levels: MixLevels = False,
    first_touch_clean: Clean = False,
    region: Region = "",
    compute: Compute = None,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Time and energy over a grid of capacities, from one pass over the trace where that is exact.

    One policy draws Figures 5 and 6 of the paper (time and energy against main memory, a line for
    each capacity of MRAM); several draw Figure 3 (time against DRAM, at the largest MRAM).

    Ctrl-C ends it with 130 and what there is: the points that were finished, or, during the one
    pass, those of the accesses so far. Each is then marked as partial.

    Examples: perdure sim sweep cg.ptrace --mram 64MiB,128MiB --plot cg.png;
    perdure sim sweep mg.ptrace --mram 128MiB --policy lru --policy mram_fixed --policy low_power
    """
    core = load_core()
    policies = policy or ["low_power"]
    points: list[Point] = []
    stopped = False
    try:
        values = parse_options(option)
        options = options_of(
            preset, dram_part, mram_part, flash_part, mix_levels, first_touch_clean, region, compute
        )
        with watching() as watch:
            study = Study(str(trace), options, capacities(mram), watch, keep_partial=True)
            most = parse_bytes(up_to) if up_to else None
            several = len(policies) > 1
            sizes = [study.mram[-1]] if several else study.mram
            for each in policies:
                for size in sizes:
                    frames = study.frames(_step(step, study), size, most)
                    points += study.points(each, size, frames, values)
            stopped = watch.stopped
        if stopped:
            points = [replace(point, partial=True) for point in points]
        if plot and (points or not stopped):
            _draw_sweep(points, trace, plot, several)
    except (core.Error, ValueError) as failure:
        raise fail(failure) from None
    if as_json:
        for point in points:
            print(json.dumps({**asdict(point), "total_bytes": point.total_bytes}))
    elif points:
        _print_points(points)
    if stopped:
        say(f"perdure: stopped; {_what_is_left(points)}", err=True)
        raise typer.Exit(INTERRUPTED)


def _what_is_left(points: list[Point]) -> str:
    if not points:
        return "no point was finished"
    share = points[0].trace_share
    if share == 1.0:
        return f"these are the {len(points)} points that were finished"
    return f"these points are of {_share_text(share)}, without its computation"


def _share_text(share: float | None) -> str:
    return "the accesses so far" if share is None else f"{share:.1%} of the trace"


def _draw_sweep(points: list[Point], trace: Path, file: Path, several: bool) -> None:
    from perdure.sim.plot import draw_capacities, draw_policies

    known = [point for point in points if point.time_s is not None and point.energy_j is not None]
    if not known:
        raise ValueError("the devices have no times or energies: there is nothing to draw")
    if several:
        draw_policies(known, f"{trace.name}: time by policy{_partial_text(known)}", file)
    else:
        title = f"{trace.name}: {points[0].policy}{_partial_text(known)}"
        draw_capacities(known, title, file, None)
    say(f"drawn: {file}", err=True)


def _partial_text(points: list[Point]) -> str:
    if not points[0].partial:
        return ""
    share = points[0].trace_share
    return " (partial)" if share == 1.0 else f" (partial: {_share_text(share)})"


def _print_points(points: list[Point]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("policy", "MRAM", "DRAM", "time", "energy", "pages in", "pages out", "by"):
        table.add_column(name, justify="left" if name in ("policy", "by") else "right")
    for point in points:
        mark = _partial_text([point])
        table.add_row(
            point.policy,
            mib_text(point.mram_bytes),
            mib_text(point.dram_bytes),
            "not known" if point.time_s is None else seconds_text(point.time_s),
            "not known" if point.energy_j is None else joules_text(point.energy_j),
            str(point.page_ins),
            str(point.page_outs),
            point.by + mark,
        )
    console(_TABLE_COLUMNS).print(table)


@app.command("optimise", no_args_is_help=True)
def optimise_command(
    trace: Trace,
    budget: Annotated[
        str, typer.Option(metavar="slowdown=P%", help="How much slower than without swapping.")
    ] = "slowdown=20%",
    typical: Annotated[
        str, typer.Option(metavar="SIZE", help="DRAM of a usual machine, to compare with.")
    ] = "1GiB",
    mram: Mram = DEFAULT_MRAM,
    policy: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of {', '.join(CURVE_POLICIES)}.")
    ] = "low_power",
    option: PolicyValues = None,
    step: Step = None,
    preset: Preset = DEFAULT_PRESET,
    dram_part: DramPart = None,
    mram_part: MramPart = None,
    flash_part: FlashPart = None,
    mix_levels: MixLevels = False,
    first_touch_clean: Clean = False,
    region: Region = "",
    compute: Compute = None,
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Find the capacities with least energy that slow the program down by no more than a budget.

    Example: perdure sim optimise cg.ptrace --budget slowdown=20% --plot cg.svg
    """
    core = load_core()
    try:
        share = parse_budget(budget)
        values = parse_options(option)
        options = options_of(
            preset, dram_part, mram_part, flash_part, mix_levels, first_touch_clean, region, compute
        )
        with watching() as watch:
            study = Study(str(trace), options, capacities(mram), watch)
            found = optimise(
                study, policy, values, share, parse_bytes(typical), _step(step, study)
            )
            if watch.stopped:
                raise Stopped
        if plot:
            from perdure.sim.plot import draw_capacities

            draw_capacities(found.points, f"{trace.name}: {policy}", plot, found.best)
            say(f"drawn: {plot}", err=True)
    except Stopped:
        say("perdure: stopped", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (core.Error, ValueError) as failure:
        raise fail(failure) from None
    if as_json:
        print(json.dumps(optimum_json(found), indent=2))
    else:
        _print_optimum(found)


def optimum_json(found: Optimum) -> dict:
    """An optimum as plain values; the points as in sweep --json."""
    return {
        "policy": found.policy,
        "budget": found.budget,
        "reference": asdict(found.reference),
        "typical": asdict(found.typical),
        "best": None if found.best is None else asdict(found.best),
        "notches": [
            {**asdict(notch.point), "kind": notch.kind, "reason": notch.reason}
            for notch in found.notches
        ],
    }


def _machine_text(point: Point) -> str:
    memory = f"{mib_text(point.dram_bytes)} of DRAM"
    return f"{mib_text(point.mram_bytes)} of MRAM and {memory}" if point.mram_bytes else memory


def _print_optimum(found: Optimum) -> None:
    out = console(_TABLE_COLUMNS)
    usual, reference, best = found.typical, found.reference, found.best
    for name, point in (("a usual machine", usual), ("just enough DRAM", reference)):
        out.print(
            f"{name}: {_machine_text(point)}, {seconds_text(point.time_s)}, "
            f"{joules_text(point.energy_j)}"
        )
    if best is None:
        out.print(f"no machine of these is at most {found.budget:.0%} slower")
    else:
        out.print(
            f"least energy, at most {found.budget:.0%} slower: {_machine_text(best)}, "
            f"{seconds_text(best.time_s)} ({best.time_s / reference.time_s - 1:+.1%}), "
            f"{joules_text(best.energy_j)}: {best.energy_j / usual.energy_j:.1%} of the usual one's"
        )
    table = Table(title="notches", title_justify="left", box=None, header_style="bold",
                  pad_edge=False)
    for name in ("MRAM", "DRAM", "time", "energy", "kind", "why"):
        table.add_column(name, justify="left" if name in ("kind", "why") else "right")
    for notch in found.notches:
        table.add_row(
            mib_text(notch.point.mram_bytes),
            mib_text(notch.point.dram_bytes),
            seconds_text(notch.point.time_s),
            joules_text(notch.point.energy_j),
            notch.kind,
            notch.reason,
        )
    out.print(table)


SHARES = (0.5, 0.65, 0.9, 0.98, 0.99)


def concentration(accesses) -> tuple[list[float], list[float]]:
    """Shares of the pages, hottest first, and of the accesses that go to them (Figure 4)."""
    import numpy

    counts = numpy.sort(accesses)[::-1].astype(float)
    if counts.size == 0 or counts.sum() == 0:
        raise ValueError("the trace has no accesses")
    return (
        (numpy.arange(counts.size + 1) / counts.size).tolist(),
        numpy.concatenate(([0.0], numpy.cumsum(counts) / counts.sum())).tolist(),
    )


@app.command("locality", no_args_is_help=True)
def locality(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE…", help="One or several.")],
    as_json: AsJson = False,
    plot: Plot = None,
) -> None:
    """How many pages get most of the accesses: Figure 4 of the paper.

    Example: perdure sim locality cg.ptrace mg.ptrace --plot locality.png
    """
    core = load_core()
    curves, rows = {}, []
    try:
        for trace in traces:
            summary = core.summarise_trace(str(trace))
            pages, accesses = concentration(core.page_accesses(str(trace)))
            curves[trace.name] = (pages, accesses)
            row = {"trace": str(trace), "pages": summary.pages, "page_bytes": summary.page_bytes}
            for share in SHARES:
                row[f"pages_for_{share:.0%}"] = next(
                    page for page, sum_ in zip(pages, accesses) if sum_ >= share - 1e-12
                )
            rows.append(row)
        if plot:
            from perdure.sim.plot import draw_locality

            draw_locality(curves, plot)
            say(f"drawn: {plot}", err=True)
    except (core.Error, ValueError) as failure:
        raise fail(failure) from None
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("trace")
    table.add_column("touched", justify="right")
    for share in SHARES:
        table.add_column(f"{share:.0%} on", justify="right")
    for row in rows:
        table.add_row(
            Path(row["trace"]).name,
            mib_text(row["pages"] * row["page_bytes"]),
            *(f"{row[f'pages_for_{share:.0%}']:.1%}" for share in SHARES),
        )
    console(_TABLE_COLUMNS).print(table)


@app.command("policies")
def policies(as_json: AsJson = False) -> None:
    """List the policies with their options, and the presets of devices."""
    core = load_core()
    all_policies = core.sim_policies()
    presets = core.device_presets()
    if as_json:
        fields = ("name", "default_value", "description", "choices", "least", "most")
        print(
            json.dumps(
                {
                    "policies": [
                        {
                            "name": each.name,
                            "description": each.description,
                            "is_bound": each.is_bound,
                            "options": [
                                {field: getattr(option, field) for field in fields}
                                for option in each.options
                            ],
                        }
                        for each in all_policies
                    ],
                    "presets": [
                        {
                            field: getattr(each, field)
                            for field in ("name", "description", "dram", "mram", "flash")
                        }
                        for each in presets
                    ],
                },
                indent=2,
            )
        )
        return
    out = console(_TABLE_COLUMNS)
    for each in all_policies:
        out.print(bold(each.name, f": {each.description}"))
        for option in each.options:
            choices = f" ({', '.join(option.choices)})" if option.choices else ""
            out.print(
                f"  {option.name}={option.default_value}{choices}: {option.description}"
            )
    out.print()
    for each in presets:
        out.print(
            bold(
                f"preset {each.name}",
                f": {each.description}; DRAM {each.dram}, MRAM {each.mram}, flash {each.flash}",
            )
        )
