#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills the Fortran solver at several steps and compares its answers with an undisturbed one.

    check.py MPIEXEC RANKS PROGRAM
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STEPS = 60


def run(words: list, *options: object) -> str:
    """What the job prints under `perdure run`; SystemExit with that if it went wrong."""
    command = [ROOT / "perdure", "run", *options, "--", *words]
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                         check=False)  # fmt: skip
    if ran.returncode != 0:
        raise SystemExit(f"{words} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def hash_in(text: str) -> str:
    (found,) = re.findall(r"hash (\w{16})", text)
    return found


def main() -> int:
    mpiexec, ranks, program = sys.argv[1:]
    launcher = [ROOT / "tools/mpirun.sh", mpiexec, ranks, program]
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-fortran-", dir=parent) as place:
        answer = hash_in(run([*launcher, Path(place) / "undisturbed", STEPS]))
        for step in (1, 30, STEPS - 1):
            pool = Path(place) / f"killed-{step}"
            kill = ("--kill-rank", 1, "--kill-at", step)
            printed = run([*launcher, pool, STEPS], *kill)
            (first, *_, last) = re.findall(r"restarted from version (\d+)", printed)
            if (int(first), hash_in(printed)) != (0, answer) or int(last) < step - 1:
                print(f"killed at step {step}: {answer} was expected:\n{printed}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
