# SPDX-License-Identifier: BSD-3-Clause
"""The command `perdure sim run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from perdure.documents import fields, print_json
from perdure.exit_codes import INTERRUPTED
from perdure.option_groups import AsJson, grouped
from perdure.screen import Screen, console, say
from perdure.sim.options import (
    MachineOptions,
    PolicyValues,
    Trace,
)
from perdure.sim.quantities import joules_text, parse_options
from perdure.sim.sweep import run_once
from perdure.tables import table
from perdure.units import parse_size, seconds_text
from perdure.watching import watching

_COUNTERS = (
    "reads", "writes", "first_touches", "page_ins", "page_outs", "clean_evictions", "moved_in",
)  # fmt: skip
_COST = ("time_ns", "memory_ns", "swap_ns", "energy_nj", "dynamic_nj", "static_nj",
         "lifetime_runs", "lifetime_s")
_TERM = ("name", "count", "unit_ns", "unit_nj", "ns", "nj")


@grouped
def run(
    trace: Trace,
    dram: Annotated[str, typer.Option(metavar="SIZE", help="Capacity of DRAM.")],
    machine: MachineOptions,
    mram: Annotated[str, typer.Option(metavar="SIZE", help="Capacity of MRAM.")] = "0",
    swap: Annotated[
        str, typer.Option(metavar="SIZE", help="Capacity of flash, for its wear.  [default: the "
                          "program's]",
                          show_default=False)
    ] = "0",
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="The policy; `perdure sim policies` lists them.")
    ] = "lru",
    option: PolicyValues = None,
    as_json: AsJson = False,
) -> None:
    """Replay a trace on one machine, under one policy.

    Example: perdure sim run cg.ptrace --dram 64MiB --mram 128MiB --policy low_power --option
    alpha=0.9
    """
    options = machine.options()
    sizes = [parse_size(text) for text in (dram, mram, swap)]
    with watching() as watch:
        outcome = run_once(
            str(trace),
            options,
            policy,
            parse_options(option),
            dram_bytes=sizes[0],
            mram_bytes=sizes[1],
            swap_bytes=sizes[2],
            progress=watch.of("replaying"),
        )
    if as_json:
        print_json("sim-run", outcome_json(outcome))
    else:
        _print_outcome(outcome, options.devices.warnings)
    if outcome.partial:
        say("perdure: stopped; this is what the accesses so far cost", err=True)
        raise typer.Exit(INTERRUPTED)


def outcome_json(outcome: Any) -> dict[str, Any]:
    """A run as plain values: times in ns, energies in nJ, null where a device is silent."""
    cost = outcome.cost
    return {
        **fields(outcome, ("policy", "options", "dram_frames", "mram_frames", "pages", "records",
                            "hits")),
        "counters": {place: fields(getattr(outcome.counters, place), _COUNTERS)
                     for place in ("dram", "mram")},
        **fields(cost, _COST),
        "terms": [fields(term, _TERM) for term in cost.terms],
        "unknown": cost.unknown,
        "mram_hit_rate": [
            {"accesses": accesses, "share": to_mram / accesses}
            for accesses, to_mram in outcome.mram_hit_rate
            if accesses
        ],
        **fields(outcome, ("is_bound", "partial", "warnings")),
    }


def _number(value: float, form: str = ",") -> str:
    return format(value, form).replace(",", " ")


def _or_unknown(value: float | None, text: Callable[[float], str]) -> str:
    return "not known" if value is None else text(value / 1e9)


def _print_outcome(outcome: Any, known: list[str]) -> None:
    out, places = console(), (outcome.counters.dram, outcome.counters.mram)
    chosen = "".join(f", {name} {value}" for name, value in outcome.options.items())
    if outcome.partial:
        accesses = sum(place.reads + place.writes for place in places)
        out.print(f"partial: stopped after {_number(accesses)} accesses")
    out.print(
        f"{outcome.policy}{chosen}: {outcome.dram_frames} frames of DRAM, {outcome.mram_frames} of "
        f"MRAM, {outcome.pages} pages touched"
    )
    for warning in set(outcome.warnings) - set(known):
        out.print(f"note: {warning}")
    if outcome.is_bound:
        out.print("a bound, not a policy that a system could have")
    counters = table("", "DRAM", "MRAM", left=("",))
    for name in _COUNTERS:
        counters.add_row(name.replace("_", " "),
                         *(_number(getattr(place, name)) for place in places))
    out.print(counters)
    _print_cost(outcome.cost, out)


def _print_cost(cost: Any, out: Screen) -> None:
    terms = table("term", "count", "ns each", "nJ each", "time", "energy", left=("term",))
    for term in cost.terms:
        terms.add_row(
            term.name,
            _number(term.count, ",.6g"),
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
