# SPDX-License-Identifier: BSD-3-Clause
"""Of `perdure bench files`: accesses to every second number of a file that two nodes cache.

bench/file_pieces.c writes and reads 20,000 of them by one call, through a view, and as many bytes
that are together. The two ranks pretend to be on two nodes, of which the first keeps all the bytes:
so the second one asks it by TCP, and the time is that of the slower rank.

    strided-nodes        writes and reads, one after the other
    strided-nodes-write  each by itself
    strided-nodes-read
    strided-nodes-all    by collective calls

ratio_to_contiguous is of the strided over the contiguous access, medians of 100 of each in turns,
in one run; strided and contiguous are in microseconds. With -here both ranks are on one node, which
is not promised anything. With each MPI that is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from perdure.cache.preload import cache_environment
from perdure.programs import Program, find_programs
from perdure.progress import progress
from perdure_bench.facts import Fact
from perdure_bench.solver import job_output, pool_directory

_PIECES = 20000
_TIMES = 100
_LIMIT_S = 300
_TARGET = 3.0
_LINE = re.compile(r"^((?:contiguous|strided)-(?:write|read)) (\d+)$", re.MULTILINE)
_PLACES = {"nodes": "strided-nodes", "all": "strided-nodes-all", "here": "strided-here"}


def measure_pieces(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    programs = find_programs("bench_file_pieces", "bench")
    rounds = 2 if quick else 7
    turns = len(programs) * len(_PLACES) * rounds
    with pool_directory() as place, progress("bench files: pieces", turns) as advance:
        for program in programs:
            samples: dict[str, list[dict[str, float]]] = {where: [] for where in _PLACES}
            for _ in range(rounds):
                for where, taken in samples.items():
                    taken.append(_run(program, place, where))
                    advance()
            for where, taken in samples.items():
                yield from _facts(_PLACES[where], where == "here", taken, program)


def _run(program: Program, place: Path, where: str) -> dict[str, float]:
    """Microseconds of each kind of access."""
    extra = cache_environment(["*"], f"directory={place / 'parts'};from=0")
    command = program.command(2, place / "pieces", _PIECES, _TIMES, where, given=extra)
    output = job_output(command, str(program.program), _LIMIT_S)
    return {kind: int(spent) / 1e3 for kind, spent in _LINE.findall(output)}


def _facts(
    case: str, is_free: bool, taken: list[dict[str, float]], program: Program
) -> Iterator[Fact]:
    more = {"ranks": 2, "mpi": program.flavour, "pieces": _PIECES, "bytes": 4 * _PIECES}
    target = None if is_free else _TARGET
    for suffix, kinds in (("", ("write", "read")), ("-write", ("write",)), ("-read", ("read",))):
        of = {way: [sum(run[f"{way}-{kind}"] for kind in kinds) for run in taken]
              for way in ("strided", "contiguous")}  # fmt: skip
        ratios = [ours / other for ours, other in zip(of["strided"], of["contiguous"])]
        yield Fact.of(
            "files", case + suffix, "ratio_to_contiguous", ratios, target=target, more=more
        )
        for way, spent in of.items():
            yield Fact.of("files", case + suffix, way, spent, "us", more=more)
