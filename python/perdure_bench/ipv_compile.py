# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench ipv`, its part without runs: how much longer the compiler takes with --ipv.

Metric compile_time_ratio, from CPU time, of each file of the programs in apps/npb and of a file
that is nothing but loops, by tests/pass/nest_generator.py (cases nests-O2 and nests-O3): each
compiled by clang++-19 (clang-19) as it is and by perdure-clang++ (perdure-clang) --ipv=all, in
turns.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from perdure.programs import CLONE, ProgramFailed, find_program, output_of
from perdure.progress import progress
from perdure_bench.facts import Fact, take_turns

_TARGET = 1.5
_LEVELS = ("-O2", "-O3")
_NESTS = 50
_GENERATE = ("import nest_generator, random, sys; "
             "print(nest_generator.unit(random.Random(1), 0, int(sys.argv[1])))")


@dataclass(frozen=True)
class Source:
    """A file, and what compiles it apart from the compiler."""

    case: str
    file: Path
    language: str  # the suffix of clang's name
    flags: tuple[str, ...]


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    if shutil.which("clang++-19") is None:
        raise ProgramFailed("no clang++-19; install Debian's clang-19")
    rounds = 1 if quick else 7
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as scratch:
        sources = [*_of_programs(), *_of_nests(Path(scratch))]
        ways = {source.case: partial(_both, source, Path(scratch)) for source in sources}
        with progress("bench ipv, compile", rounds * len(sources)) as advance:
            times = take_turns(ways, rounds, advance, warm=0)
    yield from facts_of(times)


def facts_of(times: dict[str, list[list[float]]]) -> list[Fact]:
    """Ratios, from the seconds of each round without and with the pass, by file."""
    ratios = {name: [after / before for before, after in rounds] for name, rounds in times.items()}
    return [Fact.of("ipv", name, "compile_time_ratio", values, "ratio", _TARGET)
            for name, values in ratios.items()]  # fmt: skip


def _of_programs() -> list[Source]:
    folder = CLONE / "apps/npb"
    if not folder.exists():
        raise ProgramFailed(f"{folder} is not there: this benchmark needs a clone")
    flags = ("-std=c++20", "-O3", f"-I{CLONE / 'apps'}", f"-I{CLONE / 'include'}")
    programs = sorted({path.parent for path in folder.glob("*/*.cpp")})
    return [Source(f"{program.name}/{file.stem}", file, "++", flags)
            for program in programs for file in sorted(program.glob("*.cpp"))
            if "planted" not in file.name]  # fmt: skip


def _of_nests(folder: Path) -> list[Source]:
    tests = CLONE / "tests/pass"
    file = folder / "nests.c"
    words = [sys.executable, "-c", _GENERATE, _NESTS]
    environment = {**os.environ, "PYTHONPATH": str(tests)}
    file.write_text(output_of(words, "nest_generator.py", environment), encoding="utf-8")
    flags = ("-w", "-DSIDE=x", f"-I{tests}")
    return [Source(f"nests{level}", file, "", (*flags, level)) for level in _LEVELS]


def _both(source: Source, scratch: Path) -> list[float]:
    with_pass = str(find_program(f"perdure-clang{source.language}", "trace/bin"))
    return [_compile([f"clang{source.language}-19"], source, scratch),
            _compile([with_pass, "--ipv=all"], source, scratch)]  # fmt: skip


def _compile(words: list[str], source: Source, scratch: Path) -> float:
    """Seconds of CPU time."""
    before = os.times()
    output_of([*words, *source.flags, "-c", source.file, "-o", scratch / "compiled.o"],
              f"{words[0]} on {source.case}")  # fmt: skip
    after = os.times()
    return (after.children_user + after.children_system
            - before.children_user - before.children_system)
