#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of plasma with one MPI and one number of ranks.

    check.py kills|refuse MPIRUN MPIEXEC RANKS PROGRAM

kills    the answer has the same bits on any number of ranks; a job that is killed at random times,
         and goes on each time with another number of ranks, ends with them too
refuse   wrong options, and a pool of another square, are refused in a sentence
"""

import os
import pathlib
import random
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "job"))
from checking import Job, check, check_refused, kill_a_rank, run_check  # noqa: E402

KILLS = 8
PROBLEM = ["--cells", 24, "--particles", 3000, "--steps", 1200]


def on(job, ranks):
    return Job(*job.launch[:2], str(ranks), job.launch[-1])


def check_kills(job, folder):
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns()))
    print(f"PERDURE_TEST_SEED={seed}")
    chooser = random.Random(seed)
    undisturbed = {on(job, ranks).outcome(*PROBLEM)["hash"] for ranks in range(1, job.ranks + 2)}
    check(len(undisturbed) == 1, "the bits depend on the number of ranks:", undisturbed)
    pool = folder / "pool"
    arguments = [*PROBLEM, "--pool", pool]
    killed = [ranks for ranks in (chooser.randint(1, job.ranks + 1) for _ in range(KILLS))
              if kill_a_rank(on(job, ranks), arguments, pool, chooser.uniform(0, 0.3), chooser)]
    about = job.outcome(*arguments)
    check({about["hash"]} == undisturbed, "ended with other bits after", killed, about)
    print(f"killed on {killed} ranks; the last job went on at step {about['first_step']}")


def check_refusals(job, folder):
    pool = folder / "pool"
    job.run("--cells", 8, "--steps", 3, "--pool", pool)
    check_refused(job, ["--cells", 9, "--steps", 3, "--pool", pool], "array 'potential'")
    check_refused(job, ["--every", 3], "--every requires --pool")
    check_refused(job, ["--cells", 1], "not in range")
    check_refused(on(job, 4), ["--cells", 3], "there are more ranks than rows of --cells")


if __name__ == "__main__":
    run_check(__doc__, {"kills": check_kills, "refuse": check_refusals})
