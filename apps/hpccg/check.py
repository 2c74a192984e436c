#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of hpccg with one MPI and one number of ranks.

    check.py agree|restart|restart_all MPIRUN MPIEXEC RANKS PROGRAM

agree        every protection converges to the exact solution and ends with the same bits
restart      a job whose last rank is killed within a commit goes on from the right version and
             ends with the bits of an undisturbed one; each protection at one point of the commit
restart_all  the same at every point
"""

import pathlib
import sys
import tempfile
from functools import partial

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "job"))
from checking import DISK_POINTS, POOL_POINTS, check, check_restart, run_check  # noqa: E402

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


def arguments_of(folder, mode, iterations):
    """Of a run whose state is kept in a new folder in `folder`."""
    kept = tempfile.mkdtemp(dir=folder)
    places = ["--pool", f"{kept}/pool", "--disk-dir", f"{kept}/disk"]
    return [*GRID, "--iterations", iterations, *MODES[mode], *places]


def check_agreement(job, folder):
    hashes = set()
    for mode in MODES:
        result = job.outcome(*arguments_of(folder, mode, 45))
        check(result["error"] < 1e-8, mode, "did not converge:", result)
        check(result["restored_version"] == 0, mode, "found an old pool")
        hashes.add(result["hash"])
        print(f"{mode}: error {result['error']:.1e}, hash {result['hash']}")
    check(len(hashes) == 1, "the protections end with different bits")


def points_of(mode, everything):
    points = list((DISK_POINTS if mode == "disk" else POOL_POINTS).items())
    turn = list(MODES).index(mode) % len(points)
    return points if everything else points[turn:turn + 1]


def check_restarts(job, folder, everything=False):
    undisturbed = job.outcome(*arguments_of(folder, "none", 24))["hash"]
    for mode, flags in MODES.items():
        every = 3 if "--every" in flags else 1
        for point, versions in points_of(mode, everything) if mode != "none" else ():
            check_restart(job, mode, arguments_of(folder, mode, 24), point, versions, every,
                          undisturbed)


if __name__ == "__main__":
    run_check(__doc__, {"agree": check_agreement, "restart": check_restarts,
                        "restart_all": partial(check_restarts, everything=True)})
