# SPDX-License-Identifier: BSD-3-Clause
"""Kills pool_job at random moments and starts it again until it ends well.

    pool_kill.py MPIEXEC PROGRAM [--trials N] [--seed S] [--ranks R]

A trial draws one or two pretended nodes, kills one rank or all of them once or twice, in some
trials runs `perdure cache recover` between, and lets the last attempt run to its end: it compares
window, array and file with the version that it restarts from, and at its end the plain file with
what all steps make of it. Before the trials comes a job that always does the same: at the end of
step 6 the file has what goes back, beyond what node 1 kept at step 5. Exit code 0: all was right.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PERDURE = TOOLS.parent / "perdure"
STEPS = 24
LIMIT_S = 90


def run(options, *words, environment=None) -> subprocess.CompletedProcess:
    """The job, in a session of its own, of which nothing is left when it has ended."""
    command = [TOOLS / "mpirun.sh", options.mpiexec, options.ranks, options.program, *words]
    surroundings = {**os.environ, "PERDURE_MPI_TIMEOUT": str(LIMIT_S), **(environment or {})}
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        env=surroundings,
        timeout=LIMIT_S + 30,
        check=False,
    )


def recover(place: Path) -> str:
    """By the command, as a user does between two attempts; what went wrong."""
    parts = place / "parts"
    if not parts.exists() or not (TOOLS.parent / ".venv").exists():
        return ""
    done = subprocess.run(
        [PERDURE, "cache", "recover", parts], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else f"perdure cache recover: {done.stdout}{done.stderr}"


class Campaign:
    """Draws trials; `kills` counts the jobs that were killed."""

    def __init__(self, options):
        self._options, self._draw = options, random.Random(options.seed)
        self._step_s = 0.004  # of one step, as the last attempt measured
        self.kills = 0

    def same_each_time(self, place: Path) -> str:
        """What was wrong."""
        job = [place, 4, STEPS, 2]
        done = run(self._options, *job, -1, 5, 0)
        if done.returncode in (0, 4, 5):
            return f"the job to be killed ended with {done.returncode}: {done.stderr}"
        return self._last(job)

    def trial(self, place: Path, number: int) -> str:
        """What was wrong."""
        draw, options = self._draw, self._options
        job = [place, draw.getrandbits(30), STEPS, 1 + number % 2]
        for _ in range(draw.choice((1, 1, 2))):
            victim = draw.choice((-1, *range(options.ranks)))
            when_ns = int(draw.uniform(0, 3 * self._step_s) * 1e9)
            done = run(options, *job, victim, draw.randrange(STEPS // 2), when_ns)
            if done.returncode in (4, 5):
                return f"after {self.kills} kills: {done.stderr}"
            self.kills += done.returncode != 0
            said = recover(place) if draw.random() < 0.4 else ""
            if said:
                return said
        return self._last(job)

    def _last(self, job) -> str:
        done = run(self._options, *job)
        if done.returncode != 0:
            return f"the last attempt ended with {done.returncode}: {done.stdout}{done.stderr}"
        took_ns = re.search(r"(\d+) ns a step", done.stdout)
        self._step_s = int(took_ns.group(1)) * 1e-9 if took_ns else self._step_s
        left = [str(path) for path in (job[0] / "parts").rglob("*") if path.is_file()]
        return f"left behind: {left}" if left else ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("mpiexec")
    parser.add_argument("program")
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(30))
    options = parser.parse_args()
    print(f"--seed {options.seed}", flush=True)
    campaign = Campaign(options)
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-group-", dir=parent) as scratch:
        for number in range(options.trials + 1):
            place = Path(scratch) / "trial"
            place.mkdir()
            wrong = campaign.trial(place, number) if number else campaign.same_each_time(place)
            if wrong:
                print(f"trial {number}: {wrong}")
                return 1
            shutil.rmtree(place)
    print(f"{options.trials} trials, {campaign.kills} jobs killed")
    return 0 if campaign.kills > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
