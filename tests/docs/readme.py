#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Takes the program out of README.md; runs what was compiled from it and from examples/.

    readme.py extract LANGUAGE FILE    writes the first block ```LANGUAGE of README.md to FILE
    readme.py run PROGRAM…             each program is killed in a commit and started again; with
                                       a launcher before it ("mpiexec -n 2 PROGRAM"), rank 0 is

A program takes the directory of a pool. It must end undisturbed; after a kill it must go on from
the version before; and all of them must print the same answer.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"
KILLED_AT = 300


def extract(language: str, target: Path) -> None:
    """Writes the block to a file."""
    found = re.search(rf"^```{re.escape(language)}\n(.*?)^```$", README.read_text(), re.M | re.S)
    if found is None:
        sys.exit(f"README.md has no block ```{language}")
    target.write_text(found.group(1))


def run(program: str, pool: Path, kill_at: int | None = None) -> list[str]:
    """The lines that the program prints; it must end as it should."""
    words = [program] if os.path.exists(program) else shlex.split(program)
    environment = {**os.environ}
    environment.pop("PERDURE_KILL", None)
    if kill_at is not None:
        environment["PERDURE_KILL"] = f"rank=0,iteration={kill_at},point=data"
    done = subprocess.run(
        [*words, str(pool)], env=environment, capture_output=True, text=True, timeout=60
    )
    killed = done.returncode == -signal.SIGKILL if len(words) == 1 else done.returncode != 0
    if (kill_at is None and done.returncode != 0) or (kill_at is not None and not killed):
        sys.exit(f"{program} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout.splitlines()


def answer_of(program: str, folder: Path) -> str:
    """What the program prints last, also after a kill."""
    beginning, answer = run(program, folder / "undisturbed")
    run(program, folder / "killed", kill_at=KILLED_AT)
    beginning_again, answer_again = run(program, folder / "killed")
    if (beginning, beginning_again) != ("begins at step 0", f"begins at step {KILLED_AT - 1}"):
        sys.exit(f"{program}: '{beginning}', after a kill '{beginning_again}'")
    if answer != answer_again:
        sys.exit(f"{program}: '{answer}', after a kill '{answer_again}'")
    return answer


def main() -> None:
    if sys.argv[1] == "extract":
        extract(sys.argv[2], Path(sys.argv[3]))
        return
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    answers = set()
    for program in sys.argv[2:]:
        with tempfile.TemporaryDirectory(prefix="perdure-test-", dir=place) as folder:
            answers.add(answer_of(program, Path(folder)))
    print("\n".join(sorted(answers)))
    if len(answers) != 1:
        sys.exit("the programs differ in their answers")


if __name__ == "__main__":
    main()
