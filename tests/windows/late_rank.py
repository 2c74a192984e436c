#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank comes late to a commit of windows, or never: what the others say, and when they end.

    late_rank.py MPIEXEC PROGRAM
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

MPIRUN = Path(__file__).resolve().parents[2] / "tools/mpirun.sh"
RANKS = 3
IN = {
    "MPI_Win_wait": "the commit of MPI_Win_wait of window 'u'",
    "perdure_win_commit": "perdure_win_commit of window 'u'",
    "perdure_commit": "perdure_commit",
    "perdure_commit_wait": "perdure_commit_wait",
    "perdure_ipv_persist": "perdure_ipv_persist",
}

LATE = ("MPI_Win_wait", "perdure_commit")  # a commit of MPI's call, and one of ours


def sentence(call: str) -> re.Pattern[str]:
    return re.compile(rf"Perdure: ranks 1 and 2 have waited \d+ s in {IN[call]} "
                      r"\(pool .*/pool\) for rank 0\. It needs all ranks")


def run(mpiexec: str, program: str, call: str, seconds: int, ranks: int = RANKS,
        **settings: str) -> tuple[int, str]:
    """The job's code, and what it said."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("PERDURE_TEST_DIR", "/dev/shm")) as folder:
        done = subprocess.run(
            [str(MPIRUN), mpiexec, str(ranks), program, f"{folder}/pool", str(seconds), call],
            env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def wrong(mpiexec: str, program: str) -> str | None:
    before = shared_files()
    with ThreadPoolExecutor(len(IN)) as calls:  # all of them wait, most of the time
        for call, problem in zip(IN, calls.map(partial(wrong_in, mpiexec, program), IN)):
            if problem:
                return f"{call}, {problem}"
    left = shared_files() - before
    for _ in range(20):  # other jobs have some for a moment
        if left:
            time.sleep(0.1)
            left &= shared_files()
    return f"left in /dev/shm: {left}" if left else None


def shared_files() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith("perdure-ranks-")}


def wrong_in(mpiexec: str, program: str, call: str) -> str | None:
    job = partial(run, mpiexec, program, call)
    code, said = job(0)
    if code != 0 or "Perdure" in said:
        return f"in time: {code}, {said}"
    if call in LATE:
        code, said = job(3, PERDURE_COMMIT_PATIENCE="1s")
        if code != 0 or len(sentence(call).findall(said)) != 1 or "goes on waiting" not in said:
            return f"late: {code}, {said}"
    code, said = job(-1, PERDURE_COMMIT_PATIENCE="1s", PERDURE_COMMIT_LIMIT="2s")
    if code == 0 or not sentence(call).search(said) or "PERDURE_COMMIT_LIMIT ends" not in said:
        return f"never: {code}, {said}"
    code, said = job(0, ranks=1, PERDURE_COMMIT_PATIENCE="soon")
    # The text of a fatal error in MPI's own call is Open MPI's to print, and it loses some.
    lost = call in ("MPI_Win_wait", "perdure_win_commit") and "ORTE_ERROR_LOG" in said
    if code == 0 or not (lost or "PERDURE_COMMIT_PATIENCE=soon is neither a time" in said):
        return f"no time: {code}, {said}"
    if call != "MPI_Win_wait":
        return None
    code, said = job(3, PERDURE_COMMIT_PATIENCE="off")
    if code != 0 or "Perdure" in said:
        return f"late, and nothing is to be said: {code}, {said}"
    return None


if __name__ == "__main__":
    problem = wrong(*sys.argv[1:])
    if problem:
        print(problem)
    sys.exit(1 if problem else 0)
