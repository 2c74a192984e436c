#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy-19 on the C and C++ files that differ from a branch, or on all of them.

    tools/run_clang_tidy.py [--build DIR] [--base BRANCH] [--all]

Needs DIR/compile_commands.json. Ends quietly where clang-tidy-19 is not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compilations import Command, one_by_one

ROOT = Path(__file__).resolve().parent.parent
# What a build by GCC says that means nothing to Clang.
OF_GCC = [f"--extra-arg={word}" for word in ("-Wno-ignored-gch", "-Wno-unknown-warning-option")]


def git_names(*words: str) -> set[str]:
    """The paths that a git command prints."""
    command = ["git", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return set(done.stdout.split("\n")) - {""}


def changed_files(base: str) -> set[str]:
    """What differs from where this branch left `base`, committed or not."""
    fork = git_names("merge-base", "HEAD", base) or {"HEAD"}
    changed = git_names("diff", "--name-only", fork.pop())
    return changed | git_names("ls-files", "--others", "--exclude-standard")


def compiled_files(commands: list[Command]) -> dict[str, str]:
    """Path below the root -> absolute path of what is compiled."""
    paths = {Path(entry["directory"], entry["file"]).resolve() for entry in commands}
    below = [path for path in paths if path.is_relative_to(ROOT)]
    return {path.relative_to(ROOT).as_posix(): str(path) for path in below}


def check(folder: str, files: list[str]) -> int:
    """How many files clang-tidy finds something in; prints what it finds."""

    def run(path: str) -> bool:
        command = ["clang-tidy-19", "--quiet", "-p", folder, *OF_GCC, path]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(done.stdout or done.stderr, flush=True)
        return done.returncode != 0

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(run, files))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    parser.add_argument("--base", default="main")
    parser.add_argument("--all", action="store_true")
    asked = parser.parse_args()
    if shutil.which("clang-tidy-19") is None:
        print("clang-tidy: not installed, nothing checked")
        return 0
    commands = one_by_one(asked.build.resolve())
    compiled = compiled_files(commands)
    wanted = set(compiled) if asked.all else changed_files(asked.base)
    files = sorted(path for name, path in compiled.items() if name in wanted)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
        failed = check(folder, files)
    print(f"clang-tidy: {len(files)} files, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
