#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of tasks with one MPI and one number of ranks.

    check.py kills|refuse MPIRUN MPIEXEC RANKS PROGRAM

kills    jobs of changing numbers of ranks are killed at random moments until one ends: the answer
         is right, and no task that was finished is done again
refuse   pools of another problem, and wrong options, are refused in a sentence
"""

import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "job"))
from checking import check, check_refused, chooser_of_test, kill_a_rank, run_check  # noqa: E402

BOARD, WAYS = 12, 14200
KILLS = 6
SHAPES = ("master", "divide")


def check_kills(job, folder):
    chooser = chooser_of_test()
    for shape in SHAPES:
        directory = folder / shape
        arguments = ["--board", BOARD, "--depth", 5, "--shape", shape, "--directory", directory]
        killed = 0
        for _ in range(KILLS):
            one = job.on(chooser.randint(1, job.ranks + 1))
            killed += kill_a_rank(one, arguments, directory, chooser.uniform(0, 0.4), chooser)
        first, again = ({fact["metric"]: fact for fact in job.run(*arguments)} for _ in range(2))
        check(first["ways"]["value"] == WAYS, shape, "found", first)
        check(first["ways"]["repeated"] == 0, shape, "did finished tasks again:", first)
        check(again["ways"]["value"] == WAYS, shape, "found when all was finished", again)
        check(again["tasks"]["value"] == again["tasks"]["before"], shape, "did tasks again", again)
        print(f"{shape}: {killed} jobs killed, {first['ways']['before']} tasks of them kept of "
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
