# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench kill_cache` notices what it is there to notice."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD
from perdure_bench.cache_trial import RankLog, failed_before_kill, read_log
from perdure_bench.kill_cache import kind_of

JOBS = sorted((BUILD / "tests/mpiio").glob("cache_job_*"))
needs_job = pytest.mark.skipif(not JOBS, reason="cache_job is not built (CLI11 or MPI is missing)")
COARSE_BEGIN = 2 * 24 * 4999  # of two ranks
WRITES = 4


def rank_log(
    stage: int = 1, started: int = 0, acknowledged: int = 0, synced: int = 0
) -> bytes:
    """What a rank leaves that began `started` writes."""
    return struct.pack("<8Q12Q12Q", stage, started, acknowledged, synced, *[0] * 28)


def verdict(place: Path, first: bytes, change=None, ack: str = "sync") -> dict:
    """What the verifier says of the file as it was made, changed by `change`."""
    file, log = place / "file", place / "log"
    shape = ["--ranks", "2", "--writes", str(WRITES), "--nodes", "2", "--seed", "3", "--ack", ack]
    command = [JOBS[0], "--file", file, "--log", log, *shape]
    subprocess.run([*command, "--make"], check=True)
    log.write_bytes(bytes(256) + first + rank_log() + bytes(256 * 13))
    if change is not None:
        with file.open("r+b") as opened:
            change(opened)
    said = subprocess.run([*command, "--verify"], check=True, capture_output=True).stdout
    return json.loads(said)


@needs_job
def test_a_file_to_which_nothing_was_written_is_as_it_was(tmp_path):
    found = verdict(tmp_path, rank_log())
    assert (found["lost"], found["wrong"]) == (0, 0)


@needs_job
def test_a_byte_that_nobody_wrote_is_wrong(tmp_path):
    def change(file):
        file.seek(COARSE_BEGIN + 5)
        byte = file.read(1)[0]
        file.seek(COARSE_BEGIN + 5)
        file.write(bytes([byte ^ 1]))

    found = verdict(tmp_path, rank_log(), change)
    assert (found["lost"], found["wrong"], found["first"]) == (0, 1, COARSE_BEGIN + 5)


@needs_job
def test_an_acknowledged_write_that_is_not_there_is_lost_and_one_under_way_is_not(tmp_path):
    assert verdict(tmp_path, rank_log(started=1, acknowledged=1))["lost"] > 0
    assert verdict(tmp_path, rank_log(started=1))["lost"] == 0


@needs_job
def test_an_asynchronous_write_to_another_node_is_owed_from_the_next_sync_on(tmp_path):
    """Some of the first writes of rank 0 go to node 1."""
    unsynced = verdict(tmp_path, rank_log(started=WRITES, acknowledged=WRITES), ack="async")
    synced = rank_log(started=WRITES, acknowledged=WRITES, synced=WRITES)
    assert unsynced["lost"] < verdict(tmp_path, synced, ack="async")["lost"]


@needs_job
def test_a_file_that_was_cut_lost_bytes_and_one_that_grew_by_itself_is_wrong(tmp_path):
    assert verdict(tmp_path, rank_log(), lambda file: file.truncate(1000))["lost"] > 0
    assert verdict(tmp_path, rank_log(), lambda file: file.truncate(1 << 21))["wrong"] > 0


def test_a_log_is_read_and_its_stages_are_timed():
    words = [2, 7, 6, 0, 0, 0, 500, 0, 100, 130, 190, *[0] * 21]
    log = read_log(bytes(256) + struct.pack("<32Q", *words), 1)[0]
    assert (log.stage, log.killed_ns, log.failed_ns) == (2, 500, 0)
    assert log.spans() == {0: 30, 1: 60}
    reopened = RankLog(11, 0, 0, (100, *[0] * 6, 150, 0, 0, 0, 190))
    assert reopened.spans() == {0: 50, 7: 40}


@pytest.mark.parametrize(
    "logs, failed",
    [
        ([(0, 0), (0, 0)], False),
        ([(500, 0), (0, 600)], False),  # the survivor's call failed because of the kill
        ([(500, 0), (0, 400)], True),
        ([(0, 400), (0, 0)], True),
    ],
)
def test_a_call_that_fails_before_the_kill_is_told_from_one_that_fails_after_it(logs, failed):
    assert failed_before_kill([RankLog(1, *times, (0,) * 12) for times in logs]) is failed


def test_the_kind_of_a_kill_is_where_it_hit():
    kinds = [kind_of(stage) for stage in (1, 6, 10, 4)]
    assert kinds == ["in_writes", "in_sync", "in_close", "in_other"]
