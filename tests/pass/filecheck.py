#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the RUN: lines of one file of tests/pass/filecheck.

    filecheck.py --build DIR [--plugin FILE] FILE

As LLVM's lit does, with these substitutions: %s the file; %clang, %clangxx, %flang and %opt with
the plug-in, %objclang with it and no other options, %plain-clang without it; %FileCheck; %t a
scratch file; %I the headers. A line that ends with a backslash goes on in the next RUN: line. The
environment is PERDURE_PASS=ipv-all, unless the line sets another.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include"


def substitutions(file: Path, plugin: Path, scratch: Path) -> dict[str, str]:
    with_plugin = f"-fpass-plugin={plugin} -w -S -emit-llvm -o -"
    return {
        "%objclang": f"clang-19 -fpass-plugin={plugin}",
        "%plain-clang": "clang-19 -w -S -emit-llvm -o -",
        "%clangxx": f"clang++-19 {with_plugin}",
        "%clang": f"clang-19 {with_plugin}",
        "%flang": f"flang-new-19 -J{scratch} {with_plugin.replace('-w ', '')}",
        "%opt": f"opt-19 -load-pass-plugin={plugin} -S",
        "%FileCheck": "FileCheck-19 --dump-input-filter=error",
        "%I": f"-I{INCLUDE}",
        "%s": str(file),
        "%t": str(scratch / "t"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--plugin", type=Path, help="instead of the build's")
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    runs = "\n".join(re.findall(r"^\W*RUN: (.*)$", options.file.read_text(), re.M))
    lines = runs.replace("\\\n", " ").splitlines()
    if not lines:
        print(f"{options.file} has no RUN: line")
        return 1
    environment = {**os.environ, "PERDURE_PASS": "ipv-all"}
    plugin = (options.plugin or options.build / "trace/lib/PerdurePass.so").resolve()
    with tempfile.TemporaryDirectory() as scratch:
        words = substitutions(options.file.resolve(), plugin, Path(scratch))
        for line in lines:
            for name, value in words.items():
                line = line.replace(name, value)
            shell = ["bash", "-o", "pipefail", "-c", line]
            ran = subprocess.run(shell, env=environment, capture_output=True, text=True,
                                 check=False)
            if ran.returncode != 0:
                print(f"{line}\n{ran.stdout[-3000:]}{ran.stderr[-6000:]}")
                return 1
    return 0


if __name__ == "__main__":
    if shutil.which("FileCheck-19") is None:
        print("no FileCheck-19 (Debian: llvm-19-tools)")
        sys.exit(77)
    sys.exit(main())
