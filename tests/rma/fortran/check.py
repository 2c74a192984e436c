#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a Fortran program twice on one pool, and looks into the pool in between.

    check.py MPIEXEC RANKS LIBRARY PROGRAM

The program is started as "PROGRAM first POOL" and "PROGRAM again POOL" with LIBRARY preloaded;
both must print "verdict: right". After the first, `perdure pool show` must tell of version 2 of
all ranks. If the binding's calls were not caught there is no pool.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def run(mpiexec: str, ranks: str, library: str, words: list[str]) -> None:
    """One run of the program; raises SystemExit with its output if it went wrong."""
    preload = os.environ.get("PERDURE_PRELOAD_FIRST", "")
    loaded = f"{preload}:{library}" if preload else library
    command = [str(ROOT / "tools/mpirun.sh"), mpiexec, ranks, str(ROOT / "tests/add_preload.sh"),
               loaded, *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0 or "verdict: right" not in ran.stdout:
        said = ran.stdout + ran.stderr
        raise SystemExit(f"{' '.join(words)} ended with {ran.returncode}:\n{said}")


def pool_of(directory: Path) -> dict:
    """What `perdure pool show` prints; raises SystemExit with its sentence if there is no pool."""
    command = [str(ROOT / "perdure"), "pool", "show", "--json", str(directory)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        raise SystemExit(f"there is no pool, so the calls were not caught: {shown.stderr}")
    return json.loads(shown.stdout)


def main() -> int:
    mpiexec, ranks, library, program = sys.argv[1:]
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-rma-", dir=parent) as place:
        pool = Path(place) / "pool"
        run(mpiexec, ranks, library, [program, "first", str(pool)])
        found = pool_of(pool)
        if (found["version"], found["ranks"]) != (2, int(ranks)):
            print(f"version {found['version']} of {found['ranks']} ranks instead of 2 of {ranks}")
            return 1
        run(mpiexec, ranks, library, [program, "again", str(pool)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
