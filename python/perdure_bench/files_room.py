# SPDX-License-Identifier: BSD-3-Clause
"""Of `perdure bench files`: a file of four times the room that the cache has.

bench/file_accesses.cpp writes or reads a file of 16 MiB (quick: 4), from open to close, on two
ranks with half of it each; the parts are on a tmpfs with room for a fourth of it, in blocks of 64
KiB. Three ways take turns in a random order: stock MPI-IO, the cache as it is (evict), where a file
stands aside until its accesses have paid for a part, and with perdure_cache_evict=never, where what
did not fit at first passes through for good (never).

    room-8B-sequential-read, -write     each word of the file once
    room-8B-random-read, -write         as often, anywhere: all blocks are used alike
    room-4KiB-sequential-read, -write   each page of the file four times

ratio_to_stock is of the time with the cache over that without, ratio_to_never over that without
evicting, of neighbours in time; stock, evict and never are in milliseconds. Nothing is promised of
them. Where a tmpfs may not be mounted there are no such facts, and that is said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from perdure.cache.preload import cache_environment
from perdure.programs import Program, find_programs
from perdure.progress import progress
from perdure_bench.facts import Fact, take_turns
from perdure_bench.solver import job_output

_RANKS = 2
_LIMIT_S = 300
_BLOCK = 64 << 10
_HEAD = 1100 << 10  # of a part: header, journal and table
_ACCESSES = [
    (f"room-{size}-{order}-{access}", f"{access}:{order}:{count}", count, times)
    for size, count, order, times in (
        ("8B", 8, "sequential", 1),
        ("8B", 8, "random", 1),
        ("4KiB", 4096, "sequential", 4),
    )
    for access in ("read", "write")
]


def measure_room(quick: bool, place: Path) -> Iterator[Fact]:
    """The facts, as they come, of files in `place`. Raises ProgramFailed."""
    program = find_programs("bench_file_accesses", "bench")[0]
    file_bytes = (4 if quick else 16) << 20
    rounds = 1 if quick else 5
    with _small_device(file_bytes // 4 + _HEAD) as device:
        if device is None:
            print("perdure bench files: no tmpfs of a given size may be mounted here, so there is "
                  "nothing of files larger than the room", file=sys.stderr)  # fmt: skip
            return
        ways = _ways(device)
        with progress("bench files: room", len(_ACCESSES) * (rounds + 1) * len(ways)) as advance:
            for case, access, count, times in _ACCESSES:
                step = f"{access}:{file_bytes // _RANKS // count * times}"
                with _file(place, file_bytes) as file:
                    turns = {way: partial(_run, program, file, file_bytes // _RANKS, step, extra)
                             for way, extra in ways.items()}  # fmt: skip
                    samples = take_turns(turns, rounds, advance)
                yield from _facts(case, samples, program, file_bytes)


@contextmanager
def _small_device(room: int) -> Iterator[Path | None]:
    """A tmpfs with `room` bytes while it lasts; None where that is not allowed."""
    with tempfile.TemporaryDirectory(prefix="perdure-bench-room-") as folder:
        options = f"mode=0700,size={room}"
        words = ["mount", "-t", "tmpfs", "-o", options, "perdure-bench", folder]
        mounted = os.geteuid() == 0 and subprocess.run(words, capture_output=True).returncode == 0
        try:
            yield Path(folder) if mounted else None
        finally:
            if mounted:
                subprocess.run(["umount", folder], check=False)


def _ways(device: Path) -> dict[str, dict[str, str]]:
    """What the ranks have in their environment."""
    options = f"directory={device};block={_BLOCK >> 10}k"
    return {
        "stock": {},
        "evict": cache_environment(["*"], options),
        "never": cache_environment(["*"], f"{options};evict=never"),
    }


@contextmanager
def _file(place: Path, size_bytes: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="perdure-bench-", dir=place) as folder:
        file = Path(folder) / "file"
        file.write_bytes(b"\1" * size_bytes)
        yield file


def _run(program: Program, file: Path, region: int, step: str, extra: dict[str, str]) -> float:
    """Milliseconds."""
    command = program.command(_RANKS, file, region, step, given=extra)
    output = job_output(command, str(program.program), _LIMIT_S)
    return float(json.loads(output.strip().splitlines()[-1])["total_s"]) * 1e3


def _facts(
    case: str, samples: dict[str, list[float]], program: Program, file_bytes: int
) -> Iterator[Fact]:
    more = {"ranks": _RANKS, "mpi": program.flavour, "file_bytes": file_bytes, "room": 0.25}
    for other in ("stock", "never"):
        ratios = [ours / theirs for ours, theirs in zip(samples["evict"], samples[other])]
        yield Fact.of("files", case, f"ratio_to_{other}", ratios, more=more)
    for way, spent in samples.items():
        yield Fact.of("files", case, way, spent, "ms", more=more)
