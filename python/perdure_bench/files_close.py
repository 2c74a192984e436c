# SPDX-License-Identifier: BSD-3-Clause
"""Of `perdure bench files`: the close of a file of 1 GiB (quick: 256 MiB) that is cached.

bench/file_ends.c opens it, writes it and closes it, as many ranks as there are processors, each of
them an equal part. The floor is the time in which as many ranks write the same bytes to the file
without the cache: the bytes over what the file system takes. As much memory as the parts have is
taken before it, too: new memory of a virtual machine may be had from its host first, which takes
longer than the copy, and what was just given back is not new.

    close-1GiB        closed at once
    close-1GiB-idle   2 s later, in which the ranks wait
    close-1GiB-busy   2 s later, in which the ranks compute

On tmpfs and, with -disk, in $PERDURE_BENCH_DISK or the home directory. ratio_to_floor is of the
close, of neighbours in time; close and floor are in milliseconds. late is the same with
perdure_cache_write_back=late: nothing is written before the close.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from perdure.cache.preload import cache_environment
from perdure.files import open_new
from perdure.programs import Program, find_programs
from perdure.progress import progress
from perdure_bench.facts import Fact, take_turns
from perdure_bench.solver import disk_directory, job_output, pool_directory

_LIMIT_S = 300
_PART = re.compile(r"^(write|close) (\d+)$", re.MULTILINE)
_TARGETS = {"": 1.2, "-idle": 0.05, "-busy": None}


def measure_close(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    program = find_programs("bench_file_ends", "bench")[0]
    ranks = os.cpu_count() or 1
    size = (256 << 20) if quick else 1 << 30
    rounds = 1 if quick else 7
    with pool_directory() as memory:
        places = {"": memory, "-disk": disk_directory()}
        turns = len(places) * len(_TARGETS) * (rounds + 1) * 3
        with progress("bench files: close", turns) as advance:
            for suffix, place in places.items():
                for later in _TARGETS:
                    run = partial(_run, program, place / "file-close", ranks, size, later)
                    ways = {"floor": partial(_floor, run, memory / "as-parts", size)}
                    for way, when in (("close", "early"), ("late", "late")):
                        options = f"directory={memory / 'parts'};from=0;write_back={when}"
                        ways[way] = partial(run, "close", cache_environment(["*"], options))
                    samples = take_turns(ways, rounds, advance)
                    yield from _facts(later, suffix, samples, program, ranks, size)


def _floor(run: Callable[[str, dict[str, str]], float], taken: Path, size: int) -> float:
    """`taken`: a file of `size` bytes while it runs."""
    with open_new(taken) as file:
        os.posix_fallocate(file.fileno(), 0, size)
    try:
        return run("write", {})
    finally:
        taken.unlink()


def _run(
    program: Program,
    stem: Path,
    ranks: int,
    size: int,
    later: str,
    part: str,
    extra: dict[str, str],
) -> float:
    """Milliseconds of a part of the program."""
    words = [stem, 1, size // ranks, "all", f"{later[1:]}:2000" if later else "idle:0"]
    output = job_output(program.command(ranks, *words, given=extra), str(program.program), _LIMIT_S)
    return {name: int(spent) / 1e6 for name, spent in _PART.findall(output)}[part]


def _facts(
    later: str,
    suffix: str,
    samples: dict[str, list[float]],
    program: Program,
    ranks: int,
    size: int,
) -> Iterator[Fact]:
    case = "close-1GiB" + later + suffix
    more = {"ranks": ranks, "mpi": program.flavour, "file_bytes": size}
    for way, metric in (("close", "ratio_to_floor"), ("late", "late_ratio_to_floor")):
        ratios = [ours / floor for ours, floor in zip(samples[way], samples["floor"])]
        target = _TARGETS[later] if way == "close" else None
        yield Fact.of("files", case, metric, ratios, target=target, more=more)
    for way, spent in samples.items():
        yield Fact.of("files", case, way, spent, "ms", more=more)
