# SPDX-License-Identifier: BSD-3-Clause
"""Whole programs in four languages, as users build them: with what `perdure config` says. Each is
killed, restarted, and must end with the answer of an undisturbed run.

The same for every way to install, whose tests give the shell: a function that runs a script in a
user's folder, where `perdure` is found and $POOLS is a folder for pools, and gives what it prints.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from conftest import ROOT, SLOW

Shell = Callable[[str], str]
LANGUAGES = ("c", "c++", "fortran", "python")
KILLED_AT = 200
# By eval, because there may be spaces in what `perdure config` says.
BUILDS = {
    "c": 'eval "cc -o heat_c heat.c $(perdure config --cflags --libs)"',
    "c++": 'eval "c++ -std=c++20 -o heat_cxx heat.cpp $(perdure config --cflags --libs)"',
    "fortran": 'eval "gfortran -o heat_f $(perdure config --fortran) heat.f90'
    ' $(perdure config --libs)"',
    "ipv": '"$(perdure config --bindir)/perdure-clang++" --ipv=all -std=c++20 -O2 -o heat_ipv'
    " heat_ipv.cpp",
}
STARTS = {"c": "./heat_c", "c++": "./heat_cxx", "fortran": "./heat_f", "ipv": "./heat_ipv"}


def put_sources(folder: Path) -> None:
    """Writes what the programs are made of to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    extract = [sys.executable, ROOT / "tests/docs/readme.py", "extract", "c", folder / "heat.c"]
    subprocess.run([str(word) for word in extract], check=True)
    examples = ("heat.cpp", "heat.f90", "heat.py", "heat_ipv.cpp", "heat_window.cpp")
    files = [ROOT / "examples" / name for name in examples]
    files += [ROOT / "tests/python/programs/counter.c", ROOT / "tests/fortran/jacobi.f90"]
    for file in (*files, ROOT / "tests/veloc/heat.c"):
        name = "veloc.c" if file.parent.name == "veloc" else file.name
        shutil.copy(file, folder / name)


@cache
def answer() -> float:
    """u[10] of the program of README.md, computed here."""
    now = [0.0] * 1000
    for _ in range(500):
        inner = [(now[i - 1] + now[i] + now[i + 1]) / 3 for i in range(1, 999)]
        now = [1.0, *inner, (now[998] + now[999] + now[999]) / 3]
    return now[10]


def answer_in(said: str) -> float:
    (line,) = [line for line in said.splitlines() if line.startswith("u[10] is ")]
    return float(line.split()[-1])


def killed_and_restarted(shell: Shell, start: str, kill_at: int = KILLED_AT) -> str:
    """What a job prints that is killed and started again once."""
    said = shell(
        f"perdure run --restarts 1 --kill-at {kill_at} --json job.json -- {start}; cat job.json"
    )
    said, _, job = said.partition("{\n")
    assert len(json.loads("{" + job)["attempts"]) == 2, job
    return said


def check_language(shell: Shell, language: str, python: str = "python3") -> None:
    """Builds the program of README.md in a language; it must survive."""
    start = STARTS.get(language, f"{python} heat.py")
    if language in BUILDS:
        shell(BUILDS[language])
    name = language.replace("+", "x")
    pool, killed = f'"$POOLS/{name}"', f'"$POOLS/killed-{name}"'
    undisturbed = shell(f"{start} {pool}")
    assert undisturbed.startswith("begins at step 0\n")
    assert answer_in(undisturbed) == answer()
    again = killed_and_restarted(shell, f"{start} {killed}")
    assert f"begins at step {KILLED_AT - 1}\n" in again
    assert answer_in(again) == answer()
    shell(f"perdure pool check {killed} && perdure pool rm --yes {pool} {killed}")


