# SPDX-License-Identifier: BSD-3-Clause
"""Part of `perdure bench windows`: single one-sided operations, with the library and without.

The program bench_window_operations knows nothing of Perdure. Short runs alternate: as it is
(plain), the same once more (again), with the library preloaded and nothing persistent (interposed),
and with its window made persistent by the environment, in each mode. A ratio compares two runs of
one round.

    ratio_to_plain   of each operation, and, without one in the line, of the median operation
    floor_ratio      what a ratio can be at the least: that of the plain program to itself; for a
                     commit in modes copy and log, which must write the bytes once more, that of the
                     plain program with a memcpy of each window after the epoch

Case persistent-put is an 8-byte put and flush; all-1MiB-twin is the median operation of that size
there, with the least and the largest; cases such as get-1MiB-twin are one operation of
rank 0 and a flush, of 8 B to 16 MiB (quick: 1 MiB), while rank 1 waits in MPI:

    put, get, rput, rget    one run of bytes; rput and rget are waited for
    put-rows, get-rows      runs of 64 bytes, 128 apart, on both sides
    put-column, get-column  a word in 16 at the target, side by side at the origin; an eighth of the
                            bytes that the case names
    accumulate, get_accumulate, fetch_and_op     MPI_SUM of 64-bit integers
    put-fence, get-fence    in a fence epoch, with its fence
    put-complete            between MPI_Win_start and _complete
    put-whole, get-whole    not in the quick form: a window of 32 MiB is written or read whole, in
                            pieces of 64 KiB, in one fence epoch
    put-whole-commit        the same written, and the fence commits it

Flavours are those that were built, and
an MPICH 5 whose launcher is named by $PERDURE_BENCH_MPICH5: the library that was built with MPICH 4
serves it.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from perdure.programs import Program, ProgramFailed, build_trees, find_programs
from perdure_bench.facts import Fact, in_turn
from perdure_bench.solver import job_output, pool_directory

_PUT = "put 8 B, flush"
MODES = ("copy", "log", "twin", "flush")
_WRITE_AGAIN = ("copy", "log")  # a commit in these modes writes what was put once more
_COMMITS = ";commit=fence;halves=asked"  # put-whole writes all of what the version before held
_WHOLE = "whole"
_LIMIT_S = 120
INTERPOSED_TARGET = 1.02
PERSISTENT_TARGET = 1.1


def measure(quick: bool) -> Iterator[Fact]:
    """The facts of every flavour, as they come. Raises ProgramFailed."""
    rounds, budget_ms, bytes_max = (2, 2, 1 << 20) if quick else (7, 20, 16 << 20)
    for program in _programs():
        with pool_directory() as pools:
            runner = Runner(program, library_of(program.flavour), (budget_ms, bytes_max), pools)
            ran = runner.run_rounds(rounds, ("plain", "again", "interposed", *MODES))
            committing = tuple(mode + _COMMITS for mode in MODES)
            windows = ("plain", "again", *MODES, *committing)
            whole = [] if quick else runner.run_rounds(rounds, windows, _WHOLE)
        yield from _facts(program.flavour, ran, not quick)
        yield from _facts_of_whole(program.flavour, whole)


def _programs() -> list[Program]:
    programs = find_programs("bench_window_operations", "bench")
    launcher = os.environ.get("PERDURE_BENCH_MPICH5")
    mpich = [program for program in programs if program.flavour == "mpich"]
    return programs + [replace(p, flavour="mpich5", launcher=launcher) for p in mpich if launcher]


def library_of(flavour: str) -> Path:
    name = f"libperdure_mpi_{flavour.rstrip('5')}.so"
    for tree in build_trees():
        for path in (tree / "src/capi" / name, tree.parent.parent / "lib" / name):
            if path.exists():
                return path
    raise ProgramFailed(f"there is no {name}; build it first")


Rounds = list[dict[str, dict[str, float]]]  # by variant and operation, nanoseconds


class Runner:
    """Runs the program in each variant; a result is nanoseconds by operation."""

    def __init__(
        self, program: Program, library: Path, extent: tuple[int, ...], pools: Path, ranks: int = 2
    ):
        self._program, self._library, self._extent = program, library, extent
        self._pools, self._ranks = pools, ranks

    def run_rounds(self, rounds: int, variants: tuple[str, ...], *part: str) -> Rounds:
        """For each round, the result of each variant."""
        return [{v: self._run(v, part) for v in in_turn(variants)} for _ in range(rounds)]

    def _run(self, variant: str, part: tuple[str, ...]) -> dict[str, float]:
        given: dict[str, object] = {}
        if variant not in ("plain", "again"):
            given["LD_PRELOAD"] = self._library
        if variant.startswith(MODES):
            given["PERDURE_WINDOWS"] = f"pool={self._pools}/pool;mode={variant}"
        if self._program.flavour == "mpich5":
            place = Path(self._program.launcher).resolve().parent.parent / "lib"
            given["LD_LIBRARY_PATH"] = f"{_alias_directory(self._pools, place)}:{place}"
        words = self._program.command(self._ranks, *self._extent, *part, given=given)
        more = {"OMPI_MCA_mpi_yield_when_idle": "0"}
        try:
            output = job_output(words, f"window_operations, {variant}", _LIMIT_S, more)
        finally:
            shutil.rmtree(self._pools / "pool", ignore_errors=True)
        return json.loads(output.splitlines()[-1])


def _alias_directory(pools: Path, libraries: Path) -> Path:
    """A folder where another MPICH's library has the name that Debian gives it."""
    aliases = pools / "mpich"
    aliases.mkdir(exist_ok=True)
    alias = aliases / "libmpich.so.12"
    if not alias.exists():
        alias.symlink_to(libraries / "libmpi.so.12")
    return aliases


