#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of hpccg with one MPI and one number of ranks.

    check.py agree|restart|restart_all MPIRUN MPIEXEC RANKS PROGRAM

agree        every protection converges to the exact solution and ends with the same bits
restart      a job whose last rank is killed within a commit goes on from the right version and
             ends with the bits of an undisturbed one; each protection at one point of the commit
restart_all  the same at every point
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

GRID = ["12", "12", "9"]  # not a multiple of the solver's block
MODES = {
    "none": [],
    "disk": ["--protect", "disk"],
    "copy": ["--protect", "copy"],
    "async": ["--protect", "async"],
    "twin": ["--protect", "twin"],
    "twin by threes": ["--protect", "twin", "--every", "3"],
    "twin, streamed": ["--protect", "twin", "--twin-store", "stream"],
    "twin, streamed, by threes": ["--protect", "twin", "--twin-store", "stream", "--every", "3"],
    "log": ["--protect", "log"],
    "copy, windows": ["--protect", "copy", "--windows"],
    "twin, windows": ["--protect", "twin", "--windows"],
    "twin, windows, by threes": ["--protect", "twin", "--windows", "--every", "3"],
    "log, windows": ["--protect", "log", "--windows"],
}
KILL_ITERATION = 12
# Which of the versions before and at the kill may be restored.
POINTS = {"copy": (0,), "data": (0,), "slot": (0,), "state": (0, 1), "agreed": (1,)}
DISK_POINTS = ("copy", "data", "state")


class Job:
    def __init__(self, mpirun, mpiexec, ranks, program):
        self.command = [mpirun, mpiexec, ranks, program, *GRID, "--json"]
        self.last_rank = int(ranks) - 1

    def run(self, folder, mode, iterations, kill_point=None):
        """The result of a run, or None when it was killed as asked."""
        places = ["--pool", f"{folder}/pool", "--disk-dir", f"{folder}/disk"]
        environment = dict(os.environ)
        environment.pop("PERDURE_KILL", None)
        if kill_point:
            environment["PERDURE_KILL"] = (
                f"rank={self.last_rank},iteration={KILL_ITERATION},point={kill_point}")
        done = subprocess.run(
            self.command + ["--iterations", str(iterations)] + MODES[mode] + places,
            env=environment, capture_output=True, text=True, check=False)
        if kill_point:
            if done.returncode == 0:
                sys.exit(f"{mode}: the kill at '{kill_point}' did not happen")
            return None
        if done.returncode != 0:
            sys.exit(f"{mode}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])


def check(holds, *what):
    if not holds:
        sys.exit(" ".join(str(part) for part in what))


def run_fresh(job, mode, iterations, point=None):
    """One run on a new pool; with a point, killed there and then started again."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hpccg-test-", dir=memory) as name:
        folder = pathlib.Path(name)
        if point:
            job.run(folder, mode, iterations, point)
        return job.run(folder, mode, iterations)


def check_agreement(job):
    hashes = set()
    for mode in MODES:
        result = run_fresh(job, mode, 45)
        check(result["error"] < 1e-8, mode, "did not converge:", result)
        check(result["restored_version"] == 0, mode, "found an old pool")
        hashes.add(result["hash"])
        print(f"{mode}: error {result['error']:.1e}, hash {result['hash']}")
    check(len(hashes) == 1, "the protections end with different bits")


def points_of(mode, everything):
    points = DISK_POINTS if mode == "disk" else tuple(POINTS)
    turn = list(MODES).index(mode) % len(points)
    return points if everything else points[turn:turn + 1]


def check_restart(job, everything):
    undisturbed = run_fresh(job, "none", 24)["hash"]
    for mode in MODES:
        flags = MODES[mode]
        if mode == "none":
            continue
        every = 3 if "--every" in flags else 1
        before = KILL_ITERATION // every - 1
        for point in points_of(mode, everything):
            result = run_fresh(job, mode, 24, point)
            version = result["restored_version"]
            check(version - before in POINTS[point], mode, point, "restored version", version)
            check(result["first_iteration"] == version * every, mode, point, result)
            check(result["hash"] == undisturbed, mode, point, "ended with other bits")
            print(f"{mode}: killed at {point}, restarted from iteration {version * every}")


def main():
    if len(sys.argv) != 6 or sys.argv[1] not in ("agree", "restart", "restart_all"):
        sys.exit(__doc__)
    job = Job(*sys.argv[2:])
    if sys.argv[1] == "agree":
        check_agreement(job)
    else:
        check_restart(job, sys.argv[1] == "restart_all")


if __name__ == "__main__":
    main()
