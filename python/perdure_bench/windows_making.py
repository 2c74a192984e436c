# SPDX-License-Identifier: BSD-3-Clause
"""Part of `perdure bench windows`: what making and freeing a window takes over plain MPI.

The program bench_window_making knows nothing of Perdure. Short runs alternate: as it is (plain),
the same once more (again), and with its windows made persistent by the environment, in each mode,
with commit=none: a commit is no part of this. A ratio compares two runs of one round.

    make-free-64B-MODE     MPI_Win_allocate of 64 bytes, and MPI_Win_free
    make-free-shared-MODE  MPI_Win_allocate_shared instead; contiguous, so that modes twin and flush
                           are copy there

The metric is ratio_to_plain; floor_ratio is that of the plain program to itself. With 2 ranks, and
in the whole form with 4. On fewer processors than ranks it is the scheduler's turns that are
measured, as ranks that wait don't yield: a run takes tens of seconds, so there are three rounds, of
fewer windows. It models programs that make windows again and again, as some libraries do for each
message or step; no program makes nothing but windows.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator

from perdure.programs import Program, find_programs
from perdure_bench.facts import Fact
from perdure_bench.solver import pool_directory
from perdure_bench.windows_micro import MODES, Rounds, Runner, library_of

TARGETS = {"make-free-64B": 2.0, "make-free-shared": 1.5}
_NO_COMMIT = ";commit=none"
_WINDOWS = 20  # in a batch


def measure(quick: bool) -> Iterator[Fact]:
    """The facts of every flavour. Raises ProgramFailed."""
    variants = ("plain", "again", *(mode + _NO_COMMIT for mode in MODES))
    for program in find_programs("bench_window_making", "bench"):
        for ranks in (2,) if quick else (2, 4):
            waits = ranks > len(os.sched_getaffinity(0))
            rounds = 2 if quick else 3 if waits else 7
            extent = (_WINDOWS // 4 if waits else _WINDOWS,)
            with pool_directory() as pools:
                runner = Runner(program, library_of(program.flavour), extent, pools, ranks)
                yield from facts_of(program, ranks, runner.run_rounds(rounds, variants), not quick)


def facts_of(program: Program, ranks: int, ran: Rounds, claims: bool) -> Iterator[Fact]:
    """`ran`: nanoseconds by variant and operation, of each round."""
    about = {"mpi": program.flavour, "ranks": ranks}
    for name in ran[0]["plain"]:
        own = [around["again"][name] / around["plain"][name] for around in ran]
        yield Fact.of("windows", name, "floor_ratio", own, more=about)
        for mode in MODES:
            spent = [around[mode + _NO_COMMIT][name] for around in ran]
            ratios = [ns / around["plain"][name] for ns, around in zip(spent, ran, strict=True)]
            more = {**about, "mode": mode, "operation_ns": statistics.median(spent)}
            target = TARGETS[name] if claims else None
            yield Fact.of(
                "windows", f"{name}-{mode}", "ratio_to_plain", ratios, target=target, more=more
            )
