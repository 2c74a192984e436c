# SPDX-License-Identifier: BSD-3-Clause
"""The parts of `perdure run` that are pure or nearly so."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from conftest import ROOT
from perdure.run import attempt
from perdure.run.launchers import is_launcher, is_launcher_or_daemon, world_size
from perdure.run.leftovers import remove_leftovers
from perdure.run.live import TerminalLive, progress_text
from perdure.run.page import NO_ITERATION, Phase, RunPage, parse_page, read_pages
from perdure.run.process_table import ProcessTable, read_process
from perdure.run.rehearsal import Rehearsal, parse_rehearsal, ranks_of_command
from perdure.run.stall import StallWatch
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
    (tmp_path / "page-00000").write_bytes(b"")
    (tmp_path / "page-00001").write_bytes(packed(*FIELDS))
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


def test_only_unheld_new_files_with_names_of_an_mpi_are_removed(memory_path):
    def make(name: str):
        (memory_path / name).write_bytes(bytes(4096))
        return memory_path / name

    make("vader_segment.old")
    time.sleep(0.05)
    since = time.time()
    time.sleep(0.05)
    bucket = "perdure-" + 4 * "0123cdef"
    openmp = "__KMP_REGISTERED_LIB_"
    ended = subprocess.Popen(["true"])
    ended.wait()
    shared = "perdure-ranks-" + 2 * "0123cdef"
    others = ("precious", "my-mpich-notes", bucket + "0", shared + "0", "perdure-run-lock",
              bucket.upper(), f"{openmp}{os.getpid()}_0", f"{openmp}mine")  # fmt: skip
    left = f"{openmp}{ended.pid}_{os.getuid()}"
    for name in ("vader_segment.host.0", "ucx_shm_posix_1", bucket, shared, left, *others):
        make(name)
    (memory_path / "mpich_folder").mkdir()
    (memory_path / "mpich_link").symlink_to(memory_path / "precious")
    opened = os.open(make("sm_segment.open"), os.O_RDWR)
    with open(make("sm_segment.mapped"), "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 4096)
    removed = [left, bucket, shared, "ucx_shm_posix_1", "vader_segment.host.0"]
    assert remove_leftovers(since, memory_path) == removed
    os.close(opened)
    mapped.close()
    assert remove_leftovers(since, memory_path) == ["sm_segment.mapped", "sm_segment.open"]
    assert len(list(memory_path.iterdir())) == 3 + len(others)


def test_files_of_another_container_that_shares_dev_shm_stay(memory_path):
    """Whose processes have no place in this one's /proc."""
    since = time.time() - 1
    file = memory_path / "mpich_shm_other"
    file.write_bytes(bytes(4096))
    hold = f"exec 3<{file}; echo held; read line"
    apart = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", hold]
    own = ["unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", sys.executable, "-c",
           "import sys; from pathlib import Path; from perdure.run.leftovers import *;"
           f"print(remove_leftovers({since}, Path({str(memory_path)!r})))"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen(apart, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        if other.stdout.readline() != b"held\n":
            pytest.skip("no PID namespaces here")
        seen = subprocess.run(own, env=environment, capture_output=True, text=True, check=True)
        assert seen.stdout == "[]\n" and file.exists()
        other.communicate(b"\n")
    seen = subprocess.run(own, env=environment, capture_output=True, text=True, check=True)
    assert seen.stdout == "['mpich_shm_other']\n" and not file.exists()


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


def stopped(_rank: int) -> str:
    return "stopped"


def test_stall_is_warned_of_once_and_names_the_rank_that_came_on_least():
    watch = StallWatch(0.0, warn_s=300)
    pages = [replace(RunPage(*FIELDS), rank=rank, phase=Phase.committing) for rank in (0, 1)]
    watch.look(pages, 10)
    watch.look([replace(pages[0], commits=8), pages[1]], 20)
    assert watch.warning(310, stopped) is None and not watch.is_over(1e9)
    text = watch.warning(321, stopped)
    assert text.startswith("no rank has progressed for 5 min 1 s: rank 1 committing for 5 min 11 s")
    assert "version 9 (stopped); rank 0" in text
    assert watch.warning(5000, stopped) is None
    watch.look(pages, 6000)
    assert watch.warning(6301, stopped) is not None


def test_stall_is_measured_against_the_longest_time_between_versions():
    watch = StallWatch(0.0, warn_s=10)
    page = replace(RunPage(*FIELDS), phase=Phase.computing)
    watch.look([page], 0)
    watch.look([replace(page, version=10)], 5)
    watch.look([replace(page, version=11)], 6)
    assert watch.warning(105, stopped) is None and watch.warning(107, stopped) is not None


def test_no_stall_is_warned_of_without_an_open_pool():
    watch = StallWatch(0.0, limit_s=50, warn_s=10)
    assert watch.warning(40, stopped) is None and not watch.is_over(50) and watch.is_over(51)
    watch.look([replace(RunPage(*FIELDS), phase=Phase.closed)], 51)
    assert watch.warning(90, stopped) is None and not watch.is_over(101) and watch.is_over(102)
    assert "rank 1 has closed its pool" in watch.text(102, stopped)


def test_stall_of_many_ranks_names_few_of_them():
    watch = StallWatch(0.0)
    watch.look([replace(RunPage(*FIELDS), rank=rank) for rank in range(100)], 1)
    text = watch.text(2, stopped)
    assert text.count("rank ") == 9 and text.endswith("and 92 ranks that changed later")


def test_time_in_which_the_launcher_itself_was_stopped_does_not_count(monkeypatch):
    now = iter([100.0, 100.5, 4000.0, 4000.25])
    monkeypatch.setattr(attempt.time, "monotonic", lambda: next(now))
    clock = attempt._Clock()
    for expected in (0.5, 5.5, 5.75):
        clock.advance()
        assert clock.now_s == expected


def test_process_table_knows_ended_children_their_status_and_odd_names(tmp_path):
    odd = tmp_path / "a) Z 1 \x1b[2J"
    odd.write_text(f"#!{sys.executable}\nimport subprocess, time\n"
                   "child = subprocess.Popen(['sh', '-c', 'kill -9 $$'])\n"
                   "print(child.pid, flush=True)\ntime.sleep(60)")  # fmt: skip
    odd.chmod(0o700)
    with subprocess.Popen([odd], stdout=subprocess.PIPE) as job:
        child = int(job.stdout.readline())
        table = ProcessTable()
        while table.descendants()[child].is_live:
            pass
        processes = table.descendants()
        assert processes[job.pid].name == "a) Z 1 ?[2J" and processes[job.pid].is_live
        assert (processes[child].parent, processes[child].status) == (job.pid, 9)
        assert os.getppid() not in processes and os.getpid() not in processes
        job.kill()
    assert read_process(job.pid) is None


def test_process_whose_first_thread_has_ended_lives():
    text = "import ctypes, threading, time; threading.Thread(target=time.sleep, args=[60]).start();"
    text += "ctypes.CDLL(None).pthread_exit(None)"
    with subprocess.Popen([sys.executable, "-c", text]) as job:
        while read_process(job.pid).state != "Z":
            assert job.poll() is None
        assert read_process(job.pid).is_live
        job.kill()


def test_launchers_are_known_by_their_names():
    assert is_launcher("mpiexec.openmpi") and is_launcher("srun") and not is_launcher("orted")
    assert is_launcher_or_daemon("hydra_pmi_proxy") and not is_launcher_or_daemon("mpiexecutive")


def test_world_tells_whether_all_ranks_are_here():
    assert world_size({"PMI_SIZE": "4", "MPI_LOCALNRANKS": "4"}) == (4, True)
    elsewhere = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    assert world_size(elsewhere) == (4, False)
    assert world_size({"PMIX_RANK": "1"}) == (0, False)


def test_a_signal_that_came_before_the_bell_was_there_is_taken_by_it():
    """As a scheduler's warning that comes while the launcher still imports its modules."""
    code = """
import os, signal, sys
sys.argv = ["perdure", "run", "job"]
from perdure.start import prepare
prepare()
os.kill(os.getpid(), signal.SIGUSR1)
from perdure.run.bell import Bell
with Bell() as bell:
    assert bell.take() == [signal.SIGUSR1], "it was lost"
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []), "the job would not get it"
"""
    folders = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=folders, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("closed", [(0,), (2,), (0, 1, 2)])
def test_standard_descriptors_that_are_closed_are_filled_before_a_file_takes_them(closed, tmp_path):
    code = f"""
import os, sys
sys.argv = ["perdure", "pool"]
for descriptor in {closed}:
    os.close(descriptor)
from perdure.start import prepare
prepare()
descriptor = os.open({str(tmp_path / "file")!r}, os.O_CREAT | os.O_WRONLY)
os._exit(0 if descriptor > 2 else 1)
"""
    folders = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=folders, capture_output=True)
    assert done.returncode == 0
