# SPDX-License-Identifier: BSD-3-Clause
"""`perdure pool` and `perdure devices`, and the launcher with the real library."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy
import pytest

from conftest import BUILD, MPIS

IN_THIS_PROCESS = True
COUNTER = str(BUILD / "tests/python/counter")


@pytest.fixture
def pool(tmp_path):
    """A pool that has counted to 20."""
    directory = tmp_path / "pools" / "counted"
    directory.parent.mkdir()
    subprocess.run([COUNTER, directory, "20"], check=True, timeout=60, stdout=subprocess.DEVNULL)
    return directory


def expected(iteration: int) -> numpy.ndarray:
    return iteration + numpy.arange(24.0).reshape(4, 6)


def test_ls_lists_pools_of_a_directory(perdure, pool):
    for place in (pool, pool.parent):
        listed = json.loads(perdure("pool", "ls", "--json", place).out)["pools"]
        assert [(entry["version"], entry["worst"]) for entry in listed] == [(20, "fine")]
    text = perdure("pool", "ls", pool.parent).out.decode()
    assert "counted" in text and "fine" in text


def test_ls_finds_nothing_where_there_is_nothing(perdure, tmp_path):
    ran = perdure("pool", "ls", tmp_path)
    assert (ran.code, ran.out) == (0, b"no pools here\n")


def test_show_names_arrays_scalars_and_the_iteration(perdure, pool):
    shown = json.loads(perdure("pool", "show", "--json", pool).out)
    (rank,) = shown["rank_files"]
    assert (shown["ranks"], shown["version"], rank["iteration"]) == (1, 20, 20)
    (array,) = rank["arrays"]
    assert (array["name"], array["type"], array["extents"]) == ("u", "float64", [4, 6])
    assert array["size_bytes"] == 192 and array["mode"] == "copy" and array["checksums"]
    text = perdure("pool", "show", pool).out.decode()
    assert "float64[4, 6] copy" in text and "uint64 scalar, 20" in text


def test_versions_lists_what_can_be_restored(perdure, pool, tmp_path):
    (held,) = json.loads(perdure("pool", "versions", "--json", pool).out)["versions"]
    assert (held["version"], held["parent"], held["abandoned"]) == (20, 19, False)
    assert held["committed_ns"] > 0
    text = perdure("pool", "versions", pool).out.decode()
    assert "newest" in text and "19" in text
    assert perdure("pool", "versions", tmp_path).code == 2
    (path,) = [path for path in pool.iterdir() if path.name.startswith("rank-")]
    held = bytearray(path.read_bytes())
    held[4096] ^= 1  # the state word of slot 0, where version 20 is
    path.write_bytes(held)
    ran = perdure("pool", "versions", pool)
    assert ran.code == 1 and ran.out == b"" and "damaged" in ran.err


def test_dump_gives_the_array_of_the_newest_version(perdure, pool, tmp_path):
    out = tmp_path / "u.npy"
    assert perdure("pool", "dump", pool, "u", "-o", out).code == 0
    assert numpy.array_equal(numpy.load(out), expected(20))
    assert perdure("pool", "dump", pool, "u", "-o", "-").out == expected(20).tobytes()
    assert b"float64[4, 6] of rank 0" in perdure("pool", "dump", pool, "u").out


@pytest.mark.parametrize("words", [["v"], ["u", "--rank", "1"]])
def test_dump_of_what_is_not_there_is_an_error(perdure, pool, words):
    ran = perdure("pool", "dump", pool, *words)
    assert ran.code == 1 and ran.out == b"" and ran.err.startswith("perdure: ")


def test_check_tells_whole_damaged_and_absent_pools_apart(perdure, pool, tmp_path):
    whole = perdure("pool", "check", pool)
    assert whole.code == 0 and b"whole, a restart gives version 20" in whole.out
    assert perdure("pool", "check", tmp_path).code == 2
    flip_data(pool, expected(20).tobytes())
    assert perdure("pool", "check", "--no-data", pool).code == 0
    damaged = perdure("pool", "check", pool)
    assert damaged.code == 1 and b"damage" in damaged.out and b"'u'" in damaged.out
    report = json.loads(perdure("pool", "check", "--json", pool).out)
    assert report["worst"] == "damage" and report["findings"][0]["severity"] == "damage"


def flip_data(pool, content: bytes) -> None:
    """Flips a bit where the rank's file holds `content`."""
    (path,) = [path for path in pool.iterdir() if path.name.startswith("rank-")]
    held = bytearray(path.read_bytes())
    held[held.index(content)] ^= 1
    path.write_bytes(held)


