#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A program of apps/npb, compiled with the pass, still verifies, with every large block an object.

    real_code.py --build DIR cg|mg|sp [--problem-class S]

What the build made natively by the same compiler, npb_PROGRAM_clang, against a program that is
compiled here with --ipv=all and linked with the poisoning runtime and all_arrays.cpp: a persistence
point before each iteration. All numbers that are checked must be the same in every digit, some
boxes must have been announced, and the nest that updates the program's state must be one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NPB = ROOT / "apps/npb"
# The file, and a line of its nest that must be in a box.
UPDATES = {"cg": ("main.cpp", "x[i] = z[i] / norm"), "mg": ("multigrid.cpp", "+="),
           "sp": ("flow.cpp", "u[at] += factor * rhs[at]")}


def run(words: list, environment: dict | None = None) -> str:
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                         env={**os.environ, **(environment or {})}, cwd=NPB)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: {ran.returncode}\n{ran.stderr[-3000:]}")
    return ran.stdout


def compile_program(options: argparse.Namespace, folder: Path) -> tuple[Path, Path]:
    folders = [NPB / options.program, *([NPB / "flow"] if options.program == "sp" else [])]
    sources = [path for place in folders for path in sorted(place.glob("*.cpp"))
               if "planted" not in path.name]
    compiler = ["clang++-19", "-std=c++20", "-O3", "-w", "-I..", f"-I{ROOT / 'include'}"]
    build = options.build.resolve()
    libraries = [build / "apps/npb/libnpb_program.a", build / "apps/npb/libnpb_state.a",
                 f"-L{build / 'src/capi'}", f"-Wl,-rpath,{build / 'src/capi'}", "-lperdure"]
    transformed = folder / "transformed"
    own = [folder / "ranks.o"]
    run([*compiler, "-c", NPB / "ranks_serial.cpp", "-o", own[0]])
    for name in ("poison_runtime.cpp", "all_arrays.cpp"):
        own.append(folder / (name + ".o"))
        run([*compiler, "-c", HERE / name, "-o", own[-1]])
    plugin = build / "trace/lib/PerdurePass.so"
    explanation = folder / "ipv.json"
    run([*compiler, f"-fpass-plugin={plugin}", "-gline-tables-only", *sources, *own, *libraries,
         "-Wl,--wrap=malloc,--wrap=aligned_alloc,--wrap=free", "-o", transformed],
        {"PERDURE_PASS": "ipv-all", "PERDURE_IPV_EXPLAIN": str(explanation)})
    return transformed, explanation


def lines_with_rows(explanation: Path) -> list[str]:
    """The text of the lines that store to rows."""
    found = []
    for line in explanation.read_text().splitlines():
        entry = json.loads(line)
        for place in entry.get("rows", []):
            if place is None:
                continue
            text = Path(place["file"]).read_text().splitlines()[place["line"] - 1]
            found.append(f"{Path(place['file']).name}: {text.strip()}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--problem-class", default="S")
    parser.add_argument("program", choices=sorted(UPDATES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        transformed, explanation = compile_program(options, Path(scratch))
        words = ["--class", options.problem_class, "--json"]
        native = options.build.resolve() / f"apps/npb/npb_{options.program}_clang"
        wanted = json.loads(run([native, *words]))
        said = run([transformed, *words])
        got = json.loads(said.splitlines()[-1])
        kinds = ("boxes asked for", "taken", "redirected")
        counts = [int(re.search(rf"(\d+) {kind}", said).group(1)) for kind in kinds]
        file, text = UPDATES[options.program]
        update = [line for line in lines_with_rows(explanation)
                  if line.startswith(file) and text in line]
    print("{}; {} boxes asked for, {} taken, {} redirected; {}".format(
        got["verification"], *counts, update))
    same = got["checks"] == wanted["checks"] and got["verification"] == "verified"
    return 0 if same and counts[2] > 0 and update else 1


if __name__ == "__main__":
    sys.exit(main())
