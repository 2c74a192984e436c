# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench record`: how much slower a program is while its memory accesses are recorded.

The loop of a conjugate-gradient solver (bench/record.c), built by the same compiler with and
without --trace, in turns, by the time that passes (slowdown) and by CPU time of all threads
(slowdown_cpu: what it costs where all processors are busy):

    record          Clang's pass, PERDURE_TRACE set, over the same program without --trace
    record-inline   the same without the recorder's helper thread
    record-gcc      -fsanitize=thread of GCC, the same as record
    idle            Clang's pass without PERDURE_TRACE
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from perdure.programs import CLONE, ProgramFailed, find_program, output_of
from perdure.progress import progress
from perdure_bench.facts import Fact, take_turns

SUMMARY = "time of a program that is recorded, over the same without"
_TARGET = 4.0
_SIZES = (75000, 61)  # rows and nonzeros of each: 55 MB, of NPB CG's class B a third
_TARGETED = ("record", "record-inline")
_METRICS = ("slowdown", "slowdown_cpu")
_COMPILERS = {"record": ("perdure-clang", "clang-19"), "record-gcc": ("perdure-gcc", "gcc")}


# Of each case and round: the seconds of each metric.
Times = dict[str, list[tuple[float, ...]]]


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    source = CLONE / "bench/record.c"
    if not source.exists():
        raise ProgramFailed(f"{source} is not there: this benchmark needs a clone")
    rounds, iterations = (3, 5) if quick else (9, 25)
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        cases = _build(source, Path(folder))
        ways = {name: partial(_run, program, iterations, Path(folder), options)
                for name, (program, options) in cases.items()}  # fmt: skip
        with progress("bench record", rounds * len(cases)) as advance:
            times = take_turns(ways, rounds, advance, warm=0)
    yield from facts_of(times)


def facts_of(times: Times) -> list[Fact]:
    """Slowdowns, from the seconds of each round of `CASE` and of the same program as it is."""
    facts = []
    for case, without in (("record", "record"), ("record-inline", "record"), ("idle", "record"),
                          ("record-gcc", "record-gcc")):
        if case not in times:
            continue
        for clock, metric in enumerate(_METRICS):
            ratios = [a[clock] / b[clock] for a, b in zip(times[case], times[f"{without} without"])]
            target = _TARGET if case in _TARGETED else None
            facts.append(Fact.of("record", case, metric, ratios, "ratio", target))
    return facts


def _build(source: Path, folder: Path) -> dict[str, tuple[Path, str | None]]:
    """Each case with its program, and the options of PERDURE_TRACE, or none without it."""
    cases = {}
    for case, (wrapper, compiler) in _COMPILERS.items():
        if shutil.which(compiler) is None:
            continue
        for name, words in ((case, ["--trace"]), (f"{case} without", [])):
            program = folder / name.replace(" ", "-")
            compiler = str(find_program(wrapper, "trace/bin"))
            command = [compiler, *words, "-O2", str(source), "-o", str(program)]
            output_of(command, wrapper)
            cases[name] = (program, "" if words else None)
    if "record" in cases:
        cases["record-inline"] = (cases["record"][0], ",helper=off")
        cases["idle"] = (cases["record"][0], None)
    return cases


def _run(program: Path, iterations: int, folder: Path, options: str | None) -> tuple[float, ...]:
    """Seconds of its loop, and of CPU time in it."""
    words = [str(word) for word in (program, *_SIZES, iterations)]
    environment = {name: value for name, value in os.environ.items() if name != "PERDURE_TRACE"}
    if options is not None:
        environment["PERDURE_TRACE"] = str(folder / "record.ptrace") + options
    output = output_of(words, program.name, environment)
    return tuple(float(word) for word in output.split())
