#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The pass makes no more code of a file that is full of nests than the compiler has time for.

    code_size.py --build DIR [--seed 1] [--level -O2] [--most 2.65] [--programs 25]

Half of the time that a compiler takes goes with the instructions that it writes down, so they are
counted: of a file of nest_generator.py, natively and with the pass. Real files have fewer nests.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import nest_generator

HERE = Path(__file__).resolve().parent


def instructions(source: Path, level: str, plugin: Path | None) -> int:
    """Of the machine, in the code of all functions."""
    words = ["clang-19", level, "-w", "-DSIDE=x", f"-I{HERE}", "-S", source, "-o", "-"]
    environment = {**os.environ, "PERDURE_PASS": "ipv-all"}
    if plugin is not None:
        words.insert(1, f"-fpass-plugin={plugin}")
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"{level}: {done.stderr[-3000:]}")
    # Directives of the assembler begin with a dot, comments with #.
    return sum(line.startswith("\t") and line[1:2] not in (".", "#", "")
               for line in done.stdout.splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--level", default="-O2")
    parser.add_argument("--most", type=float, default=2.65)
    parser.add_argument("--programs", type=int, default=25)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "nests.c"
        source.write_text(nest_generator.unit(random.Random(options.seed), 0, options.programs))
        native = instructions(source, options.level, None)
        plugin = options.build.resolve() / "trace/lib/PerdurePass.so"
        transformed = instructions(source, options.level, plugin)
    ratio = transformed / native
    print(f"seed {options.seed}: {native} instructions, {transformed} with the pass: {ratio:.2f}")
    if ratio < 1.2:
        print("the pass transformed nearly nothing")
        return 1
    return 0 if ratio <= options.most else 1


if __name__ == "__main__":
    sys.exit(main())
