# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench advise`: what `perdure advise` predicts, beside what is measured.

Each program runs as it is, then recorded, then with the protection that was advised, in turns. A
version is made in every iteration, which is the dearest that there is; at the interval that is
advised all of these cost next to nothing.

    predicted_ratio   1 + the commit that advise tried / the time of an iteration, in the middle
                      between the most and the least that a version may have; of a cached file the
                      predicted time of its calls with the cache, over without
    measured_ratio    the loop with a version in every iteration, over the loop of the program as it
                      is; the calls on the files with the cache, over without
    recording_ratio   the loop while it was recorded, over the loop of the program as it is; not of
                      those of MPI, whose wall time depends on what else runs
    right             1: predicted and measured are within 0.1, or neither cache nor none saves 10 %
                      or both say the same
    wrong             of all programs: how many; the target is less than one in eight
    recording_ratio   of all programs: the median of all rounds
    recording_cpu     of a processor, that recording took: the share of the run's time, all rounds

Loops are timed by the processor's seconds, all threads, which other programs on a busy machine
hardly change; those of MPI, which spin while they wait, by their median iteration. In-place
versioning has no thread beside the loop here, so that what it copies counts.

What is protected is what the program's own option protects, or what its loop carries. Advice counts
all that changes, which for NPB is up to six times as much, since it also counts what each iteration
computes anew; the least is its largest block.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perdure.advise.cached import predict_files
from perdure.advise.judge import choose
from perdure.advise.place import measure_commit, medium_of
from perdure.advise.program import program_of
from perdure.advise.recording import Recording, record
from perdure.cache.calibrate import recorded
from perdure.cache.record import read_records
from perdure.programs import (
    CLONE,
    OPEN_MPI,
    Program,
    ProgramFailed,
    find_program,
    find_programs,
    output_of,
)
from perdure.progress import progress
from perdure_bench.facts import Fact, in_turn, reported
from perdure_bench.solver import disk_directory, last_report, pool_directory, solve

SUMMARY = "what `perdure advise` predicts of programs, beside what is measured"
RANKS = 2
NEAR = 0.1  # of the run time
_LIMIT_S = 300

Loop = tuple[float, int]  # seconds, iterations


@dataclass(frozen=True)
class Looped:
    """A program with a loop: how it is run as it is, and with the protection that was advised."""

    name: str
    kind: str  # what the program is, for the table
    plain: Callable[[], list[str]]
    protected: Callable[[Path, str], list[str]]  # by pool and mode
    loop: Callable[[str], Loop]  # of what it prints
    what: str = "pool"  # what has to be advised
    by_cpu: bool = True  # its times are the processor's


@dataclass(frozen=True)
class Filed:
    """A program of MPI-IO; FILE and FOLDER in its words are where its files are."""

    name: str
    kind: str
    stem: str
    folder: str
    ranks: int
    words: tuple[object, ...]


@dataclass
class Round:
    """Of one program: ratios, and what was advised."""

    predicted: float
    measured: float
    recording: float | None
    about: dict[str, Any] = field(default_factory=dict)


def looped(quick: bool) -> list[Looped]:
    """Programs with loops. Raises ProgramFailed if one is not built."""
    solver, pagerank = find_programs("hpccg")[0], find_programs("pagerank")[0]
    edge, scale, steps = (40, 14, 1) if quick else (100, 20, 3)
    return [
        Looped("hpccg", "C++, MPI, windows for its halo: arrays",
               lambda: solve(solver, RANKS, edge, 10 * steps, "--protect", "none"),
               lambda pool, mode: solve(solver, RANKS, edge, 10 * steps, "--protect", mode,
                                        "--pool", pool), _solver_loop, by_cpu=False),
        _pagerank(pagerank, scale, 25 * steps),
        *(_npb(name, "S" if quick else "A", count * steps)
          for name, count in (("sp", 9), ("bt", 5), ("ft", 2), ("lu", 9), ("mg", 3))),
        _eddy(128 if quick else 256, 60 * steps),
        _loop("wave", "C: a stencil in place, and a scratch array", 400 if quick else 1600,
              15 * steps),
        _loop("lbm", "C: lattice Boltzmann, two arrays that swap", 150 if quick else 512,
              10 * steps),
        _loop("particles", "C: particles, of which a few move", 200_000 if quick else 2_000_000,
              30 * steps),
        _python(500 if quick else 1600, 20 * steps),
    ]  # fmt: skip


