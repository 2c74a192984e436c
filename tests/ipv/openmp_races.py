#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ThreadSanitizer sees no race in what the pass makes of parallel loops, but sees a planted one.

    openmp_races.py --build DIR --archer LIBRARY

openmp_races.c is compiled by perdure-clang with and without --ipv, with and without a race of its
own, and run by two threads. LLVM's libarcher tells the sanitizer how OpenMP orders threads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
RACES = 66  # the exit code asked for


def build(options: argparse.Namespace, program: Path, *words: str) -> None:
    library = options.build.resolve() / "src/capi"
    flags = ["-O2", "-g1", "-fopenmp", "-fsanitize=thread", f"-I{INCLUDE}", f"-L{library}",
             f"-Wl,-rpath,{library}", "-Wl,-rpath,/usr/lib/llvm-19/lib"]
    command = [options.build.resolve() / "trace/bin/perdure-clang", *words, *flags,
               HERE / "openmp_races.c", "-lperdure", "-lm", "-o", program]
    subprocess.run([str(word) for word in command], check=True)


def run(options: argparse.Namespace, folder: Path, *words: str) -> tuple[int, str, int]:
    """Its exit code, what it printed last, and how many boxes it announced."""
    program, report = folder / "races", folder / "report.json"
    build(options, program, *words)
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="ipv-races-") as pool:
        environment = {**os.environ, "OMP_NUM_THREADS": "2", "PERDURE_IPV": f"report={report}",
                       "OMP_TOOL_LIBRARIES": str(options.archer),
                       "TSAN_OPTIONS": f"ignore_noninstrumented_modules=1 exitcode={RACES}"}
        done = subprocess.run([program, f"{pool}/pool"], env=environment, capture_output=True,
                              text=True, check=False)
    if done.returncode not in (0, RACES):
        sys.exit(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    boxes = sum(found["boxes"] for found in json.loads(report.read_text())["objects"])
    return done.returncode, (done.stdout.split() or [""])[-1], boxes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--archer", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        native, wanted, _ = run(options, Path(scratch))
        code, result, boxes = run(options, Path(scratch), "--ipv=all")
        planted, _, _ = run(options, Path(scratch), "--ipv=all", "-DRACE")
    print(f"native: exit code {native}; {boxes} boxes: {code}; with a race: {planted}")
    if (native, code, planted) != (0, 0, RACES) or result != wanted or boxes == 0:
        print(f"not as it should be: results {wanted} and {result}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
