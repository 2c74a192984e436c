# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench python`: commits of pools from Python, over the same commits of a C program.

Both store into every element of an array, and then commit; only the commit is timed. They take
turns in one run, in a new random order each round, so that a ratio compares neighbours in time.
There are seven pairs of pools, three in the short form, one after the other, as where memory lies
stays the same for as long as a pool is open.

    ratio_to_c   of a commit, from Python over from C
    commit       of each, in milliseconds or microseconds
    open, array, scalar_set, scalar_get, working   of one call, in microseconds
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import perdure
from perdure.programs import ProgramFailed, find_program
from perdure.progress import progress
from perdure_bench.facts import Fact, take_turns
from perdure_bench.solver import pool_directory

if TYPE_CHECKING:
    from perdure.api.array import Mode

SUMMARY = "commits and calls of pools from Python, over the same from C"
_TARGET = 1.02
_LARGE, _SMALL = 64 << 20, 4 << 10
_PAIRS, _QUICK_PAIRS = 7, 3  # of pools
_WARM = 3  # rounds


@dataclass(frozen=True)
class Case:
    """Commits of an array of `size_bytes`."""

    name: str
    size_bytes: int
    mode: Mode
    unit: str
    per_unit_ns: float
    target: float | None = None


CASES = (
    Case("commit-64MiB", _LARGE, "copy", "ms", 1e6, _TARGET),
    Case("commit-64MiB-twin", _LARGE, "twin", "ms", 1e6, _TARGET),
    Case("commit-64MiB-log", _LARGE, "log", "ms", 1e6, _TARGET),
    Case("commit-4KiB", _SMALL, "copy", "us", 1e3),
)


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within a minute. Raises ProgramFailed."""
    pairs, rounds = (_QUICK_PAIRS, 5) if quick else (_PAIRS, 43)
    program = find_program("bench_python_commits")
    try:
        _ = perdure.open
    except perdure.Unsupported as missing:
        raise ProgramFailed(str(missing)) from None
    with (
        pool_directory() as pools,
        progress("bench python", 2 * pairs * (rounds + _WARM) * len(CASES)) as advance,
    ):
        for case in CASES:
            in_python: list[int] = []
            in_c: list[int] = []
            for _ in range(pairs):
                folder = pools / case.name
                pair = _take_turns(case, program, folder, rounds, advance)
                in_python += pair[0]
                in_c += pair[1]
                rmtree(folder)
            ratios = [mine / other for mine, other in zip(in_python, in_c)]
            more = {"mode": case.mode}
            target = case.target
            yield Fact.of("python", case.name, "ratio_to_c", ratios, target=target, more=more)
            for metric, samples in (("commit", in_python), ("commit_in_c", in_c)):
                scaled = [sample / case.per_unit_ns for sample in samples]
                yield Fact.of("python", case.name, metric, scaled, case.unit, more=more)
        for metric, spent in _calls(pools / "calls", 20 if quick else 200):
            yield Fact.of("python", "calls", metric, spent, "us")


def _take_turns(
    case: Case, program: Path, folder: Path, rounds: int, advance: Callable[[], None]
) -> tuple[list[int], list[int]]:
    """Nanoseconds of each commit, in Python and in C."""
    folder.mkdir()
    with _in_python(case, folder / "python") as mine, _in_c(case, program, folder / "c") as other:
        samples = take_turns({"python": mine, "c": other}, rounds, advance, _WARM)
    return samples["python"], samples["c"]


@contextmanager
def _in_python(case: Case, path: Path) -> Iterator[Callable[[], int]]:
    with perdure.open(path) as pool:
        u = pool.array("u", case.size_bytes // 8, mode=case.mode)
        state = pool.scalars(iteration=0)
        pool.restart()

        def commit() -> int:
            state.iteration += 1
            u.working[:] = state.iteration
            began = time.monotonic_ns()
            pool.commit()
            return time.monotonic_ns() - began

        yield commit


@contextmanager
def _in_c(case: Case, program: Path, path: Path) -> Iterator[Callable[[], int]]:
    from perdure.api.array import MODES

    words = [str(program), str(path), str(MODES[case.mode]), str(case.size_bytes)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        turns, answers = running.stdin, running.stdout

        def commit() -> int:
            with suppress(BrokenPipeError):
                turns.write("\n")
                turns.flush()
            answer = answers.readline()
            if not answer:
                raise ProgramFailed(f"{program.name} ended with {running.wait()}")
            return int(answer)

        yield commit
        turns.close()
        if running.wait() != 0:
            raise ProgramFailed(f"{program.name} ended with {running.returncode}")


def _calls(folder: Path, rounds: int) -> Iterator[tuple[str, Sequence[float]]]:
    """Microseconds of each call, one sample a round."""
    folder.mkdir()
    with perdure.open(folder / "opened") as pool:
        pool.restart()
        pool.commit()

    def reopen(_: int) -> None:
        perdure.open(folder / "opened").close()

    yield "open_and_close", _spent_us(reopen, rounds, 1)
    with perdure.open(folder / "pool") as pool:
        state = pool.scalars(iteration=0, t=0.0)

        def make(number: int) -> None:
            pool.array(f"u{number}", 8, mode="twin")

        yield "array", _spent_us(make, rounds, 1)
        u = pool.array("u", 8, mode="twin")
        pool.restart()

        def set_scalar(number: int) -> None:
            state.iteration = number

        yield "scalar_set", _spent_us(set_scalar, rounds, 1000)
        yield "scalar_get", _spent_us(lambda _: state.iteration, rounds, 1000)
        yield "working", _spent_us(lambda _: u.working, rounds, 1000)


def _spent_us(call: Callable[[int], object], rounds: int, calls: int) -> list[float]:
    samples = []
    for number in range(rounds):
        began = time.monotonic_ns()
        for _ in range(calls):
            call(number)
        samples.append((time.monotonic_ns() - began) / calls / 1e3)
    return samples
