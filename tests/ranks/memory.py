#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""No rank holds a whole array while the ranks change their number.

    memory.py PROGRAM MPIEXEC

One rank makes a list of 64 MiB, and four and three go on with it. Each may take its share three
times, which are its own memory and the two copies of its part of the pool, and some MiB for what
does not depend on the size; four ranks so take less than the list each. Its elements are compared.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST_BYTES = 64 << 20
OWN_KIB = 12 << 10
LIMIT_S = 120


def main() -> int:
    program, mpiexec = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="perdure-ranks-") as directory:
        for ranks in (1, 4, 3):
            command = [str(ROOT / "tools/mpirun.sh"), mpiexec, str(ranks), program,
                       str(Path(directory) / "pool"), str(LIST_BYTES)]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S,
                                  check=False)  # fmt: skip
            said = re.findall(r"^took (\d+) share (\d+)$", done.stdout, re.MULTILINE)
            if done.returncode != 0 or len(said) != ranks:
                print(f"{ranks} ranks: {done.returncode}: {done.stdout}{done.stderr}")
                return 1
            for took, share in said:
                if int(took) > 3 * int(share) + OWN_KIB:
                    print(f"{ranks} ranks: one took {took} KiB for a share of {share} KiB")
                    return 1
            print(f"{ranks} ranks: {max(int(took) for took, _ in said)} KiB at most")
    return 0


if __name__ == "__main__":
    sys.exit(main())
