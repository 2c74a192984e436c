#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whoever reads an object by its address sees the program's own values, by default.

    readers.py --build DIR [MPI=MPICC=MPIEXEC …]

readers.c has the readers that a compiler does not see: a pending send, a signal handler, another
thread, and a second name of the same memory. perdure-clang makes rows of its loops; the default
tier does not use them. Its results are compared with the same program's without Perdure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
MPIRUN = str(HERE.parents[1] / "tools/mpirun.sh")
CASES = ("section", "arena", "handler", "threads")


def build(tree: Path, program: Path, *words: str) -> None:
    """`words`: flags and libraries beside the usual ones."""
    library = tree / "src/capi"
    command = [tree / "trace/bin/perdure-clang", "--ipv=all", "-O2", f"-I{INCLUDE}",
               HERE / "readers.c", f"-L{library}", f"-Wl,-rpath,{library}", *words, "-o", program]
    subprocess.run([str(word) for word in command], check=True)


def output(*words: object) -> str:
    """What the command prints; it must end with 0."""
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def mpi_words(compiler: str) -> list[str]:
    """What the wrapper gives its compiler."""
    shown = subprocess.run([compiler, "-show"], capture_output=True, text=True, check=True)
    return [word for word in shown.stdout.split()[1:] if word.startswith(("-I", "-L", "-l", "-W"))]


def differs(name: str, launcher: list[str], program: Path, case: str) -> bool:
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ipv-readers-") as scratch:
        native = output(*launcher, program, case, "-")
        found = output(*launcher, program, case, f"{scratch}/pool")
    print(f"{name}: {native}" + ("" if native == found else f"; with versions: {found}"))
    return native != found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("mpis", nargs="*", metavar="MPI=MPICC=MPIEXEC")
    options = parser.parse_args()
    os.environ.pop("PERDURE_IPV", None)
    tree = options.build.resolve()
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "readers"
        build(tree, program, "-lperdure", "-lm", "-pthread")
        for case in CASES:
            wrong += differs(case, [], program, case)
        for mpi in options.mpis:
            name, compiler, launcher = mpi.split("=")
            program = Path(scratch) / f"readers_{name}"
            build(tree, program, "-DWITH_MPI", f"-lperdure_mpi_{name}", *mpi_words(compiler))
            wrong += differs(f"send, {name}", [MPIRUN, launcher, "2"], program, "send")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
