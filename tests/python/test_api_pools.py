# SPDX-License-Identifier: BSD-3-Clause
"""Pools in Python: every call, scalars, exceptions, threads, and what importing costs."""

from __future__ import annotations

import copy
import inspect
import math
import os
import pickle
import re
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

import perdure
from conftest import BUILD, ROOT
from perdure.api import errors

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{BUILD / 'python'}"}


def python(program: str, *words: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-W", "always", "-c", program, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT, timeout=60, check=False
    )


def test_restart_says_which_version_it_restored(tmp_path):
    for expected in (None, 1, 2):
        with perdure.open(tmp_path / "pool") as pool:
            assert pool.restart() == expected
            assert pool.commit() == (expected or 0) + 1


def test_versions_are_listed_restored_and_deleted(tmp_path):
    before = time.time_ns()
    with perdure.open(tmp_path / "pool", keep=4) as pool:
        u = pool.array("u", 3, mode="twin")
        state = pool.scalars(iteration=0)
        pool.restart()
        for value in (1, 2, 3):
            u.working[:] = value
            state.iteration = 10 * value
            pool.commit()
        kept = pool.versions()
        assert [(version.version, version.parent) for version in kept] == [(3, 2), (2, 1), (1, 0)]
        assert all(before <= version.committed_ns <= time.time_ns() for version in kept)
        pool.restore(1)
        assert (state.iteration, set(u.consistent)) == (10, {1.0})
        u.working[:] = 9
        assert pool.commit() == 4
        newest = pool.versions()[0]
        assert newest == perdure.Version(4, 1, newest.committed_ns, False)
        assert {version.version for version in pool.versions() if version.abandoned} == {2, 3}
        pool.delete_version(2)
        assert [version.version for version in pool.versions()] == [4, 3, 1]
        with pytest.raises(perdure.NotFound):
            pool.restore(2)
        with pytest.raises(perdure.WrongState):
            pool.delete_version(4)
        for number in (-1, 2**64):
            with pytest.raises(perdure.InvalidArgument, match="no number of a version"):
                pool.restore(number)
        assert set(u.consistent) == {9.0}  # all of that left it as it was
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", 3, mode="twin")
        pool.restore(3)  # in place of restart()
        assert set(u.consistent) == {3.0}


def test_status_counts_what_was_done(tmp_path):
    with perdure.open(tmp_path / "pool", copy_threads=2) as pool:
        pool.array("u", 100_000, mode="copy")
        pool.restart()
        for _ in range(3):
            pool.commit()
        status = pool.status()
        assert (status.version, status.commits, status.fell_back) == (3, 3, False)
        assert status.committed_bytes == 3 * 800_000
        assert 0 < status.commit_ns_last <= status.commit_ns
        assert isinstance(status.survives_power_failure, bool)
        assert status.restart_ns > 0 and status.model_ns == 0


def test_what_was_waited_for_is_on_the_level(tmp_path):
    (tmp_path / "drain").mkdir(mode=0o700)
    levels = {"every": 1, "drain": str(tmp_path / "drain")}
    with perdure.open(tmp_path / "pool", levels=levels) as pool:
        pool.array("u", 100_000, mode="copy")
        pool.restart()
        for version in (1, 2):
            pool.commit()
            assert pool.status().levels_under_way
            assert pool.levels_wait() == version
            assert not pool.status().levels_under_way
            assert list((tmp_path / "drain").rglob("manifest"))
    with perdure.open(tmp_path / "other") as pool:
        pool.restart()
        pool.commit()
        assert pool.levels_wait() == 0


def test_emulated_memory_takes_its_time(tmp_path):
    with perdure.open(tmp_path / "pool", emulate="paper-nvm") as pool:
        pool.array("u", 100_000, mode="copy")
        pool.restart()
        pool.commit()
        assert pool.status().model_ns > 0
    with pytest.raises(perdure.Error, match="no-such-memory"):
        perdure.open(tmp_path / "other", emulate="no-such-memory")
    with pytest.raises(perdure.InvalidArgument, match="'slow'.*virtual, wait, drain"):
        perdure.open(tmp_path / "other", delay="slow")


