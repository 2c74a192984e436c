# SPDX-License-Identifier: BSD-3-Clause
"""States as text and blocks, without torch: what comes back equals what went in, by type and value;
all else is refused by its place; a text that was damaged or crafted is an error, and runs nothing.
"""

from __future__ import annotations

import enum
import json
import math
import os
import random
import time
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.api.errors import Damaged
from perdure.state import arrays, tree

KINDS = (*tree.KINDS, *arrays.KINDS)
Point = namedtuple("Point", "x y")


def stored(state):
    encoder = tree.Encoder(KINDS)
    return tree.dumps(encoder.value(state, "state")), encoder.blocks


def read(text, blocks=()):
    def block(number):
        contents = blocks[number]
        return np.frombuffer(contents, np.uint8) if isinstance(contents, bytes) else contents

    return tree.Decoder(KINDS, block).state(text, "the state")


def round_trip(state):
    return read(*stored(state))


def same(one, other) -> bool:
    """Whether `one`, which came back, is as `other`; NaN is as NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return (
            same(list(one.items()), list(other.items()))
            and same(getattr(one, "__dict__", None), getattr(other, "__dict__", None))
            and getattr(one, "default_factory", None) is getattr(other, "default_factory", None)
        )  # fmt: skip
    if isinstance(one, (list, tuple, deque)):
        rooms = getattr(one, "maxlen", None), getattr(other, "maxlen", None)
        return rooms[0] == rooms[1] and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        found, given = one.flags, other.flags
        return (
            one.dtype == other.dtype and one.shape == other.shape
            and one.dtype.isalignedstruct == other.dtype.isalignedstruct
            and found.c_contiguous == (given.c_contiguous or not given.f_contiguous)
            and repr(one.tolist()) == repr(other.tolist())
        )  # fmt: skip
    if isinstance(one, np.generic):
        return one.dtype == other.dtype and repr(one.item()) == repr(other.item())
    if isinstance(one, (float, complex)):
        return repr(one) == repr(other)
    return one == other


keys = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.binary(),
    st.complex_numbers(allow_nan=False), st.text(st.characters(codec=None)),
    st.integers(2**62, 2**66), st.integers(-(2**70), -(2**60)),
)  # fmt: skip
plain = keys | st.floats() | st.complex_numbers()
hashable = st.recursive(keys, lambda of: st.tuples(of, of) | st.frozensets(of, max_size=3))
states = st.recursive(
    plain,
    lambda of: st.one_of(
        st.lists(of), st.tuples(of), st.dictionaries(hashable, of, max_size=5),
        st.sets(hashable, max_size=4), st.builds(deque, st.lists(of), st.none() | st.just(9)),
        st.dictionaries(hashable, of, max_size=3).map(OrderedDict),
        st.dictionaries(hashable, of, max_size=3).map(lambda d: defaultdict(list, d)),
        st.dictionaries(hashable, st.integers(), max_size=3).map(Counter),
    ),
    max_leaves=30,
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(states)
def test_every_state_comes_back_equal_by_type_and_value(state):
    assert same(round_trip(state), state)


def test_numbers_keep_their_last_bit_and_texts_their_halves():
    for value in (10**5000, -(2**63), 2**63, math.nan, -math.nan, math.inf, -0.0, 5e-324,
                  complex(-0.0, math.nan), "\ud800", "\0", b"x" * 5000, b""):  # fmt: skip
        assert same(round_trip([value])[0], value), value
    assert [type(key) for key in round_trip({1: 2, 0.5: 1, None: 0, (True,): 3})] == [
        int, float, type(None), tuple]  # fmt: skip


DTYPES = (
    "?", "i1", ">i2", "u8", "f2", ">f4", "g", "c8", "G", "S5", "U3", ">U3", "V7", "M8[ns]",
    "m8[25s]", "M8", "S0", "V0", [("a", "i1"), ("b", ">f8", (2, 3))],
    [("a", [("b", "U2"), ("c", "M8[D]")])],
    np.dtype([("a", "i1"), ("b", "f8")], align=True),
    {"names": ["b", "a"], "formats": ["f4", "f4"], "offsets": [8, 2], "itemsize": 16},
    {"names": ["a"], "formats": ["i4"], "titles": ["of a"]}, [],
)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_arrays_of_every_dtype_and_order_come_back(dtype):
    chance = np.random.default_rng(7)
    for shape in ((), (3,), (2, 3), (0, 2), (2, 1, 2, 3)):
        c = np.zeros(shape, dtype)
        if c.size and c.dtype.itemsize:
            raw = c.reshape(-1).view("u1")
            raw[:] = chance.integers(0, 2 if c.dtype == bool else 100, raw.size)
        for array in (c, np.asfortranarray(c), c.T, c[..., ::-1] if c.ndim else c):
            assert same(round_trip({"a": array})["a"], array), array.flags
        for scalar in c.reshape(-1)[:2]:
            if scalar.dtype.itemsize:
                assert same(round_trip([scalar])[0], scalar)


def test_scalars_of_numpy_keep_their_types():
    values = (np.float64(1), np.bool_(True), np.longdouble(1) / 3, np.str_(""), np.bytes_(b"a"),
              np.datetime64("NaT"), np.timedelta64(3, "h"), np.void(b"ab"))  # fmt: skip
    for value in values:
        found = round_trip((value,))[0]
        assert type(found) is type(value) and same(found, value), value


def test_an_object_that_is_there_twice_is_one_object_again():
    shared, array = [1], np.ones(3)
    state = {"a": shared, "b": [shared, array], "c": OrderedDict(x=shared), "d": array, "e": [1]}
    found = round_trip(state)
    assert found["a"] is found["b"][0] is found["c"]["x"] and found["d"] is found["b"][1]
    assert found["e"] is not found["a"] and found["e"] == found["a"]


def test_attributes_of_a_mapping_come_back():
    state = OrderedDict(w=1)
    state._metadata = OrderedDict({"": {"version": 1}})
    found = round_trip({"model": state})["model"]
    assert same(found._metadata, state._metadata) and same(found, state)


class Own(dict):
    pass


@pytest.mark.parametrize("value, words", [
    (object(), "is object"), (enum.IntEnum("Colour", "RED").RED, "keep int"), (Own(), "keep dict"),
    (Point(1, 2), "keep tuple"), (np.ma.array([1]), "keep numpy.array"), (range(3), "is range"),
    (np.array([None]), "dtype object"), (np.array([(None,)], [("a", "O")]), "dtype"),
    (len, "is builtin"), (np.array([1], np.dtype("i4", metadata={"a": 1})), "dtype"),
    (np.str_("a\0"), "ends with NUL"),
    (defaultdict(lambda: 1), "a defaultdict of"), (bytearray(b"a"), "is bytearray"),
    (int, "is type"),
])  # fmt: skip
def test_what_would_come_back_as_something_else_is_refused_by_its_place(value, words):
    with pytest.raises(TypeError, match=r"state\['m'\]\[1\]") as raised:
        stored({"m": [0, value]})
    assert words in str(raised.value), raised.value


def test_what_has_no_end_is_refused_and_depth_has_a_limit():
    loop = [1]
    loop.append({"again": loop})
    with pytest.raises(TypeError, match=r"state\[1\]\['again'\] contains itself"):
        stored(loop)
    deep = ()
    for _ in range(tree.DEPTH_MAX - 1):
        deep = (deep,)
    assert same(round_trip(deep), deep)
    with pytest.raises(TypeError, match="nested deeper than"):
        stored((deep,))


CRAFTED = (
    b"", b"[", b"{}", b"[]", b'{"a":1,"b":2}', b'{"eval":"1"}', b"NaN", b"-Infinity", b"\xff",
    b'{"list":' * 100_000, b"[" * 100_000, b'{"same":0}', b'{"same":-1}', b'{"list":[{"same":0}]}',
    b'{"dict":[[[{"list":[]},1]],[]]}', b'{"dict":[[[1]],[]]}', b'{"dict":[[],[["a",1]]]}',
    b'{"OrderedDict":[[],[[1,2]]]}', b'{"int":"1' + b"0" * 100 + b'z"}', b'{"int":3}',
    b'{"float":"00"}', b'{"bytes":"%"}', b'{"bytes":7}', b'{"bytes":-1}', b'{"bytes":true}',
    b'{"deque":[-1,[]]}', b'{"defaultdict":["eval",[]]}', b'{"defaultdict":["__import__",[]]}',
    b'{"set":[{"list":[]}]}', b'{"ndarray":["|O8",[1],"C",0]}', b'{"ndarray":["<f8",[2],"C",0]}',
    b'{"ndarray":["<f8",[4611686018427387904],"C",0]}', b'{"ndarray":["<f8",[-1],"C",0]}',
    b'{"ndarray":["<f8",[1],"K",0]}', b'{"ndarray":["<f8,O",[1],"C",0]}',
    b'{"ndarray":[{"names":["a"],"formats":["O"],"offsets":[0],"titles":[null],"itemsize":8,'
    b'"aligned":false},[1],"C",0]}',
    b'{"ndarray":[{"names":["a"],"formats":["<f8"],"offsets":[4],"titles":[null],"itemsize":8,'
    b'"aligned":false},[1],"C",0]}',
    b'{"ndarray":[' + b'{"shape":[1],"of":' * 50 + b'"<f8"' + b"}" * 50 + b',[1],"C",0]}',
    b'{"numpy":["|V9000000000","AA=="]}', b'{"numpy":["<f8","AA=="]}',
    b'{"numpy":["|O8","AAAAAAAAAAA="]}',
)  # fmt: skip


@pytest.mark.parametrize("text", CRAFTED, ids=lambda text: repr(text[:40]))
def test_a_crafted_text_is_an_error(text):
    with pytest.raises(Damaged, match="the state"):
        read(text, [b"x" * 8])


def test_a_text_with_changed_bytes_is_read_or_refused():
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns() % 2**32))
    print("seed", seed)
    chance = random.Random(seed)
    state = {"a": np.arange(4), "l": [1, 2.5, b"x", {None: (1, {2})}], "o": OrderedDict(x=2**70),
             "s": np.float32(2), "d": deque([1], 3),
             "r": np.zeros(2, [("a", "i4"), ("b", "U2")])}  # fmt: skip
    text, blocks = stored(state)
    refused = 0
    for _ in range(int(os.environ.get("PERDURE_FUZZ_INPUTS", "5000"))):
        changed = bytearray(text)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(changed))
            pieces = [b"9", b"-1", b"[]", b"{}", b'"', b"null", b"0", b"1e999", b"true", b"\xff"]
            changed[place : place + chance.randint(0, 4)] = chance.choice(pieces)
        try:
            json.dumps(str(read(bytes(changed), blocks)))
        except Damaged:
            refused += 1
    assert refused > 0
