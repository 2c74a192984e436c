#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A rank is killed within each of MPI's accumulating calls, and the job started again.

    accumulate_kills.py MPIEXEC WINDOW_JOB

In each mode of a window and for each call: the job is started again after the death, must go on
from a version, and must end with the answer of an undisturbed run. Says how many deaths were within
the call, between what it read of the target's memory and what it wrote there; the others were right
after the call, before it was complete (accumulates.hpp). At least one of each mode must be within.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MPIRUN = Path(__file__).resolve().parents[2] / "tools/mpirun.sh"
MODES = ("copy", "twin", "log", "flush")
CALLS = ("accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap")
KILLED_IN = 3  # of 5 steps
SIZE = ("--iterations", "5", "--cells", "16384", "--pattern", "accumulate")


def run(pool: Path, mode: str, kill: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMPI_MCA_odls_base_sigkill_timeout": "0"}
    environment.pop("PERDURE_KILL", None)
    if kill is not None:
        environment["PERDURE_KILL"] = kill
    mpiexec, program = sys.argv[1:]
    command = [MPIRUN, mpiexec, "2", program, *SIZE, "--mode", mode, "--pool", pool]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False,
                          timeout=60)  # fmt: skip


def report(done: subprocess.CompletedProcess[str]) -> dict:
    if done.returncode != 0:
        sys.exit(f"{done.args}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def killed_within(pool: Path, mode: str, call: str, answer: str) -> bool:
    """Whether the rank died within the call; ends the program if the restart is not right."""
    killed = run(pool, mode, f"rank=1,iteration={KILLED_IN},point={call}")
    where = [word for word in ("within", "after") if f"killed {word} the call" in killed.stderr]
    if killed.returncode == 0 or len(where) != 1:
        sys.exit(f"{mode}, {call}: not killed\n{killed.stdout}{killed.stderr}")
    restarted = report(run(pool, mode))
    if restarted["hash"] != answer or restarted["restored_version"] == 0:
        sys.exit(f"{mode}, {call}, killed {where[0]} it: {restarted}, and not {answer}")
    return where[0] == "within"


def main() -> int:
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="accumulate-kills-") as scratch:
        pools, seldom = Path(scratch), []
        for mode in MODES:
            answer = report(run(pools / mode, mode))["hash"]
            within = [call for call in CALLS
                      if killed_within(pools / f"{mode}-{call}", mode, call, answer)]  # fmt: skip
            print(f"{mode}: answer {answer}; killed within {', '.join(within) or 'none'}")
            if not within:
                seldom.append(mode)
    return 1 if seldom else 0


if __name__ == "__main__":
    sys.exit(main())
