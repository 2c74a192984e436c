# SPDX-License-Identifier: BSD-3-Clause
"""`perdure advise`: what is seen of a program from outside, what is made of it, and the verb."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, ROOT, in_this_process
from perdure.advise.judge import (
    HIGH,
    LOW,
    MEDIUM,
    Advice,
    Assumed,
    Carried,
    Choice,
    choose,
    doubts,
    of_files,
    of_written,
    protection,
    unprotected_ratio,
)
from perdure.advise.mappings import Block, Mapping, blocks_of, name_statics, parse_maps
from perdure.advise.memory import ProcessMemory
from perdure.advise.place import Commit, Medium
from perdure.advise.program import Memory, Program, WindowKind, program_of
from perdure.advise.recording import Recording, Seen
from perdure.advise.symbols import parse_nm
from perdure.advise.written import Written, WrittenFiles
from perdure.cache.predict import Prediction
from perdure.cache.record import Run, WindowUse
from perdure.run.process_table import read_process

LOOPS = BUILD / "bench/bench_advised_loops"
MIB = 1 << 20
MEDIUM_HERE = Medium("/dev/shm", "tmpfs", "tmpfs")
COMMIT = Commit("copy", 1.0, 8 * MIB, 0.01, 0.0098, 0.0102, 0.02, 0.01)
A_DAY = Assumed(86400.0)

# --- memory --------------------------------------------------------------------------------------


class FakeMemory:
    """Bytes at addresses; what is not there can't be read."""

    def __init__(self) -> None:
        self.words: dict[int, bytes] = {}

    def header(self, at: int, size: int, before: int = 0) -> None:
        self.words[at] = struct.pack("<QQ", before, size)

    def read(self, at: int, count: int) -> bytes:
        return self.words.get(at, b"")[:count]


def mapping(start: int, size: int, access: str = "rw-p", path: str = "", inode: int = 0) -> Mapping:
    return Mapping(start, start + size, access, 0, inode, path)


def test_lines_of_maps_are_parsed_and_others_left_out():
    text = ("7f00000-7f10000 rw-s 00001000 00:1a 55 /dev/shm/a b (deleted)\n"
            "nonsense\n600000-601000 rw-p 00000000 00:00 0 \n")
    assert parse_maps(text) == [
        Mapping(0x7F00000, 0x7F10000, "rw-s", 0x1000, 55, "/dev/shm/a b (deleted)"),
        Mapping(0x600000, 0x601000, "rw-p", 0, 0, ""),
    ]


def test_large_blocks_of_malloc_are_told_apart_in_a_joined_mapping():
    memory, start = FakeMemory(), 0x7F0000000000
    memory.header(start, 3 * MIB | 2)
    memory.header(start + 3 * MIB, MIB | 2)
    found = blocks_of([mapping(start, 5 * MIB)], "/a", memory.read)
    assert [(each.kind, each.bytes) for each in found] == [
        ("heap", 3 * MIB), ("heap", MIB), ("mapped", MIB)]


def test_the_heap_is_walked_and_free_blocks_are_left_out():
    memory, at = FakeMemory(), 0x1000000
    for size, in_use in ((0x290, 1), (MIB, 1), (2 * MIB, 0), (128 << 10, 1)):
        before = memory.words.get(at)
        flags = 1 if before is None else struct.unpack("<QQ", before)[1] & 1
        memory.header(at, size | flags)
        memory.header(at + size, 0x20 | in_use)
        at += size
    heap = mapping(0x1000000, at - 0x1000000 + 0x100, path="[heap]")
    found = blocks_of([heap], "/a", memory.read)
    assert [each.bytes for each in found] == [MIB, 128 << 10]


@pytest.mark.parametrize("size", [0, 8, 1 << 60, 0x19])
def test_a_heap_of_another_allocator_is_one_block(size):
    memory = FakeMemory()
    memory.header(0x1000000, size)
    found = blocks_of([mapping(0x1000000, MIB, path="[heap]")], "/a", memory.read)
    assert [each.bytes for each in found] == [MIB]