def filed(quick: bool) -> list[Filed]:
    """Programs of MPI-IO."""
    calls, nodes, size = (5_000, 600, 8) if quick else (100_000, 3000, 64)
    small = [f"write:sequential:1048576:{size}", f"write:random:32:{calls}",
             f"read:random:32:{calls}"]  # fmt: skip
    large = [f"write:sequential:1048576:{size}"]
    accesses = "bench_file_accesses"
    return [
        Filed("matpower", "C++, MPI-IO: powers of a matrix by rows", "matpower", "apps", 1,
              ("--nodes", nodes, "--power", 8, "--directory", "FOLDER", "--json")),
        Filed("records", "C++, MPI-IO: small records at random", accesses, "bench", 2,
              ("FILE", size << 20, *small)),
        Filed("dump", "C++, MPI-IO: a large file, once, in order", accesses, "bench", 2,
              ("FILE", size << 20, *large)),
    ]  # fmt: skip


def _solver_loop(printed: str) -> Loop:
    report = last_report(printed)
    return report["iteration_median_s"] * report["iterations"], report["iterations"]


def _pagerank(program: Program, scale: int, iterations: int) -> Looped:
    def command(*options: object) -> list[str]:
        return program.command(RANKS, "--rmat", scale, "--iterations", iterations, "--json",
                               *options)

    def loop(printed: str) -> Loop:
        facts = reported(printed, "pagerank", "loop_s")
        iterations = int(facts["iterations"].value)
        return facts["iteration_s"].value * iterations, iterations

    return Looped("pagerank", "C++, MPI, one-sided: windows", lambda: command("--protect", "none"),
                  lambda pool, mode: command("--protect", mode, "--pool", pool), loop, "windows",
                  by_cpu=False)


def _last_json(printed: str) -> Loop:
    report = json.loads(printed.splitlines()[-1])
    return report["loop_cpu_s"], report["iterations"]


def _npb(name: str, size: str, iterations: int) -> Looped:
    def command(*options: object) -> list[str]:
        program = find_program(f"npb_{name}", "apps")
        words = [program, "--class", size, "--iterations", iterations, "--json", *options]
        return [str(word) for word in words]

    return Looped(f"npb-{name}", "C++: NPB, in place", command,
                  lambda pool, _: command("--protect", "ipv", "--tier", "copy", "--pool", pool),
                  _last_json)


def _eddy(edge: int, steps: int) -> Looped:
    def command(*options: object) -> list[str]:
        program = find_program("eddy", "apps")
        return [str(word) for word in (program, "--n", edge, "--steps", steps, "--json", *options)]

    return Looped("eddy", "C++: eddies, fifteen arrays", command,
                  lambda pool, _: command("--protect", "ipv", "--tier", "copy", "--pool", pool),
                  _last_json)


def _of_line(printed: str) -> Loop:
    seconds, steps, _ = printed.split()
    return float(seconds), int(steps)


def _loop(name: str, kind: str, size: int, steps: int) -> Looped:
    program = find_program("bench_advised_loops")
    words = [str(program), name, str(size), str(steps)]
    return Looped(name, kind, lambda: words, lambda pool, mode: [*words, str(pool), mode], _of_line)


def _python(cells: int, steps: int) -> Looped:
    source = CLONE / "bench/advised_loop.py"
    if not source.exists():
        raise ProgramFailed(f"{source} is not there: this benchmark needs a clone")
    words = [sys.executable, str(source), str(cells), str(steps)]
    return Looped("python", "Python: heat by numpy, in place", lambda: words,
                  lambda pool, _: [*words, str(pool)], _of_line)


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    loops, files = looped(quick), filed(quick)
    rounds = 1 if quick else 3
    wrong: list[str] = []
    slower: list[float] = []  # while recorded
    shares: list[float] = []
    with (
        pool_directory() as pools,
        tempfile.TemporaryDirectory(prefix="perdure-advise-", dir=disk_directory()) as disk,
        progress("bench advise", rounds * (len(loops) + len(files))) as advance,
    ):
        cases: list[Looped | Filed] = [*loops, *files]
        for case in cases:
            found = []
            for _ in range(rounds):
                found.append(_loop_round(case, pools) if isinstance(case, Looped)
                             else _file_round(case, Path(disk), pools))
                advance()
            facts = facts_of(case, found)
            wrong += [case.name] * (facts[-1].value == 0)
            slower += [one.recording for one in found if one.recording is not None]
            shares += [one.about["looking_s"] / one.about["run_s"] for one in found
                       if "looking_s" in one.about]
            yield from facts
    yield Fact.of("advise", "all", "recording_ratio", slower)
    yield Fact.of("advise", "all", "recording_cpu", shares)
    yield wrong_fact(wrong, len(loops) + len(files), quick)


def wrong_fact(wrong: list[str], programs: int, quick: bool) -> Fact:
    """How many of the programs were predicted wrongly; less than one in eight is the target."""
    target = None if quick else programs / 8
    holds = None if target is None else len(wrong) < target
    return Fact("advise", "all", "wrong", len(wrong), "", None, None, 1, target, holds,
                {"programs": programs, "which": ", ".join(wrong) or "none"})


