# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench foreign`: programs of others with the library, over the same ones without.

It runs what it finds: ior, IMB-RMA, IMB-EXT on the PATH, and in each folder of --programs every
program that is linked with an MPI and opens files or makes windows by it. Folders with a
`testlist`, as MPICH's and ROMIO's suites have them, say how many ranks a program wants, with which
words and for how long. None of these programs is part of Perdure.

Each is run as it is first; what fails or takes too long so is left out, and counted. Then rounds in
which each variant takes its turn:

    cache, later    its files are cached from the first access on, or once they have paid for it
    copy, log, twin, flush    its windows are persistent in this mode, with commit=none, as it is
                              making and using them that is compared

    ratio_to_stock   wall time over that of the program as it is in the same round; a case is
                     SUITE/PROGRAM-VARIANT, and all-VARIANT has the median of their medians
    worst_ratio      of all-VARIANT: the largest of their medians, and `program` whose it is
    failed           of all-VARIANT: programs that end well as they are, and not so

Programs of more ranks than processors are in crowded-VARIANT, and not in all-VARIANT, which has a
target, and run once: their ranks wait for a turn in each call that waits for others, so it is the
scheduler that is measured. Wall time has the launcher in it, alike on both sides. Programs that
take no longer than a launcher say little; `stock_s` is what each takes.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from pathlib import Path

from perdure.cache.preload import cache_environment, find_library, preloading
from perdure.programs import OPEN_MPI, ProgramFailed
from perdure.progress import progress
from perdure_bench.facts import Fact, in_turn
from perdure_bench.solver import pool_directory

SUMMARY = "programs of others over the same without the library"
WINDOWS = ("copy", "log", "twin", "flush")
FILES = {"cache": ";from=0", "later": ""}
_TARGET, _WORST_TARGET = 1.1, 2.0
_LIMIT_S = 20
_CROWDED_LIMIT_S = 1
_QUICK_LIMIT_S = 5
_RANKS = 2
_FLAVOURS = {b"libmpich.so.12": "mpich", b"libmpi.so.40": "openmpi"}
_KNOWN = {
    "ior": "-a MPIIO -b 16m -t 64k -i 1 -w -r -o ior.file",
    "IMB-RMA": "-npmin 2 -msglog 0:16 -iter 20",
    "IMB-EXT": "-npmin 2 -msglog 0:16 -iter 20",
}


@dataclass(frozen=True)
class Foreign:
    """A program of others: how it is started, and what it does that the library has a part in."""

    name: str
    path: Path
    flavour: str
    files: bool
    windows: bool
    words: tuple[str, ...] = ()
    ranks: int = _RANKS
    limit_s: float = _LIMIT_S
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def variants(self) -> list[str]:
        return [*(FILES if self.files else ()), *(WINDOWS if self.windows else ())]


def measure(quick: bool, programs: list[Path] | None = None) -> Iterator[Fact]:
    """The facts, as they come; `programs` are folders. Raises ProgramFailed."""
    found = find_foreign(programs or [])
    if not found:
        known = ", ".join(_KNOWN)
        raise ProgramFailed(f"there is none of {known} on the PATH; name folders with --programs")
    find_library()
    rounds, limit_s = (1, _QUICK_LIMIT_S) if quick else (3, _LIMIT_S)
    medians: dict[str, dict[str, float]] = {}
    failed: dict[str, list[str]] = {}
    left_out: list[str] = []
    crowded = {program.name for program in found if program.ranks > len(os.sched_getaffinity(0))}
    with pool_directory() as place, progress("bench foreign", len(found)) as advance:
        for program in found:
            many, most_s = (1, _CROWDED_LIMIT_S) if program.name in crowded else (rounds, limit_s)
            ran = _compare(replace(program, limit_s=min(program.limit_s, most_s)), place, many)
            advance()
            if ran is None:
                left_out.append(program.name)
                continue
            for variant, ratios in ran.ratios.items():
                if ratios is None:
                    failed.setdefault(variant, []).append(program.name)
                    continue
                medians.setdefault(variant, {})[program.name] = statistics.median(ratios)
                more = {"mpi": program.flavour, "ranks": program.ranks, "stock_s": ran.stock_s}
                yield Fact.of("foreign", f"{program.name}-{variant}", "ratio_to_stock", ratios,
                              more=more)  # fmt: skip
    yield from totals(medians, failed, left_out, not quick, crowded)


def totals(
    medians: dict[str, dict[str, float]],
    failed: dict[str, list[str]],
    left_out: list[str],
    claims: bool,
    crowded: Set[str] = frozenset(),
) -> Iterator[Fact]:
    """What all programs say of each variant. `medians`: by variant and program."""
    for variant in (*FILES, *WINDOWS):
        of_programs, wrong = medians.get(variant, {}), failed.get(variant, [])
        roomy = {name: value for name, value in of_programs.items() if name not in crowded}
        rest = {name: value for name, value in of_programs.items() if name in crowded}
        yield from _total(f"all-{variant}", roomy, left_out, claims)
        yield from _total(f"crowded-{variant}", rest, [], claims=False)
        if of_programs or wrong:
            yield Fact.of("foreign", f"all-{variant}", "failed", [len(wrong)], target=0,
                          more={"names": wrong})  # fmt: skip


