# SPDX-License-Identifier: BSD-3-Clause
"""Runs of one job that drain to one directory: sent twice, requeued, taken for dead.

    two_runs.py MPIEXEC PROGRAM [--seed S]

Each run (two_runs_job.c) is of other ranks, on other pretended nodes, and has other input, so whose
bytes a start finds is seen. Exit code 0: all was right.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MPIRUN = Path(__file__).resolve().parents[2] / "tools/mpirun.sh"
LIMIT_S = 240
FOREVER = 1_000_000
EVERY = 4


class Wrong(Exception):
    """What a campaign found."""


class Run:
    """A start of the job, with what it says in a file."""

    def __init__(self, trial, nodes, number: int, steps=FOREVER, hold=False, more=""):
        self.number, self._steps = number, steps
        self._trial, self._place = trial, trial.place
        self._name = f"{number}-{trial.count}"
        trial.count += 1
        self._drained = trial.drained()
        levels = f"redundancy=partner;every={EVERY};drain={trial.place}/drain"
        levels += f";lease={trial.lease}{more}"
        for node in nodes:
            (trial.place / f"node-{node}").mkdir(mode=0o700, exist_ok=True)
        command = [MPIRUN, trial.mpiexec, 2, trial.program, trial.place, number, steps]
        self._out = (self._place / f"out-{self._name}").open("wb")
        self._err = (self._place / f"err-{self._name}").open("wb")
        self._process = subprocess.Popen(
            [str(word) for word in command], stdout=self._out, stderr=self._err,
            env={**os.environ, "PERDURE_LEVELS": levels, "TWO_RUNS_NODES": f"{nodes[0]} {nodes[1]}",
                 "PERDURE_MPI_TIMEOUT": str(LIMIT_S), **({"TWO_RUNS_HOLD": "1"} if hold else {})},
        )  # fmt: skip

    def said(self) -> str:
        return (self._place / f"out-{self._name}").read_text()

    def complained(self) -> str:
        return (self._place / f"err-{self._name}").read_text()

    def committed(self) -> int:
        return max(map(int, re.findall(r"^committed (\d+)$", self.said(), re.M)), default=0)

    def restarted(self) -> tuple[int, int]:
        """The version, and whose input it has."""
        found = re.search(r"^restarted (\d+) (\d+)$", self.said(), re.M)
        return (int(found.group(1)), int(found.group(2))) if found else (-1, -1)

    def wait_for(self, what, hint: str) -> None:
        for _ in range(LIMIT_S * 10):
            if what():
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        raise Wrong(f"run {self.number} did not come to {hint}: {self.said()}{self.complained()}")

    def goes_on(self, versions: int) -> Run:
        least = max(self.committed(), self.restarted()[0]) + versions
        self.wait_for(lambda: self.committed() >= least, f"version {least}")
        return self

    def drains(self) -> Run:
        """Versions are drained beside the program, which is ahead of them: until one has arrived
        since this run began."""
        def arrived() -> bool:
            return any(v > self._drained.get(line, 0) for line, v in self._trial.drained().items())
        self.wait_for(arrived, "a version on the drain")
        return self

    def comes_to_its_end(self) -> Run:
        self.wait_for(lambda: self.committed() >= self._steps, f"version {self._steps}")
        return self

    def signal(self, number: int) -> None:
        for pid in re.findall(r"^pid (\d+)$", self.said(), re.M):
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(int(pid), number)

    def kill(self) -> int:
        """The newest version that was acknowledged by then."""
        acknowledged = self.committed()
        self.signal(signal.SIGKILL)
        self._process.wait()
        return acknowledged

    def end(self) -> int:
        (self._place / f"stop-{self.number}").touch()
        code = self.code()
        (self._place / f"stop-{self.number}").unlink()
        if code != 0:
            raise Wrong(f"run {self.number} ended with {code}: {self.complained()}")
        return self.committed()

    def code(self) -> int:
        try:
            return self._process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Wrong(f"run {self.number} did not end: {self.complained()}") from None

    def must_be_at(self, least: int, number: int, hint: str) -> Run:
        self.wait_for(lambda: self.restarted()[0] >= 0, "a restart")
        version, its = self.restarted()
        if version < least or its != number:
            raise Wrong(
                f"{hint}: restarted at version {version} of run {its}, "
                f"expected version {least} of run {number}: {self.complained()}"
            )
        return self

    def must_say(self, *words: str) -> None:
        missing = [word for word in words if word not in self.complained()]
        if missing:
            raise Wrong(f"run {self.number} did not say {missing}: {self.complained()}")


class Trial:
    def __init__(self, options, place: Path, lease="60s"):
        self.mpiexec, self.program, self.place = options.mpiexec, options.program, place
        self.lease, self.count = lease, 0
        self._runs: list[Run] = []
        (place / "drain").mkdir(mode=0o700)

    def start(self, *words, **more) -> Run:
        self._runs.append(Run(self, *words, **more))
        return self._runs[-1]

    def drained(self) -> dict[str, int]:
        """The newest version on the drain of each line, which a run and those that follow it have
        in common. One that is due while another is drained is skipped."""
        newest: dict[str, int] = {}
        for manifest in (self.place / "drain").glob("*/*/version-*.*/manifest"):
            line, version = manifest.parts[-3], int(manifest.parts[-2][8:].split(".")[0])
            newest[line] = max(version, newest.get(line, 0))
        return newest

    def clean(self) -> None:
        for run in self._runs:
            if run._process.poll() is None:
                run.kill()


A, B, C = (0, 1), (2, 3), (4, 5)


def sent_twice(trial: Trial, first, second) -> None:
    """The second is refused while the first lives; the first one's result is on the drain."""
    one = trial.start(first, 1).goes_on(9).drains()
    two = trial.start(second, 2)
    if two.code() == 0 or two.restarted()[0] >= 0:
        raise Wrong(f"the second run was not refused: {two.said()}{two.complained()}")
    two.must_say("is used by job", "two_runs", "on host", "process", "since 20", "another drain")
    one.goes_on(5)
    last = one.end()
    (drained,) = trial.drained().values()
    trial.start(C, 3, steps=1).must_be_at(drained, 1, "of the drain, after the first ended").code()
    trial.start(first, 1, steps=1).must_be_at(last, 1, "on the nodes of the first").code()


