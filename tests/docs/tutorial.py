#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does what a page says, command by command, and compares what is printed.

    tutorial.py BUILD PAGE

A block ```console of the page has commands, which begin with "$ ", and below each what it prints:
all lines in their order, where a line "…" stands for any lines, "…" in a line for any text, and
blanks for any blanks: a table is padded on a screen only. A block ```diff is the difference
between two files, alone, with three lines around it, or within the whole. All runs in a folder with
the files of examples/, and with the commands of the build tree on the path; mpicc, mpifort, mpiexec
and h5pcc are those of MPICH there, and Python finds Perdure as if it were installed. A page that
makes namespaces is skipped, with exit code 77, where the kernel refuses it.
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
    real = [
        subprocess.run(["diff", f"-U{around}", "--label", before, "--label", after, before, after],
                       cwd=folder, text=True, capture_output=True, check=False).stdout
        for around in (0, 3, 999)
    ]  # fmt: skip
    # A line of an editor, or of tidy, has no blanks at its end.
    if block not in [re.sub(r" +$", "", each, flags=re.M) for each in real]:
        sys.exit(f"the page's difference is not that of {before} and {after}:\n{real[0]}")


def make_commands(folder: Path) -> None:
    """The names of MPICH's commands that users know, and `python` with numpy.

    MPICH's launcher is that of the tests, whose ranks yield while they wait.
    """
    chosen = {"python": str(ROOT / ".venv/bin/python")}
    mpi = "mpich"
    for name in ("mpicc", "mpifort", "mpiexec", "h5pcc"):
        chosen[name] = shutil.which(f"{name}.{mpi}") or shutil.which(name) or "false"
    chosen["mpiexec"] = os.environ.get(f"PERDURE_TEST_MPIEXEC_{mpi}") or chosen["mpiexec"]
    folder.mkdir()
    for name, program in chosen.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n')
        (folder / name).chmod(0o700)


def refused_namespaces(blocks: list[tuple[str, str]]) -> str | None:
    """Why the kernel makes none of those that the page's commands make."""
    if not any("unshare " in block for kind, block in blocks if kind == "console"):
        return None
    trial = ["unshare", "--map-root-user", "--mount", "--pid", "--fork", "true"]
    done = subprocess.run(trial, text=True, capture_output=True, check=False)
    return done.stderr.strip() if done.returncode else None


def main(build: Path, page: Path) -> None:
    blocks = BLOCK.findall(page.read_text())
    if len(blocks) < 2:
        sys.exit(f"{page} has no commands")
    if (refused := refused_namespaces(blocks)) is not None:
        print(f"skipped: {refused}")
        sys.exit(77)
    with tempfile.TemporaryDirectory(dir=os.environ.get("PERDURE_TEST_DIR")) as name:
        folder = Path(name) / "work"
        shutil.copytree(ROOT / "examples", folder)
        make_commands(Path(name) / "bin")
        path = f"{name}/bin:{build / 'trace/bin'}:{ROOT}:{os.environ['PATH']}"
        environment = {**os.environ, "COLUMNS": "100", "CPATH": str(ROOT / "include"),
                       "PERDURE_BUILD": str(build), "PATH": path,
                       "PYTHONPATH": f"{build / 'python'}:{ROOT / 'python'}"}  # fmt: skip
        for kind, block in blocks:
            if kind == "diff":
                check_difference(block, folder)
                continue
            for command, expected in commands_of(block):
                run(command, expected, folder, environment)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
