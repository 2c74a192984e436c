# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench state`: arrays that change their size, and jobs that change their ranks.

The program bench_state measures the first. Then four ranks keep a square of doubles, in a pool and
in a file of parallel HDF5, both on tmpfs, and 1, 2, 3 and 8 ranks take it back: each rank has a
block of it, of which it touches every page. The time is from before the pool, or the file, is
opened, until the slowest rank has its block; Perdure's is by then in rank files of the new job, too
(twin mode). HDF5 reads independently, and collectively; the faster one counts. The same of shards
of PyTorch is in state_dcp.py.

    n-to-m-HDF5, n-to-m-dcp   take_ms, rival_ms, ratio_to_rival, by `ranks`
"""

from __future__ import annotations

import re
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from perdure.programs import Program, ProgramFailed, find_programs
from perdure.progress import progress
from perdure_bench.facts import Fact, run_program, take_turns
from perdure_bench.solver import job_output, pool_directory
from perdure_bench.state_dcp import against_dcp, python_with_torch

SUMMARY = "arrays that change their size, come and go, and jobs that change their ranks"
_OLD = 4
_NEW = (1, 2, 3, 8)
_HOW = ("independent", "collective")
_LIMIT_S = 120


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within a minute. Raises ProgramFailed."""
    yield from run_program("bench_state", ["--quick"] if quick else [])
    yield from _against_hdf5(quick)
    python = python_with_torch()
    if python is None:
        _skip("n-to-m-dcp", "there is no PyTorch: PERDURE_TORCH_PYTHON names a Python that has it")
    else:
        yield from against_dcp(python, quick, _NEW, _facts)


def _skip(case: str, why: str) -> None:
    print(f"perdure bench state: {case} is skipped, because {why}", file=sys.stderr)


def _against_hdf5(quick: bool) -> Iterator[Fact]:
    own = {each.flavour: each for each in find_programs("bench_divide", "bench")}
    try:
        theirs = {each.flavour: each for each in find_programs("bench_hdf5_divide", "bench")}
    except ProgramFailed:
        theirs = {}
    # More ranks than cores: an MPI that spins measures the scheduler instead.
    flavour = next((each for each in ("openmpi", "mpich") if each in own and each in theirs), None)
    if flavour is None:
        _skip("n-to-m-HDF5", "parallel HDF5 was not there when Perdure was built (Debian's "
                             "libhdf5-openmpi-dev)")  # fmt: skip
        return
    edge, rounds = (1024, 2) if quick else (4096, 15)
    with pool_directory() as place:
        yield from _divide(own[flavour], theirs[flavour], place, edge, rounds)


def _divide(own: Program, rival: Program, place: Path, edge: int, rounds: int) -> Iterator[Fact]:
    pool, file = place / "divided", place / "divided.h5"
    _run(own.command(_OLD, "make", pool, edge))
    _run(rival.command(_OLD, "make", file, edge, _HOW[0]))
    with progress("bench state", len(_NEW) * (rounds + 1) * 3) as advance:
        for ranks in _NEW:
            ways = {"own": partial(_take, own.command(ranks, "take", pool, edge))}
            for how in _HOW:
                ways[how] = partial(_take, rival.command(ranks, "take", file, edge, how))
            samples = take_turns(ways, rounds, advance)
            how = min(_HOW, key=lambda each: statistics.median(samples[each]))
            more = {"ranks": ranks, "old_ranks": _OLD, "mpi": own.flavour, "rival_reads": how,
                    "mebibytes": edge * edge * 8 >> 20}  # fmt: skip
            yield from _facts("n-to-m-HDF5", samples["own"], samples[how], more)


def _facts(case: str, own: list[float], rival: list[float], more: dict) -> Iterator[Fact]:
    ratios = [mine / other for mine, other in zip(own, rival, strict=True)]
    yield Fact.of("state", case, "take_ms", own, "ms", more=more)
    yield Fact.of("state", case, "rival_ms", rival, "ms", more=more)
    yield Fact.of("state", case, "ratio_to_rival", ratios, target=1.0, more=more)


def _run(command: list[str]) -> str:
    return job_output(command, f"{Path(command[3]).name} of {command[2]} ranks", _LIMIT_S)


def _take(command: list[str]) -> float:
    """Milliseconds."""
    output = _run(command)
    found = re.search(r"^take (\d+)$", output, re.MULTILINE)
    if found is None:
        raise ProgramFailed(f"the job did not report; it printed: {output[-300:].strip()}")
    return int(found[1]) / 1e6