def facts_of(case: Looped | Filed, rounds: Sequence[Round]) -> list[Fact]:
    """The facts of one program; the last is whether it was predicted rightly."""
    about = {"program": case.kind, **rounds[-1].about}

    def fact(metric: str, values: list[float]) -> Fact:
        return Fact.of("advise", case.name, metric, values, more=about)

    made = [fact("predicted_ratio", [one.predicted for one in rounds]),
            fact("measured_ratio", [one.measured for one in rounds])]
    judged = (is_right_of_files if isinstance(case, Filed) else is_right)(
        made[0].value, made[1].value)
    if isinstance(case, Looped):
        judged = judged and about["advised"] == case.what
        slower = [one.recording for one in rounds if one.recording is not None]
        made += [fact("recording_ratio", slower)] if slower else []
    return [*made, fact("right", [float(judged)])]


def is_right(predicted: float, measured: float) -> bool:
    """Of a protection: within a tenth of the run time."""
    return abs(predicted - measured) <= NEAR


def is_right_of_files(predicted: float, measured: float) -> bool:
    """Of a cache: both say that it pays, or that it does not, or it hardly matters."""
    near = 1 - NEAR <= measured <= 1 + NEAR and 1 - 2 * NEAR <= predicted <= 1 + 2 * NEAR
    return near or (predicted < 1) == (measured < 1)


def _loop_round(case: Looped, pools: Path) -> Round:
    """Runs it as it is, before or after it is recorded and then protected as was advised."""
    pool = pools / "pool"
    plain_first = in_turn([True, False])[0]
    before = [case.loop(_output(case.plain(), case.name))] if plain_first else []
    recording, printed = _record(case.plain())
    recorded_s = case.loop(printed)[0]
    program = program_of(recording)
    choice = choose(program)
    commit = measure_commit(medium_of(pools), program.ranks_seen, choice.bytes, choice.mode,
                            choice.share)
    mode = choice.mode if choice.what == case.what else "copy"
    shutil.rmtree(pool, ignore_errors=True)
    try:
        protected_s = case.loop(_output(case.protected(pool, mode), f"{case.name}, protected"))[0]
    finally:
        shutil.rmtree(pool, ignore_errors=True)
    plain_s, iterations = (before or [case.loop(_output(case.plain(), case.name))])[0]
    about = {"advised": choice.what, "mode": choice.mode, "bytes": choice.bytes,
             "commit_ms": 1e3 * commit.seconds, "iteration_ms": 1e3 * plain_s / iterations,
             "looks": program.looks, "run_s": recording.run_s, "looking_s": recording.looking_s}
    slower = recorded_s / plain_s if case.by_cpu else None
    most = commit.seconds * iterations / plain_s
    about |= {"most_ratio": 1 + most, "least_ratio": 1 + choice.least * most}
    return Round(1 + most * (1 + choice.least) / 2, protected_s / plain_s, slower, about)


def _output(command: list[str], name: str) -> str:
    paths = [p for p in sys.path if (Path(p) / "perdure").is_dir()]
    surroundings = {**os.environ, **OPEN_MPI, "PYTHONPATH": os.pathsep.join(paths),
                    "PERDURE_IPV": "helper=off"}
    return output_of(command, name, surroundings, _LIMIT_S)


def _record(command: list[str]) -> tuple[Recording, str]:
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        made = record(command, output)
        output.seek(0)
        printed = output.read()
    if made.exit_code:
        raise ProgramFailed(f"{command[0]} ended with {made.exit_code}: {printed[-300:].strip()}")
    return made, printed


def _file_round(case: Filed, disk: Path, pools: Path) -> Round:
    """Runs it without the cache and with it; the prediction is of the first of them."""
    program = find_programs(case.stem, case.folder)[0]
    seconds: dict[str | None, float] = {}
    predicted = 1.0
    for cache in in_turn([None, f"directory={pools}"]):
        with tempfile.TemporaryDirectory(prefix="case-", dir=disk) as place:
            made = {"FILE": f"{place}/accesses.bin", "FOLDER": place}
            words = [made.get(str(word), word) for word in case.words]
            recorded(program, case.ranks, words, Path(place), cache)
            run = read_records([Path(place) / "record"])
            seconds[cache] = sum(use.measured_s for use in run.files)
            if cache is None:
                found, unknown = predict_files(run, pools)
                if unknown:
                    raise ProgramFailed(f"{case.name}: {unknown}")
                with_s = sum(one.with_s for one, _ in found)
                predicted = with_s / sum(one.without_s for one, _ in found)
    measured = seconds[f"directory={pools}"] / seconds[None]
    about = {"advised": "cache" if predicted < 1 else "no cache", "files": len(run.files),
             "without_s": seconds[None]}
    return Round(predicted, measured, None, about)

