# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth
"""Slices that are older than a commit: none writes into a version, with a word or without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

import perdure
from conftest import BUILD, ROOT

# A slice is made once; a commit of it ought to be the last thing that happens.
ONCE = """
import os, signal, sys, warnings
import perdure
pool = perdure.open(sys.argv[1], older_slices=sys.argv[2])
u = pool.array("u", 8, mode="twin")
pool.restart()
warnings.simplefilter("ignore", RuntimeWarning)
inner = u.working[1:-1]
for k in (1, 2, 3):
    u.working[:] = k
    inner[:] = k
    pool.commit()
inner[:] = 99
os.kill(os.getpid(), signal.SIGKILL)
"""


def run(script: str, *words: object, **more: str) -> subprocess.CompletedProcess:
    path = f"{ROOT / 'python'}:{BUILD / 'python'}"
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", script, *map(str, words)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **more},
        timeout=100,
        check=False,
    )


def contents(path) -> list:
    with perdure.open(path, any_job=True) as pool:
        u = pool.array("u", 8, mode="twin")
        version = pool.restart()
        return [version, *u.consistent]


def test_a_slice_that_is_made_once_ends_in_a_refused_commit(tmp_path):
    done = run(ONCE, tmp_path / "pool", "refuse")
    assert done.returncode == 1, done.stderr
    assert "a slice of array 'u' is alive" in done.stderr and "WrongState" in done.stderr
    assert contents(tmp_path / "pool")[0] is None


def test_with_the_check_the_program_ends_at_the_store(tmp_path):
    done = run(ONCE, tmp_path / "pool", "warn", PERDURE_CHECK="1")
    assert done.returncode == -signal.SIGSEGV, (done.returncode, done.stderr)
    assert "of array 'u' was stopped" in done.stderr, done.stderr
    assert 'File "<string>", line' in done.stderr, done.stderr
    version, *values = contents(tmp_path / "pool")
    assert version in (1, 2, 3) and 99 not in values and values[0] == version


def test_with_the_check_a_correct_program_runs_as_without(tmp_path):
    done = run(
        """
import sys
import numpy as np
import perdure
for turn in range(2):
    with perdure.open(sys.argv[1], keep=2) as pool:
        u = pool.array("u", 3000, mode="twin")
        v = pool.array("v", (2, 5))
        newest = pool.restart() or 0
        assert (u.consistent == newest).all()
        for k in range(newest + 1, newest + 6):
            before, after = u.consistent, u.working
            assert (before == k - 1).all()
            after[:] = k
            v.working[1] = k
            pool.commit()
        u.working[:] = 0
        pool.commit_begin()
        pool.commit_wait()
        pool.restore(newest + 5)
        u.working[:] = newest + 7
        pool.commit()
        kept = u.consistent
        u.working[:] = -1
    assert (kept == newest + 7).all()
""",
        tmp_path / "pool",
        PERDURE_CHECK="1",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("make", [
    lambda a: a[1:-1], lambda a: a[2], lambda a: a.T, lambda a: a.reshape(-1), lambda a: a[1:][1:],
    lambda a: a.view("i8"), lambda a: next(iter(a)), lambda a: np.asarray(a)[0],
])  # fmt: skip
def test_every_kind_of_view_counts_as_a_slice(tmp_path, make):
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", (4, 6), mode="twin")
        pool.restart()
        kept = make(u.working)
        for call in (pool.commit, pool.commit_begin):
            with pytest.raises(perdure.WrongState, match="array 'u'"):
                call()
        del kept
        assert pool.commit() == 1
        kept = make(u.working)
        with pytest.raises(perdure.WrongState, match="a slice of array 'u'"):
            pool.restore(1)
        del kept
        pool.restore(1)


def test_what_is_no_slice_of_working_is_let_through(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", (4, 6), mode="twin")
        c = pool.array("c", 5)
        pool.restart()
        whole, read, mine, copied = u.working, u.consistent[1:], c.working[1:], u.working[1:].copy()
        for _ in range(3):
            u.working[1:] = copied + 1
            mine[:] = 2
            pool.commit()
        assert whole.shape == (4, 6) and read.shape == (3, 6)


@pytest.mark.parametrize("mode", ["copy", "log", "flush"])
def test_a_commit_in_the_background_wants_no_slices_of_any_array(tmp_path, mode):
    with perdure.open(tmp_path / "pool") as pool:
        v = pool.array("v", 8, mode=mode)
        pool.restart()
        kept = v.working[1:]
        with pytest.raises(perdure.WrongState, match="array 'v'.*half old, half new"):
            pool.commit_begin()
        del kept
        pool.commit_begin()
        pool.commit_wait()
        kept = v.working[1:]
        assert pool.commit() == 2 and kept.shape == (7,)


def test_a_warning_instead_names_the_array(tmp_path):
    with perdure.open(tmp_path / "pool", older_slices="warn") as pool:
        u = pool.array("u", 8, mode="twin")
        pool.restart()
        kept = [u.working[1:], u.working[2:]]
        with pytest.warns(RuntimeWarning, match="2 slices of array 'u' are alive"):
            assert pool.commit() == 1
        del kept
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pool.commit()
    with pytest.raises(perdure.InvalidArgument, match="refuse or warn"):
        perdure.open(tmp_path / "other", older_slices="ignore")
