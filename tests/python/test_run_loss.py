# SPDX-License-Identifier: BSD-3-Clause
# ctest: COST 50 OWN_SHM
"""`perdure run` always comes back: ranks lost before they report anything, launchers that are
stuck, ranks that make no progress, processes that won't end. And it ends nothing that only waits.

Method: stand-ins for launchers, some of which are named like one, and the launchers of every MPI
of the build, which a rank stops so that they are as deaf as one that is deadlocked.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, Perdure
from test_run import processes_with

SHARED = Path("/dev/shm")
HANG_S = 0.4
PATIENT_S = 1.0  # for jobs that must not be ended
LONGER = "2.5"
FAKE_RANK = BUILD / "tests/python/fake_rank"


def make_program(path: Path, text: str) -> str:
    """An executable Python script."""
    path.write_text(f"#!{sys.executable}\nimport os, signal, subprocess, sys, time\n{text}")
    path.chmod(0o700)
    return str(path)


@pytest.fixture
def program(tmp_path):
    return lambda name, text: make_program(tmp_path / name, text)


def hang(perdure, job, *options):
    """The last attempt of a job that must end as a hang, with nothing left of it."""
    ran = perdure.run(["--hang-timeout", HANG_S, *options], job)
    attempt = ran.statistics["attempts"][-1]
    assert (ran.code, attempt["ended"], attempt["exit_code"]) == (124, "hang", 124), ran.err
    assert attempt["why"] in ran.err
    assert not processes_with(str(perdure.folder))
    return attempt


@pytest.mark.parametrize("dies, how", [("kill -9 $$", "SIGKILL"), ("exit 3", "exit code 3")])
def test_launcher_that_outlives_a_child_that_failed_before_any_page_is_a_hang(
    perdure, tmp_path, dies, how
):
    early = tmp_path / "early.sh"
    early.write_text(f"#!/bin/sh\nsh -c '{dies}' &\nexec sleep 1000\n")
    early.chmod(0o700)
    attempt = hang(perdure, [early], "--restarts", 1)
    assert attempt["attempt"] == 2 and how in attempt["why"]
    assert len(attempt["processes_ended"]) == 1


RANKS = """
def start(rank, text, ranks=2, here=2):
    place = {"PMI_RANK": str(rank), "PMI_SIZE": str(ranks), "MPI_LOCALNRANKS": str(here)}
    return subprocess.Popen(["sh", "-c", text], env={**os.environ, **place})
"""


def test_rank_without_a_page_that_was_killed_beside_a_live_one_is_lost(perdure, program):
    ranks = "ranks = start(0, 'sleep 600'), start(1, 'kill -9 $$')\n"
    deaf = program("job.py", RANKS + ranks + "time.sleep(600)")
    assert "was ended by SIGKILL" in hang(perdure, [deaf])["why"]


def test_launcher_that_does_not_end_after_its_ranks_ended_in_order_is_a_hang(perdure, program):
    text = RANKS + "for rank in start(0, 'sleep 1'), start(1, 'sleep 1'): rank.wait()\n"
    attempt = hang(perdure, [program("mpiexec", text + "time.sleep(600)")])
    assert "all of its ranks have" in attempt["why"] and "mpiexec" in attempt["why"]
    script = f"true; {perdure.folder}/mpiexec; sleep 600"
    assert len(hang(perdure, ["sh", "-c", script])["processes_ended"]) == 2


def test_job_goes_on_after_a_hang_before_any_page(perdure, fake_rank, program):
    text = RANKS + """
if not os.path.exists("once"):
    open("once", "w").close()
    ranks = start(0, "kill -9 $$"), start(1, "kill -9 $$")
    time.sleep(600)
sys.exit(subprocess.call(sys.argv[1:]))
"""
    job = [program("mpiexec", text), *fake_rank()]
    ran = perdure.run(["--hang-timeout", HANG_S, "--restarts", 1], job)
    assert ran.code == 0 and ran.out == b"done at 10\n"
    assert [attempt["ended"] for attempt in ran.statistics["attempts"]] == ["hang", "exit"]


JOBS_THAT_WAIT = {
    "a shell that sleeps between steps": "true; sleep {s}; false; sleep {s}; true",
    "a failed child while another works": "false & sleep {s}; wait",
    "a script that computes beside a failed child": """{python} -c '