def _total(
    case: str, of_programs: dict[str, float], left_out: list[str], claims: bool
) -> Iterator[Fact]:
    if not of_programs:
        return
    about = {"programs": len(of_programs), "left_out": left_out}
    target, worst_target = (_TARGET, _WORST_TARGET) if claims else (None, None)
    yield Fact.of("foreign", case, "ratio_to_stock", list(of_programs.values()), target=target,
                  more=about)  # fmt: skip
    worst = max(of_programs, key=lambda name: of_programs[name])
    yield Fact.of("foreign", case, "worst_ratio", [of_programs[worst]], target=worst_target,
                  more={**about, "program": worst})  # fmt: skip


@dataclass(frozen=True)
class _Compared:
    stock_s: float
    ratios: dict[str, list[float] | None]  # by variant; None: it failed


def _compare(program: Foreign, place: Path, rounds: int) -> _Compared | None:
    """None: it does not end well as it is."""
    if _run(program, "stock", place) is None:
        return None
    ratios: dict[str, list[float] | None] = {variant: [] for variant in program.variants}
    stock: list[float] = []
    for _ in range(rounds):
        spent = {way: _run(program, way, place) for way in in_turn(("stock", *ratios))}
        base = spent["stock"]
        if base is None:
            continue
        stock.append(base)
        for variant, taken in ratios.items():
            seconds = spent[variant]
            if taken is not None and seconds is not None:
                taken.append(seconds / base)
            else:
                ratios[variant] = None
    if not stock:
        return None
    return _Compared(statistics.median(stock), ratios)


def _run(program: Foreign, variant: str, place: Path) -> float | None:
    """Seconds, in a folder of its own; None if it fails, or takes longer than its limit."""
    folder = place / "work"
    folder.mkdir()
    given = {**dict(program.environment), **_variables(variant, place)}
    words = ["env", *(f"{name}={value}" for name, value in given.items()), str(program.path),
             *program.words]  # fmt: skip
    launcher = shutil.which(f"mpiexec.{program.flavour}") or "mpiexec"
    began = time.monotonic()
    try:
        done = subprocess.run(
            [launcher, "-n", str(program.ranks), *words], cwd=folder, check=False,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_patience_s(program, variant),
            env={**os.environ, **OPEN_MPI},
        )  # fmt: skip
        seconds = time.monotonic() - began
    except subprocess.TimeoutExpired:
        return None
    finally:
        for left in (folder, place / "pool", place / "parts"):
            shutil.rmtree(left, ignore_errors=True)
    return seconds if done.returncode == 0 else None


def _patience_s(program: Foreign, variant: str) -> float:
    """With the library it may take longer, and then the ratio says so."""
    return program.limit_s * (1 if variant == "stock" else 4)


def _variables(variant: str, place: Path) -> dict[str, str]:
    if variant in FILES:
        return cache_environment(["*"], f"directory={place / 'parts'}{FILES[variant]}")
    if variant in WINDOWS:
        windows = f"pool={place / 'pool'};mode={variant};commit=none"
        return {**preloading(find_library()), "PERDURE_WINDOWS": windows}
    return {}


def on_path() -> list[Foreign]:
    """The known ones that the PATH has."""
    paths = {name: shutil.which(name) for name in _KNOWN}
    found = [look_at(Path(path), name) for name, path in paths.items() if path is not None]
    return [_as_known(program) for program in found if program is not None]


def find_foreign(folders: list[Path]) -> list[Foreign]:
    """Of the PATH and of folders, in order; each program once."""
    found = {program.path: program for program in on_path()}
    for folder in folders:
        if not folder.is_dir():
            raise ProgramFailed(f"{folder} is no folder; --programs takes one with programs in it")
        for path in sorted(folder.rglob("*")):
            program = look_at(path, f"{path.parent.name}/{path.name}")
            if program is not None and program.path not in found:
                found[program.path] = _as_known(_as_listed(program))
    return list(found.values())


def look_at(path: Path, name: str) -> Foreign | None:
    """None: it is no program of a known MPI, or opens no files and makes no windows."""
    if not path.is_file() or not os.access(path, os.X_OK):
        return None
    data = path.read_bytes()
    flavour = next((of for library, of in _FLAVOURS.items() if library in data), None)
    files = b"MPI_File_open" in data or b"mpi_file_open" in data
    windows = re.search(rb"MPI_Win_(create|allocate)|mpi_win_(create|allocate)", data) is not None
    if data[:4] != b"\x7fELF" or b".so" in path.name.encode() or not flavour:
        return None
    if not files and not windows:
        return None
    return Foreign(name, path.resolve(), flavour, files, windows)


def _as_known(program: Foreign) -> Foreign:
    words = _KNOWN.get(program.path.name)
    return replace(program, words=tuple(shlex.split(words))) if words else program


def _as_listed(program: Foreign) -> Foreign:
    """As the first line of its folder's `testlist` says that is its own."""
    try:
        lines = (program.path.parent / "testlist").read_text(errors="replace").splitlines()
    except OSError:
        return program
    for line in lines:
        words = line.split()
        if len(words) < 2 or words[0] != program.path.name or not words[1].isdigit():
            continue
        options = [word.split("=", 1) for word in words[2:] if "=" in word]
        limits = [float(value) for key, value in options if key == "timeLimit" and value.isdigit()]
        return replace(
            program,
            ranks=int(words[1]),
            words=tuple(value for key, value in options if key == "arg"),
            environment=tuple(
                (name, value) for key, pair in options if key == "env"
                for name, _, value in [pair.partition("=")]
            ),
            limit_s=min([*limits, _LIMIT_S]),
        )  # fmt: skip
    return program
