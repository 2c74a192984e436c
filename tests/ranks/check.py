#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that come back on other numbers of ranks, and are killed while they change it.

    check.py KILLS PROGRAM MPIEXEC

Runs PROGRAM (divide, windows, files) on 4, 2, 3, 1, … ranks in turn. Each change is tried with one
rank killed at a moment that is drawn from the time that the change takes, until KILLS ranks were
killed; then the job is started on the next number of ranks. The version must be one that was
committed, no older than the last that was acknowledged, and all that comes back must be right.
What a killed job leaves is looked at with `perdure pool check`. Prints the seed;
$PERDURE_TEST_SEED repeats it.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = (4, 2, 3, 1)
STEPS = 2
LIMIT_S = 120


class Failure(Exception):
    """What was not as it should be."""


class Jobs:
    """Starts of the program on one pool."""

    def __init__(self, program: str, mpiexec: str, pool: Path):
        self._program, self._mpiexec, self._pool = program, mpiexec, pool
        self.newest = 0

    def start(self, ranks: int, steps: int, kill: tuple[int, int] | None) -> list[str]:
        """What rank 0 printed; []: it was killed before that."""
        launcher = [str(ROOT / "tools" / "mpirun.sh"), self._mpiexec, str(ranks)]
        command = [*launcher, self._program, str(self._pool), str(steps)]
        if kill is not None:
            command += [str(number) for number in kill]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if "wrong" in done.stdout + done.stderr:
            raise Failure(f"{shlex.join(command)}: {done.stdout}{done.stderr}")
        lines = [line.split() for line in done.stdout.splitlines()]  # and the launcher's own
        if kill is None and done.returncode != 0 and ["ends", "killed"] not in lines:
            raise Failure(f"{shlex.join(command)}: {done.returncode}: {done.stderr}")
        return next((line[1:] for line in lines if line[:1] == ["back"]), [])

    def look(self) -> None:
        """Nothing is damaged, whoever was killed when."""
        done = subprocess.run(
            [ROOT / "perdure", "pool", "check", self._pool],
            capture_output=True, text=True, timeout=LIMIT_S, check=False,
        )  # fmt: skip
        if "damage" in done.stdout.lower() or done.returncode not in (0, 1):
            raise Failure(f"pool check: {done.returncode}: {done.stdout}{done.stderr}")

    def judge(self, printed: list[str], most: int) -> None:
        version = int(printed[0])
        if not self.newest <= version <= most:
            raise Failure(f"version {version} came back, not {self.newest} to {most}")
        self.newest = version


def main() -> int:
    kills, program, mpiexec = int(sys.argv[1]), *sys.argv[2:]
    seed = int(os.environ.get("PERDURE_TEST_SEED", "0")) or time.time_ns() % 2**31
    print(f"PERDURE_TEST_SEED={seed}", flush=True)
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="perdure-ranks-") as directory:
        jobs = Jobs(program, mpiexec, Path(directory) / "pool")
        jobs.start(NUMBERS[0], STEPS, None)
        jobs.newest = STEPS
        change_us, killed, turn = 20000, 0, 0
        while killed < kills:
            turn += 1
            ranks = NUMBERS[turn % len(NUMBERS)]
            most = jobs.newest
            for _ in range(2):
                moment = draw.randrange(1, int(1.1 * change_us))
                printed = jobs.start(ranks, STEPS, (draw.randrange(ranks), moment))
                killed += not printed
                most += STEPS
                jobs.look()
            printed = jobs.start(ranks, STEPS, None)
            jobs.judge(printed, most)
            jobs.newest += STEPS
            change_us = max(3000, min(int(printed[2]), 200000))
            print(f"{ranks} ranks after {printed[1]}: version {printed[0]}, {change_us} us")
    print(f"{killed} kills, none wrong, none lost")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(failure)
        sys.exit(1)