import subprocess, time
failed = subprocess.Popen(["false"])
until = time.monotonic() + {s}
while time.monotonic() < until: pass'""",
    "a script that waits between steps": """{python} -c '
import subprocess, time
subprocess.run(["false"]); time.sleep({s}); subprocess.run(["true"])'""",
    "steps of a launcher with a pause": "./mpiexec here; {python} -c 'import time; time.sleep({s})'"
    "; ./mpiexec here",
    "a pause after a step that failed": "./mpiexec open || sleep {s}",
    "ranks that end at different times": "./mpiexec different",
    "ranks of other machines": "./mpiexec elsewhere",
    "a rank that goes on in the background": "./mpiexec background",
    "a rank that is started again": "./mpiexec again",
    "a rank's helper that fails": "./mpiexec helper",
    "a launcher that is only being prepared": "./mpiexec nothing",
}
LAUNCHER_THAT_WAITS = RANKS + """
FAKE_RANK = {fake_rank!r}
def wait(*ranks):
    for rank in ranks: rank.wait()
kind, long = sys.argv[1], sys.argv[2]
if kind == "here": wait(start(0, "sleep 0.2"), start(1, "sleep 0.2"))
if kind == "different": wait(start(0, f"sleep {long}"), start(1, "true"))
if kind == "elsewhere":
    wait(start(0, "sleep 0.2", 4), start(1, "sleep 0.2", 4))
    time.sleep(float(long))
if kind == "background":
    wait(start(0, f"sleep 0.2; sleep {long} & exit 0", 1, 1))
    time.sleep(float(long))
if kind == "again":
    if start(0, "sleep 0.2; kill -9 $$", 1, 1).wait(): wait(start(0, f"sleep {long}", 1, 1))
if kind == "helper": wait(start(0, f"false & sleep {long}", 1, 1))
if kind == "open":
    rank = start(0, f"exec {FAKE_RANK} -n 200", 1, 1)
    time.sleep(0.5)
    rank.kill()
    sys.exit(1)
if kind == "nothing": time.sleep(float(long))
"""


@pytest.fixture(scope="module")
def jobs_that_wait(tmp_path_factory):
    """All of them under way at once, each in a folder of its own."""
    jobs = {}
    for kind, text in JOBS_THAT_WAIT.items():
        folder = tmp_path_factory.mktemp("waits")
        launcher = LAUNCHER_THAT_WAITS.replace("{fake_rank!r}", repr(str(FAKE_RANK)))
        make_program(folder / "mpiexec", launcher)
        text = text.replace("{s}", LONGER).replace("{python}", sys.executable)
        text = re.sub(r"\./mpiexec (\w+)", rf"{folder}/mpiexec \1 {LONGER}", text)
        words = ("run", "--hang-timeout", PATIENT_S, "--json", "report", "--", "sh", "-c", text)
        jobs[kind] = folder, Perdure(folder).start(*words, stderr=subprocess.PIPE)
    yield jobs
    for _, job in jobs.values():
        job.terminate()
        job.communicate(timeout=30)


@pytest.mark.parametrize("kind", JOBS_THAT_WAIT)
def test_waiting_is_no_hang(jobs_that_wait, kind):
    folder, job = jobs_that_wait[kind]
    said = job.communicate(timeout=60)[1].decode()
    (attempt,) = json.loads((folder / "report").read_text())["attempts"]
    assert (job.returncode, attempt["ended"]) == (0, "exit"), said


MY_RANK = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}"


@pytest.mark.parametrize("mpi", MPIS)
def test_ranks_of_an_mpi_may_end_at_different_times(perdure, mpi_launcher, mpi):
    job = [*mpi_launcher(mpi, 2), "sh", "-c", f"test {MY_RANK} = 0 || sleep {LONGER}"]
    ran = perdure.run(["--hang-timeout", PATIENT_S], job)
    assert ran.code == 0 and ran.statistics["attempts"][0]["ended"] == "exit"


