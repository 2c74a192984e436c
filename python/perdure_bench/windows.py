# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench windows`: what persistent MPI windows cost.

The paper on checkpointing with MPI one-sided communication: its Figures 1 and 2 and Table 2 with
HPCCG, 3 and 4 and Table 3 with PageRank, and what it left open: double buffering by the library,
and the logged mode. Cases are named APPLICATION-PROTECTION.

A round runs every case once, in a new random order, with a commit every iteration; a ratio compares
runs of one round and one application. Two ranks, pools in memory.

    run_time_ratio      time of the loop over that of none
    iteration_ratio     median time of an iteration over that of none: what is left of the ratio
                        when the machine's interruptions are taken out
    commit_ms           median time that a commit kept the application waiting
    start_s, restart_s  from having the matrix or graph to the first iteration: cold, from a version
    fence_us, floor_us  a fence that commits, by window size and number of ranks; and the least it
                        can take: MPI's own fence, one MPI_Allreduce of 8 bytes, and a memcpy (copy)
    ratio_to_plain      of single operations (windows_micro.py), and of making windows
                        (windows_making.py)

PageRank ranks the web graph cnr-2000 where it is found ($PERDURE_TEST_GRAPH, or shared/data beside
the clone), else an R-MAT graph of 4 million nodes. The part of a run that an emulated device would
add is its virtual clock's; it does not model loads and stores of the application itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perdure.programs import CLONE, Program, find_programs
from perdure.progress import progress
from perdure_bench import windows_making, windows_micro
from perdure_bench.facts import Fact, reported
from perdure_bench.hpccg import (
    EMULATED,
    MODELS,
    RANKS,
    Application,
    Bench,
    Case,
    Hpccg,
    Said,
    pages_text,
    runs_of,
)
from perdure_bench.solver import huge_page_directory, pool_directory
from perdure_bench.windows_fence import fence_facts, fence_runs

SUMMARY = "cost of MPI windows that survive"
# What --only may name: hpccg and PageRank with the fences, single operations, making windows.
ONLY = ("applications", "operations", "making")
APPLICATIONS, OPERATIONS, MAKING = ONLY
PROTECTIONS = ("none", "disk", "copy", "twin", "log")
TWIN_TARGET = 1.02  # of run_time_ratio


@dataclass(frozen=True)
class Size:
    """How much is run."""

    edge: int  # hpccg: points along an edge of each rank
    hpccg_iterations: int
    pagerank_iterations: int
    hpccg_rounds: int
    pagerank_rounds: int  # more, as a run takes half a second
    claims: bool


QUICK = Size(48, 10, 30, 3, 3, False)
FULL = Size(144, 12, 150, 7, 15, True)


class Pagerank:
    """PageRank; the shares of the ranks are a persistent window."""

    name = "pagerank"

    def __init__(self, program: Program):
        graph = find_web_graph()
        self._program = program
        self._graph = [str(graph)] if graph else ["--rmat", "22", "--edge-factor", "16"]
        self.about = {
            "mpi": program.flavour,
            "ranks": RANKS,
            "graph": graph.name if graph else "R-MAT 22",
        }

    def command(self, iterations: int, options: Sequence[object]) -> list[str]:
        words = [*self._graph, "--iterations", iterations, "--json", *options]
        return self._program.command(RANKS, *words)

    def report(self, printed: str) -> dict:
        facts = reported(printed, "pagerank", "loop_s")
        found = {metric: fact.value for metric, fact in facts.items()}
        found["restored_version"] = facts["iterations"].more["restored_version"]
        found["iteration_median_s"] = found["iteration_s"]
        if "commit_s" in facts:
            found |= {"commit_median_s": found["commit_s"], "commits": facts["commit_s"].n}
        return found


def find_web_graph() -> Path | None:
    """Base name of the web graph's files; None if they aren't here."""
    named = os.environ.get("PERDURE_TEST_GRAPH")
    for base in ([Path(named)] if named else []) + [CLONE.parent / "shared/data/cnr-2000"]:
        if base.with_name(base.name + ".graph").is_file():
            return base
    return None


def _cases(*of_windows: str) -> list[Case]:
    """The protections; `of_windows` are options of those that have windows."""
    return [
        Case(name, ("--protect", name, *(of_windows if name in EMULATED else ())),
             TWIN_TARGET if name == "twin" else None)
        for name in PROTECTIONS
    ]  # fmt: skip


def measure(quick: bool, only: tuple[str, ...] = ()) -> Iterator[Fact]:
    """The facts, as they come; `only` names parts, none means all. Raises ProgramFailed."""
    parts = only or ONLY
    if APPLICATIONS in parts:
        yield from _of_applications(quick)
    if OPERATIONS in parts:
        yield from windows_micro.measure(quick)
    if MAKING in parts:
        yield from windows_making.measure(quick)


def _of_applications(quick: bool) -> Iterator[Fact]:
    size = QUICK if quick else FULL
    # With p as a persistent window, and x and r as arrays of its pool.
    hpccg = Hpccg(find_programs("hpccg")[0], size.edge)
    pagerank = Pagerank(find_programs("pagerank")[0])
    applications: list[tuple[Application, list[Case], int, int]] = [
        (hpccg, _cases("--windows"), size.hpccg_iterations, size.hpccg_rounds),
        (pagerank, _cases(), size.pagerank_iterations, size.pagerank_rounds),
    ]
    models = MODELS[::5] if quick else MODELS
    total = sum(
        runs_of(cases, rounds) + len(models) * len(EMULATED) for _, cases, _, rounds in applications
    )
    with (
        pool_directory() as pools,
        huge_page_directory(pools) as huge,
        progress("bench windows", total + fence_runs(quick)) as advance,
    ):
        for application, cases, iterations, count in applications:
            bench = Bench(application, iterations, pools, advance)
            rounds = bench.run_rounds(cases, count)
            about = {**application.about, **pages_text(huge)}
            said = Said("windows", f"{application.name}-", about, size.claims)
            yield from said.measured(cases, rounds)
            for case in (case for case in cases if case.name in EMULATED):
                for model in models:
                    yield said.emulated(case, model.spec, bench, rounds)
        yield from fence_facts(quick, pools, advance)
