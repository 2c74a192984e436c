#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills jobs of kill_job at random moments and restarts them until each ends right.

    kill.py [--kills N] [--seed S] PROGRAM...          each as MPIEXEC:RANKS:PATH, or PATH alone

Each trial draws a tier, a lag, whether a thread works beside the program, whether versions are
verified, and the moments; a pair is in all of them. One
process of the job gets SIGKILL, a launcher ends the others. Fails if a restart gave other contents,
less than a version that a rank had seen durable, or no version where it should.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TIERS = ("auto", "copy", "stream")
STEPS = 4000
SECONDS_MAX = 120


def launch(program: str, pool: Path, seed: int, environment: dict[str, str]):
    """Starts the job; returns its process."""
    *launcher, path = program.split(":")
    command = [path, str(pool), str(STEPS), str(seed)]
    if launcher:
        helper = Path(__file__).resolve().parents[2] / "tools/mpirun.sh"
        command = [str(helper), *launcher, *command]
    return subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, start_new_session=True)


def processes_of(program: str, pool: Path) -> list[int]:
    """The ranks of the job, by their command line."""
    name, found = program.split(":")[-1], []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == name.encode() and str(pool).encode() in words:
            found.append(int(entry.name))
    return found


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def trial_folder(program: str) -> Iterator[Path]:
    """For the pool of a job; both go when it is left, also by Ctrl-C and SIGTERM."""
    signal.signal(signal.SIGTERM, interrupt)
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(
        prefix="perdure-ipv-kill-", dir=place, ignore_cleanup_errors=True
    ) as folder:
        try:
            yield Path(folder)
        finally:
            for rank in processes_of(program, Path(folder) / "pool"):
                with suppress(ProcessLookupError):
                    os.kill(rank, signal.SIGKILL)


def kill_one(program: str, pool: Path, job, draw: random.Random, seconds: float) -> bool:
    """Waits for the restart, and then for the moment; true if a rank was killed."""
    line = job.stdout.readline()
    while line and not line.startswith("restarted"):
        line = job.stdout.readline()
    time.sleep(seconds)
    ranks = processes_of(program, pool)
    if job.poll() is not None or not ranks:
        return False
    os.kill(draw.choice(ranks), signal.SIGKILL)
    return True


def run_trial(program: str, folder: Path, draw: random.Random, seed: int) -> tuple[int, str]:
    """Kills a job up to three times, then lets it end; kills and what was wrong."""
    pool, kills = folder / "pool", 0
    for attempt in range(1 + draw.randint(1, 3), 0, -1):
        environment = {"PERDURE_IPV": f"tier={draw.choice(TIERS)},lag={draw.choice('01')},"
                                      f"helper={draw.choice(('on', 'off'))},"
                                      f"verify={draw.choice(('on', 'off', 'off'))}"}
        job = launch(program, pool, seed, environment)
        killed = attempt > 1 and kill_one(program, pool, job, draw, draw.uniform(0, 0.15))
        kills += killed
        try:
            output, _ = job.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            return kills, f"{environment}: the job hangs"
        if not killed and job.returncode != 0:
            return kills, f"{environment}: exit code {job.returncode}\n{output}"
        if killed and any(text in output for text in ("other contents", "was durable")):
            return kills, f"{environment}:\n{output}"
        if not killed:
            break
    return kills, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("programs", nargs="+")
    given = parser.parse_args()
    draw, kills, trials = random.Random(given.seed), 0, 0
    print(f"seed {given.seed}")
    while kills < given.kills and trials < 5 * given.kills:
        program = given.programs[trials % len(given.programs)]
        with trial_folder(program) as folder:
            killed, wrong = run_trial(program, folder, draw, trials)
        kills, trials = kills + killed, trials + 1
        if wrong:
            print(f"trial {trials} of {program}: {wrong}")
            return 1
    print(f"{kills} kills in {trials} trials, all restarts right")
    return 0 if kills >= given.kills else 1


if __name__ == "__main__":
    sys.exit(main())
