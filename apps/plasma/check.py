#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of plasma with one MPI and one number of ranks.

    check.py kills|refuse MPIRUN MPIEXEC RANKS PROGRAM

kills    the answer has the same bits on any number of ranks; a job that is killed at random times,
         and goes on each time with another number of ranks, ends with them too
refuse   wrong options, and a pool of another square, are refused in a sentence
"""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "job"))
from checking import check_any_ranks, check_refused, run_check  # noqa: E402


def check_kills(job, folder):
    check_any_ranks(job, folder, ["--cells", 24, "--particles", 3000], 250)


def check_refusals(job, folder):
    pool = folder / "pool"
    job.run("--cells", 8, "--steps", 3, "--pool", pool)
    check_refused(job, ["--cells", 9, "--steps", 3, "--pool", pool], "array 'potential'")
    check_refused(job, ["--every", 3], "--every requires --pool")
    check_refused(job, ["--cells", 1], "not in range")
    check_refused(job.on(4), ["--cells", 3], "there are more ranks than rows of --cells")


if __name__ == "__main__":
    run_check(__doc__, {"kills": check_kills, "refuse": check_refusals})