def killed(trial: Trial, first, second) -> None:
    """Each finds what it acknowledged on its own nodes, whoever ran in between."""
    acknowledged = trial.start(first, 1, steps=11, hold=True).comes_to_its_end().drains().kill()
    two = trial.start(second, 2)
    two.must_be_at(4, 1, "from the drain").goes_on(17).drains()
    newest = two.kill()
    again = trial.start(first, 1)
    again.must_be_at(acknowledged, 1, "on its own nodes").goes_on(9)
    again.must_say("of another run", "which is not part of it and stays", "take=")
    newest_of_one = again.kill()
    other = trial.start(second, 2)
    other.must_be_at(newest, 2, "on the nodes of the second").goes_on(5)
    other.kill()
    third = trial.start(first, 1, steps=1)
    third.must_be_at(newest_of_one, 1, "once more").code()
    lineage = re.search(r"take=([0-9a-f]{32})", third.complained())
    if not lineage:
        raise Wrong(f"nothing was said of the other run: {third.complained()}")
    taken = trial.start(first, 1, more=f";take={lineage.group(1)}")
    taken.must_be_at(4, 2, "when the other one was asked for").goes_on(3)
    newest = taken.kill()
    again = trial.start(first, 1, steps=1, more=f";take={lineage.group(1)}")
    again.must_be_at(newest, 1, "asked for once more, which it was already").code()


def taken_for_dead(trial: Trial, first, second) -> None:
    """A run that was silent is fenced off: it says so, goes on on its nodes, and keeps them."""
    one = trial.start(first, 1).goes_on(9).drains()
    one.signal(signal.SIGSTOP)
    two = trial.start(second, 2)
    two.must_be_at(4, 1, "from the drain").goes_on(9).drains()
    one.signal(signal.SIGCONT)
    one.wait_for(lambda: "was taken over by" in one.complained(), "a word of its loss")
    acknowledged = one.goes_on(12).end()
    newest = two.goes_on(5).end()
    drained = max(trial.drained().values())
    again = trial.start(first, 1)
    again.must_be_at(acknowledged, 1, "of the one that was fenced off").goes_on(12)
    again.must_say(f"has version {drained} of another run")
    again.must_say(f"they hold version {acknowledged}")
    again.end()
    trial.start(second, 2, steps=1).must_be_at(newest, 2, "of the one that took over").code()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("mpiexec")
    parser.add_argument("program")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(30))
    options = parser.parse_args()
    print(f"--seed {options.seed}", flush=True)
    order = [(A, B), (B, A)]
    random.Random(options.seed).shuffle(order)
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    campaigns = [(sent_twice, "60s", each) for each in order]
    campaigns += [(killed, "60s", order[0]), (taken_for_dead, "5s", order[1])]
    with tempfile.TemporaryDirectory(prefix="perdure-runs-", dir=parent) as scratch:
        for number, (campaign, lease, nodes) in enumerate(campaigns):
            place = Path(scratch) / str(number)
            place.mkdir(mode=0o700)
            trial = Trial(options, place, lease)
            try:
                campaign(trial, *nodes)
            except Wrong as wrong:
                print(f"{campaign.__name__}, on nodes {nodes}: {wrong}")
                return 1
            finally:
                trial.clean()
            print(f"{campaign.__name__}, on nodes {nodes}: {trial.count} starts", flush=True)
            shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
