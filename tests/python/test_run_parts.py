"""The parts of `perdure run` that are pure or nearly so."""

from __future__ import annotations

import mmap
import os
import struct
import time

import pytest
from perdure.run.leftovers import remove_leftovers
from perdure.run.live import TerminalLive, progress_text
from perdure.run.page import NO_ITERATION, RunPage, parse_page, read_pages
from perdure.run.rehearsal import Rehearsal, parse_rehearsal, ranks_of_command
from perdure.units import bytes_text, rate_text, seconds_text

FIELDS = (4711, 1, 2, 2, 9, 8, 7, 6_000_000, 50_000_000, 64_000_000, 5_000_000_000, 3, 2, 1)


def packed(*fields) -> bytes:
    return struct.pack("<QIIIIQQQQQQQQQQ", 0x314E555244524550, *fields).ljust(4096, b"\0")


def test_page_is_read_field_by_field():
    page = parse_page(packed(*FIELDS))
    assert page == RunPage(*FIELDS)
    assert (page.pid, page.rank, page.version, page.restart_ns) == (4711, 1, 9, 1)


def test_page_without_magic_or_too_short_is_no_page(tmp_path):
    assert parse_page(bytes(4096)) is None
    assert parse_page(packed(*FIELDS)[:90]) is None
    (tmp_path / "rank-00000").write_bytes(b"")
    (tmp_path / "rank-00001").write_bytes(packed(*FIELDS))
    assert [page.rank for page in read_pages(tmp_path)] == [1]


@pytest.mark.parametrize(
    "command, ranks",
    [
        ("./app", 1),
        ("mpiexec -n 4 ./app -n 1", 4),
        ("/usr/bin/mpirun -np 1 ./app", 1),
        ("mpiexec.openmpi --oversubscribe -n 8 ./app", 8),
        ("timeout 60 mpiexec.hydra -n 3 app", 3),
        ("srun ./app", 2),
    ],
)
def test_ranks_are_read_off_the_command(command, ranks):
    assert ranks_of_command(command.split()) == ranks


def test_rehearsal_kills_rank_1_unless_there_is_one_rank():
    assert parse_rehearsal("7", None, "slot", ["mpiexec", "-n", "2", "a"]).rank == 1
    alone = parse_rehearsal("7", None, "slot", ["./a"])
    assert alone.environment == {"PERDURE_KILL": "rank=0,iteration=7,point=slot"}
    timed = parse_rehearsal("1.5s", 3, "copy", ["./a"])
    assert timed == Rehearsal(3, "copy", seconds=1.5) and timed.environment == {}


@pytest.mark.parametrize("at", ["", "s", "3.5", "-1", "-1s", "nans", "infs", "1e3", str(2**64)])
def test_what_is_no_rehearsal_is_refused(at):
    with pytest.raises(ValueError):
        parse_rehearsal(at, None, "copy", ["./a"])


def test_only_unheld_new_files_with_names_of_an_mpi_are_removed(tmp_path):
    def make(name: str):
        (tmp_path / name).write_bytes(bytes(4096))
        return tmp_path / name

    make("vader_segment.old")
    time.sleep(0.05)
    since = time.time()
    time.sleep(0.05)
    bucket = "perdure-" + 4 * "0123cdef"
    others = "precious", "my-mpich-notes", bucket + "0", "perdure-run-lock", bucket.upper()
    for name in ("vader_segment.host.0", "ucx_shm_posix_1", bucket, *others):
        make(name)
    (tmp_path / "mpich_folder").mkdir()
    (tmp_path / "mpich_link").symlink_to(tmp_path / "precious")
    opened = os.open(make("sm_segment.open"), os.O_RDWR)
    with open(make("sm_segment.mapped"), "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 4096)
    removed = [bucket, "ucx_shm_posix_1", "vader_segment.host.0"]
    assert remove_leftovers(since, tmp_path) == removed
    os.close(opened)
    mapped.close()
    assert remove_leftovers(since, tmp_path) == ["sm_segment.mapped", "sm_segment.open"]
    assert len(list(tmp_path.iterdir())) == 3 + len(others)


def test_progress_line_names_iteration_version_and_cost():
    page = RunPage(*FIELDS)
    text = progress_text(2, [page])
    assert text.startswith("attempt 2 | 1 of 2 ranks | iteration 8 | version 9 | commit 6 ms")
    assert text.endswith("| 64 MB | 10.7 GB/s")
    unnamed = RunPage(*FIELDS[:5], NO_ITERATION, *FIELDS[6:])
    assert "iteration" not in progress_text(2, [unnamed])


def test_terminal_row_is_cut_to_the_width_and_given_back():
    written = []
    live = TerminalLive(lambda: os.terminal_size((30, 24)), written.append)
    live.show(1, [RunPage(*FIELDS)])
    assert "\033[1;23r" in written[0] and "\033[24;1H" in written[1]
    assert len(written[1].split("\033[7m")[1].split("\033[0m")[0]) == 30
    live.clear()
    assert "\033[r" in written[-1]
    live.clear()
    assert len(written) == 3


def test_quantities_are_written_with_three_digits():
    assert [seconds_text(s) for s in (0, 2.5e-9, 0.0123, 61, 200)] == [
        "0 s", "2.5 ns", "12.3 ms", "61 s", "3 min 20 s",
    ]  # fmt: skip
    assert [bytes_text(b) for b in (0, 999, 64e6, 1.5e12)] == ["0 B", "999 B", "64 MB", "1.5 TB"]
    assert rate_text(3e9, 2) == "1.5 GB/s" and rate_text(1, 0) == "-"
