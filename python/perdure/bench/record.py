"""`perdure bench record`: how much slower a program is while its memory accesses are recorded.

The loop of a conjugate-gradient solver (bench/record.c), built by the same compiler with and
without --trace, in turns, by CPU time:

    record       Clang's pass, PERDURE_TRACE set, over the same program without --trace
    record-gcc   -fsanitize=thread of GCC, the same
    idle         Clang's pass without PERDURE_TRACE
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from perdure.bench.facts import Fact
from perdure.bench.programs import BenchFailed, find_program
from perdure.bench.progress import progress

SUMMARY = "time of a program that is recorded, over the same without"
_TARGET = 4.0
_SIZES = (75000, 61)  # rows and nonzeros of each: 55 MB, of NPB CG's class B a third
_COMPILERS = {"record": ("perdure-clang", "clang-19"), "record-gcc": ("perdure-gcc", "gcc")}


def measure(quick: bool, each: Callable[[Fact], None]) -> None:
    """Hands over the facts. Raises BenchFailed."""
    source = Path(__file__).resolve().parents[3] / "bench/record.c"
    if not source.exists():
        raise BenchFailed(f"{source} is not there: this benchmark needs a clone")
    rounds, iterations = (3, 5) if quick else (9, 25)
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        cases = _build(source, Path(folder))
        times: dict[str, list[float]] = {name: [] for name in cases}
        with progress("bench record", rounds * len(cases)) as advance:
            for _ in range(rounds):
                for name, (program, is_recorded) in cases.items():
                    times[name].append(_run(program, iterations, Path(folder), is_recorded))
                    advance()
    for fact in facts_of(times):
        each(fact)


def facts_of(times: dict[str, list[float]]) -> list[Fact]:
    """Slowdowns, from the seconds of each round of `CASE` and of `CASE without`."""
    facts = []
    for case, without in (("record", "record"), ("idle", "record"), ("record-gcc", "record-gcc")):
        if case not in times:
            continue
        ratios = [a / b for a, b in zip(times[case], times[f"{without} without"])]
        low, middle, high = statistics.quantiles(ratios, n=4)
        target = _TARGET if case == "record" else None
        facts.append(Fact("record", case, "slowdown", middle, "ratio", low, high, len(ratios),
                          target, None if target is None else middle <= target))
    return facts


def _build(source: Path, folder: Path) -> dict[str, tuple[Path, bool]]:
    """Each case with its program, and whether it runs with PERDURE_TRACE."""
    cases = {}
    for case, (wrapper, compiler) in _COMPILERS.items():
        if shutil.which(compiler) is None:
            continue
        for name, words in ((case, ["--trace"]), (f"{case} without", [])):
            program = folder / name.replace(" ", "-")
            command = [find_program(wrapper, "trace/bin"), *words, "-O2", source, "-o", program]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise BenchFailed(f"{wrapper}: {done.stderr.strip()}")
            cases[name] = (program, bool(words))
    if "record" in cases:
        cases["idle"] = (cases["record"][0], False)
    return cases


def _run(program: Path, iterations: int, folder: Path, is_recorded: bool) -> float:
    """CPU seconds of its loop."""
    words = [str(word) for word in (program, *_SIZES, iterations)]
    environment = {name: value for name, value in os.environ.items() if name != "PERDURE_TRACE"}
    if is_recorded:
        environment["PERDURE_TRACE"] = str(folder / "record.ptrace")
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchFailed(f"{program.name} ended with {done.returncode}: {done.stderr.strip()}")
    return float(done.stdout)
