# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench predict`: what `perdure cache predict` says, against what is then measured.

Each round calibrates the machine, for one rank and for two, and then, in a new random order of the
cases, records a run without the cache, predicts it with the cache, and runs it so. Of a case:

    prediction_error    predicted over measured time with the cache, minus 1
    predicted_s         of all ranks' calls on files, mean of the ranks
    measured_s          the same, from the record of the cached run
    stock_s             the same, without the cache

Cases: p2 and p4, powers of a matrix (apps/matpower) that is kept, on one rank; small-writes and
large-writes, of bench_file_accesses on two ranks, at random and in order. Files lie in
$PERDURE_BENCH_DISK, the cache's parts in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from perdure.cache.calibrate import calibrate, recorded
from perdure.cache.predict import Machine, Target, by_file, predict
from perdure.cache.record import Run, read_records
from perdure.programs import Program, ProgramFailed, find_programs
from perdure.progress import progress
from perdure_bench.facts import Fact, in_turn
from perdure_bench.solver import disk_directory, pool_directory

SUMMARY = "predicted time of I/O with the cache, over the measured one"
_REGION_BYTES = 16 << 20


def _cases(quick: bool) -> dict[str, tuple[str, int, list]]:
    """Program, ranks and options of each case; "FILE" and "FOLDER" stand for what is made."""
    nodes, calls = (600, 20000) if quick else (3000, 200000)
    powers = {
        f"p{power}": ("matpower", 1, ["--nodes", nodes, "--power", power, "--sync", "never",
                                      "--reread", "--directory", "FOLDER", "--json"])
        for power in (2, 4)
    }
    steps = {
        "small-writes": ["write:sequential:1048576:16", f"write:random:8:{calls}"],
        "large-writes": ["write:sequential:1048576:16", "read:sequential:1048576:16"],
    }
    accesses = {
        name: ("bench_file_accesses", 2, ["FILE", _REGION_BYTES, *words])
        for name, words in steps.items()
    }
    return {**powers, **accesses}


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed, NotCalibrated, NoRecord."""
    cases, rounds = _cases(quick), 3 if quick else 9
    disk = disk_directory()
    times: dict[str, list[tuple[float, float, float]]] = {name: [] for name in cases}
    with progress("bench predict", rounds * len(cases)) as advance, pool_directory() as pool:
        for _ in range(rounds):
            machines = {ranks: calibrate(disk, 3, pool, ranks) for ranks in (1, 2)}
            for name in in_turn(cases):
                machine = machines[cases[name][1]]
                times[name].append(_round(cases[name], machine, disk, pool))
                advance()
    for name, rounds_of_case in times.items():
        yield from facts_of(name, rounds_of_case)


def _round(
    case: tuple[str, int, list], machine: Machine, disk: Path, pool: Path
) -> tuple[float, float, float]:
    """Seconds without the cache, predicted with it, and measured with it."""
    stem, ranks, words = case
    program = find_programs(stem, "bench" if stem.startswith("bench") else "apps")[0]
    stock = _recorded(program, ranks, words, disk, None)
    cached = _recorded(program, ranks, words, disk, f"directory={pool}")
    if not all(use.cached for use in cached.files):
        raise ProgramFailed(f"{stem}: not all files were cached; build the library anew")
    rate = machine.write_back_bytes_per_s
    predicted = by_file(predict(use, machine, Target(), rate) for use in stock.files)
    return (
        sum(use.measured_s for use in stock.files),
        sum(one.with_s for one in predicted),
        sum(use.measured_s for use in cached.files),
    )


def _recorded(program: Program, ranks: int, words: list, disk: Path, cache: str | None) -> Run:
    with tempfile.TemporaryDirectory(prefix="perdure-predict-", dir=disk) as place:
        made = {"FILE": f"{place}/accesses.bin", "FOLDER": place}
        recorded(program, ranks, [made.get(word, word) for word in words], Path(place), cache)
        return read_records([Path(place) / "record"])


def facts_of(case: str, rounds: list[tuple[float, float, float]]) -> list[Fact]:
    """The facts of a case from (stock, predicted, measured) seconds of its rounds."""
    columns = {
        "prediction_error": ([predicted / seen - 1 for _, predicted, seen in rounds], ""),
        "predicted_s": ([predicted for _, predicted, _ in rounds], "s"),
        "measured_s": ([seen for _, _, seen in rounds], "s"),
        "stock_s": ([stock for stock, _, _ in rounds], "s"),
    }
    return [Fact.of("predict", case, metric, values, unit)
            for metric, (values, unit) in columns.items()]  # fmt: skip