def test_static_memory_is_the_programs_data_and_what_follows_it_named_by_its_variables():
    mappings = [mapping(0x400000, 4096, "r-xp", "/a", 7), mapping(0x500000, 8192, "rw-p", "/a", 7),
                mapping(0x502000, 4 * MIB), mapping(0x7F00000, MIB, "rw-p", "/lib/x.so", 8)]
    found = blocks_of(mappings, "/a", FakeMemory().read)
    assert [(each.kind, each.bytes) for each in found] == [("static", 4 * MIB)]
    symbols = parse_nm("0000000000102000 0000000000200000 b u\n0000000000102000 0000000000000008 B "
                       "few\n0000000000000000 0000000000900000 t code\nhalf a line\n", 0x400000)
    assert symbols == [(0x502000, 2 * MIB, "u")]
    assert name_statics(found, symbols) == [
        Block("static", 0x502000, 2 * MIB, "u"),
        Block("static", 0x502000, 2 * MIB, "small variables")]


CHANGES = """
import sys, time
constant, all_of_it, part = (bytearray(8 << 20) for _ in range(3))
for memory in (constant, all_of_it, part):
    memory[:] = b"1" * len(memory)
print("ready", flush=True)
turn = 0
while True:
    turn = (turn + 1) % 250
    all_of_it[::4096] = bytes([turn]) * (len(all_of_it) // 4096)
    part[: 1 << 20 : 4096] = bytes([turn]) * 256
"""


