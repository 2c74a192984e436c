# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench files`: what the ends of files cost, cached and not.

bench/file_ends.c opens, writes and closes files, and knows nothing of the cache. Its runs with and
without it take turns, in a new random order each round; nothing is emulated or modelled. Parts are
where the cache puts them by default, in /dev/shm. Two ranks.

    open-close-small   ten files of 8 KiB, opened by all ranks together: their opens and closes
    many-files         10,000 files of 4 KiB (quick: 1,000), each of one rank, from end to end
    new-128MiB         one file, of which each rank writes half, from end to end

Files that are larger than the cache's room: files_room.py; accesses in pieces: files_pieces.py;
the close of a large file: files_close.py.

On tmpfs and, with -disk, in $PERDURE_BENCH_DISK or the home directory. ratio_to_stock is of the
time with the cache over that without, of neighbours in time; stock and cached are in milliseconds
a file. MPI_Init is in none of them. Neither waits for the disk: a close does not, with the cache
in memory or without any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perdure.cache.preload import cache_environment
from perdure.programs import Program, find_programs
from perdure.progress import progress
from perdure_bench.facts import Fact, take_turns
from perdure_bench.files_close import measure_close
from perdure_bench.files_pieces import measure_pieces
from perdure_bench.files_room import measure_room
from perdure_bench.solver import disk_directory, job_output, pool_directory

SUMMARY = "opening and closing files with the cache, over stock MPI-IO"
_RANKS = 2
_LIMIT_S = 300
_PART = re.compile(r"^(open|write|close|whole) (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """Files of one kind; `parts` are what counts of their time."""

    name: str
    files: int
    bytes: int
    whose: str
    parts: tuple[str, ...]
    target: float
    disk_target: float = 1.0

    def of(self, quick: bool) -> Case:
        """The same, with a tenth of many files."""
        few = self.files // 10 if quick and self.files > 1000 else self.files
        return replace(self, files=few)


_CASES = (
    Case("open-close-small", 10, 4096, "all", ("open", "close"), 3.0),
    Case("many-files", 5000, 4096, "self", ("whole",), 1.0),
    Case("new-128MiB", 1, 64 << 20, "all", ("whole",), 1.0),
)


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within a minute. Raises ProgramFailed."""
    program = find_programs("bench_file_ends", "bench")[0]
    cached = cache_environment(["*"])
    rounds = 3 if quick else 15
    with pool_directory() as memory:
        places = {"": memory, "-disk": disk_directory()}
        with progress("bench files", len(_CASES) * len(places) * (rounds + 1) * 2) as advance:
            for case in (case.of(quick) for case in _CASES):
                for suffix, place in places.items():
                    stem = place / "file-ends"
                    ways = {"stock": partial(_run, program, case, stem, {}),
                            "cached": partial(_run, program, case, stem, cached)}  # fmt: skip
                    yield from _facts(case, suffix, take_turns(ways, rounds, advance), program)
    yield from measure_close(quick)
    yield from measure_pieces(quick)
    yield from measure_room(quick, disk_directory())


def _run(program: Program, case: Case, stem: Path, extra: dict[str, str]) -> float:
    """Milliseconds a file."""
    command = program.command(_RANKS, stem, case.files, case.bytes, case.whose, given=extra)
    output = job_output(command, str(program.program), _LIMIT_S)
    spent_ns = {part: int(spent) for part, spent in _PART.findall(output)}
    return sum(spent_ns[part] for part in case.parts) / case.files / 1e6


def _facts(
    case: Case, suffix: str, samples: dict[str, list[float]], program: Program
) -> Iterator[Fact]:
    name = case.name + suffix
    more = {"ranks": _RANKS, "mpi": program.flavour, "files": case.files}
    ratios = [ours / theirs for ours, theirs in zip(samples["cached"], samples["stock"])]
    target = case.disk_target if suffix else case.target
    yield Fact.of("files", name, "ratio_to_stock", ratios, target=target, more=more)
    for way, spent in samples.items():
        yield Fact.of("files", name, way, spent, "ms", more=more)
