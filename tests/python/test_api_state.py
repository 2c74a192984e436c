# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth hostile
"""Pool.state(): what a dict held at a commit is in it again after a restart, a kill or a restore;
else it is refused by its place, and bytes that were not written by Perdure are an error."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict, defaultdict, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perdure
from conftest import BUILD, ROOT, SLOW
from perdure.api.state.refill import Refill
from perdure.api.state.stored import pack, unpack
from test_state import same, states

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{BUILD / 'python'}"}


def kept(path, state):
    """What a later program finds."""
    with perdure.open(path) as pool:
        pool.state(state)
        pool.restart()
        pool.commit()
    return found(path)


def found(path, initial=None):
    with perdure.open(path) as pool:
        state = pool.state({} if initial is None else initial)
        pool.restart()
        return state


def are_shared_alike(one, other):
    """Whether the same places have the same object in both."""
    pairs = {}

    def walk(one, other):
        if isinstance(one, (list, dict, deque)):
            if (id(one) in pairs) or (id(other) in pairs.values()):
                return pairs.get(id(one)) == id(other)
            pairs[id(one)] = id(other)
        if isinstance(one, dict):
            one, other = list(one.values()), list(other.values())
        return not isinstance(one, (list, tuple, deque)) or all(map(walk, one, other))

    return walk(one, other)


@settings(deadline=None, max_examples=40)
@given(value=states)
def test_every_state_is_found_again_equal_by_type_and_value(value):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        assert same(kept(f"{folder}/pool", {"value": value}), {"value": value})


@settings(deadline=None, max_examples=400 if SLOW else 100)
@given(states, states, st.data())
def test_old_objects_take_any_new_contents(old, new, data):
    parts = data.draw(st.lists(st.sampled_from([old, new, [old], {"a": old}, (old, [1])])))
    wanted = {"new": new, "again": new, "more": [new, [old], {"x": old}]}
    text = pack(wanted, "state")

    def read():
        return unpack(np.frombuffer(text, np.uint8), "the state")

    target = {"new": old, "again": old, "more": parts, "gone": new}
    assert Refill().value(target, read()) is target
    assert same(target, read())
    assert are_shared_alike(target, read())


def test_a_state_grows_and_shrinks_with_its_versions(memory_path):
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns() % 2**32))
    print("seed", seed)
    chance = random.Random(seed)
    noted = {}
    path = memory_path / "pool"
    for _ in range(4):
        with perdure.open(path, keep=5) as pool:
            state = pool.state({"step": 0})
            version = pool.restart()
            if version:
                assert same(state, noted[version])
            for _ in range(8):
                state["step"] += 1
                state["history"] = [chance.random() for _ in range(chance.choice((0, 9, 5000)))]
                state["raw"] = chance.randbytes(chance.choice((0, 100, 100_000)))
                if chance.random() < 0.5:
                    made = pool.commit()
                else:
                    pool.commit_begin()
                    state["step"] += 1
                    made = pool.commit_wait()
                    state["step"] -= 1
                noted[made] = {**state, "history": list(state["history"])}
                if chance.random() < 0.3:
                    back = chance.choice(pool.versions()).version
                    pool.restore(back)
                    assert same(state, noted[back]), (made, back)


def test_a_restart_fills_the_objects_that_the_program_holds(tmp_path):
    def program():
        numpy_rng, python_rng = np.random.default_rng(1), random.Random(2)
        losses, weights, inner = [], np.zeros(3), {"best": 9.0}
        with perdure.open(tmp_path / "pool") as pool:
            state = pool.state({"step": 0, "rngs": (numpy_rng, python_rng), "losses": losses,
                                "weights": weights, "inner": inner})  # fmt: skip
            pool.restart()
            assert state["losses"] is losses and state["rngs"][0] is numpy_rng
            assert state["weights"] is weights and state["inner"] is inner
            for _ in range(3):
                state["step"] += 1
                losses.append(numpy_rng.random() + python_rng.random())
                weights += losses[-1]
                inner["best"] = min(inner["best"], losses[-1])
                pool.commit()
        return state

    program()
    ended = program()
    numpy_rng, python_rng = np.random.default_rng(1), random.Random(2)
    straight = [numpy_rng.random() + python_rng.random() for _ in range(6)]
    assert ended["losses"] == straight and ended["step"] == 6
    assert ended["inner"]["best"] == min(straight)
    assert ended["weights"].tolist() == [sum(straight)] * 3


def test_what_was_one_object_is_one_and_what_was_two_is_two(tmp_path):
    a, b = [1], [2]
    with perdure.open(tmp_path / "pool") as pool:
        pool.state({"x": a, "y": a, "z": b, "t": (a, b)})
        pool.restart()
        pool.commit()
    one = [0]
    state = found(tmp_path / "pool", {"x": one, "y": [7], "z": one, "t": (one, one), "w": 1})
    assert same(state, {"x": a, "y": a, "z": b, "t": (a, b)})
    assert state["x"] is state["y"] is state["t"][0] is one
    assert state["z"] is state["t"][1] is not one
    base = np.zeros(4)
    kept(tmp_path / "views", {"all": np.arange(4.0), "half": np.full(2, 7.0)})
    with perdure.open(tmp_path / "views") as pool:
        pool.state({"all": base, "half": base[:2]})
        pool.restart()
        assert base.tolist() == [0, 1, 2, 3]


def test_what_cannot_be_kept_is_refused_by_its_place_and_the_version_before_stays(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        for wrong, error, words in (
            ({"f": [0, print]}, TypeError, r"state\['f'\]\[1\] is "),
            ([1], TypeError, "is list, not a dict"),
            ({"a": {1, 2}, "b": object()}, TypeError, r"state\['b'\] is object"),
        ):
            with pytest.raises(error, match=words):
                pool.state(wrong)
        state = pool.state({"step": 1})
        other = pool.state({"step": 2}, "other")
        for values, name in (({}, "state"), (other, "third")):
            with pytest.raises(perdure.InvalidArgument, match="already"):
                pool.state(values, name)
        pool.restart()
        pool.commit()
        state["step"], other["step"] = 3, lambda: 4
        for call in (pool.commit, pool.commit_begin):
            with pytest.raises(TypeError, match=r"other\['step'\] is function"):
                call()
        state["self"] = other["step"] = state
        with pytest.raises(TypeError, match="contains itself"):
            pool.commit()
        assert pool.versions()[0].version == 1
        pool.restore(1)
        assert state == {"step": 1} and other == {"step": 2}
        state["step"] = 5
        assert pool.commit() == 2
    assert found(tmp_path / "pool") == {"step": 5}


def test_a_state_that_stayed_as_it_was_writes_nothing(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        state = pool.state({"step": 0, "big": np.zeros(100_000), "rng": np.random.default_rng(1)})
        pool.restart()
        for _ in range(2):  # each copy gets all of it once
            state["step"] += 1
            pool.commit()
        before = pool.status().committed_bytes
        assert before >= 1_600_000
        for _ in range(5):
            pool.commit()
        assert pool.status().committed_bytes == before
        state["step"] += 1
        pool.commit()
        assert before < pool.status().committed_bytes <= before + 2 * 64 * 1024


def test_types_of_the_dict_itself_count(tmp_path):
    ordered, default = OrderedDict(b=1, a=2), defaultdict(list, x=[1])
    ordered.extra = 3
    with perdure.open(tmp_path / "pool") as pool:
        pool.state(ordered, "ordered")
        pool.state(default, "default")
        pool.restart()
        pool.commit()
    with perdure.open(tmp_path / "pool") as pool:
        found = pool.state(OrderedDict(), "ordered"), pool.state(defaultdict(list), "default")
        pool.restart()
        assert same(found, (ordered, default))
    with perdure.open(tmp_path / "pool") as pool:
        pool.state({}, "ordered")
        with pytest.raises(perdure.WrongShape, match="is OrderedDict in the pool, not dict"):
            pool.restart()
    with perdure.open(tmp_path / "pool") as pool:
        pool.restart()
        assert same(pool.state(OrderedDict(), "ordered"), ordered)  # after the restart at once
        assert pool.state({"new": 1}, "new") == {"new": 1}
        assert pool.arrays() == []


CRAFTED = {
    "no state": b"x" * 64,
    "too many blocks": struct.pack("<8sQQ", b"PRDSTAT1", 0, 2**61),
    "a text of 2^63 bytes": struct.pack("<8sQQ", b"PRDSTAT1", 2**63, 0),
    "a block of 2^64 - 1 bytes": struct.pack("<8sQQQ", b"PRDSTAT1", 0, 1, 2**64 - 1),
    "another text": struct.pack("<8sQQ", b"PRDSTAT1", 8, 0) + b'{"eval":',
    "a nest": struct.pack("<8sQQ", b"PRDSTAT1", 80_000, 0) + b'{"list":' * 10_000,
    "more than is there": struct.pack("<8sQQ", b"PRDSTAT1", 2, 0) + b"{}" + bytes(14),
}


@pytest.mark.parametrize("what", CRAFTED)
def test_crafted_bytes_are_an_error_and_leave_the_dict_as_it_is(tmp_path, what):
    raw = CRAFTED[what]
    with perdure.open(tmp_path / "pool") as pool:
        array = pool.array("perdure.state.state", len(raw), np.uint8, "log", marks=True)
        pool.restart()
        array.working[:] = np.frombuffer(raw, np.uint8)
        array.mark(0, len(raw))
        pool.commit()
    state = {"a": [1]}
    with perdure.open(tmp_path / "pool") as pool:
        pool.state(state)
        with pytest.raises(perdure.Damaged, match="state 'state'"):
            pool.restart()
    assert state == {"a": [1]}


LOOP = """
import random, sys, numpy as np, perdure
with perdure.open(sys.argv[1]) as pool:
    run = pool.state({"step": 0, "walk": [], "rng": np.random.default_rng(1),
                      "py": random.Random(2), "best": None, "seen": set()})
    pool.restart()
    while run["step"] < 400:
        run["step"] += 1
        run["walk"].append(run["rng"].normal() + run["py"].random())
        run["best"] = max(run["walk"])
        run["seen"].add(int(run["rng"].integers(50)))
        if len(run["walk"]) > 60:
            del run["walk"][:50]
        pool.commit()
        print(run["step"], flush=True)
    print(repr((run["walk"], run["best"], sorted(run["seen"]), run["rng"].random())))
