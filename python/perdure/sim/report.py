# SPDX-License-Identifier: BSD-3-Clause
"""A page of HTML about one trace: figures, tables, and the optimiser's reasons.

study_trace() does all that takes time, write_report() only writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from perdure.core import load_core
from perdure.pages.page import svg, unbroken, write_page
from perdure.sim.locality import Concentration, concentration_of
from perdure.sim.machine import Options
from perdure.sim.optimise import Optimum, optimise
from perdure.sim.plot import draw_capacities, draw_locality, draw_policies
from perdure.sim.quantities import joules_text, mib_text
from perdure.sim.sweep import KnownPoint, Point, Study, known_points, run_once
from perdure.trace.summary import cache_text, summary_json
from perdure.watching import Watch

POLICY = "low_power"
_POLICIES = ("lru", "mram_fixed", POLICY)
_PAGE_SHARES = (0.01, 0.03, 0.1, 0.2, 0.4, 0.6, 0.8)
_TABLE_ROWS = 16  # of a capacity of MRAM


@dataclass(frozen=True)
class Wishes:
    """What the command line asks for; sizes in bytes, the budget as a share."""

    budget: float
    typical_bytes: int
    mram: list[int]
    step_bytes: int | None
    values: dict[str, str]
    preset: str


@dataclass(frozen=True)
class Studied:
    """All that the page shows."""

    summary: dict  # as `perdure trace info --json`
    wishes: Wishes
    options: Options
    found: Optimum
    by_policy: list[KnownPoint]  # at one capacity of MRAM; empty if there is none
    concentration: Concentration
    # A name, and the outcome of a run; None where the trace's reduction forbids one so small.
    machines: list[tuple[str, KnownPoint, Any]]


def study_trace(trace: Path, options: Options, wishes: Wishes, watch: Watch) -> Studied:
    """Raises Stopped, ValueError or _core.Error."""
    core = load_core()
    summary = summary_json(trace, core.summarise_trace(str(trace)))
    study = Study(str(trace), options, wishes.mram, watch)
    page, step = study.page_bytes, study.step(wishes.step_bytes)
    found = optimise(study, POLICY, wishes.values, wishes.budget, wishes.typical_bytes, step)
    by_policy: list[KnownPoint] = []
    # Policies differ beside MRAM that does not hold all; none is one of them, and the first.
    smaller = [size for size in study.mram if size < summary["footprint_bytes"]]
    middle = smaller[len(smaller) // 2]
    for policy in _POLICIES if middle else ():
        values = wishes.values if policy == POLICY else {}
        by_policy += known_points(study.points(policy, middle, study.frames(step, middle), values))
    machines = []
    for name, point in (("a usual machine", found.typical), ("just enough DRAM", found.reference),
                        ("least energy", found.best)):
        if point is not None and not watch.stopped:
            fine = point.total_bytes // page >= summary["floor_pages"]
            outcome = _run(trace, options, wishes, point, watch) if fine else None
            machines.append((name, point, outcome))
    watch.check()
    shares = concentration_of(trace)
    return Studied(summary, wishes, options, found, by_policy, shares, machines)


def _run(trace: Path, options: Options, wishes: Wishes, point: Point, watch: Watch) -> Any:
    return run_once(
        str(trace), options, point.policy, wishes.values if point.policy == POLICY else {},
        dram_bytes=point.dram_bytes, mram_bytes=point.mram_bytes,
        progress=watch.of("the terms of a machine"),
    )


def write_report(studied: Studied, file: Path) -> None:
    """Writes the page; what was there before stays until it is whole. Raises OSError."""
    write_page(file, __file__, _page_of(studied),
               {"mib": unbroken(mib_text), "joules": unbroken(joules_text)})


def _page_of(studied: Studied) -> dict:
    """What the template shows."""
    return {
        "title": Path(studied.summary["file"]).name,
        "summary": studied.summary,
        "cache": cache_text(studied.summary),
        "created": _date(studied.summary["created_ns"]),
        "wishes": studied.wishes,
        "options": studied.options,
        "warnings": _warnings(studied),
        "found": studied.found,
        "figures": _figures(studied),
        "shares": [(share, studied.concentration.accesses_of(share)) for share in _PAGE_SHARES],
        "most": studied.concentration.pages_for(0.9),
        "machines": studied.machines,
        "rows": _sweep_rows(studied.found.points),
        "policy": POLICY,
        "devices": [(name, getattr(studied.options.devices, name))
                    for name in ("dram", "mram", "flash")],
        "middle": studied.by_policy[0].mram_bytes if studied.by_policy else 0,
    }


def _date(nanoseconds: int) -> str:
    if not nanoseconds:
        return "not known"
    return datetime.fromtimestamp(nanoseconds / 1e9, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _warnings(studied: Studied) -> list[str]:
    said = [text for _, _, outcome in studied.machines if outcome for text in outcome.warnings]
    return list(dict.fromkeys([*studied.options.devices.warnings, *said]))


def _figures(studied: Studied) -> dict[str, Any]:
    name = Path(studied.summary["file"]).name
    figures = {
        "locality": svg(lambda file: draw_locality({name: studied.concentration.thinned()}, file)),
        "capacities": svg(
            lambda file: draw_capacities(
                studied.found.points, f"{name}: {POLICY}", file, studied.found.best
            )
        ),
    }
    if studied.by_policy:
        title = f"{name}: time by policy"
        figures["policies"] = svg(lambda file: draw_policies(studied.by_policy, title, file))
    return figures


def _sweep_rows(points: list[KnownPoint]) -> list[KnownPoint]:
    """Some points of each capacity of MRAM, evenly spread, its last one among them."""
    chosen = []
    for size in dict.fromkeys(point.mram_bytes for point in points):
        row = [point for point in points if point.mram_bytes == size]
        stride = max(1, -(-len(row) // _TABLE_ROWS))
        chosen += row[(len(row) - 1) % stride :: stride]
    return chosen
