#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of tasks with one MPI and one number of ranks.

    check.py kills|refuse MPIRUN MPIEXEC RANKS PROGRAM

kills    jobs of changing numbers of ranks are killed at random moments until one ends: the answer
         is right, and no task that was finished is done again
refuse   pools of another problem, and wrong options, are refused in a sentence
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "job"))
from checking import Job, check, check_refused, run_check  # noqa: E402

BOARD, WAYS = 11, 2680
KILLS = 6
SHAPES = ("master", "divide")


def processes_of(program, directory):
    """The running ranks of a job."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if entry.name.isdigit() and str(program).encode() == words[0] and (
            str(directory).encode() in words
        ):
            found.append(int(entry.name))
    return sorted(found)


def kill_a_rank(job, directory, wait_s, chooser):
    """Starts a job and kills one of its ranks so long after the first one is there; whether it
    was still running."""
    program = job.launch[-1]
    running = subprocess.Popen(
        [*job.launch, "--board", str(BOARD), "--directory", str(directory), *job.more],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )
    while running.poll() is None and not processes_of(program, directory):
        time.sleep(0.01)
    time.sleep(wait_s)
    victims = processes_of(program, directory)
    if victims:
        os.kill(chooser.choice(victims), signal.SIGKILL)
    running.wait()
    return running.returncode != 0


def with_ranks(job, ranks, shape):
    other = Job(*job.launch[:2], str(ranks), job.launch[-1])
    other.more = ["--shape", shape, "--depth", "4"]
    return other


def check_kills(job, folder):
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns()))
    print(f"PERDURE_TEST_SEED={seed}")
    chooser = random.Random(seed)
    for shape in SHAPES:
        directory = folder / shape
        killed = 0
        for _ in range(KILLS):
            one = with_ranks(job, chooser.randint(1, job.ranks + 1), shape)
            killed += kill_a_rank(one, directory, chooser.uniform(0, 0.4), chooser)
        last = with_ranks(job, job.ranks, shape)
        said = last.run("--board", BOARD, "--directory", directory, *last.more)
        (facts,) = [fact for fact in said if fact["metric"] == "ways"]
        check(facts["value"] == WAYS, shape, "found", facts)
        check(facts["repeated"] == 0, shape, "did finished tasks again:", facts)
        again = {fact["metric"]: fact for fact in
                 last.run("--board", BOARD, "--directory", directory, *last.more)}
        check(again["ways"]["value"] == WAYS, shape, "found when all was finished", again)
        check(again["tasks"]["value"] == again["tasks"]["before"], shape, "did tasks again", again)
        print(f"{shape}: {killed} jobs killed, {facts['before']} tasks of them kept of "
              f"{again['tasks']['value']}")


def check_refusals(job, folder):
    directory = folder / "queens"
    job.run("--board", 6, "--directory", directory)
    asked = ["--directory", directory]
    check_refused(job, ["--board", "7", *asked], "the pools are of --board 6 --depth 3")
    check_refused(job, ["--board", "6", "--depth", "2", *asked], "the pools are of --board 6")
    check_refused(job, ["--board", "6"], "--directory is required")
    check_refused(job, ["--board", "3", "--depth", "4", *asked], "is larger than --board")
    check_refused(job, ["--board", "99", *asked], "not in range")
    (folder / "file").write_text(json.dumps(1))
    check_refused(job, ["--directory", folder / "file"], str(folder / "file"))


if __name__ == "__main__":
    run_check(__doc__, {"kills": check_kills, "refuse": check_refusals})
