#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does the suite make every one-sided call that an mpi.h declares?

    coverage.py FILE.E SUITE_FOLDER     FILE.E is mpi.h after the preprocessor

Prints the calls that no test makes, and ends with 1 if there is any.
"""

import re
import sys
from pathlib import Path

_TRANSFERS = "R?(?:put|get|accumulate|get_accumulate)|Fetch_and_op|Compare_and_swap"
_CALL = re.compile(rf"\b(MPI_(?:Win_\w+|(?:{_TRANSFERS})(?:_c)?))\s*\(", re.IGNORECASE)
_NOT_CALLS = re.compile(r"_(?:fn|function|function_c)$")


def main() -> int:
    declared = set(_CALL.findall(Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace")))
    declared = {name for name in declared if not _NOT_CALLS.search(name)}
    made = set()
    for path in Path(sys.argv[2]).glob("*.cpp"):
        made |= set(_CALL.findall(path.read_text(encoding="utf-8")))
    if len(declared) < 40:
        print(f"only {len(declared)} one-sided calls found in {sys.argv[1]}; is it an mpi.h?")
        return 1
    for name in sorted(declared - made):
        print(f"{name}: no test calls it")
    print(f"{len(declared & made)} of {len(declared)} one-sided calls are made")
    return 1 if declared - made else 0


if __name__ == "__main__":
    sys.exit(main())
