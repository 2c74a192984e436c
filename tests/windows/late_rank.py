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
from pathlib import Path

MPIRUN = Path(__file__).resolve().parents[2] / "tools/mpirun.sh"
RANKS = 3
SENTENCE = re.compile(r"Perdure: ranks 1 and 2 have waited \d+ s in the commit of MPI_Win_wait of "
                      r"window 'u' \(pool .*/pool\) for rank 0\. A commit needs all ranks")


def run(mpiexec: str, program: str, seconds: int, ranks: int = RANKS,
        **settings: str) -> tuple[int, str]:
    """The job's code, and what it said."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("PERDURE_TEST_DIR", "/dev/shm")) as folder:
        done = subprocess.run(
            [str(MPIRUN), mpiexec, str(ranks), program, f"{folder}/pool", str(seconds)],
            env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def wrong(mpiexec: str, program: str) -> str | None:
    code, said = run(mpiexec, program, 0)
    if code != 0 or "Perdure" in said:
        return f"in time: {code}, {said}"
    code, said = run(mpiexec, program, 5, PERDURE_COMMIT_PATIENCE="1s")
    if code != 0 or len(SENTENCE.findall(said)) != 1 or "it goes on waiting" not in said:
        return f"late: {code}, {said}"
    code, said = run(mpiexec, program, 3, PERDURE_COMMIT_PATIENCE="off")
    if code != 0 or "Perdure" in said:
        return f"late, and nothing is to be said: {code}, {said}"
    code, said = run(mpiexec, program, -1, PERDURE_COMMIT_PATIENCE="1s", PERDURE_COMMIT_LIMIT="3s")
    if code == 0 or not SENTENCE.search(said) or "PERDURE_COMMIT_LIMIT ends the job" not in said:
        return f"never: {code}, {said}"
    code, said = run(mpiexec, program, 0, ranks=1, PERDURE_COMMIT_PATIENCE="soon")
    if code == 0 or "PERDURE_COMMIT_PATIENCE=soon is no time such as 30s" not in said:
        return f"no time: {code}, {said}"
    return None


if __name__ == "__main__":
    problem = wrong(*sys.argv[1:])
    if problem:
        print(problem)
    sys.exit(1 if problem else 0)
