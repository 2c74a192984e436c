#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program alone, in each language, goes on with what ranks in C made, and they with what it made.

    languages.py DIVIDE MPIEXEC PROGRAM…
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*words: object) -> list[str]:
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0 or "wrong" in done.stdout + done.stderr:
        raise SystemExit(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout.split()


def main() -> int:
    divide, mpiexec, *program = sys.argv[1:]
    launcher = [ROOT / "tools" / "mpirun.sh", mpiexec]
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="perdure-ranks-") as directory:
        pool = Path(directory) / "pool"
        run(*launcher, 3, divide, pool, 2)
        if run(*program, pool) != ["2"]:
            raise SystemExit("another version came back")
        printed = run(*launcher, 2, divide, pool, 1)
        if printed[:3] != ["back", "3", "1"]:
            raise SystemExit(f"the ranks got {printed}")
    print("right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
