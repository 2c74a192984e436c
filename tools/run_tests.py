#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs CTest with a preset and ends with one plain line: N passed, N failed, N skipped.

Tests kill ranks of MPI jobs, whose shared memory stays in /dev/shm then. What was made there since
the run began, by this user and under a name that MPI libraries give, and is in no live process's
hands, is removed at its end.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from perdure.run.leftovers import remove_leftovers  # noqa: E402


def count_results(junit: Path) -> tuple[int, int, int]:
    """Tests passed, failed and skipped in a JUnit file of CTest."""
    suite = ElementTree.parse(junit).getroot()
    total, failed, skipped, disabled = (
        int(suite.get(name, "0")) for name in ("tests", "failures", "skipped", "disabled")
    )
    return total - failed - skipped - disabled, failed, skipped + disabled


def tidy_shared_memory(since: float) -> None:
    """Removes what tests left there, and says how much that was."""
    removed = remove_leftovers(since)
    if removed:
        print(f"removed {len(removed)} files of ended MPI jobs from /dev/shm", flush=True)


def run_tests(preset: str, extra: list[str]) -> int:
    """CTest's exit code; 1 if it ran no test at all."""
    with tempfile.TemporaryDirectory() as folder:
        junit = Path(folder) / "tests.xml"
        # Two more than processors, because many tests wait for disks, signals and other processes.
        jobs = str(len(os.sched_getaffinity(0)) + 2)
        command = ["ctest", "--preset", preset, "--output-junit", str(junit), "-j", jobs, *extra]
        since = os.stat(folder).st_ctime  # by the clock that the kernel gives files
        try:
            code = subprocess.run(command, check=False).returncode
        finally:
            tidy_shared_memory(since)
        if not junit.exists():
            print("0 passed, 0 failed, 0 skipped", flush=True)
            return code or 1
        passed, failed, skipped = count_results(junit)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return code or (1 if failed or not passed else 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="dev")
    known, extra = parser.parse_known_args()
    try:
        return run_tests(known.preset, extra)
    except KeyboardInterrupt:  # CTest got it as well, and has said which test was stopped
        print("stopped", flush=True)
        return 130


if __name__ == "__main__":
    sys.exit(main())
