# SPDX-License-Identifier: BSD-3-Clause
"""What the check.py of an application is made of: jobs, how they are killed, what they refuse."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77  # exit code: what a check needs is not there
KILL_ITERATION = 12
# Points of a commit, and which of the versions before and at the kill may be restored.
DISK_POINTS = {"copy": (0,), "data": (0,), "state": (0, 1)}
POOL_POINTS = {"copy": (0,), "data": (0,), "slot": (0,), "state": (0, 1), "agreed": (1,)}


class Job:
    def __init__(self, mpirun, mpiexec, ranks, program):
        self.launch = [mpirun, mpiexec, ranks, program]
        self.ranks = int(ranks)

    def start(self, arguments, kill_point=None, **more):
        """The ended job; with `kill_point`, its last rank is killed there."""
        environment = dict(os.environ)
        environment.pop("PERDURE_KILL", None)
        if kill_point:
            environment["PERDURE_KILL"] = (
                f"rank={self.ranks - 1},iteration={KILL_ITERATION},point={kill_point}"
            )
        return subprocess.run(
            self.launch + [str(argument) for argument in arguments],
            **more,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )

    def run(self, *arguments):
        """What a job that ends well says, an object for each line."""
        done = self.start([*arguments, "--json"])
        check(done.returncode == 0, arguments, done.returncode, done.stdout, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def outcome(self, *arguments):
        """The object with the hash of the result."""
        return next(said for said in self.run(*arguments) if "hash" in said)


def check(holds, *what):
    if not holds:
        sys.exit(" ".join(str(part) for part in what))


def check_restart(job, name, arguments, point, versions, every, undisturbed):
    """A job killed at `point`, and started again, ends with the bits of an undisturbed one."""
    name = f"{name}, killed at {point}:"
    check(job.start(arguments, point).returncode != 0, name, "it did not happen")
    about = job.outcome(*arguments)
    version = about["restored_version"]
    check(version - KILL_ITERATION // every + 1 in versions, name, "restored version", version)
    check(about["first_iteration"] == version * every, name, about)
    check(about["hash"] == undisturbed, name, "ended with other bits")
    print(f"{name} restarted from iteration {version * every}")


def check_refused(job, arguments, sentence):
    """`sentence` is said, once, and the job ends in order."""
    done = job.start(arguments)
    check(done.returncode not in (0, 124), arguments, "ended with", done.returncode)
    check(sentence in done.stderr, arguments, "not said:", sentence, "\n", done.stderr)
    lines = [line for line in done.stderr.splitlines() if sentence in line]
    check(len(lines) == 1, arguments, "said more than once:", done.stderr)
    check("MPI_Abort" not in done.stderr, arguments, "was aborted:", done.stderr)
    check("signal" not in done.stderr.lower(), arguments, "crashed:", done.stderr)
    print(f"refused: {lines[0]}")


def run_check(usage, checks, make_job=Job):
    """Runs the one of `checks` that the command line names, in a folder of its own."""
    if len(sys.argv) != 6 or sys.argv[1] not in checks:
        sys.exit(usage)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="job-check-", dir=memory) as name:
        checks[sys.argv[1]](make_job(*sys.argv[2:]), pathlib.Path(name))
