# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth hostile
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

from conftest import SLOW
from perdure.api.errors import Damaged
from perdure.api.state import stored as array_of_state
from perdure.api.state import tree
from perdure.api.state.stored import KINDS

Point = namedtuple("Point", "x y")


def stored(state):
    encoder = tree.Encoder(tree.by_type(KINDS))
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
    if isinstance(one, random.Random):
        return one.getstate() == other.getstate()
    if isinstance(one, np.random.Generator):
        return same(one.bit_generator, other.bit_generator)
    if isinstance(one, np.random.RandomState):
        return same(one.get_state(legacy=False), other.get_state(legacy=False))
    if isinstance(one, np.random.BitGenerator):
        return same([one.state, one.seed_seq], [other.state, other.seed_seq])
    if isinstance(one, np.random.SeedSequence):
        return same(one.state, other.state)
    if isinstance(one, np.dtype):
        return one == other and one.isalignedstruct == other.isalignedstruct
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


@settings(deadline=None, max_examples=300 if SLOW else 100)
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


BITS = ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")


@pytest.mark.parametrize("name", BITS)
def test_a_generator_of_numpy_goes_on_with_the_same_numbers_and_the_same_children(name):
    bits = getattr(np.random, name)
    for seed in (1, 2**100, [3, 4], np.random.SeedSequence(5, spawn_key=(6,), pool_size=8)):
        made = np.random.Generator(bits(seed))
        made.spawn(2)
        for drawn in (0, 1, 1000):
            made.random(drawn)
            made.integers(9, dtype=np.uint32)  # keeps half of what it has drawn
            state = {"a": made, "bits": made.bit_generator, "b": made}
            found = round_trip(state)
            assert same(found, state) and found["a"] is found["b"]
            assert found["a"].bit_generator is found["bits"]
            other = round_trip(made)
            assert other.random(5).tolist() == found["a"].random(5).tolist()
            assert other.spawn(1)[0].random() == found["a"].spawn(1)[0].random()


def test_generators_of_before_go_on_with_the_same_numbers():
    old = [random.Random(3), np.random.RandomState(3), np.random.RandomState(np.random.PCG64(3))]
    for _ in range(3):
        assert same(round_trip(old), old)
        found = round_trip(old)
        for one, other in zip(old, found):
            draw = "gauss" if isinstance(one, random.Random) else "normal"
            assert [getattr(one, draw)(0, 1) for _ in range(700)] == [
                getattr(other, draw)(0, 1) for _ in range(700)
            ]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_come_back(dtype):
    assert same(round_trip([np.dtype(dtype)]), [np.dtype(dtype)])


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
    b'{"numpy":["|O8","AAAAAAAAAAA="]}', b'{"numpy.dtype":"O"}', b'{"numpy.dtype":"(9999,9999)f8"}',
    b'{"Random":{"tuple":[3,{"tuple":[1,2]},null]}}', b'{"Random":1}', b'{"Generator":1}',
    b'{"Generator":{"Generator":1}}', b'{"RandomState":[1,2,3]}', b'{"BitGenerator":["eval",1,2]}',
    b'{"BitGenerator":["PCG64",{"dict":[[],[]]},null]}',
    b'{"SeedSequence":[1,{"tuple":[]},4000000000,0]}', b'{"SeedSequence":[1,{"tuple":[]},4,-1]}',
    b'{"SeedSequence":["x",{"tuple":[]},4,0]}',
    b'{"SeedSequence":[{"int":"0x1' + b"0" * 100_000 + b'"},{"tuple":[]},4,0]}',
)  # fmt: skip


@pytest.mark.parametrize("text", CRAFTED, ids=lambda text: repr(text[:40]))
def test_a_crafted_text_is_an_error(text):
    with pytest.raises(Damaged, match="the state"):
        read(text, [b"x" * 8])


@pytest.mark.parametrize("name, place", [("MT19937", "pos"), ("Philox", "buffer_pos")])
def test_a_generator_that_would_read_beyond_its_end_is_refused(name, place):
    made = np.random.Generator(getattr(np.random, name)(1))
    text, blocks = stored(made)
    whole = json.loads(text)
    written = json.dumps(whole, separators=(",", ":"))
    at = f'["{place}",'
    assert at in written
    for number in ("-1", "625", "2147483647", "-2147483648", "true", "1.5", "null"):
        begin = written.index(at) + len(at)
        crafted = written[:begin] + number + written[written.index("]", begin) :]
        with pytest.raises(Damaged):
            read(crafted.encode(), blocks)


def fuzzed(read_it, whole, pieces, inputs):
    """How many of `inputs` changed texts are refused; the others are read."""
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns() % 2**32))
    print("seed", seed)
    chance = random.Random(seed)
    refused = 0
    for _ in range(int(os.environ.get("PERDURE_FUZZ_INPUTS", inputs))):
        changed = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(changed))
            changed[place : place + chance.randint(0, 4)] = chance.choice(pieces)
        try:
            json.dumps(str(read_it(bytes(changed))))
        except Damaged:
            refused += 1
    return refused


def test_an_array_with_changed_bytes_is_read_or_refused():
    state = {"a": np.arange(4), "b": bytes(3000), "r": random.Random(1), "n": [1.5, None, {2}],
             "g": np.random.default_rng(2), "m": np.random.RandomState(3)}  # fmt: skip
    packed = array_of_state.pack(state, "state")
    assert same(array_of_state.unpack(np.frombuffer(packed, np.uint8), "x"), state)
    pieces = [b"\0", b"\xff" * 8, b"\1", b"[", b"}", b"9", bytes(8), b"1e9"]
    head = packed[:64]

    def read_it(raw):
        return array_of_state.unpack(np.frombuffer(raw, np.uint8), "the array")

    assert fuzzed(read_it, packed, pieces, "1500") > 0
    assert fuzzed(lambda raw: read_it(raw + packed[64:]), head, pieces, "1500") > 0
    for size in (*range(64), len(packed) - 1, len(packed) - 8):
        with pytest.raises(Damaged, match="the array"):
            read_it(packed[:size])


def test_a_text_with_changed_bytes_is_read_or_refused():
    state = {"a": np.arange(4), "l": [1, 2.5, b"x", {None: (1, {2})}], "o": OrderedDict(x=2**70),
             "s": np.float32(2), "d": deque([1], 3), "g": np.random.default_rng(2),
             "r": np.zeros(2, [("a", "i4"), ("b", "U2")])}  # fmt: skip
    text, blocks = stored(state)
    pieces = [b"9", b"-1", b"[]", b"{}", b'"', b"null", b"0", b"1e999", b"true", b"\xff"]
    assert fuzzed(lambda changed: read(changed, blocks), text, pieces, "5000") > 0
