# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of a pool in Python: what numpy sees, what comes back, what outlives the pool."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import perdure
from conftest import BUILD, ROOT, a_few
from perdure.core import load_core

MODES = ("copy", "twin", "log", "flush")
DTYPES = (
    "u1", "i4", "i8", "f4", "f8", "c16", "?", "i1", "u2", ">f8", "f2", "c8", "S5", "U3", "M8[us]",
    [("a", "i4"), ("b", "f8", (2,))],
)  # fmt: skip


def values(shape, dtype, seed: int = 1) -> np.ndarray:
    """An array that differs in every element, of any dtype."""
    made = np.zeros(shape, dtype)
    random = np.random.default_rng(seed)
    raw = made.reshape(-1).view("u1")
    raw[:] = random.integers(0, 2 if made.dtype == bool else 100, raw.size)
    return made


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [7, (5,), (3, 4), (2, 3, 1, 5), (), (0, 4), (100, 100)])
def test_contents_of_every_mode_and_shape_come_back(tmp_path, mode, shape):
    expected = values(shape, "f8")
    for run in range(3):
        with perdure.open(tmp_path / "pool") as pool:
            u = pool.array("u", shape, mode=mode)
            assert pool.restart() == (run or None)
            assert_array_equal(u.consistent, expected if run else np.zeros(shape))
            u.working[...] = expected
            assert pool.commit() == run + 1
            assert_array_equal(u.consistent, expected)
            assert u.shape == u.working.shape == expected.shape and u.mode == mode


@pytest.mark.parametrize("dtype", ["f8", "U3"])
def test_an_array_without_extents_reads_back_as_one(tmp_path, dtype):
    expected = values((), dtype)

    def check(array):
        assert array.shape == array.working.shape == array.consistent.shape == ()
        assert_array_equal(array.consistent, expected)

    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", (), dtype)
        one = pool.array("one", 1)
        pool.restart()
        u.working[...] = expected
        pool.commit()
        assert {each.name: each.shape for each in pool.arrays()} == {"u": (), "one": (1,)}
    assert perdure.read(tmp_path / "pool")["u"].shape == ()
    assert perdure.read(tmp_path / "pool")["one"].shape == (1,)
    with perdure.open(tmp_path / "pool") as pool:  # before the restart only the program can know
        u = pool.array("u", dtype=None if dtype == "f8" else dtype)
        one = pool.array("one")
        pool.restart()
        check(u)
        assert one.shape == (1,)
    with perdure.open(tmp_path / "pool") as pool:
        pool.restart()
        one = pool.array("one")
        u = pool.array("u", dtype=None if dtype == "f8" else dtype)
        check(u)
        assert one.shape == (1,)


def test_an_array_whose_shape_is_said_anew_has_that(tmp_path):
    for shape in ((), (1,), ()):
        with perdure.open(tmp_path / "pool") as pool:
            u = pool.array("u", shape)
            pool.restart()
            u.working[...] = 5
            pool.commit()
            assert u.shape == pool.arrays()[0].shape == shape
        assert perdure.read(tmp_path / "pool")["u"].shape == shape


def test_arrays_without_extents_need_no_room_that_others_lack(tmp_path):
    names = [f"layer{number}.num_batches_tracked" for number in range(400)]
    for run in range(2):
        with perdure.open(tmp_path / "pool") as pool:
            arrays = [pool.array(name, (), "i8") for name in names]
            state = pool.scalars(loss=0.5)
            word = pool.array("word", (), "U3")
            assert pool.restart() == (run or None)
            for number, array in enumerate(arrays):
                assert array.working.shape == () and array.consistent == run * number
                array.working[...] = number
            assert state.loss == 0.5 and word.consistent == ("abc" if run else "")
            word.working[...] = "abc"
            pool.commit()
    read = perdure.read(tmp_path / "pool")
    assert read["loss"] == 0.5 and read["word"].shape == read[names[0]].shape == ()
    assert read[names[-1]].reshape(()) == 399


def test_an_array_without_extents_and_a_scalar_may_have_one_name(tmp_path):
    for run in range(3):
        with perdure.open(tmp_path / "pool") as pool:
            if run == 1:
                u = pool.array("x", ())
            state = pool.scalars(x=0.5)
            if run != 1:
                u = pool.array("x", ())
            pool.restart()
            assert (u.consistent, state.x) == ((3.5, 7.5) if run else (0, 0.5))
            u.working[...], state.x = 3.5, 7.5
            pool.commit()
    assert perdure.read(tmp_path / "pool").scalars["x"] == 7.5