@pytest.fixture
def mpi_launcher():
    return lambda mpi, ranks: [os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"], "-n", str(ranks)]


def fake_mpi_rank(mpi: str, folder: Path) -> str:
    return f"exec {BUILD}/tests/python/fake_rank.{mpi} -n 5 -s {folder}"


@pytest.mark.parametrize("mpi", MPIS)
def test_rank_of_an_mpi_that_is_killed_before_it_opens_its_pool_ends_the_attempt(
    perdure, mpi_launcher, tmp_path, mpi
):
    text = f"test {MY_RANK} = 1 && test ! -e once && touch once && kill -9 $$; "
    text += fake_mpi_rank(mpi, tmp_path)
    job = [*mpi_launcher(mpi, 2), "sh", "-c", text]
    ran = perdure.run(["--hang-timeout", HANG_S, "--restarts", 1], job)
    assert ran.code == 0 and b"done at 5\n" in ran.out, ran.err
    assert len(ran.statistics["attempts"]) == 2 and not processes_with(str(tmp_path))


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("killed", ["one rank", "all ranks"])
def test_launcher_of_an_mpi_that_takes_no_notice_of_early_deaths_is_a_hang(
    perdure, mpi_launcher, tmp_path, mpi, killed
):
    """The launcher of the ranks is stopped: that is how one looks which is deadlocked in itself."""
    dies = f"test {MY_RANK} = 1 || test '{killed}' = 'all ranks'"
    text = f"if test ! -e once-{MY_RANK}; then touch once-{MY_RANK}; "
    text += "until test -e once-0 && test -e once-1; do sleep 0.05; done; "  # both were started
    text += f"if {dies}; then kill -STOP $PPID; sleep 0.3; kill -9 $$; fi; fi; "
    text += fake_mpi_rank(mpi, tmp_path)
    job = [*mpi_launcher(mpi, 2), "sh", "-c", text]
    ran = perdure.run(["--hang-timeout", HANG_S, "--restarts", 1], job)
    first, second = ran.statistics["attempts"]
    assert first["ended"] == "hang" and "was ended by SIGKILL" in first["why"], ran.err
    assert second["ended"] == "exit" and ran.code == 0 and b"done at 5\n" in ran.out
    assert not processes_with(str(tmp_path))


# Each for a few seconds only, whatever becomes of the launcher under test. They hurry when they are
# about to be killed, five seconds after SIGTERM.
STUBBORN = """
kinds = sys.argv[1:]
while kinds and os.fork(): kinds.pop()
if not kinds: time.sleep(0.4); sys.exit(3)
os.setsid()
until = time.monotonic() + 25
def pause(short): time.sleep(short if time.monotonic() > until - 20.5 else 0.1)
if kinds[-1] == "daemonises":
    if os.fork(): os._exit(0)
    time.sleep(25)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if kinds[-1] == "stops":
    while True: os.kill(os.getpid(), signal.SIGSTOP)
if kinds[-1] == "multiplies":
    for _ in range(3): os.fork()
    while time.monotonic() < until:
        if os.fork() == 0: time.sleep(0.02); os._exit(0)
        pause(0.01)
while time.monotonic() < until:  # another process all the time
    pause(0.002)
    if os.fork(): os._exit(0)
    os.setsid()
"""


@pytest.mark.parametrize("kinds", [["daemonises"], ["stops", "multiplies", "changes"]])
def test_nothing_is_left_of_processes_that_cling_to_life(perdure, program, kinds):
    ran = perdure.run([], [program("job.py", STUBBORN), *kinds])
    (attempt,) = ran.statistics["attempts"]
    assert (ran.code, attempt["ended"]) == (3, "exit"), ran.err
    assert len(attempt["processes_ended"]) >= len(kinds) - 1
    for _ in range(20):  # one look may miss what is another process all the time
        assert not processes_with(str(perdure.folder))


def test_process_that_somebody_else_started_for_the_attempt_is_ended(perdure, tmp_path):
    """It is no descendant, as ranks under a batch system's daemon: its environment tells."""
    job = "env > environment; while test ! -e started; do sleep 0.05; done; exit 3"
    run = perdure.start("run", "--json", tmp_path / "report", "--", "sh", "-c", job)
    environment = tmp_path / "environment"
    while not (environment.exists() and "PERDURE_RUN_DIR" in environment.read_text()):
        assert run.poll() is None
    pairs = (line.partition("=") for line in environment.read_text().splitlines())
    other = subprocess.Popen(["sleep", "600"], env={name: value for name, _, value in pairs})
    (tmp_path / "started").touch()
    assert run.wait(30) == 3 and other.wait(10) == -signal.SIGTERM
    (ended,) = json.loads((tmp_path / "report").read_text())["attempts"][0]["processes_ended"]
    assert ended == f"{other.pid} sleep"


def test_rank_that_is_stopped_ends_the_attempt_after_the_stall_timeout(perdure, fake_rank):
    stop = '"$@" & if test ! -e once; then touch once; sleep 0.5; kill -STOP $!; fi; wait $!'
    job = ["sh", "-c", stop, "sh", *fake_rank("-n", 100)]
    ran = perdure.run(["--stall-timeout", 1, "--restarts", 1], job)
    first, second = ran.statistics["attempts"]
    assert (first["ended"], first["exit_code"], second["ended"]) == ("stall", 124, "exit")
    assert re.search(r"rank 0 \w+ for .*process \d+: stopped", first["why"]), first["why"]
    assert first["why"] in ran.err and ran.code == 0 and second["restored_version"] > 0


def test_stall_that_is_not_restarted_ends_with_124(perdure, fake_rank):
    ran = perdure.run(["--stall-timeout", 0.5], fake_rank("-b", 3))
    assert ran.code == 124 and "running" in ran.statistics["attempts"][0]["why"]
    ran = perdure.run(["--stall-timeout", 0.5], ["sleep", "600"])
    assert ran.code == 124 and "no rank has opened" in ran.statistics["attempts"][0]["why"]


@pytest.mark.parametrize("mpi", MPIS)
def test_rank_of_an_mpi_that_loops_ends_the_attempt_after_the_stall_timeout(perdure, mpi_job, mpi):
    job = mpi_job(mpi, 2, "-n", 20, "-b", 4)
    ran = perdure.run(["--stall-timeout", 2, "--restarts", 1], job)
    first, second = ran.statistics["attempts"]
    assert (first["ended"], first["version"], second["ended"]) == ("stall", 3, "exit"), ran.err
    assert "rank 1 computing" in first["why"] and "rank 0 committing" in first["why"]
    assert ran.code == 0 and second["version"] == 20
    assert not processes_with(str(perdure.folder))


def test_emulations_shared_memory_of_a_killed_job_is_removed(perdure, tmp_path, monkeypatch):
    monkeypatch.setenv("PERDURE_EMULATE", "paper-nvm")
    counter = [BUILD / "tests/python/counter", tmp_path / "pool", 9]
    ran = perdure.run(["--kill-at", 4, "--restarts", 0], counter)
    (attempt,) = ran.statistics["attempts"]
    removed = [n for n in attempt["shared_memory_removed"] if re.fullmatch("perdure-[0-9a-f]+", n)]
    assert attempt["signal"] == "SIGKILL" and removed
    assert not any((SHARED / name).exists() for name in removed)


def test_shared_memory_that_is_older_than_the_first_page_is_removed(perdure, fake_rank):
    name = f"vader_segment.test.{os.getpid()}"
    job = ["sh", "-c", f'> /dev/shm/{name}; sleep 0.1; "$@"', "sh", *fake_rank("-e", 7)]
    ran = perdure.run([], job)
    assert name in ran.statistics["attempts"][0]["shared_memory_removed"]
    assert not (SHARED / name).exists()