def test_without_a_plan_a_version_is_always_due(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        pool.restart()
        assert pool.due() is perdure.Due.DUE and pool.due()
        assert not perdure.Due.NOT_DUE


def test_options_reach_the_library(tmp_path):
    path = tmp_path / "pool"
    with pytest.raises(perdure.NotFound):
        perdure.open(path, must_exist=True)
    with perdure.open(path, job="mine", keep=3) as pool:
        pool.restart()
        pool.commit()
    with pytest.raises(perdure.Foreign, match="'mine'.* renamed, any_job=True"):
        perdure.open(path, job="yours")
    with pytest.raises(perdure.WrongShape, match="3"):
        perdure.open(path, job="mine", keep=5)
    with perdure.open(path, job="yours", any_job=True) as pool:
        assert pool.restart() == 1
    with perdure.open(path, job="mine", discard=True) as pool:
        assert pool.restart() is None
    with pytest.raises(perdure.InvalidArgument, match="contradicts"):
        perdure.open(path, job="mine", discard=True, must_exist=True)
    with pytest.raises(perdure.InvalidArgument, match="keep=-1"):
        perdure.open(path, job="mine", keep=-1)
    levels = pytest.raises(perdure.InvalidArgument, match="redundancy")
    with levels:
        perdure.open(tmp_path / "levels", levels={"redundancy": "nonsense"})
    with levels:
        perdure.open(tmp_path / "levels", levels="redundancy=nonsense")


def test_a_job_is_called_after_its_script_and_not_after_python(tmp_path):
    program = "import perdure, sys; perdure.open(sys.argv[1]).close()"
    for name in ("one.py", "other.py"):
        (tmp_path / name).write_text(program)

    def run(script: str) -> subprocess.CompletedProcess:
        command = [sys.executable, tmp_path / script, tmp_path / "pool"]
        return subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False
        )

    assert run("one.py").returncode == 0
    refused = run("other.py")
    assert "perdure.api.errors.Foreign" in refused.stderr and "one.py" in refused.stderr
    assert run("one.py").returncode == 0


def test_a_pool_of_one_process_is_busy_for_another(tmp_path, monkeypatch):
    monkeypatch.setenv("PERDURE_LOCK_WAIT_MS", "0")
    with perdure.open(tmp_path / "pool"), pytest.raises(perdure.Busy):
        perdure.open(tmp_path / "pool")
    perdure.open(tmp_path / "pool").close()


def test_leaving_the_pool_on_an_exception_commits_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", 3)
        pool.restart()
        u.working[:] = 1
        pool.commit()
        u.working[:] = 2
        _ = 1 / 0
    assert pool.closed
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", 3)
        assert pool.restart() == 1
        assert set(u.working) == {1.0}