def check_mpi(shell: Shell, mpi: str) -> None:
    """Programs of two ranks in C and C++, and one that was written for VELOC."""
    mpicc = os.environ[f"PERDURE_TEST_MPICC_{mpi}"]
    mpiexec = os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]
    flags = f"$(perdure config --mpi {mpi} --cflags --libs)"
    shell(f'eval "{mpicc} -DPERDURE_COUNTER_MPI -o count_{mpi} counter.c {flags}"')
    start = f"{mpiexec} -n 2 ./count_{mpi} \"$POOLS/count-{mpi}\" 50"
    assert killed_and_restarted(shell, start, 20).count("counted to 50\n") == 2

    mpicxx = mpicc.replace("mpicc", "mpicxx")
    shell(f'eval "{mpicxx} -std=c++20 -o window_{mpi} heat_window.cpp {flags}"')
    again = killed_and_restarted(shell, f'{mpiexec} -n 2 ./window_{mpi} "$POOLS/window-{mpi}"')
    assert answer_in(again) == answer() and f"begins at step {KILLED_AT - 1}\n" in again

    flags = "$(perdure config --veloc --cflags --libs)"
    shell(f'eval "{mpicc} -o veloc_{mpi} veloc.c {flags} -lm"')
    shell("printf 'scratch = scratch\npersistent = persistent\nmode = sync\n' > veloc.cfg")
    said = shell(f"{mpiexec} -n 2 ./veloc_{mpi} veloc.cfg 20 5; rm -r scratch persistent")
    assert "at 20\n" in said


def check_mpi_in_fortran(shell: Shell, mpi: str) -> None:
    """A program of two ranks with mpi_f08."""
    mpicc = os.environ[f"PERDURE_TEST_MPICC_{mpi}"]
    mpiexec = os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]
    mpifort = mpicc.replace("mpicc", "mpifort")
    if shutil.which(mpifort) is None or shutil.which("gfortran") is None:
        pytest.skip(f"needs gfortran and {mpifort}")
    package = f"perdure config --mpi {mpi}"
    sources = f"$({package} --fortran) jacobi.f90 $({package} --libs)"
    shell(f'eval "{mpifort} -o jacobi_{mpi} {sources}"')
    start = f"{mpiexec} -n 2 ./jacobi_{mpi}"
    (whole,) = hashes_in(shell(f'{start} "$POOLS/jacobi-{mpi}" 60'))
    again = killed_and_restarted(shell, f'{start} "$POOLS/killed-jacobi-{mpi}" 60', 30)
    assert hashes_in(again) == [whole] and "restarted from version 29\n" in again


def hashes_in(said: str) -> list[str]:
    return [line.split()[-1] for line in said.splitlines() if line.startswith("hash ")]


def skip_without(language: str) -> None:
    """Skips where there is no compiler."""
    needed = {"fortran": "gfortran", "ipv": "clang-19"}.get(language)
    if needed is not None and shutil.which(needed) is None:
        pytest.skip(f"needs {needed}")


def check_cmake(shell: Shell) -> None:
    """A project in C and C++ that finds Perdure where `perdure config` says; in C if not SLOW."""
    programs = {"heat": "heat.c", "heat_cxx": "heat.cpp"} if SLOW else {"heat": "heat.c"}
    lines = [
        "cmake_minimum_required(VERSION 3.25)",
        f"project(user LANGUAGES C {'CXX' if SLOW else ''})", "find_package(perdure 0.1 REQUIRED)",
        *(f"add_executable({name} {source})" for name, source in programs.items()),
        *(f"target_link_libraries({name} perdure::perdure)" for name in programs),
    ]  # fmt: skip
    written = "\n".join(lines)
    shell(f"mkdir -p user && cp heat.c heat.cpp user && echo '{written}' > user/CMakeLists.txt")
    shell('cmake -S user -B user/build -Dperdure_DIR="$(perdure config --cmakedir)"')
    shell("cmake --build user/build")
    for program in programs:
        pool = f'"$POOLS/{program}"'
        assert answer_in(shell(f"user/build/{program} {pool}")) == answer()
        shell(f"perdure pool rm --yes {pool}")
