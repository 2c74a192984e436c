# SPDX-License-Identifier: BSD-3-Clause
"""Part of `perdure bench windows`: a fence that commits, by window size and number of ranks.

The program bench_window_fence times, in turn, MPI's own fence, an MPI_Allreduce of 8 bytes, a
memcpy of the window and a fence that commits; `fence_us` is the last, `floor_us` the sum of the
others (for mode twin without the memcpy). More ranks than cores are run with Open MPI, which
yields; an MPI that spins measures the scheduler instead.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from perdure.programs import Program, find_programs
from perdure_bench.facts import Fact, read_facts
from perdure_bench.solver import job_output

_SIZES = (4096, 1 << 20, 16 << 20)
_RANKS = (1, 2, 4, 8, 16)
_MODES = ("copy", "twin")
_LIMIT_S = 300


def _settings(quick: bool) -> list[tuple[str, int, int]]:
    sizes, ranks = (_SIZES[:2], _RANKS[1:3]) if quick else (_SIZES, _RANKS)
    return list(itertools.product(_MODES, sizes, ranks))


def fence_runs(quick: bool) -> int:
    """How often fence_facts() calls `advance`."""
    return len(_settings(quick))


def fence_facts(quick: bool, pools: Path, advance: Callable[[], None]) -> Iterator[Fact]:
    """Facts by mode, size and ranks. Raises ProgramFailed."""
    found = find_programs("bench_window_fence", "bench")
    programs = {program.flavour: program for program in found}
    for mode, size, ranks in _settings(quick):
        # MPICH spins where there are more ranks than cores.
        wanted = ("openmpi", "mpich")
        program = next((programs[name] for name in wanted if name in programs), None)
        program = program or next(iter(programs.values()))
        yield from _run(program, mode, size, ranks, pools / "fence")
        advance()


def _run(program: Program, mode: str, size: int, ranks: int, pool: Path) -> Iterator[Fact]:
    repeats = 20 if ranks > 4 else 60
    words = (mode, str(size), str(repeats), str(pool), program.flavour)
    command = program.command(ranks, *words)
    try:
        # Open MPI 4.1.4 makes no window of one rank by UCX (MPI_ERR_WIN), a plain one neither.
        without_ucx = {"OMPI_MCA_osc": "^ucx"}
        output = job_output(command, f"window_fence on {ranks} ranks", _LIMIT_S, without_ucx)
    finally:
        shutil.rmtree(pool, ignore_errors=True)
    yield from read_facts(output.splitlines())