def test_every_call_of_a_closed_pool_is_refused_and_closing_again_is_not(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", 3, mode="twin")
        state = pool.scalars(iteration=4)
        pool.restart()
    calls = [
        pool.commit, pool.commit_begin, pool.commit_wait, pool.restart, pool.versions, pool.status,
        pool.due, u.before_write, lambda: pool.array("v", 3), lambda: pool.scalars(x=1),
        lambda: pool.restore(1), lambda: pool.delete_version(1), lambda: u.mark(0, 1),
        lambda: u.write(0, [1.0]), lambda: u.working, lambda: u.consistent,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(perdure.WrongState, match="is closed") as refused:
            call()
        assert refused.value.code == -2
    pool.close()
    assert state.iteration == 4
    assert "closed" in repr(pool) and pool.path == str(tmp_path / "pool")


def test_calls_out_of_order_are_refused(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        twin, copy = pool.array("twin", 3, mode="twin"), pool.array("copy", 3)
        for call in (pool.commit, pool.commit_begin, lambda: twin.working, lambda: twin.consistent):
            with pytest.raises(perdure.WrongState, match="restart"):
                call()
        copy.working[:] = 5  # before the restart too: a new pool leaves it
        pool.restart()
        assert set(copy.working) == {5.0}
        with pytest.raises(perdure.WrongState):
            pool.restart()
        with pytest.raises(perdure.InvalidArgument, match="is open"):
            pool.array("copy", 3)


def test_each_code_of_the_header_has_a_class_of_its_own():
    header = (ROOT / "include/perdure/perdure.h").read_text()
    codes = {int(line.split("= ")[1].split(",")[0].split()[0]) for line in header.splitlines()
             if line.startswith("  PERDURE_E_")}  # fmt: skip
    assert {kind.code for kind in errors.Error.__subclasses__()} == codes
    assert len(codes) == 13
    for code in codes:
        error = errors.error_of(code, b"a sentence")
        assert (error.code, str(error), type(error).code) == (code, "a sentence", code)
        assert type(error).__name__ in perdure.__all__


def test_errors_name_options_and_calls_as_python_has_them(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        pool.array("u", 3)
        with pytest.raises(perdure.WrongState, match=r"^restart\(\) must be called"):
            pool.commit()
    named = errors.error_of(-10, b"open with PERDURE_ALLOW_OLDER, or PERDURE_DISCARD; perdure_due()"
                                 b" perdure_commit_due() perdure_ipv_close() $PERDURE_ANY_OWNER=1")
    assert str(named) == ("open with allow_older=True, or discard=True; due() due() "
                          "perdure_ipv_close() $PERDURE_ANY_OWNER=1")
    flags = re.findall(r"\(([A-Z_|]+)\)", errors._OPTIONS.pattern)[0].split("|")
    options = inspect.signature(perdure.open).parameters
    assert all(flag.lower() in options for flag in flags)


def test_damage_is_an_error_that_names_the_array(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("grid", 100_000)
        pool.restart()
        u.working[:] = 1.25
        pool.commit()
    file = tmp_path / "pool/rank-00000"
    contents = bytearray(file.read_bytes())
    places = contents.find(np.full(4, 1.25).tobytes())
    contents[places + 8000] ^= 1
    file.write_bytes(contents)
    with perdure.open(tmp_path / "pool") as pool:
        pool.array("grid", 100_000)
        with pytest.raises(perdure.Damaged, match="'grid'"):
            pool.restart()


# --- scalars -------------------------------------------------------------------------------------

ZONE = timezone(timedelta(hours=-3, minutes=-30))
SCALARS = {
    "whole": (0, [1, -(2**63), 2**63 - 1, np.int32(7)]),
    "number": (0.5, [1.5, math.inf, -0.0, 3, np.float32(0.25)]),
    "flag": (False, [True, np.True_]),
    "words": ("", ["one", "h\u00e4lf \u2713", "x" * 255]),
    "short": (perdure.text(3, "ab"), ["abc", "\u20ac", ""]),
    "raw": (b"", [b"\0\1\2", b"x" * 255, bytearray(b"abc")]),
    "large": (perdure.blob(16380), [b"y" * 16380]),
    "moment": (datetime(2026, 1, 2), [datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.max]),
    "zoned": (
        datetime.now(timezone.utc),
        [datetime(2026, 7, 1, 12, 30, 0, 123456, ZONE), datetime(1, 1, 1, tzinfo=timezone.utc)],
    ),
}


@pytest.mark.parametrize("name", SCALARS)
def test_scalars_of_every_type_come_back(tmp_path, name):
    initial, later = SCALARS[name]
    expected = None
    for value in (None, *later):
        with perdure.open(tmp_path / "pool") as pool:
            state = pool.scalars(**{name: initial})
            pool.restart()
            if expected is not None:
                found = getattr(state, name)
                assert found == expected and type(found) is not type(None)
            if value is not None:
                setattr(state, name, value)
                assert getattr(state, name) == value
                expected = value
            pool.commit()
    with perdure.open(tmp_path / "pool") as pool:  # and when they are asked for after the restart
        pool.restart()
        assert getattr(pool.scalars(**{name: initial}), name) == expected


def test_a_moment_keeps_its_offset_and_the_lack_of_one(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        state = pool.scalars(a=datetime(2026, 1, 1), b=datetime(2026, 1, 1, tzinfo=ZONE))
        assert state.a.tzinfo is None and state.b.utcoffset() == timedelta(hours=-3, minutes=-30)


@pytest.mark.parametrize(
    "initial, value, error, words",
    [
        (0, 2**63, ValueError, "scalar 'x': 9223372036854775808 does not fit into 64 bits"),
        (0, 1.0, TypeError, "scalar 'x'"),
        (0, "1", TypeError, "scalar 'x'"),
        (0.0, "1", TypeError, "a number is wanted, not str"),
        (False, 1, TypeError, "bool is wanted, not int"),
        ("", "x" * 256, ValueError, "256 bytes do not fit into the 255.*perdure.text"),
        (perdure.text(3), "\u20ac1", ValueError, "4 bytes do not fit into the 3"),
        ("", b"x", TypeError, "str is wanted, not bytes"),
        (perdure.blob(2), b"123", ValueError, "3 bytes do not fit into the 2.*perdure.blob"),
        (b"", "x", TypeError, "bytes are wanted, not str"),
        (datetime(2026, 1, 1), 5, TypeError, "datetime is wanted, not int"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_changes_nothing(
    tmp_path, initial, value, error, words
):
    with perdure.open(tmp_path / "pool") as pool:
        state = pool.scalars(x=initial)
        before = state.x
        with pytest.raises(error, match=words):
            state.x = value
        assert state.x == before


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, 1j, object(), np.zeros(3)], ids=str)
def test_what_can_be_no_scalar_is_refused(tmp_path, value):
    with perdure.open(tmp_path / "pool") as pool:
        with pytest.raises(TypeError, match="scalar 'x'"):
            pool.scalars(y=1, x=value)
        assert pool.scalars(y=2).y == 2  # none of that call was made


def test_scalars_have_the_names_that_they_were_given(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        state = pool.scalars(iteration=1, t=0.5)
        assert dir(state) == ["iteration", "t"] and repr(state) == "Scalars(iteration=1, t=0.5)"
        with pytest.raises(AttributeError, match="no scalar 'iteratoin'.*iteration, t"):
            state.iteratoin = 2
        with pytest.raises(AttributeError):
            _ = state.nothing
        with pytest.raises(perdure.InvalidArgument, match="already bound"):
            pool.scalars(t=1.0)
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="copy their values"):
                copied(state)
        for room in (0, 16381):
            with pytest.raises(perdure.InvalidArgument, match="1 to 16380"):
                perdure.text(room)


@pytest.mark.parametrize(
    "stored, asked, words",
    [
        (1, 1.0, "'x' is int64 in the pool, not float64"),
        (1.0, 1, "'x' is float64 in the pool, not int64"),
        ("", b"", "'x' is str in the pool, not bytes"),
        (perdure.text(12), datetime(2026, 1, 1), "'x' is str in the pool, not datetime"),
        (perdure.text(12), perdure.text(13), "16 bytes in the pool, not 17"),
        (1, True, "8 bytes in the pool, not 1"),
    ],
)
def test_a_scalar_is_never_taken_for_another_type(tmp_path, stored, asked, words):
    with perdure.open(tmp_path / "pool") as pool:
        pool.scalars(x=stored)
        pool.restart()
        pool.commit()
    with perdure.open(tmp_path / "pool") as pool, pytest.raises(perdure.WrongShape, match=words):
        pool.scalars(x=asked)
        pool.restart()


def test_names_that_a_program_leaves_out_keep_their_values_and_types(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        pool.scalars(x=1, y=2.0)
        pool.restart()
        pool.commit()
    with perdure.open(tmp_path / "pool") as pool:
        pool.scalars(y=0.0, z="new")
        pool.restart()
        pool.commit()
    with perdure.open(tmp_path / "pool") as pool:
        pool.restart()
        with pytest.raises(perdure.WrongShape, match="'x' is int"):
            pool.scalars(x=1.0)
        state = pool.scalars(y=0.0, z="")
        assert (state.y, state.z) == (2.0, "new")


def test_a_pool_holds_as_many_types_as_there_is_room_for(tmp_path):
    many = {f"a_scalar_with_a_long_name_{i}": i for i in range(400)}
    refused = pytest.raises(perdure.NoSpace, match="there is room for 8192")
    with perdure.open(tmp_path / "pool") as pool, refused:
        pool.scalars(**many)


def test_a_c_program_and_a_python_program_share_a_pool(tmp_path):
    counter = BUILD / "tests/python/counter"
    subprocess.run([counter, tmp_path / "pool", "5"], check=True, timeout=60, capture_output=True)
    with perdure.open(tmp_path / "pool", job="counter") as pool:
        state = pool.scalars(iteration=0)
        assert pool.restart() is not None
        assert state.iteration == 5
        state.iteration = 7
        pool.commit()
    subprocess.run([counter, tmp_path / "pool", "9"], check=True, timeout=60, capture_output=True)
    with perdure.open(tmp_path / "pool", job="counter") as pool:
        state = pool.scalars(iteration=0)
        pool.restart()
        assert state.iteration == 9


# --- threads, imports ----------------------------------------------------------------------------


def test_other_threads_run_while_a_commit_waits(tmp_path):
    """The commit of emulated memory waits for longer than other threads get by waiting for it."""
    with perdure.open(tmp_path / "pool", emulate="paper-nvm", delay="wait") as pool:
        pool.array("u", 4_000_000)
        pool.restart()
        began, ended, ticks = threading.Event(), threading.Event(), []

        def tick() -> None:
            began.set()
            while not ended.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.0005)

        thread = threading.Thread(target=tick)
        thread.start()
        began.wait()
        before = time.monotonic()
        pool.commit()
        after = time.monotonic()
        ended.set()
        thread.join()
        assert sum(before < moment < after for moment in ticks) > 3


def test_a_second_thread_in_a_call_is_refused(tmp_path):
    with perdure.open(tmp_path / "pool", emulate="paper-nvm", delay="wait") as pool:
        pool.array("u", 4_000_000)
        pool.restart()
        thread = threading.Thread(target=pool.commit)
        refusals: list[perdure.WrongState] = []
        thread.start()
        while thread.is_alive():
            try:
                pool.status()
            except perdure.WrongState as refused:
                refusals.append(refused)
                with pytest.raises(perdure.WrongState, match="another thread"):
                    pool.close()
                break
        thread.join()
        assert refusals and "another thread" in str(refusals[0])
        assert pool.status().version == 1  # and it is open


def test_the_command_imports_nothing_of_the_interface():
    program = (
        "import sys, perdure, perdure.cli\n"
        "print([m for m in sys.modules if m == 'numpy' or m.startswith('perdure.api')])\n"
        "perdure.Error; print('perdure.api.errors' in sys.modules, 'numpy' in sys.modules)\n"
    )
    done = python(program)
    assert done.stdout == "[]\nTrue False\n", done.stderr


def test_public_names_are_all_there_and_documented():
    assert set(perdure.__all__) <= set(dir(perdure))
    for name in perdure.__all__:
        assert getattr(perdure, name).__doc__, name
    for kind in (perdure.Pool, perdure.Array):
        for name, member in vars(kind).items():
            assert name.startswith("_") or member.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        _ = perdure.opne


def test_every_call_of_the_header_has_its_place_in_the_table():
    declared = set()
    for header in ("perdure.h", "perdure_mpi.h"):
        text = (ROOT / "include/perdure" / header).read_text()
        declared |= set(re.findall(r"^PERDURE_API .*?\b(perdure_\w+)\(", text, re.M))
    page = (ROOT / "docs/python.md").read_text()
    table = page.partition("## Calls")[2].partition("\n## ")[0]
    missing = {name for name in declared if name not in table and "perdure_win_" not in name}
    assert missing == set() and len(declared) > 20
    assert perdure.__version__ in (ROOT / "CMakeLists.txt").read_text()


def test_type_checkers_know_the_interface(tmp_path):
    (tmp_path / "user.py").write_text(
        "import perdure\n"
        "with perdure.open('p', keep=2) as pool:\n"
        "    u = pool.array('u', (3, 4), 'f8', mode='twin')\n"
        "    reveal_type(pool.restart())\n"
        "    reveal_type(u.working)\n"
        "    pool.array('u', 3, mode='twinn')\n"
        "    pool.comit()\n"
    )
    cache = BUILD / "mypy_strict"  # most of it numpy's types, which take it five seconds to read
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "user.py"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "MYPYPATH": str(ROOT / "python")},
    )  # fmt: skip
    lines = [line.split(": ", 1)[1] for line in done.stdout.splitlines() if "user.py" in line]
    assert lines[0] == 'note: Revealed type is "int | None"'
    assert "ndarray" in lines[1]
    assert "Literal['copy', 'twin', 'log', 'flush']" in lines[2]
    assert '"Pool" has no attribute "comit"' in lines[3] and len(lines) == 4
    assert Path(ROOT / "python/perdure/py.typed").exists()


def test_a_missing_module_says_how_to_get_it(tmp_path):
    program = "import perdure; perdure.open('/nonexistent/pool')"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Unsupported: the compiled module perdure._api is missing" in done.stderr
    assert "pip install" in done.stderr


def test_a_python_without_numpy_says_what_is_missing_and_how_to_get_it(tmp_path):
    program = "import sys; sys.modules['numpy'] = None; import perdure; perdure.open(sys.argv[1])"
    ran = python(program, tmp_path / "pool")
    last = ran.stderr.splitlines()[-1]
    assert ran.returncode == 1 and "perdure needs numpy" in last and "pip install numpy" in last
    assert sys.executable in last and "native.py" not in ran.stderr