def _facts(flavour: str, ran: Rounds, claims: bool) -> Iterator[Fact]:
    said = _Facts(flavour, ran, claims)
    operations = list(ran[0]["plain"])
    of_each = {name: said.ratios("interposed", name) for name in operations}
    middles = [statistics.median(values) for values in zip(*of_each.values(), strict=True)]
    yield said.fact("interposed", middles, INTERPOSED_TARGET)
    for name, values in of_each.items():
        plain_ns = said.median_ns("plain", name)
        yield said.fact("interposed", values, None, operation=name, plain_ns=plain_ns)
    for name in operations:
        case = _case_of(name)
        for mode in MODES if case else ():
            yield said.in_mode(f"{case}-{mode}", mode, name)
            if name == _PUT:
                yield said.in_mode("persistent-put", mode, name)
        if case:
            yield said.floor(case, name)
    for size in dict.fromkeys(filter(None, map(_size_of, operations))):
        for mode in MODES:
            yield said.of_size(size, mode, [name for name in operations if _size_of(name) == size])


def _facts_of_whole(flavour: str, ran: Rounds) -> Iterator[Fact]:
    said = _Facts(flavour, ran, True)
    for name in ran[0]["plain"] if ran else ():
        case = _case_of(name)
        if not case or name.endswith("floor"):
            continue
        yield said.floor(case, name)
        for mode in MODES:
            yield said.in_mode(f"{case}-{mode}", mode, name)
        if not name.startswith("put-whole"):
            continue
        for mode in MODES:
            committed = f"{case.replace('fence', 'commit')}-{mode}"
            yield said.in_mode(committed, mode, name, _COMMITS)
            bare = name.replace("fence", "floor") if mode in _WRITE_AGAIN else name
            yield said.floor(committed, name, bare)


class _Facts:
    """Makes facts of rounds."""

    def __init__(self, flavour: str, ran: Rounds, claims: bool):
        self._flavour, self._ran, self._claims = flavour, ran, claims

    def fact(
        self,
        case: str,
        ratios: list[float],
        target: float | None,
        metric: str = "ratio_to_plain",
        **more: Any,
    ) -> Fact:
        claimed = target if self._claims else None
        about = {"mpi": self._flavour, **more}
        return Fact.of("windows", case, metric, ratios, target=claimed, more=about)

    def in_mode(self, case: str, mode: str, operation: str, also: str = "") -> Fact:
        ratios = self.ratios(mode + also, operation)
        spent_ns = self.median_ns(mode + also, operation)
        more: dict[str, Any] = {"mode": mode, "operation": operation, "operation_ns": spent_ns}
        return self.fact(case, ratios, PERSISTENT_TARGET, **more)

    def of_size(self, size: str, mode: str, operations: list[str]) -> Fact:
        ratios = [statistics.median(self.ratios(mode, name)) for name in operations]
        about = {"mpi": self._flavour, "mode": mode}
        return Fact(
            "windows",
            f"all-{size}-{mode}",
            "ratio_to_plain",
            statistics.median(ratios),
            "",
            min(ratios),
            max(ratios),
            len(ratios),
            more=about,
        )

    def floor(self, case: str, operation: str, bare: str | None = None) -> Fact:
        """`bare`: the operation of the plain program that does the least that is needed."""
        ratios = self.ratios("again", operation, bare or operation)
        return self.fact(case, ratios, None, metric="floor_ratio", operation=operation)

    def ratios(self, variant: str, operation: str, measured: str | None = None) -> list[float]:
        name = measured or operation
        return [around[variant][name] / around["plain"][operation] for around in self._ran]

    def median_ns(self, variant: str, operation: str) -> float:
        return statistics.median(around[variant][operation] for around in self._ran)


def _size_of(operation: str) -> str | None:
    case = _case_of(operation)
    return case.rpartition("-")[2] if case else None


def _case_of(operation: str) -> str | None:
    """get-1MiB of "get 1 MiB, flush"; None of what transfers nothing."""
    words = operation.replace(",", "").split()
    if len(words) != 4:
        return None
    kind, size, unit, end = words
    active = f"-{end}" if end in ("fence", "complete") else ""
    return f"{kind}{active}-{size}{unit}"
