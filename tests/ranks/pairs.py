#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Windows, or cached files, that jobs of other numbers of ranks go on with, and what is refused.

    pairs.py PROGRAM MPIEXEC [TRIAL=SENTENCE…]

Each pair of numbers up to 4: one makes a pool with `PROGRAM`, the other goes on with it, and the
first one with that. Then each TRIAL, of three ranks with what two made, is refused with SENTENCE,
and two ranks go on as if nothing had been.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from check import LIMIT_S, ROOT, Failure, Jobs

MOST = 4


def pair(program: str, mpiexec: str, directory: Path, old: int, new: int) -> None:
    """`new` ranks go on with what `old` ranks made, and these with that."""
    jobs = Jobs(program, mpiexec, directory / f"pool-{old}-{new}")
    jobs.start(old, 2, None)
    for ranks, came_from, version in ((new, old, 2), (old, new, 4)):
        printed = jobs.start(ranks, 2, None)
        if [int(word) for word in printed[:2]] != [version, came_from]:
            raise Failure(f"{came_from} to {ranks} ranks: {printed}, not version {version}")
        jobs.look()
    print(f"{old} to {new} and back")


def refusal(program: str, mpiexec: str, pool: Path, trial: str, sentence: str) -> None:
    """Three ranks try; then two go on."""
    jobs = Jobs(program, mpiexec, pool)
    jobs.start(2, 2, None)
    command = [str(ROOT / "tools" / "mpirun.sh"), mpiexec, "3", program, str(pool), trial]
    said = ""
    for _ in range(3):  # MPICH's launcher may hang up before it has passed on what ranks said
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        said = done.stdout + done.stderr
        if said or done.returncode == 0:
            break
    if done.returncode == 0 or sentence not in said:
        raise Failure(f"{trial}: {done.returncode}: not {sentence!r} but {said}")
    printed = jobs.start(2, 2, None)
    if [int(word) for word in printed[:2]] != [2, 2]:
        raise Failure(f"after {trial}: {printed}")
    print(f"{trial}: refused")


def main() -> int:
    program, mpiexec, *trials = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="perdure-ranks-") as directory:
        for old in range(1, MOST + 1):
            for new in range(old + 1, MOST + 1):
                pair(program, mpiexec, Path(directory), old, new)
        for each in trials:
            trial, _, sentence = each.partition("=")
            refusal(program, mpiexec, Path(directory) / trial, trial, sentence)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(failure)
        sys.exit(1)
