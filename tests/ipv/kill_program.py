#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills a program of apps/npb, or eddy, at random instants and restarts it until it ends right.

    kill_program.py [--kills N] [--seed S] --markers LIBRARY [--mpirun MPIEXEC RANKS]
                    PROGRAM [OPTION …]

Each trial begins on an empty pool; each of its runs draws a tier, whether versions are made beside
the program, and the instant: anywhere within a random iteration, within the setup and restart, or
at a point of a random iteration's commit (PERDURE_KILL). One process gets SIGKILL; a launcher ends
the others. The last run of a trial is left alone.
LIBRARY tells which iterations begin, so that it is known what was acknowledged. Counts

  wrong    other digits at the end than those of an undisturbed run
  lost     a run that went on from before what had been acknowledged
  refused  a run that was not killed and failed

and fails if there is any of them. Prints the seed; --seed takes it back.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from kill import TIERS, processes_of, trial_folder

POINTS = ("copy", "data", "slot", "state", "agreed")
SECONDS_MAX = 600
MPIRUN = Path(__file__).resolve().parents[2] / "tools/mpirun.sh"


@dataclass
class Tally:
    kills: int = 0
    trials: int = 0
    wrong: list = field(default_factory=list)
    lost: list = field(default_factory=list)
    refused: list = field(default_factory=list)


@dataclass
class Undisturbed:
    """What a run gives that nobody kills, and how long it takes."""

    digits: list
    iterations: int
    setup_s: float
    iteration_s: float


@dataclass
class Job:
    """One run on a pool, under a preloaded tracer."""

    process: subprocess.Popen
    output: Path
    first: int = 0  # iteration that this run began
    last: int = 0
    said: str = ""

    def read_until(self, iteration: int | None) -> None:
        """Notes the iterations that it begins, up to this one, and what else it says."""
        for line in self.process.stderr:
            began = re.match(r"iteration (\d+)$", line)
            if not began:
                self.said += line
                continue
            self.last = max(self.last, int(began[1]))
            self.first = self.first or int(began[1])
            if self.last == iteration:
                break


def facts_of(text: str) -> dict:
    return json.loads(text.splitlines()[-1])


def digits(facts: dict) -> list:
    names = ("error_vx", "error_vy", "error_pr", "divergence")
    return facts.get("checks") or [facts[name] for name in names]


def command_of(given: argparse.Namespace) -> list[str]:
    launcher = [str(MPIRUN), *given.mpirun] if given.mpirun else []
    return [*launcher, given.program, *given.options, "--json"]


def undisturbed(given: argparse.Namespace) -> Undisturbed:
    ran = subprocess.run(command_of(given), capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        sys.exit(f"the undisturbed run failed: {ran.returncode}\n{ran.stdout}{ran.stderr}")
    facts = facts_of(ran.stdout)
    iterations = facts["iterations"]
    return Undisturbed(digits(facts), iterations, facts["setup_s"], facts["loop_s"] / iterations)


def launch(given: argparse.Namespace, pool: Path, request: str, point: str) -> Job:
    environment = {**os.environ, "PERDURE_IPV": request, "PERDURE_KILL": point,
                   "LD_PRELOAD": str(given.markers)}
    output = pool.parent / "output"
    with output.open("w") as file:
        process = subprocess.Popen([*command_of(given), "--protect", "ipv", "--pool", str(pool)],
                                   env=environment, stdout=file, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
    return Job(process, output)


def kill_one(given: argparse.Namespace, pool: Path, job: Job, draw: random.Random) -> bool:
    ranks = processes_of(given.program, pool)
    if job.process.poll() is not None or not ranks:
        return False
    try:
        os.kill(draw.choice(sorted(ranks)), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def iteration_to_do(draw: random.Random, done: int, usual: Undisturbed) -> int:
    return draw.randint(min(done + 1, usual.iterations), usual.iterations)


def point_of_commit(given, draw: random.Random, done: int, usual: Undisturbed) -> str:
    """PERDURE_KILL of a third of the runs."""
    if draw.random() < 0.67:
        return ""
    rank = draw.randrange(int(given.mpirun[1]) if given.mpirun else 1)
    iteration = iteration_to_do(draw, done, usual)
    return f"rank={rank},iteration={iteration},point={draw.choice(POINTS)}"


def wait_for_instant(job: Job, draw: random.Random, done: int, usual: Undisturbed) -> None:
    """Mostly within an iteration that is still to be done, sometimes before the first one."""
    if draw.random() < 0.2:
        time.sleep(draw.uniform(0, usual.setup_s + 0.05))
        return
    job.read_until(iteration_to_do(draw, done, usual))
    time.sleep(draw.uniform(0, 1.5 * usual.iteration_s))


def finish(job: Job) -> tuple[int, str]:
    """Its exit code and its words."""
    job.read_until(None)
    code = job.process.wait(timeout=SECONDS_MAX)
    return code, job.output.read_text() + job.said


def run_trial(given, folder: Path, draw: random.Random, usual: Undisturbed, tally: Tally) -> None:
    """Kills a job up to three times, then lets it end."""
    pool, acknowledged, begun = folder / "pool", 0, 0
    attempts = draw.randint(1, 3)
    for attempt in range(attempts, -1, -1):
        beside = draw.choice(("on", "off"))
        lag = draw.choice((0, 1))
        request = f"tier={draw.choice(TIERS)},lag={lag},helper={beside},box_bytes=1"
        point = point_of_commit(given, draw, begun, usual) if attempt > 0 else ""
        job = launch(given, pool, request, point)
        where = f"trial {tally.trials}, run {attempts - attempt}, {request} {point}"
        killed = point != ""
        if attempt > 0 and not killed:
            wait_for_instant(job, draw, begun, usual)
            killed = kill_one(given, pool, job, draw)
        code, text = finish(job)
        if job.first and job.first - 1 < acknowledged:
            tally.lost.append(f"{where}: went on from {job.first - 1}, not from {acknowledged}")
        killed = killed and code != 0  # else it had ended before
        tally.kills += killed
        begun = max(begun, job.last)
        # With lag the version before is durable when an iteration has ended.
        acknowledged = max(acknowledged, job.last - 1 - lag)
        if killed:
            continue
        if not job.output.read_text():
            tally.refused.append(f"{where}: exit code {code}\n{text}")
        elif code != 0 or digits(facts_of(job.output.read_text())) != usual.digits:
            tally.wrong.append(f"{where}: exit code {code}\n{text}")
        return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markers", type=Path, required=True)
    parser.add_argument("--mpirun", nargs=2, metavar=("MPIEXEC", "RANKS"))
    parser.add_argument("program")
    parser.add_argument("options", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    draw, tally = random.Random(given.seed), Tally()
    print(f"seed {given.seed}")
    usual = undisturbed(given)
    while tally.kills < given.kills and tally.trials < 5 * given.kills:
        with trial_folder(given.program) as folder:
            run_trial(given, folder, draw, usual, tally)
        tally.trials += 1
    for sentence in [*tally.wrong, *tally.lost, *tally.refused]:
        print(sentence)
    figures = {"bench": "ipv_kill", "case": Path(given.program).name, "kills": tally.kills,
               "trials": tally.trials, "wrong": len(tally.wrong), "lost": len(tally.lost),
               "refused": len(tally.refused)}
    print(json.dumps(figures))
    bad = tally.wrong or tally.lost or tally.refused or tally.kills < given.kills
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
