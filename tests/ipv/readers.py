#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whoever reads an object by its address sees the program's own values, in every tier.

    readers.py --build DIR [--all] [MPI=MPICC=MPIEXEC …]

readers.c has the readers that a compiler does not see: pending sends, puts and writes, a signal
handler, other threads, and a second name of the same memory; and programs at whose objects nobody
looks. perdure-clang announces their nests. Results are compared with the same program's without
Perdure, by default and in tier stream. There the report must say that boxes were taken where nobody
looks, and else who looked. Beside an MPI library three of six kinds are asked, one of them drawn,
or with --all all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
MPIRUN = str(HERE.parents[1] / "tools/mpirun.sh")
# What the report says of the object, of boxes that were not taken; None: it was not asked, as the
# nest itself touches the object; "": all boxes were taken.
CASES = {"section": None, "arena": None, "handler": "handles signal 14",
         "threads": "other threads", "reader": "other threads", "pool": "other threads",
         "aio": "other threads", "context": "asynchronous I/O", "ring": "io_uring", "alone": ""}
# MPI has threads, too: they must be distinguished from the program's.
BESIDE_MPI = ("handler", "alone")
OTHERS_BESIDE_MPI = ("threads", "reader", "pool", "aio")
MPI_CASES = {"isend": "given to MPI", "issend": "given to MPI", "start": "given to MPI",
             "put": "given to MPI", "iwrite": "given to MPI", "buffer": ""}


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


def is_reported(report: dict, onlooker: str | None) -> bool:
    (found,) = report["objects"]
    if found["tier"] != "stream":
        return False
    if onlooker is None:
        return found["boxes"] == 0 and found["boxes_refused"] == 0
    if onlooker == "":
        return found["boxes"] > 0 and found["boxes_refused"] == 0
    return found["boxes_refused"] > 0 and onlooker in found.get("onlooker", "")


def is_wrong(name: str, launcher: list[str], program: Path, case: str,
             onlooker: str | None) -> bool:
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ipv-readers-") as scratch:
        native = output(*launcher, program, case, "-")
        copied = output(*launcher, program, case, f"{scratch}/copy")
        os.environ["PERDURE_IPV"] = "tier=stream"
        streamed = output(*launcher, program, case, f"{scratch}/stream")
        os.environ.pop("PERDURE_IPV")
        report = json.loads((Path(scratch) / "stream.report").read_text())
    said = is_reported(report, onlooker)
    print(f"{name}: {native}; copy: {copied}; stream: {streamed}" + ("" if said else f"; {report}"))
    return not (native == copied == streamed and said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("mpis", nargs="*", metavar="MPI=MPICC=MPIEXEC")
    options = parser.parse_args()
    os.environ.pop("PERDURE_IPV", None)
    tree = options.build.resolve()
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "readers"
        build(tree, program, "-lperdure", "-lm", "-pthread")
        for case, onlooker in CASES.items():
            wrong += is_wrong(case, [], program, case, onlooker)
        for mpi in options.mpis:
            name, compiler, launcher = mpi.split("=")
            program = Path(scratch) / f"readers_{name}"
            build(tree, program, "-DWITH_MPI", f"-lperdure_mpi_{name}", *mpi_words(compiler))
            others = OTHERS_BESIDE_MPI if options.all else (random.choice(OTHERS_BESIDE_MPI),)
            for case in (*BESIDE_MPI, *others):
                wrong += is_wrong(f"{case}, {name}", [MPIRUN, launcher, "1"], program, case,
                                  CASES[case])
            for case, onlooker in MPI_CASES.items():
                wrong += is_wrong(f"{case}, {name}", [MPIRUN, launcher, "2"], program, case,
                                  onlooker)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
