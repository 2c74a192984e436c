#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills a program with its state on a GPU, and compares its answer.

    check.py PROGRAM N STEPS EVERY KILLS

It is killed after each of KILLS versions, a random time later, in one run after the other. The last
run goes on to the end, with the bits of a run that was left alone. Ends with 1 if not.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def line_of(printed: str, word: str) -> str:
    """What follows the word at the beginning of a line."""
    return next(line for line in printed.splitlines() if line.startswith(word)).rsplit(" ", 1)[1]


def killed(command: list[str], after: int, drawn: random.Random) -> tuple[int, int]:
    """The step that it began with, and the last that it had said to be durable."""
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    begun = time.monotonic()
    printed = running.stdout.readline()
    for _ in range(after):
        printed += running.stdout.readline()
    time.sleep((time.monotonic() - begun) / (after + 1) * drawn.random())
    running.kill()
    printed += running.communicate()[0]
    if "hash" in printed:
        raise SystemExit("it ended before it was killed: give it more steps")
    durable = [line for line in printed.splitlines() if line.startswith("committed")]
    return int(line_of(printed, "begins")), int(durable[-1].split()[1]) if durable else 0


def main(words: list[str]) -> int:
    """The exit code."""
    program, n, steps, every, kills = words
    seed = int(os.environ.get("PERDURE_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"PERDURE_TEST_SEED={seed}")
    drawn = random.Random(seed)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-gpu-", dir=memory) as folder:
        calm = subprocess.run(
            [program, f"{folder}/calm", n, steps, every],
            stdout=subprocess.PIPE, text=True, check=True,
        ).stdout  # fmt: skip
        command = [program, f"{folder}/killed", n, steps, every]
        durable = 0
        for _ in range(int(kills)):
            began, committed = killed(command, drawn.randrange(1, 4), drawn)
            if not durable <= began <= durable + int(every):
                raise SystemExit(f"it began at {began}, and {durable} was durable")
            durable = max(began, committed)
        last = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        began = int(line_of(last, "begins"))
        equal = line_of(last, "hash") == line_of(calm, "hash")
    name = Path(program).name
    print(f"{name}: killed {kills} times, went on from step {began} of {steps}, ended with "
          + ("the same bits" if equal else "OTHER bits"))  # fmt: skip
    return 0 if equal and began >= durable > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
