#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands of docs/hdf5.md: a program as it is, and under `perdure run --cache`.

    cached.py BUILD MPIEXEC PROGRAM SUFFIX

The files of both are the same, byte for byte, and the second run did cache its file.
"""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from perdure.programs import OPEN_MPI  # noqa: E402


def main() -> None:
    build, mpiexec, program, suffix = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="perdure-test-") as name:
        folder = Path(name)
        environment = {**os.environ, **OPEN_MPI, "PERDURE_BUILD": build,
                       "PERDURE_CACHE_REPORT": str(folder / "report")}  # fmt: skip
        job = [mpiexec, "-n", "2", program]
        cached = [ROOT / "perdure", "run", "--cache", f"*.{suffix}", "--", *job]
        for words, file in ((job, f"plain.{suffix}"), (cached, f"cached.{suffix}")):
            done = subprocess.run(
                [*words, folder / file], env=environment, capture_output=True, text=True,
                timeout=100, check=False,
            )  # fmt: skip
            if done.returncode != 0 or "writes" not in done.stdout:
                sys.exit(f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        if not filecmp.cmp(folder / f"plain.{suffix}", folder / f"cached.{suffix}", shallow=False):
            sys.exit("the files differ")
        reports = "".join(path.read_text() for path in folder.glob("report*"))
        if f"cached.{suffix}" not in reports:
            sys.exit(f"nothing was cached: {reports}")


if __name__ == "__main__":
    main()