def test_rm_asks_and_removes(perdure, pool):
    refused = perdure("pool", "rm", pool, stdin=b"n\n")
    assert refused.code == 1 and pool.exists()
    assert perdure("pool", "rm", "--yes", pool).code == 0 and not pool.exists()
    assert perdure("pool", "rm", "--yes", pool).code == 2


def test_devices_have_a_source_and_match_the_table(perdure):
    rows = json.loads(perdure("devices", "--json").out)["devices"]
    assert len(rows) > 5 and all(row["source"] and row["assembly"] for row in rows)
    text = perdure("devices").out.decode()
    assert all(row["name"] in text for row in rows)


def test_counter_survives_a_rehearsed_failure(perdure, tmp_path):
    ran = perdure.run(["--kill-at", 7], [COUNTER, str(tmp_path / "pool"), "20"])
    first, second = ran.statistics["attempts"]
    assert ran.code == 0 and ran.out == b"counted to 20\n"
    assert first["signal"] == "SIGKILL" and first["iteration"] == 6
    assert second["restored_version"] == 6 and second["commits"] == 14
    dumped = perdure("pool", "dump", tmp_path / "pool", "u", "-o", "-")
    assert dumped.out == expected(20).tobytes()


def flip_a_byte(file: Path, place: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(place)
        byte = opened.read(1)
        opened.seek(place)
        opened.write(bytes([byte[0] ^ 1]))


def of_another_job(pool: Path) -> list[str]:
    shutil.copy(COUNTER, pool.parent / "renamed")
    return [str(pool.parent / "renamed"), str(pool), "20"]


def of_a_damaged_header(pool: Path) -> list[str]:
    flip_a_byte(pool / "rank-00000", 112)
    return [COUNTER, str(pool), "20"]


@pytest.mark.parametrize("job_of, sentence", [
    (of_another_job, "belongs to job 'counter'"), (of_a_damaged_header, "rank-00000"),
])  # fmt: skip
def test_a_job_whose_pool_is_refused_is_not_started_again(perdure, tmp_path, job_of, sentence):
    pool = tmp_path / "pool"
    assert perdure.run([], [COUNTER, str(pool), "10"]).code == 0
    ran = perdure.run(["--restarts", 3], job_of(pool))
    (attempt,) = ran.statistics["attempts"]
    assert ran.code == 1 and attempt["why"].startswith("rank 0: ") and sentence in attempt["why"]
    assert "not started again: the same pool would be refused again" in ran.err
    assert "no rank reported" not in ran.err


@pytest.mark.parametrize("mpi", MPIS)
def test_a_job_of_another_number_of_ranks_is_not_started_again(perdure, tmp_path, mpi):
    launcher = os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]
    job = [f"{COUNTER}.{mpi}", str(tmp_path / "pool"), "10"]
    assert perdure.run([], [launcher, "-n", "1", *job]).code == 0
    ran = perdure.run(["--restarts", 3], [launcher, "-n", "2", *job])
    (attempt,) = ran.statistics["attempts"]
    assert ran.code != 0 and "was made by 1 rank" in attempt["why"]
    assert ran.statistics["restarts"] == 0 and "no rank reported" not in ran.err


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("point", ["copy", "slot", "state", "agreed"])
def test_counter_of_two_ranks_survives_at_every_point(perdure, tmp_path, mpi, point):
    launcher = os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]
    job = [launcher, "-n", "2", f"{COUNTER}.{mpi}", str(tmp_path / "pool"), "20"]
    ran = perdure.run(["--kill-at", 7, "--kill-point", point], job)
    second = ran.statistics["attempts"][1]
    assert ran.code == 0 and ran.out.count(b"counted to 20") == 2
    versions = {"copy": {6}, "slot": {6}, "state": {6, 7}, "agreed": {7}}
    assert second["restored_version"] in versions[point]
    for rank in (0, 1):
        dumped = perdure("pool", "dump", tmp_path / "pool", "u", "--rank", rank, "-o", "-")
        assert dumped.out == expected(20).tobytes()