@pytest.mark.parametrize("before", [("x", ()), ("x", (2,), "U3")], ids=str)
def test_another_array_may_have_the_name_of_one_that_was_removed(tmp_path, before):
    with perdure.open(tmp_path / "pool") as pool:
        pool.array(*before)
        pool.restart()
        pool.commit()
    with perdure.open(tmp_path / "pool") as pool:
        old = pool.array(*before)
        pool.restart()
        pool.remove(old)
        pool.commit()
        pool.array("x", (1,), "U5").working[:] = "after"
        pool.commit()
    assert perdure.read(tmp_path / "pool")["x"] == ["after"]


def test_an_array_of_one_element_has_the_pool_note_nothing(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        pool.array("u", 1)
        pool.restart()
        pool.array("v", 1)
        pool.commit()
    inspected = load_core().inspect_pool(str(tmp_path / "pool"))
    assert not inspected.ranks[0].catalogue.scalars


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_contents_of_every_dtype_come_back(tmp_path, dtype):
    expected = values((4, 3), dtype)
    for run in range(2):
        with perdure.open(tmp_path / "pool") as pool:
            u = pool.array("u", (4, 3), dtype, mode="twin")
            pool.restart()
            assert u.dtype == u.working.dtype == u.consistent.dtype == np.dtype(dtype)
            if run:
                assert u.consistent.tobytes() == expected.tobytes()
            u.working[:] = expected
            pool.commit()


def test_nothing_is_copied(tmp_path):
    """What is stored through one numpy array is seen through every other on the same memory."""
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", 1000, mode="twin")
        c = pool.array("c", 1000, mode="copy")
        pool.restart()
        assert c.working is c.working and u.working is u.working
        assert np.shares_memory(c.working, c.consistent)
        assert not np.shares_memory(u.working, u.consistent)
        before = u.working.__array_interface__["data"][0]
        u.working[:] = 3
        pool.commit()
        assert u.consistent.__array_interface__["data"][0] == before  # the copies swapped roles


def test_what_must_not_be_written_is_read_only(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        arrays = [pool.array(mode, 10, mode=mode) for mode in MODES]
        pool.restart()
        for u in arrays:
            with pytest.raises(ValueError, match="read-only"):
                u.consistent[0] = 1
            with pytest.raises(ValueError):
                u.consistent.flags.writeable = True
        twin = arrays[1]
        stale = twin.working
        pool.commit()
        with pytest.raises(ValueError, match="read-only"):
            stale[0] = 1
        twin.working[0] = 1  # the new one


def test_a_commit_in_the_background_guards_what_it_saves(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", 1_000_000, mode="copy")
        t = pool.array("t", 10, mode="twin")
        pool.restart()
        u.working[:] = 1
        t.working[:] = 1
        pool.commit_begin()
        for array in (u, t):
            with pytest.raises(ValueError, match="read-only"):
                array.working[0] = 2
        u.before_write()
        u.working[:] = 2
        with pytest.raises(perdure.WrongState, match="committed where it is"):
            t.before_write()
        with pytest.raises(perdure.WrongState, match="after commit_wait"):
            t.write(0, [2] * 10)
        with pytest.raises(ValueError, match="read-only"):
            t.working[0] = 2  # it is the version that is being made
        assert pool.commit_wait() == 1
        assert set(t.consistent) == {1.0}
        t.write(0, [2] * 10)
        with pytest.raises(perdure.WrongState, match="commit_begin"):
            pool.commit_wait()
        for end in (pool.commit, lambda: pool.restore(4)):  # which wait for it themselves
            pool.commit_begin()
            end()
            u.working[:] = t.working[:] = 4
        pool.commit_begin()  # as the end of the pool does
    with perdure.open(tmp_path / "pool") as pool:
        u, t = pool.array("u", 1_000_000, mode="copy"), pool.array("t", 10, mode="twin")
        assert pool.restart() == 5
        assert set(u.working) == {4.0} and set(t.consistent) == {4.0}


@pytest.mark.parametrize("mode", MODES)
def test_arrays_outlive_the_pool_and_are_in_none(tmp_path, mode):
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", 5000, "i8", mode=mode)
        pool.restart()
        u.working[:] = np.arange(5000)
        pool.commit()
        u.working[:] = np.arange(5000)
        working, part, consistent = u.working, u.working[100:200], u.consistent
    again = perdure.open(tmp_path / "pool")
    fresh = again.array("u", 5000, "i8", mode=mode)
    again.restart()
    part[:] = -1
    assert_array_equal(working[:100], np.arange(100))
    assert set(working[100:200]) == {-1}
    assert consistent[4999] == 4999
    assert_array_equal(fresh.consistent, np.arange(5000))  # nothing of it reached the pool
    again.close()
    for name in ("working", "consistent"):
        with pytest.raises(perdure.WrongState, match="is closed"):
            getattr(u, name)
    del u, working, consistent, fresh, again, pool
    gc.collect()
    assert set(part) == {-1}


def test_memory_is_given_back_when_the_last_array_is_gone(tmp_path):
    def mapped() -> int:
        with open("/proc/self/maps") as maps:
            return sum("rank-" in line for line in maps)

    before = mapped()
    pool = perdure.open(tmp_path / "pool")
    u = pool.array("u", 500_000, mode="twin")
    pool.restart()
    kept = u.working
    assert mapped() > before
    pool.close()
    assert mapped() == before
    assert kept.sum() == 0


def test_a_pool_that_nobody_closed_is_closed_with_a_warning(tmp_path):
    pool = perdure.open(tmp_path / "pool")
    u = pool.array("u", 10, mode="twin")
    pool.restart()
    kept = u.working
    with pytest.warns(ResourceWarning, match="was not closed"):
        del pool
    with pytest.raises(perdure.WrongState):
        _ = u.working
    kept[:] = 1
    perdure.open(tmp_path / "pool").close()


def test_a_buffer_of_the_program_is_used_where_it_is(tmp_path):
    for run in range(2):
        own = np.full((10, 10), 5.0)
        with perdure.open(tmp_path / "pool") as pool:
            u = pool.array("u", (10, 10), mode="copy", buffer=own)
            m = pool.array("m", 10, mode="log", marks=True, buffer=np.zeros(10))
            pool.restart()
            assert np.shares_memory(u.working, own)
            assert own[0, 0] == (7 if run else 5)  # a new pool leaves it as it was
            own[0, 0] = 7
            m.working[3] = 1
            m.mark(3, 1)
            pool.commit()
            assert m.working[3] == 1
        assert own[0, 0] == 7
        own[:] = 0


def test_log_saves_blocks_that_changed(tmp_path):
    for name, options in (("p", {}), ("m", {"marks": True}), ("c", {"compare": True})):
        with perdure.open(tmp_path / name) as pool:
            u = pool.array("u", 1_000_000, mode="log", **options)
            pool.restart()
            for _ in range(3):  # until each copy in the pool has been saved whole
                if name == "m":
                    u.mark(0, 1)
                pool.commit()
            before = pool.status().committed_bytes
            u.working[600_000] = 1
            if name == "m":
                u.mark(600_000, 1)
            pool.commit()
            assert 0 < pool.status().committed_bytes - before < 1_000_000, name
        with perdure.open(tmp_path / name) as pool:
            u = pool.array("u", 1_000_000, mode="log")
            pool.restart()
            assert u.working[600_000] == 1


def test_write_stores_past_the_cache_what_the_commit_then_need_not_flush(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", (4, 1000), mode="twin")
        h = pool.array("h", 8, "f2", mode="twin")
        pool.restart()
        for row in range(4):
            u.write(1000 * row, np.arange(1000) + row)
        h.write(2, [1, 2, 3])
        assert u.working[3, 5] == 8
        pool.commit()
        assert pool.status().committed_bytes < 4 * 8000
        assert_array_equal(h.consistent, [0, 0, 1, 2, 3, 0, 0, 0])
        with pytest.raises(perdure.InvalidArgument, match="reach beyond"):
            u.write(3999, [1.0, 2.0])


@pytest.mark.parametrize(
    "arguments, options, error, words",
    [
        (("u", 3, object), {}, TypeError, "references to Python objects"),
        (("u", 3, [("a", "O")]), {}, TypeError, "references to Python objects"),
        (("u", 3, "S"), {}, TypeError, "has no size"),
        (("u", 3, ("f8", (2,))), {}, TypeError, "has a shape"),
        (("u", 3, "nonsense"), {}, TypeError, "nonsense"),
        (("u", -3), {}, perdure.InvalidArgument, "negative"),
        (("u", 2.5), {}, TypeError, "float"),
        (("u", (1,) * 9), {}, perdure.InvalidArgument, "1 to 8 dimensions"),
        (("u", (1,) * 8, "f2"), {}, perdure.InvalidArgument, "1 to 8 dimensions"),
        (("u", 3), {"mode": "twinn"}, perdure.InvalidArgument, "'twinn'.*copy, twin, log, flush"),
        (("", 3), {}, perdure.InvalidArgument, "name"),
        (("u" * 256, 3), {}, perdure.InvalidArgument, "name"),
        (("u", 3), {"marks": True}, perdure.InvalidArgument, "log mode"),
        (("u", 3), {"mode": "log", "marks": True, "compare": True}, ValueError, "mark"),
        (("u", 3), {"mode": "twin", "buffer": np.zeros(3)}, perdure.InvalidArgument, "no buffer"),
        (("u", 3), {"buffer": np.zeros(6)[::2]}, perdure.InvalidArgument, "contiguous"),
        (("u", (2, 3)), {"buffer": np.zeros((3, 2)).T}, perdure.InvalidArgument, "contiguous"),
        (("u", 3), {"buffer": np.zeros(4)}, perdure.InvalidArgument, r"float64 \(4,\), not"),
        (("u", 3), {"buffer": np.zeros(3, "f4")}, perdure.InvalidArgument, "float32"),
        (("u", 3), {"buffer": [0, 0, 0]}, TypeError, "list"),
    ],
)  # fmt: skip
def test_arguments_that_can_not_be_right_are_refused(tmp_path, arguments, options, error, words):
    with perdure.open(tmp_path / "pool") as pool:
        with pytest.raises(error, match=words):
            pool.array(*arguments, **options)
        pool.array("u", 3)  # and nothing was half made


def test_a_buffer_that_is_read_only_is_refused(tmp_path):
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    refused = pytest.raises(perdure.InvalidArgument, match="not writable")
    with perdure.open(tmp_path / "pool") as pool, refused:
        pool.array("u", 3, buffer=frozen)


@pytest.mark.parametrize(
    "shape, dtype, mode",
    [((4, 3), "f8", "twin"), (12, "f8", "twin"), ((3, 4), "i8", "twin"), ((3, 4), "f8", "copy"),
     ((3, 4), "f2", "twin")],
)  # fmt: skip
def test_another_shape_dtype_or_mode_than_the_pool_holds_is_refused(tmp_path, shape, dtype, mode):
    with perdure.open(tmp_path / "pool") as pool:
        pool.array("u", (3, 4), "f8", mode="twin")
        pool.restart()
        pool.commit()
    refused = pytest.raises(perdure.WrongShape, match=r"float64\[3, 4\] twin")
    with perdure.open(tmp_path / "pool") as pool, refused:
        pool.array("u", shape, dtype, mode=mode)


def test_bytes_of_one_dtype_are_never_taken_for_another(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        pool.array("u", 8, ">u2")
        pool.restart()
        pool.commit()
    with perdure.open(tmp_path / "pool") as pool:
        pool.array("u", 8, "f2")
        with pytest.raises(perdure.WrongShape, match="'u' is dtype >u2 in the pool, not dtype <f2"):
            pool.restart()
    with perdure.open(tmp_path / "pool") as pool:
        pool.restart()
        with pytest.raises(perdure.WrongShape, match=">u2"):
            pool.array("u", 8, "f2")


def test_an_array_that_is_made_later_is_in_the_next_version(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        pool.restart()
        pool.commit()
        late = pool.array("late", 5, mode="twin")
        late.working[:] = 4
        pool.commit()
    with perdure.open(tmp_path / "pool") as pool:
        pool.restart()
        assert set(pool.array("late", 5, mode="twin").consistent) == {4.0}


@pytest.mark.parametrize("dtype", ["f8", "f2"])
def test_a_box_says_where_an_array_lies_in_a_larger_one(tmp_path, dtype):
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", (3, 4), dtype)
        pool.array("s", (), dtype).box((), ())
        u.box((10, 4), (7, 0))
        with pytest.raises(perdure.InvalidArgument, match="beyond"):
            u.box((10, 4), (8, 0))
        with pytest.raises(perdure.InvalidArgument, match="has 2 extents, not 3 and 2"):
            u.box((10, 4, 1), (7, 0))


def test_a_forked_child_is_refused_and_leaves_the_pool_alone(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        u = pool.array("u", 10, mode="twin")
        pool.restart()
        child = os.fork()
        if child == 0:
            try:
                pool.commit()
            except perdure.WrongState:
                os._exit(3)
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        u.working[:] = 1
        assert pool.commit() == 1


SOLVER = """
import os, sys
import numpy as np
import perdure
pool = perdure.open(sys.argv[1])
u = pool.array("u", 20_000, mode=sys.argv[2])
state = pool.scalars(iteration=0, total=0.0)
pool.restart()
print(state.iteration, flush=True)
while state.iteration < 3000:
    u.working[:] = u.consistent * 0.99 + state.iteration
    state.total += u.working[7]
    state.iteration += 1
    pool.commit()
    print("at", state.iteration, flush=True)
print(state.total.hex(), float(u.consistent.sum()).hex())
pool.close()
"""


@pytest.mark.parametrize("mode", a_few(["copy", "twin", "log"], 1))
def test_a_program_that_is_killed_ends_with_the_same_answer(memory_path, mode):
    """SIGKILL at any moment: of the interpreter, between commits or in one."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{BUILD / 'python'}"}

    def start(pool: str) -> subprocess.Popen:
        command = [sys.executable, "-c", SOLVER, str(memory_path / pool), mode]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    undisturbed, _ = start("undisturbed").communicate(timeout=60)
    committed = 0
    for killed_after in (5, 100, 37, 250):
        job = start("killed")
        assert int(job.stdout.readline()) >= committed, "a version was lost"
        for _ in range(killed_after):
            job.stdout.readline()
        job.send_signal(signal.SIGKILL)
        whole = job.communicate()[0].rpartition("\n")[0]  # the last line may have been cut short
        reported = [line for line in whole.splitlines() if line.startswith("at ")]
        assert job.returncode == -signal.SIGKILL, "it had ended before"
        committed = int(reported[-1].split()[1]) if reported else committed + killed_after
    ended, _ = start("killed").communicate(timeout=60)
    assert int(ended.splitlines()[0]) >= committed > 300
    assert ended.splitlines()[-1] == undisturbed.splitlines()[-1]


SIZED = ("copy", "twin", "log")


@pytest.mark.parametrize("dtype", ["f8", "U3", [("a", "i4"), ("b", "f8", (2,))]], ids=str)
@pytest.mark.parametrize("mode", SIZED)
def test_arrays_change_their_size_and_come_back_with_it(tmp_path, mode, dtype):
    few, many = values((5, 3), dtype, 2), values((2000, 3), dtype, 3)
    with perdure.open(tmp_path / "pool", keep=2) as pool:
        u = pool.array("u", (5, 3), dtype, mode)
        with pytest.raises(perdure.WrongState, match="restart"):
            u.resize((6, 3))
        pool.restart()
        u.working[...] = few
        pool.commit()
        before = u.working
        u.resize((2000, 3))
        with pytest.raises(ValueError, match="read-only"):
            before[0] = few[0]
        del before
        assert u.shape == u.working.shape == u.consistent.shape == (2000, 3)
        assert u.consistent[:5].tobytes() == few.tobytes()
        assert not u.consistent[5:].copy().view("u1").any()
        with pytest.raises(perdure.WrongShape, match="2 extents"):
            u.resize(7)
        part = u.working[1:]
        with pytest.raises(perdure.WrongState, match="a slice"):
            u.resize((7, 3))
        del part
        u.working[...] = many
        pool.commit()
    with perdure.open(tmp_path / "pool") as pool:
        plain = dtype == "f8"
        (info,) = pool.arrays()
        assert (info.name, info.mode, info.size_bytes) == ("u", mode, many.nbytes)
        assert not info.open and (not plain or info.shape == (2000, 3))
        with pytest.raises(perdure.NotFound, match="no array 'v'"):
            pool.array("v")
        u = pool.array("u", dtype=None if plain else dtype)
        assert (u.shape, u.dtype, u.mode) == ((2000, 3), np.dtype(dtype), mode)
        pool.restart()
        assert u.consistent.tobytes() == many.tobytes()
        pool.restore(1)
        assert u.shape == (5, 3) and u.consistent.tobytes() == few.tobytes()
        assert [each.shape for each in pool.arrays(2)] == [(2000, 3)]
        with pytest.raises(perdure.NotFound):
            pool.restore(9)
        pool.restore(2)
        assert u.consistent.tobytes() == many.tobytes()
        kept = u.consistent
        pool.remove(u)
        assert kept.tobytes() == many.tobytes() and pool.arrays() == []
        with pytest.raises(perdure.WrongState, match="removed"):
            u.before_write()
        pool.commit()
        assert pool.arrays(3) == []


def test_a_buffer_of_the_program_is_given_anew(tmp_path):
    with perdure.open(tmp_path / "pool", keep=2) as pool:
        u = pool.array("u", 3, buffer=np.ones(3))
        pool.restart()
        pool.commit()
        with pytest.raises(perdure.InvalidArgument, match="buffer of array 'u'"):
            u.resize(5, buffer=np.ones(4))
        longer = np.arange(5000.0)
        u.resize(5000, buffer=longer)
        longer[7] = -1
        pool.commit()
        with pytest.raises(perdure.WrongShape, match="resize it"):
            pool.restore(1)
        assert u.shape == (5000,) and u.working[7] == -1
        u.resize(3)
        pool.restore(1)
        assert_array_equal(u.working, np.ones(3))
        pool.restore(2)
        assert u.working[7] == -1 and u.shape == (5000,)
