# SPDX-License-Identifier: BSD-3-Clause
# ctest: OWN_SHM
"""`perdure bench kill` notices what it is there to notice."""

from __future__ import annotations

import fcntl
import random
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import BUILD, LIMIT_S, ROOT
from perdure.run.attempt import Attempt
from perdure.run.page import Phase, RunPage
from perdure.run.rehearsal import Rehearsal
from perdure_bench.kill import Campaign
from perdure_bench.shared_memory import SharedMemoryWatch
from perdure_bench.solver import find_solvers
from perdure_bench.trial import Job, Ran, judge, lost_restarts, run_killed, try_out

needs_hpccg = pytest.mark.skipif(
    not (BUILD / "apps/hpccg").is_dir(), reason="hpccg is not built (CLI11 or MPI is missing)"
)
IN_COMMIT_8 = Rehearsal(1, "slot", iteration=8)


def attempt(committed: list[int], restored: list[int], phase: Phase = Phase.computing) -> Attempt:
    """One whose ranks were given versions `restored` and came to `committed`."""
    rest = [0] * 7
    pages = [
        RunPage(1, rank, len(committed), phase, version, 0, *rest[:6], given, 0)
        for rank, (version, given) in enumerate(zip(committed, restored))
    ]
    return Attempt(1, pages=pages)


@pytest.mark.parametrize(
    "second, lost",
    [
        (attempt([20, 20], [5, 5]), 0),
        (attempt([20, 20], [6, 6]), 0),
        (attempt([20, 20], [4, 4]), 1),
        (attempt([20, 20], [5, 4]), 1),
        (attempt([20, 20], [0, 0]), 1),
        (attempt([0, 0], [0, 0], Phase.restarting), 0),  # it has not reported yet
    ],
)
def test_version_that_any_rank_saw_committed_is_lost_if_not_restored(second, lost):
    assert lost_restarts([attempt([4, 5], [0, 0]), second]) == lost


def test_version_committed_before_an_attempt_that_was_killed_early_is_not_forgotten():
    early = attempt([0, 0], [0, 0], Phase.restarting)
    first, third = attempt([7, 7], [0, 0]), attempt([20, 20], [6, 6])
    assert lost_restarts([first, early, third]) == 1


def test_answers_and_exit_codes_are_judged():
    good = Ran([], [], 0, '{"program": "hpccg", "hash": "a"}\n')
    assert +judge(good, "a") == Counter() and +judge(good, "b") == Counter(wrong=1)
    assert +judge(Ran([], [], 3, ""), "a") == Counter(refused=1)


def test_unused_files_made_since_are_left_behind(tmp_path):
    (tmp_path / "older").touch()
    watch = SharedMemoryWatch(tmp_path)
    (tmp_path / "pool").mkdir()
    (tmp_path / "mpich_shar_tmp1").touch()
    (tmp_path / "perdure-run-a").mkdir()
    (tmp_path / "perdure-run-a/lock").touch()
    with open(tmp_path / "in-use", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert watch.leftovers(0) == ["mpich_shar_tmp1", "perdure-run-a"]


@pytest.fixture
def forgetful(tmp_path):
    """A solver whose every start but the first finds an empty pool."""
    solver = find_solvers()[0]
    launcher = tmp_path / "mpiexec"
    launcher.write_text(
        f'#!/bin/sh\n[ -e "{tmp_path}/started" ] && rm -rf "{tmp_path}/pool"\n'
        f'touch "{tmp_path}/started"\nexec "{solver.launcher}" "$@"\n'
    )
    launcher.chmod(0o755)
    return replace(solver, launcher=str(launcher))


@needs_hpccg
def test_job_that_begins_anew_after_a_kill_counts_as_lost(tmp_path, forgetful):
    answer = run_killed(Job(find_solvers()[0], 2, "copy"), [], tmp_path / "whole").report["hash"]
    ran, counted = try_out(Job(forgetful, 2, "copy"), [IN_COMMIT_8], tmp_path / "pool", answer)
    assert ran.killed == [IN_COMMIT_8] and +counted == Counter(lost=1)
    assert not (tmp_path / "pool").exists()


@needs_hpccg
def test_restarted_attempt_is_killed_too(tmp_path):
    job = Job(find_solvers()[0], 2, "copy")
    kills = [Rehearsal(1, "state", iteration=4), IN_COMMIT_8]
    ran = run_killed(job, kills, tmp_path / "pool")
    assert ran.killed == kills and len(ran.attempts) == 3 and ran.exit_code == 0
    assert ran.report["restored_version"] == 7 and lost_restarts(ran.attempts) == 0


@needs_hpccg
def test_kill_that_comes_too_late_is_not_counted(tmp_path):
    job = Job(find_solvers()[0], 2, "copy")
    ran = run_killed(job, [Rehearsal(0, "", seconds=30)], tmp_path / "pool")
    assert ran.killed == [] and len(ran.attempts) == 1 and ran.exit_code == 0


@needs_hpccg
def test_campaign_makes_no_more_kills_than_are_left_and_both_kinds_of_them(tmp_path):
    campaign = Campaign(find_solvers(), tmp_path, random.Random(3), quick=True)
    while campaign.kills < 2:
        campaign.run_trial(2 - campaign.kills)
    total = campaign.counts["all"]
    assert total["kills"] == 2 and total["at_random"] == total["in_commit"] == 1
    assert not any(total[fault] for fault in ("wrong", "lost", "refused"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_campaign_that_is_stopped_leaves_neither_its_pool_nor_its_job(ending):
    campaign = f"""
import signal, subprocess, sys
sys.path.append({str(ROOT / "tests/ipv")!r})
signal.signal(signal.SIGINT, signal.default_int_handler)
from kill import processes_of, trial_folder
with trial_folder(sys.executable) as folder:
    (folder / "pool").mkdir()
    subprocess.Popen([sys.executable, "-c", "input()", folder / "pool"], start_new_session=True)
    while not processes_of(sys.executable, folder / "pool"):
        pass
    print(folder, flush=True)
    signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", campaign], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        folder = running.stdout.readline().strip()
        assert Path(folder, "pool").is_dir()
        running.send_signal(ending)
        assert running.stdout.read() == ""  # the end of the job, which has it too
        assert running.wait(LIMIT_S) != 0
        assert not Path(folder).exists()
