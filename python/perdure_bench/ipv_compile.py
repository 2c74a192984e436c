# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench ipv`, its part without runs: how much longer the compiler takes with --ipv.

The sources of the programs in apps/npb, each compiled by clang++-19 as it is and by
perdure-clang++ --ipv=all, in turns; metric compile_time_ratio by program, from CPU time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from perdure.programs import CLONE, ProgramFailed, find_program
from perdure.progress import progress
from perdure_bench.facts import Fact

_TARGET = 2.0
_FLAGS = ("-std=c++20", "-O3", "-c")


def measure(quick: bool, each: Callable[[Fact], None]) -> None:
    """Hands over each fact. Raises ProgramFailed."""
    folder = CLONE / "apps/npb"
    if not folder.exists():
        raise ProgramFailed(f"{folder} is not there: this benchmark needs a clone")
    if shutil.which("clang++-19") is None:
        raise ProgramFailed("no clang++-19; install Debian's clang-19")
    compilers = (["clang++-19"], [str(find_program("perdure-clang++", "trace/bin")), "--ipv=all"])
    programs = sorted(path.parent for path in folder.glob("*/main.cpp"))
    rounds = 3 if quick else 7
    times: dict[str, list[list[float]]] = {program.name: [] for program in programs}
    with progress("bench ipv, compile", rounds * len(programs)) as advance:
        for _ in range(rounds):
            for program in programs:
                times[program.name].append([_compile(words, program) for words in compilers])
                advance()
    for fact in facts_of(times):
        each(fact)


def facts_of(times: dict[str, list[list[float]]]) -> list[Fact]:
    """Ratios, from the seconds of each round without and with the pass, by program."""
    ratios = {name: [after / before for before, after in rounds] for name, rounds in times.items()}
    return [Fact.of("ipv", name, "compile_time_ratio", values, "ratio", _TARGET)
            for name, values in ratios.items()]  # fmt: skip


def _compile(words: list[str], program: Path) -> float:
    """Seconds of CPU time."""
    sources = [str(path) for path in sorted(program.glob("*.cpp")) if "planted" not in path.name]
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as scratch:
        before = os.times()
        done = subprocess.run([*words, *_FLAGS, f"-I{program.parents[1]}",
                               f"-I{program.parents[2] / 'include'}", *sources], cwd=scratch,
                              capture_output=True, text=True, check=False)
        after = os.times()
    if done.returncode != 0:
        raise ProgramFailed(f"{words[0]} on {program.name}: {done.stderr.strip()[-2000:]}")
    return (after.children_user + after.children_system
            - before.children_user - before.children_system)
