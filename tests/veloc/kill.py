#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program written for VELOC is killed (SIGKILL, one rank or all of them) and started again.

    kill.py [--kills N] [--seed S] MPIEXEC RANKS PROGRAM

However often it was killed, it ends with the answer of an undisturbed run, and begins no earlier
than at the last iteration that it had reported.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MPIRUN = Path(__file__).resolve().parents[2] / "tools/mpirun.sh"
ITERATIONS, INTERVAL = 240, 4


def children(pid: int) -> list[int]:
    """All processes that descend from one."""
    try:
        direct = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [child for word in direct for child in (int(word), *children(int(word)))]


def ranks_of(job: subprocess.Popen, program: str) -> list[int]:
    """The processes of the job that run the program itself."""
    found = []
    for pid in children(job.pid):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", program):
                found.append(pid)
        except OSError:
            continue
    return found


def run(words: list[str], program: str, kill_after: int | None, chance: random.Random):
    """The lines of rank 0; with `kill_after` killed soon after so many reports. A job that has none
    says why in the last of its errors, which are in the file errors beside the configuration."""
    with Path(words[4]).with_name("errors").open("w") as errors:
        job = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True)
    lines, reports = [], 0
    for line in job.stdout:
        lines.append(line.strip())
        reports += line.startswith("at ")
        if reports == kill_after:
            time.sleep(chance.uniform(0, 0.01))
            victims = ranks_of(job, program)
            for pid in victims if chance.random() < 0.5 else chance.sample(victims, 1):
                with contextlib.suppress(ProcessLookupError):  # it has ended
                    os.kill(pid, signal.SIGKILL)
            kill_after = None
    return job.wait(), lines


def check(arguments: argparse.Namespace, folder: Path, chance: random.Random) -> str | None:
    """What is wrong."""
    config = folder / "veloc.cfg"

    def words(name: str, *more: str) -> list[str]:
        text = f"scratch = {folder}/{name}\npersistent = {folder}/{name}.lasting\nmode = async\n"
        config.write_text(text + "scratch_versions = 3\nmax_versions = 2\n")
        return [str(MPIRUN), arguments.mpiexec, arguments.ranks, arguments.program, str(config),
                str(ITERATIONS), str(INTERVAL), *more]  # fmt: skip

    code, lines = run(words("undisturbed"), arguments.program, None, chance)
    if code != 0 or lines[0] != "begins at 0":
        return f"the undisturbed run ended with {code}: {lines[-3:]}"
    answer, reached, kills = lines[-1], 0, 0
    for begins in (0, ITERATIONS):  # it leaves without VELOC_Finalize, and is run again
        code, lines = run(words("left", "leave"), arguments.program, None, chance)
        if code != 0 or lines[0] != f"begins at {begins}" or lines[-1] != answer:
            return f"the run without VELOC_Finalize ended with {code}: {lines[:1]} {lines[-3:]}"
    for _ in range(20 * arguments.kills):
        kill_after = chance.randint(1, 12) if kills < arguments.kills else None
        code, lines = run(words("killed"), arguments.program, kill_after, chance)
        if not lines:
            return f"it did not begin: {code}: {(folder / 'errors').read_text()[-1000:]}"
        began = int(lines[0].split()[-1])
        if began < reached or began > reached + INTERVAL:
            return f"it begins at {began} and had reported {reached}"
        reached = max([reached, *(int(line[3:]) for line in lines if line.startswith("at "))])
        if code == 0:
            if lines[-1] != answer:
                return f"{lines[-1]}, undisturbed {answer}"
            if kills >= arguments.kills:
                return None
            reached = 0
            subprocess.run(["rm", "-r", folder / "killed", folder / "killed.lasting"], check=True)
        else:
            kills += 1
    return "it was never killed often enough"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=None)
    for name in ("mpiexec", "ranks", "program"):
        parser.add_argument(name)
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.randrange(1 << 31)
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="perdure-test-", dir=place) as folder:
        wrong = check(arguments, Path(folder), random.Random(seed))
    print(f"seed {seed}: {wrong or f'killed {arguments.kills} times, the answers are equal'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