def test_pages_that_change_are_seen_from_outside_and_others_are_not():
    with subprocess.Popen([sys.executable, "-c", CHANGES], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == b"ready\n"
            memory = ProcessMemory(child.pid)
            for _ in range(8):
                memory.look()
                time.sleep(0.05)
            memory.close()
        finally:
            child.kill()
    if memory.refused:
        pytest.skip(f"another process's memory can't be read here: {memory.refused}")
    large = [each for each in memory.watched.values() if 8 * MIB <= each.block.bytes < 9 * MIB]
    shares = sorted(each.share(0.0) or 0.0 for each in large)
    assert len(shares) == 3 and shares[0] == 0 and 0.02 < shares[1] < 0.3 and shares[2] > 0.95


def test_memory_that_may_not_be_read_is_said_to_be_refused(monkeypatch):
    def refuse(path, flags):
        raise PermissionError(1, "Operation not permitted")

    memory = ProcessMemory(os.getpid())
    monkeypatch.setattr("perdure.advise.memory.os.open", refuse)
    assert memory.look() == 0 and memory.refused == "Operation not permitted"
    made = program_of(Recording(["a"], processes=[Seen(_process(), memory, False)]))
    advice = Advice("pool", "")
    doubts(advice, made, 10.0, 0)
    assert advice.sure == LOW and "Operation not permitted" in advice.why[0]


def _process():
    found = read_process(os.getpid())
    assert found is not None
    return found


# --- files ---------------------------------------------------------------------------------------


def test_files_that_are_written_anew_and_files_that_grow_are_told_apart(tmp_path):
    files = WrittenFiles()
    files.watch(str(tmp_path))
    with open(tmp_path / "log.txt", "w") as log:
        for turn in range(4):
            (tmp_path / "new").write_text(f"{turn}" * 100)
            os.rename(tmp_path / "new", tmp_path / "u-0.ckpt")
            log.write("a line\n")
            log.flush()
            files.look([os.getpid()])
            files.take_events()
    files.close()
    found = {os.path.basename(each.pattern): each for each in files.found.values()}
    assert found["u-#.ckpt"].again and found["u-#.ckpt"].renamed == 4
    assert found["u-#.ckpt"].bytes == 100
    assert found["log.txt"].grew >= 2 and not found["log.txt"].again


def test_numbered_output_counts_as_written_again_and_a_few_files_of_ranks_do_not():
    assert Written("/a/out-#.dat", {f"/a/out-{n}.dat" for n in range(5)}, closed=5).again
    assert not Written("/a/rank-#.txt", {"/a/rank-0.txt", "/a/rank-1.txt"}, closed=2).again


def test_a_kernel_without_watches_leaves_what_is_open(tmp_path):
    files = WrittenFiles()
    files.close()
    files.watch(str(tmp_path))
    files.take_events()
    with open(tmp_path / "log", "w") as log:
        log.write("x" * 5)
        log.flush()
        files.look([os.getpid()])
    assert [each.bytes for each in files.found.values() if each.pattern.endswith("/log")] == [5]


# --- what is made of it --------------------------------------------------------------------------

WINDOW = WindowKind("allocate", 2, 3 * MIB, 400, 0, 0)


def program(**fields) -> Program:
    made = Program(ranks_seen=1, looks=20, looked_s=5.0,
                   changing=[Memory("heap", "", 4 * MIB, 2, 1.0)])
    return replace(made, **fields)


def test_windows_are_protected_where_they_are_most_of_what_changes():
    few = [Memory("heap", "", 256 << 10, 1, 1.0)]
    windows = program(windows=[WINDOW], changing=few, is_mpi=True)
    assert choose(windows) == Choice("windows", "copy", 3 * MIB, 1.0, 0.5)
    made = protection(windows, choose(windows), COMMIT, MEDIUM_HERE, A_DAY)
    assert (made.what, made.bytes, made.sure) == ("windows", 3 * MIB, MEDIUM)
    assert "commit=fence" in made.command
    locked = replace(WINDOW, fences=0, unlocks=9)
    others = program(windows=[locked], changing=[])
    made = protection(others, choose(others), COMMIT, MEDIUM_HERE, A_DAY)
    assert "commit=fence" not in made.command and "perdure_win_commit" in made.how[0]


def test_a_window_over_a_part_of_an_array_leaves_the_arrays_to_a_pool():
    halo = WindowKind("create", 1, 160 << 10, 100, 0, 0)
    made = protection(program(windows=[halo]), choose(program(windows=[halo])), COMMIT,
                      MEDIUM_HERE, A_DAY)
    assert made.what == "pool" and made.bytes == 8 * MIB
    assert any("need not be persistent" in sentence for sentence in made.how)


def test_mode_log_is_for_arrays_of_which_few_pages_change():
    few = program(changing=[Memory("heap", "", 64 * MIB, 1, 0.1)])
    assert choose(few) == Choice("pool", "log", 64 * MIB, 0.1)
    most = program(changing=[Memory("heap", "", 64 * MIB, 1, 0.6)])
    assert choose(most) == Choice("pool", "copy", 64 * MIB, 1.0)
    assert choose(program()).least == 0.5  # one of two arrays
    mapped = program(changing=[Memory("mapped", "", 64 * MIB, 1, 0.1)])
    assert choose(mapped).mode == "copy" and choose(mapped).bytes == round(6.4 * MIB)


def test_what_ipv_record_says_takes_the_place_of_all_that_changes():
    carried = Carried(MIB, ("u (heat.c:8)",))
    choice = choose(program(), carried)
    assert choice == Choice("pool", "copy", MIB, 1.0)
    made = protection(program(), choice, COMMIT, MEDIUM_HERE, A_DAY, carried)
    assert made.names == ["u (heat.c:8)"] and made.sure == HIGH


def test_the_interval_is_that_of_the_exact_model_and_the_cost_follows():
    made = protection(program(), choose(program()), COMMIT, MEDIUM_HERE, A_DAY)
    assert made.interval_s == pytest.approx((2 * 0.01 * 86400) ** 0.5, rel=0.01)
    assert made.run_time_ratio == pytest.approx(1 + 0.01 / made.interval_s)
    assert made.expected_ratio > made.run_time_ratio
    assert made.least_ratio == pytest.approx(1 + 0.005 / made.interval_s)
    given = replace(A_DAY, interval_s=0.1, cores=2)
    made = protection(program(), choose(program()), COMMIT, MEDIUM_HERE, given)
    assert made.run_time_ratio == pytest.approx(1.1)
    assert any("In-place versioning" in each or "in-place versioning" in each for each in made.how)
    made = protection(program(), choose(program()), COMMIT, MEDIUM_HERE, replace(given, cores=1))
    assert any("perdure_commit_begin" in each for each in made.how)


def test_a_job_that_is_too_short_for_failures_needs_nothing():
    short = replace(A_DAY, job_s=60.0)
    made = protection(program(), choose(program()), COMMIT, MEDIUM_HERE, short)
    assert made.what == "nothing" and "1440" not in made.text
    long = replace(A_DAY, job_s=3 * 86400.0)
    assert protection(program(), choose(program()), COMMIT, MEDIUM_HERE, long).what == "pool"
    assert unprotected_ratio(86400.0, 86400.0) == pytest.approx(1.71828, rel=1e-4)
    assert unprotected_ratio(1e9, 1.0) == float("inf")


def test_nothing_that_changes_is_nothing_to_protect_and_is_sure_only_if_it_was_seen():
    still = program(changing=[])
    made = protection(still, choose(still), None, MEDIUM_HERE, A_DAY)
    assert (made.what, made.sure) == ("nothing", HIGH)
    unseen = program(changing=[], looks=1)
    assert protection(unseen, choose(unseen), None, MEDIUM_HERE, A_DAY).sure == LOW
    mine = program(uses_perdure=True)
    assert "has a pool already" in protection(mine, choose(mine), None, MEDIUM_HERE, A_DAY).text


def test_doubts_say_why_and_lower_how_sure_it_is():
    made = Advice("pool", "")
    doubts(made, program(), 20.0, 0)
    assert (made.sure, made.why) == (HIGH, [])
    doubts(made, program(ranks=64, ranks_seen=2), 20.0, 0)
    assert made.sure == MEDIUM and "2 of 64 ranks" in made.why[0]
    doubts(made, program(looks=2), 0.3, 3)
    assert made.sure == LOW and len(made.why) == 4
    unsteady = replace(COMMIT, low_s=0.005, high_s=0.02)
    assert "unequally long" in protection(program(), choose(program()), unsteady, MEDIUM_HERE,
                                          A_DAY).why[-1]


def test_only_the_last_third_of_a_run_says_what_changes():
    memory = ProcessMemory(1)
    block = Block("heap", 0, 4 * MIB)
    prepared, used, gone = (replace(block, start=n) for n in range(3))
    from perdure.advise.memory import Watched

    for each, early, late, last in ((prepared, {0, 1}, set(), 10.0), (used, {0}, {0, 1}, 10.0),
                                    (gone, {0, 1}, {0, 1}, 6.0)):
        seen = [(float(when), frozenset(early if when < 5 else late))
                for when in range(1, int(last) + 1)]
        memory.watched[each.start, 0, ""] = Watched(each, [0, 1], seen=seen, last_s=last)
    made = program_of(Recording(["a"], processes=[Seen(_process(), memory, False)]))
    assert made.changing == [Memory("heap", "", 4 * MIB, 1, 1.0)]
    assert made.constant_bytes == 4 * MIB and made.looks == 10 and made.has_looked


def test_windows_are_counted_of_the_rank_that_has_most():
    uses = [WindowUse("create", rank, 2, size, fences, *others, 1.0) for rank, size, fences, others
            in ((0, 10, 5, (0, 0)), (1, 30, 5, (0, 0)), (1, 30, 7, (1, 2)))]
    made = program_of(Recording(["a"], mpi=Run([], windows=uses)))
    assert made.windows == [WindowKind("create", 2, 60, 12, 1, 2)] and made.is_mpi


def test_each_file_is_cached_or_not_and_a_near_thing_is_said_to_be_one():
    far = Prediction("/d/a.dat", 1000, 2.0, 1.9, local_s=0.2)
    near = Prediction("/d/b.dat", 10, 1.0, 0.9, local_s=1.1)
    cache, not_cache = of_files([(far, "cache it; perdure_cache_fetch=open"),
                                 (near, "don't cache it")])
    assert (cache.what, cache.sure, cache.how) == ("cache", HIGH, ["perdure_cache_fetch=open"])
    assert "--cache 'a.dat'" in cache.command
    assert (not_cache.what, not_cache.sure) == ("no cache", MEDIUM)


def test_checkpoint_files_and_growing_output_are_named():
    again = Written("/a/u-#.ckpt", {"/a/u-0.ckpt"}, closed=8, sizes=[800])
    grows = Written("/a/log", {"/a/log"}, grew=3, sizes=[10, 20])
    found = of_written(program(again=[again], growing=[grows]), Advice("pool", "", commit_s=0.1))
    assert [each.what for each in found] == ["checkpoint", "output"]
    assert "8 times, 800 B each" in found[0].text and "perdure_file" in found[1].how[0]


# --- the verb ------------------------------------------------------------------------------------


def advised(perdure, *command, options=()) -> dict:
    ran = perdure("advise", "--json", *options, "--", *command)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def launched(mpi: str, *command) -> list:
    return [os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"], "-n", "2", *command]


def compiled(compiler: str, source: Path, folder: Path, *options: str) -> Path:
    made = folder / source.stem
    subprocess.run([compiler, "-o", made, source, *options], check=True, timeout=60)
    return made


@pytest.fixture
def own_places(tmp_path, monkeypatch):
    """Where the command puts what it needs meanwhile, apart from that of other tests."""
    for name in ("tmp", "pools"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return tmp_path / "pools"


def nothing_is_left(pools: Path) -> bool:
    return not list(pools.iterdir()) and not list((pools.parent / "tmp").iterdir())


def test_a_serial_program_is_looked_at_and_its_scratch_folders_are_gone(perdure, own_places):
    made = advised(perdure, LOOPS, "wave", 700, 150, options=["--pool", own_places])
    assert nothing_is_left(own_places)
    assert made["exit_code"] == 0 and not made["program"]["mpi"]
    main = made["advice"][0]
    assert main["what"] == "pool" and main["mode"] == "copy"
    each = 8 * 700 * 700
    assert 2 * each <= made["program"]["changing_bytes"] < 3.2 * each
    assert main["commit_s"] > 0 and main["interval_s"] > 0 and main["sure"] in ("medium", "low")


@pytest.mark.parametrize("mpi", MPIS)
def test_an_mpi_program_in_c_has_its_windows_counted(perdure, mpi, tmp_path):
    ring = compiled(os.environ[f"PERDURE_TEST_MPICC_{mpi}"], ROOT / "examples/ring.c", tmp_path,
                    "-lm")
    made = advised(perdure, *launched(mpi, ring), options=["--pool", tmp_path])
    [window] = made["program"]["windows"]
    assert (window["kind"], window["bytes"], window["count"]) == ("allocate", 32, 1)
    assert window["fences"] > 100 and made["program"]["mpi"]


@pytest.mark.parametrize("mpi", MPIS[:1])
def test_a_program_in_fortran_that_writes_checkpoints_is_advised_to_commit(perdure, mpi, tmp_path):
    mpifort = Path(os.environ[f"PERDURE_TEST_MPICC_{mpi}"].replace("mpicc", "mpifort"))
    if not mpifort.exists():
        pytest.skip("no Fortran compiler of this MPI")
    rod = compiled(str(mpifort), ROOT / "examples/rod.f90", tmp_path, "-J", str(tmp_path))
    made = advised(perdure, *launched(mpi, rod), options=["--pool", tmp_path])
    assert made["exit_code"] == 0
    again = [each for each in made["program"]["again"] if "u-#" in each["files"]]
    assert again and again[0]["times"] >= 8
    assert "checkpoint" in [each["what"] for each in made["advice"]]


def test_a_program_in_python_is_one(perdure):
    words = [sys.executable, ROOT / "bench/advised_loop.py", 400, 1500]
    made = advised(perdure, *words)
    assert made["program"]["python"] and "perdure.open" in made["advice"][0]["command"]


def test_mode_log_is_advised_for_particles_of_which_few_move(perdure):
    made = advised(perdure, LOOPS, "particles", 400_000, 350)
    main = made["advice"][0]
    assert (main["what"], main["mode"]) == ("pool", "log"), made["program"]["memory"]


@pytest.mark.parametrize("mpi", MPIS[:1])
def test_files_of_mpi_io_are_judged_one_by_one(perdure, mpi, tmp_path):
    program_ = BUILD / f"bench/bench_file_accesses_{mpi}"
    if not program_.exists():
        pytest.skip("not built")
    words = launched(mpi, program_, tmp_path / "a.bin", MIB, "write:sequential:1048576:1",
                     "write:random:8:3000")
    made = advised(perdure, *words, options=["--pool", tmp_path])
    [one] = [each for each in made["advice"] if "cache" in each["what"]]
    assert made["program"]["mpi_files"] == 1 and one["run_time_ratio"] > 0


def test_words_for_people_name_what_why_and_how_sure(perdure):
    ran = perdure("advise", "--interval", "1s", "--", LOOPS, "wave", 500, 300)
    text = ran.out.decode()
    assert ran.code == 0 and "The program" in text and "What to do" in text
    assert "1. Protect the arrays that change" in text and "Make one every 1 s" in text
    assert "sure" in text and "failures every 24 h" in text


def test_the_program_gives_the_exit_code_and_a_failed_one_makes_advice_unsure(perdure):
    ran = perdure("advise", "--json", "--", "sh", "-c", "echo printed; exit 3")
    assert ran.code == 3 and ran.out.startswith(b"{") and ran.err.startswith("printed\n")
    made = json.loads(ran.out)
    assert made["exit_code"] == 3 and made["advice"][0]["sure"] == "low"


@pytest.mark.parametrize("words, code, said", [
    ("advise -- /nonexistent/program", 127, "there is no such program"),
    ("advise --mtbf 0s -- true", 2, "more than nothing"),
    ("advise --mtbf soon -- true", 2, "'soon' is no time"),
    ("advise --pool /nonexistent -- true", 2, "is no directory"),
    ("advise --carried /dev/null -- true", 2, "not a regular file"),
    ("advise", 2, "Usage"),
])  # fmt: skip
def test_mistakes_are_refused_before_the_program_runs(words, code, said):
    ran = in_this_process(*words.split())
    assert ran.code == code and said in ran.err + ran.out.decode()


def test_a_report_of_ipv_record_is_read_and_others_are_refused(perdure, tmp_path):
    report = {"rank": 0, "objects": [{"name": "u", "carried_bytes": 2 * MIB},
                                     {"name": "f", "carried_bytes": 0}]}
    (tmp_path / "r.json").write_text(json.dumps({"reports": [report]}))
    made = advised(perdure, LOOPS, "wave", 300, 300, options=["--carried", tmp_path / "r.json"])
    assert made["advice"][0]["bytes"] == 2 * MIB and made["advice"][0]["names"] == ["u"]
    for wrong in ("[]", "{", '{"reports": [{"objects": [{}]}]}', '{"reports": []}'):
        (tmp_path / "r.json").write_text(wrong)
        ran = in_this_process("advise", "--carried", tmp_path / "r.json", "--", "true")
        assert ran.code == 2 and "r.json" in ran.err, wrong


def test_ctrl_c_ends_the_program_and_leaves_nothing(perdure, own_places):
    running = perdure.start("advise", "--pool", own_places, "--", "sh", "-c",
                            "echo begun; exec sleep 100",
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout.readline() == b"begun\n"
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == 130 and b"Traceback" not in err and b"stopped" in err
    assert nothing_is_left(own_places)
