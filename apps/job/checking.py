# SPDX-License-Identifier: BSD-3-Clause
"""What the check.py of an application is made of: jobs, how they are killed, what they refuse."""

import contextlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77  # exit code: what a check needs is not there
KILL_ITERATION = 12
# Points of a commit, and which of the versions before and at the kill may be restored.
DISK_POINTS = {"copy": (0,), "data": (0,), "state": (0, 1)}
POOL_POINTS = {"copy": (0,), "data": (0,), "slot": (0,), "state": (0, 1), "agreed": (1,)}


class Job:
    def __init__(self, mpirun, mpiexec, ranks, program):
        self.launch = [mpirun, mpiexec, ranks, program]
        self.ranks = int(ranks)

    def on(self, ranks):
        """The same job on another number of ranks."""
        return Job(*self.launch[:2], str(ranks), self.launch[-1])

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


def processes_of(program, word):
    """The running ranks of a job with this word on their command lines."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if entry.name.isdigit() and words[0] == str(program).encode() and (
            str(word).encode() in words
        ):
            found.append(int(entry.name))
    return sorted(found)


def kill_a_rank(job, arguments, word, wait_s, chooser):
    """Starts a job, which has `word` among its arguments, and kills one of its ranks so long after
    the first one is there; whether it was still running."""
    running = subprocess.Popen(
        [*job.launch, *map(str, arguments)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )
    while running.poll() is None and not processes_of(job.launch[-1], word):
        time.sleep(0.01)
    time.sleep(wait_s)
    there = processes_of(job.launch[-1], word)
    if there:
        with contextlib.suppress(ProcessLookupError):  # it ended by itself
            os.kill(chooser.choice(there), signal.SIGKILL)
    running.wait()
    return running.returncode != 0


def chooser_of_test():
    """Random numbers by a seed that is printed, and may be given back."""
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns()))
    print(f"PERDURE_TEST_SEED={seed}")
    return random.Random(seed)


def check_any_ranks(job, folder, problem, steps_a_kill):
    """The answer has the same bits on any number of ranks; a job that is killed at random times,
    and goes on each time with another number of ranks, ends with them too. With PERDURE_ROUNDS
    kills the problem is as much longer, so that most of them come before its end."""
    chooser = chooser_of_test()
    kills = int(os.environ.get("PERDURE_ROUNDS", "8"))
    problem = [*problem, "--steps", kills * steps_a_kill]
    undisturbed = {
        job.on(ranks).outcome(*problem)["hash"] for ranks in range(1, job.ranks + 2)
    }
    check(len(undisturbed) == 1, "the bits depend on the number of ranks:", undisturbed)
    pool = folder / "pool"
    arguments = [*problem, "--pool", pool]
    killed = [ranks for ranks in (chooser.randint(1, job.ranks + 1) for _ in range(kills))
              if kill_a_rank(job.on(ranks), arguments, pool, chooser.uniform(0, 0.3), chooser)]
    about = job.outcome(*arguments)
    check({about["hash"]} == undisturbed, "ended with other bits after", killed, about)
    print(f"{len(killed)} of {kills} kills came before the end, 0 wrong, 0 lost; the last job"
          f" went on at step {about['first_step']} of {kills * steps_a_kill}")


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
