#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does what a page says, command by command, and compares what is printed.

    tutorial.py BUILD PAGE FILE…

A block ```console of the page has commands, which begin with "$ ", and below each what it prints:
all lines in their order, where a line "…" stands for any lines, "…" in a line for any text, and
blanks for any blanks: a table is padded on a screen only. A block ```diff is the difference between
two of the files. All runs in an empty folder with the files in it, and with the commands of the
build tree on the path.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(console|diff)\n(.*?)^```$", re.M | re.S)
ANY = "…"


def plain(line: str) -> str:
    return " ".join(line.split())


def pattern(expected: list[str]) -> re.Pattern[str]:
    """Of the whole output."""
    parts = [r"(?:.*\n)*?" if line == ANY
             else ".*".join(re.escape(piece) for piece in line.split(ANY)) + "\n"
             for line in expected]  # fmt: skip
    return re.compile("".join(parts))


def commands_of(block: str) -> list[tuple[str, list[str]]]:
    """Each with the lines below it; a line that ends with a backslash goes on in the next."""
    found: list[tuple[str, list[str]]] = []
    for line in block.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif found:
            found[-1][1].append(line)
        else:
            sys.exit(f"a block begins with no command: {line}")
    return found


def run(command: str, expected: list[str], folder: Path, environment: dict[str, str]) -> None:
    """Ends the test if another output comes."""
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                          check=False)  # fmt: skip
    printed = "".join(plain(line) + "\n" for line in done.stdout.splitlines())
    if not pattern([plain(line) for line in expected]).fullmatch(printed):
        sys.exit(f"$ {command}\nended with {done.returncode} and printed\n{printed}\nand not\n"
                 + "\n".join(expected))


def check_difference(block: str, folder: Path) -> None:
    """The block is what diff prints of the two files that its first lines name."""
    before, after = re.findall(r"^(?:---|\+\+\+) (\S+)$", block, re.M)[:2]
    done = subprocess.run(["diff", "-U0", "--label", before, "--label", after, before, after],
                          cwd=folder, text=True, capture_output=True, check=False)  # fmt: skip
    if done.stdout != block:
        sys.exit(f"the page's difference is not that of {before} and {after}:\n{done.stdout}")


def main(build: Path, page: Path, files: list[Path]) -> None:
    environment = {**os.environ, "COLUMNS": "100", "CPATH": str(ROOT / "include"),
                   "PERDURE_BUILD": str(build),
                   "PATH": f"{build / 'trace/bin'}:{ROOT}:{os.environ['PATH']}"}  # fmt: skip
    blocks = BLOCK.findall(page.read_text())
    if len(blocks) < 2:
        sys.exit(f"{page} has no commands")
    with tempfile.TemporaryDirectory(dir=os.environ.get("PERDURE_TEST_DIR")) as name:
        folder = Path(name)
        for file in files:
            shutil.copy(file, folder)
        for kind, block in blocks:
            if kind == "diff":
                check_difference(block, folder)
                continue
            for command, expected in commands_of(block):
                run(command, expected, folder, environment)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]), [Path(each) for each in sys.argv[3:]])