"""


def test_a_loop_that_is_killed_at_random_steps_ends_with_the_same_bits(memory_path):
    def start(name):
        command = [sys.executable, "-c", LOOP, str(memory_path / name)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)

    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns() % 2**32))
    print("seed", seed)
    chance = random.Random(seed)
    straight = start("straight").communicate(timeout=100)[0].splitlines()[-1]
    for _ in range(4 if SLOW else 2):
        job = start("killed")
        for _ in range(chance.randint(1, 80)):
            job.stdout.readline()
        time.sleep(chance.random() / 1000)
        job.send_signal(signal.SIGKILL)
        job.communicate()
    assert start("killed").communicate(timeout=100)[0].splitlines()[-1] == straight


def test_json_of_a_state_needs_no_python_of_ours(tmp_path):
    kept(tmp_path / "pool", {"step": 3, "note": "é"})
    with perdure.open(tmp_path / "pool") as pool:
        array = pool.array("perdure.state.state", mode="log", marks=True)
        pool.restart()
        raw = array.working.tobytes()
        magic, size, blocks = struct.unpack_from("<8sQQ", raw)
        assert (magic, blocks) == (b"PRDSTAT1", 0)
        assert json.loads(raw[24 : 24 + size]) == {"dict": [[["step", 3], ["note", "é"]], []]}
