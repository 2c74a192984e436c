# SPDX-License-Identifier: BSD-3-Clause
"""Kills jobs whose array is in memory of a GPU, and compares what they restart from.

    kill.py BUILD [--every N]     the tests' driver: at each of its calls, in each of its copies; or
                                  at each N-th, from one that is drawn
    kill.py BUILD --gpu 8 1e9     the GPU of this machine: 8 kills at any time, of so many bytes

After each kill a process without a GPU restarts from the pool: every byte is of one version, which
is the last that was acknowledged or the one after it. Then the job goes on, on the GPU. Prints
facts, and ends with 1 if one of them does not hold.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MODES = ("copy", "log")
SMALL_BYTES = 4 * 65536
COMMITS = 2


@dataclass
class Counts:
    """What came of kills: of how many, wrong bytes, versions that were lost."""

    kills: int = 0
    wrong: int = 0
    lost: int = 0

    def line(self, case: str) -> str:
        """The facts of a case."""
        holds = self.wrong == 0 and self.lost == 0
        fact = {"bench": "gpu_check", "case": case, "metric": "wrong", "value": self.wrong}
        more = {"unit": "bytes", "n": self.kills, "lost": self.lost, "target": 0, "holds": holds}
        return json.dumps({**fact, **more})


class Jobs:
    """Runs of one job, each in its turn."""

    def __init__(self, build: Path, place: Path, mode: str, size_bytes: int, fake: bool) -> None:
        self._job = build / "tests/gpu/gpu_job"
        self._words = [str(self._job), str(place), mode, str(size_bytes)]
        self._environment = {**os.environ, "FAKE_CUDA_QUIET": "1"}
        if fake:
            driver = build / "tests/gpu/fake/libcuda.so.1"
            self._environment |= {"BENCH_CUDA_DRIVER": str(driver), "FAKE_CUDA_DELAY_US": "20"}

    def run(self, commits: int, **more: object) -> tuple[list[str], int]:
        """The lines that it printed, and how it ended."""
        variables = {name: str(value) for name, value in more.items()}
        ended = subprocess.run(
            [*self._words, str(commits)], env={**self._environment, **variables},
            stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        return ended.stdout.splitlines(), ended.returncode

    def start(self, commits: int) -> subprocess.Popen[str]:
        """The same, and it is not waited for."""
        return subprocess.Popen(
            [*self._words, str(commits)], env=self._environment, stdout=subprocess.PIPE, text=True
        )

    def compare(self, printed: list[str], counts: Counts) -> None:
        """What a process without a GPU finds, and then the job itself."""
        counts.kills += 1
        acknowledged = max([_number(line, "acknowledged") for line in printed] + [0])
        ended = subprocess.run(
            [*self._words, "check"], env=self._environment, stdout=subprocess.PIPE, text=True,
            check=True,
        )  # fmt: skip
        found, wrong = _found(ended.stdout, "found")
        counts.wrong += wrong
        counts.lost += not acknowledged <= found <= acknowledged + 1
        lines, code = self.run(1)
        if code != 0:
            raise SystemExit(f"{self._job.name} ended with {code} after a kill: {lines}")
        begun, wrong = _found("\n".join(lines), "begins")
        counts.wrong += wrong
        counts.lost += begun != found


def _number(line: str, word: str) -> int:
    words = line.split()
    return int(words[1]) if words[:1] == [word] else 0


def _found(printed: str, word: str) -> tuple[int, int]:
    for line in printed.splitlines():
        words = line.split()
        if words[:1] == [word]:
            return int(words[1]), int(words[3])
    raise SystemExit(f"no line '{word}' in: {printed}")


def _calls(build: Path, place: Path, mode: str) -> tuple[int, int]:
    """Of an undisturbed run: the calls of the driver, and how many of them copy."""
    log = place / "log"
    lines, code = Jobs(build, place / "pool", mode, SMALL_BYTES, fake=True).run(
        COMMITS, FAKE_CUDA_LOG=log
    )
    if code != 0:
        raise SystemExit(f"an undisturbed run ended with {code}: {lines}")
    names = [line.split()[2] for line in log.read_text(encoding="utf-8").splitlines()]
    return len(names), sum("cuMemcpy" in name for name in names)


def sweep(build: Path, step: int) -> Iterator[tuple[str, Counts]]:
    """Kills of a run with the tests' driver, in pools of their own."""
    drawn = _drawn()
    for mode in MODES:
        with tempfile.TemporaryDirectory(prefix="perdure-gpu-", dir=_memory()) as folder:
            calls, copies = _calls(build, Path(folder), mode)
            for what, count in (("KILL_AT", calls), ("KILL_COPY", copies)):
                counts = Counts()
                for at in range(drawn.randint(1, min(step, count)), count + 1, step):
                    place = Path(folder) / f"{what}{at}"
                    jobs = Jobs(build, place, mode, SMALL_BYTES, fake=True)
                    printed, code = jobs.run(COMMITS, **{f"FAKE_CUDA_{what}": at})
                    if code not in (0, -signal.SIGKILL):
                        raise SystemExit(f"{what} {at}: the job ended with {code}")
                    jobs.compare(printed, counts)
                name = "at each call" if what == "KILL_AT" else "in each copy"
                yield f"kills {name}, {mode}", counts


def campaign(build: Path, kills: int, size_bytes: int) -> Iterator[tuple[str, Counts]]:
    """Kills at any time, on the GPU of this machine."""
    drawn = _drawn()
    for mode in MODES:
        counts = Counts()
        with tempfile.TemporaryDirectory(prefix="perdure-gpu-", dir=_memory()) as folder:
            jobs = Jobs(build, Path(folder) / "pool", mode, size_bytes, fake=False)
            for _ in range(kills // len(MODES)):
                _kill_one(jobs, drawn, counts)
        yield f"kills in a DMA, {mode}", counts


def _kill_one(jobs: Jobs, drawn: random.Random, counts: Counts) -> None:
    running = jobs.start(1_000_000)
    assert running.stdout is not None
    printed: list[str] = []
    since = time.monotonic()
    each = 0.0
    for line in running.stdout:
        printed.append(line)
        if line.startswith("acknowledged"):
            each, since = time.monotonic() - since, time.monotonic()
            if len(printed) > drawn.randrange(3, 6):
                break
    time.sleep(drawn.random() * each)  # into the next commit
    running.kill()
    printed += running.communicate()[0].splitlines()
    jobs.compare(printed, counts)


def _drawn() -> random.Random:
    seed = int(os.environ.get("PERDURE_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"PERDURE_TEST_SEED={seed}", file=sys.stderr)
    return random.Random(seed)


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main(words: list[str]) -> int:
    """The exit code."""
    build = Path(words[0])
    if words[1:2] == ["--gpu"]:
        facts = campaign(build, int(words[2]), int(float(words[3])))
    else:
        facts = sweep(build, int(words[2]) if words[1:] else 1)
    good = True
    for case, counts in facts:
        print(counts.line(case), flush=True)
        good &= counts.wrong == 0 and counts.lost == 0 and counts.kills > 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
