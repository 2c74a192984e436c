#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank ends MPI with its window open while the others make another call of the window's pool.

All of them get an error that names both calls, no version is made or lost by it, and the job ends.

    early_end.py MPIEXEC PROGRAM
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MPIRUN = Path(__file__).resolve().parents[2] / "tools/mpirun.sh"
CALLS = {"perdure_win_commit": "perdure_win_commit, or an unlock that commits",
         "perdure_commit": "perdure_commit of version 3",
         "MPI_Win_free": "MPI_Win_free of window 'u'"}
MISMATCH = r"rank (\d+) got (-?\d+): collective calls do not match: .*rank 0 is in MPI_Finalize"


def run(mpiexec: str, ranks: int, *job: str) -> str:
    """What the job said. Its code is the MPI library's: a window is still open when MPI ends."""
    done = subprocess.run([str(MPIRUN), mpiexec, str(ranks), *job], capture_output=True, text=True,
                          env={**os.environ, "PERDURE_MPI_TIMEOUT": "60"}, check=False)
    waited = "it did not end" if done.returncode in (124, 137) else ""
    return done.stdout + done.stderr + waited


def wrong(mpiexec: str, program: str, ranks: int, call: str) -> str | None:
    with tempfile.TemporaryDirectory(dir=os.environ.get("PERDURE_TEST_DIR", "/dev/shm")) as folder:
        pool = f"{folder}/pool"
        said = run(mpiexec, ranks, program, pool, call)
        reported = {int(rank) for rank, code in re.findall(MISMATCH, said) if code != "0"}
        if reported != set(range(1, ranks)) or CALLS[call] not in said or "did not end" in said:
            return said
        if "perdure: window 'u' stays as it is: collective calls do not match" not in said:
            return said  # by rank 0
        found = run(mpiexec, ranks, program, pool)
        versions = re.findall(r"rank \d+ finds version (\d+)", found)
        return None if versions == ["2"] * ranks else found


if __name__ == "__main__":
    for several in (2, 3):
        for one in CALLS:
            if problem := wrong(*sys.argv[1:], several, one):
                sys.exit(f"MPI_Finalize meets {one}, {several} ranks: {problem}")
