# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth
"""Files of a Python program that go back with its pool: Pool.file()."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import perdure
from conftest import BUILD, ROOT, Perdure

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{BUILD / 'python'}"}
SEED = int(os.environ.get("PERDURE_TEST_SEED", random.randrange(2**32)))
JOB = """
import perdure
with perdure.open("pool") as pool:
    u = pool.array("u", 50)
    state = pool.scalars(iteration=0)
    log = pool.file(open("log.txt", "a"))
    pool.restart()
    while state.iteration < 30:
        u.working[:] += state.iteration
        print("step", state.iteration, "sum", u.working.sum(), file=log)
        state.iteration += 1
        if state.iteration % 4 == 0 or state.iteration == 30:
            pool.commit_begin()
            u.before_write()
    pool.close()
"""


def run(folder, kill_after_s: float | None = None) -> int:
    job = subprocess.Popen([sys.executable, "-c", JOB], cwd=folder, env=ENVIRONMENT)
    if kill_after_s is not None:
        while job.poll() is None and not (folder / "pool/job").exists():
            time.sleep(0.001)
        time.sleep(kill_after_s)
        job.send_signal(signal.SIGKILL)
    return job.wait(timeout=60)


def test_a_job_that_was_killed_at_random_times_ends_with_the_file_of_one_that_was_not(tmp_path):
    print(f"PERDURE_TEST_SEED={SEED}")
    moments = random.Random(SEED)
    (tmp_path / "calm").mkdir()
    assert run(tmp_path / "calm") == 0
    expected = (tmp_path / "calm/log.txt").read_bytes()
    assert expected.count(b"\n") == 30
    kills = 0
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        for _ in range(3):
            kills += run(folder, moments.random() * 0.02) == -signal.SIGKILL
        assert run(folder) == 0
        assert (folder / "log.txt").read_bytes() == expected, f"seed {SEED}, {number}"
    assert kills > 0


def test_lines_in_the_buffers_of_python_are_part_of_the_version(tmp_path):
    path = tmp_path / "log.txt"
    with perdure.open(tmp_path / "pool", keep=3) as pool:
        log = pool.file(open(path, "a"))  # noqa: SIM115
        assert pool.restart() is None
        log.write("one\n")
        pool.commit()
        log.write("two\n")
        pool.commit_begin()
        log.write("three\n")
        pool.commit_wait()
        log.flush()
        assert path.read_text() == "one\ntwo\nthree\n"
        pool.restore(2)
        assert path.read_text() == "one\ntwo\n"
        log.write("after\n")
        pool.restore(1)  # what is in a buffer goes as well
        assert path.read_text() == "one\n"
        log.close()
        pool.commit()


def test_a_path_may_be_named_too_and_its_errors_have_their_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with perdure.open("pool") as pool:
        assert pool.file("log.txt") == "log.txt"
        pool.restart()
        (tmp_path / "log.txt").write_text("one\n")
        pool.commit()
        for wrong in (7, None, b"".join):
            with pytest.raises(perdure.InvalidArgument, match="no path"):
                pool.file(wrong)
        with open(os.devnull) as null, pytest.raises(perdure.Foreign, match="a device"):
            pool.file(null)
    (tmp_path / "log.txt").unlink()
    with perdure.open("pool") as pool:
        pool.file("log.txt")
        with pytest.raises(perdure.NotFound, match="version 1 notes 4 bytes of 'log.txt'"):
            pool.restart()
    (tmp_path / "log.txt").write_text("ONE\n")
    with perdure.open("pool") as pool:
        pool.file("log.txt")
        with pytest.raises(perdure.Damaged, match="is another one"):
            pool.restart()
        assert (tmp_path / "log.txt").read_text() == "ONE\n"


def test_a_file_that_was_opened_to_be_written_anew_is_refused_with_what_there_was(tmp_path):
    path = tmp_path / "log.txt"
    with perdure.open(tmp_path / "pool") as pool:
        log = pool.file(open(path, "w"))  # noqa: SIM115
        pool.restart()
        log.write("one\n")
        pool.commit()
        log.close()
    with perdure.open(tmp_path / "pool") as pool, open(path, "w") as log:
        pool.file(log)
        with pytest.raises(perdure.Damaged, match='has 0: it was cut.*"w" empties it'):
            pool.restart()


def test_levels_bring_a_file_back_with_the_rest(tmp_path):
    for folder in ("levels", "one", "two"):
        (tmp_path / folder).mkdir()
    path = tmp_path / "log.txt"
    levels = {"drain": tmp_path / "levels", "every": 1}
    with perdure.open(tmp_path / "one/pool", levels=levels) as pool:
        pool.file(path)
        u = pool.array("u", 5)
        pool.restart()
        path.write_text("one\n")
        u.working[:] = 1
        pool.commit()
        pool.levels_wait()
    with path.open("a") as log:
        log.write("lost\n")
    with perdure.open(tmp_path / "two/pool", levels=levels) as pool:
        pool.file(path)
        u = pool.array("u", 5)
        assert pool.restart() == 1
        assert np.all(u.working == 1)
        assert path.read_text() == "one\n"


def test_the_command_shows_the_files_of_a_pool_and_removes_what_it_keeps_of_them(
    tmp_path,
):
    command = Perdure(tmp_path)
    with perdure.open(tmp_path / "pool") as pool:
        pool.file(tmp_path / "log.txt")
        pool.restart()
        (tmp_path / "log.txt").write_text("one\n")
        pool.commit()
    (rank,) = json.loads(command("pool", "show", "pool", "--json").out)["rank_files"]
    path = str(tmp_path / "log.txt")
    assert rank["files"] == [{"path": path, "full_path": path, "bytes": 4}]
    assert rank["scalars"] == []
    assert "file that goes back" in command("pool", "show", "pool").out.decode()
    assert command("pool", "rm", "--yes", "pool").code == 0
    assert not (tmp_path / "pool").exists()
    assert (tmp_path / "log.txt").read_text() == "one\n"
