# SPDX-License-Identifier: BSD-3-Clause
"""`perdure pool show` and `dump` know the types of arrays, scalars and states, from every language,
and say both readings where no type is known; types that nobody wrote are as if there were none."""

from __future__ import annotations

import ctypes
import json
import struct
from datetime import datetime, timezone

import numpy as np
import pytest

import perdure as api
from conftest import BUILD
from perdure.api.state.stored import unpack

IN_THIS_PROCESS = True
BITS = int(np.float64(0.6).view("i8"))
LIBRARY = BUILD / "src/capi/libperdure.so"


def c_pool(path, bind):
    """A pool of C's calls; `bind(library, pool, check)` ties its scalars."""
    library = ctypes.CDLL(str(LIBRARY))
    library.perdure_last_error.restype = ctypes.c_char_p
    pool = ctypes.c_void_p()

    def check(code):
        assert code == 0, library.perdure_last_error()

    check(library.perdure_open(str(path).encode(), None, ctypes.byref(pool)))
    try:
        kept = bind(library, pool, check)
        check(library.perdure_restart(pool, None))
        check(library.perdure_commit(pool, None))
        del kept
    finally:
        check(library.perdure_close(pool))


def shown(perdure, path):
    return perdure("pool", "show", path).out.decode()


def scalars_of(perdure, path):
    ran = perdure("pool", "show", path, "--json")
    (rank,) = json.loads(ran.out)["rank_files"]
    return {each["name"]: each for each in rank["scalars"]}


DTYPES = {"c": "complex64", "h": "f2", "u": "u2", "b": "?", "d": "M8[ns]",
          "rec": [("a", "i4"), ("b", "f8", (2,))]}  # fmt: skip


def test_dtypes_scalars_and_states_of_python_are_shown_and_dumped(perdure, tmp_path):
    path = tmp_path / "pool"
    began = datetime(2026, 1, 2, tzinfo=timezone.utc)
    with api.open(path) as pool:
        arrays = {name: pool.array(name, (2, 3), dtype) for name, dtype in DTYPES.items()}
        zero = pool.array("zero", (), "f8")
        pool.scalars(t=0.6, n=-42, done=True, motto="a\x1b[31m", began=began, raw=b"\1")
        pool.state({"step": 3, "l": [1, float("nan"), 1j], "rng": np.random.default_rng(1),
                    "a": np.arange(3), "s": {1}, "big": 2**70, "at": (None, b"x")})  # fmt: skip
        pool.restart()
        for name, array in arrays.items():
            array.working.view("u1")[:] = len(name)
        zero.working[...] = 2.5
        pool.commit()
        wanted = {name: array.working.copy() for name, array in arrays.items()}
        wanted["zero"] = zero.working.copy()
    text = shown(perdure, path)
    for words in ("float64[] copy", "complex64[2, 3] copy", "float16[2, 3]",
                  "uint16[2, 3]", "bool[2, 3]",
                  "datetime64[ns][2, 3]", "('b', '<f8', (2,))][2, 3]", "float scalar, 0.6",
                  "int scalar, -42", "bool scalar, True", "str scalar, a\\x1b[31m",
                  "datetime scalar, 2026-01-02", "bytes scalar, b'\\x01'",
                  "state, log"):  # fmt: skip
        assert words in text, words
    for name, array in wanted.items():
        assert perdure("pool", "dump", path, name, "-o", tmp_path / "out.npy").code == 0
        found = np.load(tmp_path / "out.npy")
        assert found.dtype == array.dtype and found.tobytes() == array.tobytes(), name
        assert found.shape == array.shape
    for name, words in (("t", "0.6"), ("n", "-42"), ("motto", "a\\x1b[31m"),
                        ("began", "2026-01-02"), ("done", "True"),
                        ("raw", "b'\\x01'")):  # fmt: skip
        assert words in perdure("pool", "dump", path, name).out.decode(), name
    perdure("pool", "dump", path, "t", "-o", tmp_path / "t.npy")
    assert np.load(tmp_path / "t.npy")[()] == 0.6
    assert perdure("pool", "dump", path, "motto", "-o", "-").out == b"a\x1b[31m"
    state = json.loads(perdure("pool", "dump", path, "state", "-o", "-").out)
    assert state["step"] == 3 and state["l"] == [1, "nan", "1j"] and state["a"] == [0, 1, 2]
    assert state["s"] == [1] and state["big"] == 2**70 and state["at"] == [None, "78"]
    values = scalars_of(perdure, path)
    assert (values["t"]["type"], values["t"]["value"]) == ("float", 0.6)
    assert values["began"]["value"] == began.isoformat()


def test_types_that_c_told_are_shown_and_others_in_both_readings(perdure, tmp_path):
    values = {
        "t": (5, ctypes.c_double(0.6), "float64 scalar, 0.6"),
        "n": (2, ctypes.c_int(-42), "int32 scalar, -42"),
        "big": (8, ctypes.c_uint64(2**64 - 1), f"uint64 scalar, {2**64 - 1}"),
        "r": (4, ctypes.c_float(0.1), "float32 scalar, 0.1"),
        "z": (6, (ctypes.c_double * 2)(1, -2), "complex128 scalar, (1-2j)"),
        "on": (9, ctypes.c_bool(True), "bool scalar, True"),
        "motto": (10, ctypes.create_string_buffer(b"so long", 20), "text scalar, so long"),
        "halves": (10, ctypes.create_string_buffer(b"so\0long", 9), "halves\tscalar\t9 B"),
        "latin": (10, ctypes.create_string_buffer(b"\xe9t\xe9", 9), "latin\tscalar\t9 B"),
        "three": (3, (ctypes.c_int64 * 3)(1, 2, 3), "int64 scalar, [1, 2, 3]"),
        "old": (0, ctypes.c_double(0.6), f"{BITS} as an integer, 0.6 as a float"),
        "old4": (0, ctypes.c_int(7), "7 as an integer"),
        "s": (0, (ctypes.c_char * 11)(), "scalar"),
    }

    def bind(library, pool, check):
        for name, (kind, value, _) in values.items():
            place, size = ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))
            if kind or name == "s":
                check(library.perdure_scalar_typed(pool, name.encode(), kind, place, size))
            else:
                check(library.perdure_scalar(pool, name.encode(), place, size))

    c_pool(tmp_path / "pool", bind)
    text = shown(perdure, tmp_path / "pool")
    for name, (_, _, words) in values.items():
        assert words in text, name
    found = scalars_of(perdure, tmp_path / "pool")
    assert found["old"]["type"] is None and "value" not in found["old"]
    for name, stored in {"halves": b"so\0long\0\0", "latin": b"\xe9t\xe9".ljust(9, b"\0")}.items():
        assert found[name]["type"] is None and bytes.fromhex(found[name]["bytes"]) == stored
        assert perdure("pool", "dump", tmp_path / "pool", name, "-o", "-").out == stored
    assert found["z"]["value"] == "(1-2j)" and found["three"]["value"] == [1, 2, 3]
    assert "so long" in perdure("pool", "dump", tmp_path / "pool", "motto").out.decode()


class Options(ctypes.Structure):
    """perdure_array_options."""

    _fields_ = (("flags", ctypes.c_uint), ("buffer", ctypes.c_void_p), ("ranks", ctypes.c_int),
                ("device", ctypes.c_void_p))  # fmt: skip


def test_small_and_complex_numbers_of_c_are_shown_and_dumped(perdure, tmp_path):
    kept = {
        "tiny": (11, "|i1", "int8[3] copy"),
        "short": (12, "<i2", "int16[3] copy"),
        "ushort": (13, "<u2", "uint16[3] copy"),
        "uint": (7, "<u4", "uint32[3] copy"),
        "ulong": (8, "<u8", "uint64[3] copy"),
        "mask": (9, "|b1", "bool[3] copy"),
        "wave": (14, "<c8", "complex64[3] copy"),
    }
    values = {name: np.array([1, 0, 1], dtype) for name, (_, dtype, _) in kept.items()}
    scalars = {
        "s8": (11, ctypes.c_int8(-8), "int8 scalar, -8"),
        "s16": (12, ctypes.c_int16(-1600), "int16 scalar, -1600"),
        "u16": (13, ctypes.c_uint16(65535), "uint16 scalar, 65535"),
        "z": (14, (ctypes.c_float * 2)(1, -2), "complex64 scalar, (1-2j)"),
    }

    def bind(library, pool, check):
        extent, array = ctypes.c_uint64(3), ctypes.c_void_p()
        for name, (kind, _, _) in kept.items():
            options = Options(0, values[name].ctypes.data, 0, None)
            check(library.perdure_array_open(pool, name.encode(), kind, 1, ctypes.byref(extent), 1,
                                             ctypes.byref(options), ctypes.byref(array)))
        for name, (kind, value, _) in scalars.items():
            place, size = ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))
            check(library.perdure_scalar_typed(pool, name.encode(), kind, place, size))

    c_pool(tmp_path / "pool", bind)
    text = shown(perdure, tmp_path / "pool")
    for words in [row[-1] for row in (*kept.values(), *scalars.values())]:
        assert words in text, words
    for name in kept:
        out = tmp_path / f"{name}.npy"
        assert perdure("pool", "dump", tmp_path / "pool", name, "-o", out).code == 0
        found = np.load(out)
        assert found.dtype == values[name].dtype and np.array_equal(found, values[name])
    with api.open(tmp_path / "pool", any_job=True) as pool:  # as Python has them
        arrays = {name: pool.array(name) for name in kept}
        pool.restart()
        assert all(arrays[name].dtype == values[name].dtype for name in kept)


def test_a_number_is_not_restored_as_one_of_another_type(tmp_path):
    value = ctypes.c_double(0.6)
    size = ctypes.c_size_t(8)

    def bind(library, pool, check):
        check(library.perdure_scalar_typed(pool, b"t", 5, ctypes.byref(value), size))

    c_pool(tmp_path / "pool", bind)
    other = ctypes.c_int64(9)

    def bind_other(library, pool, check):
        place = ctypes.byref(other)
        assert library.perdure_scalar_typed(pool, b"t", 3, place, size) == -9
        assert b"'t' is float64 in the pool, not int64" in library.perdure_last_error()
        for kind in (-1, 15, 2**31 - 1):
            assert library.perdure_scalar_typed(pool, b"x", kind, place, size) == -1
        assert library.perdure_scalar_typed(pool, b"x", 6, place, size) == -1
        assert b"8 bytes, and complex128 has 16" in library.perdure_last_error()
        check(library.perdure_scalar(pool, b"t", place, size))  # says nothing of a type

    c_pool(tmp_path / "pool", bind_other)
    assert other.value == BITS


def test_a_pool_of_python_is_one_of_c_with_its_types(perdure, tmp_path):
    path = tmp_path / "pool"
    with api.open(path, job="x") as pool:
        pool.scalars(t=0.5)
        pool.restart()
        pool.commit()
    with api.open(path, job="x") as pool, pytest.raises(api.WrongShape, match="is float"):
        pool.scalars(t=1)
        pool.restart()


CRAFTED = (
    {"u": "dtype O"}, {"u": "dtype [('a', 'O')]"}, {"u": "dtype f8"}, {"u": "dtype " + "[" * 4000},
    {"u": "dtype [1]"}, {"u": "dtype __import__('os')"}, {"u": 5}, {"t": "eval"}, {"t": "datetime"},
    {"t": "str"}, {"t": "dtype f8"}, [1], "text",
)  # fmt: skip


@pytest.mark.parametrize("kinds", CRAFTED, ids=lambda kinds: str(kinds)[:30])
def test_types_that_nobody_wrote_are_as_if_there_were_none(perdure, tmp_path, kinds):
    path = tmp_path / "pool"
    number = ctypes.c_double(0.6)
    text = ctypes.create_string_buffer(json.dumps(kinds).encode(), 8192)

    def bind(library, pool, check):
        check(library.perdure_scalar(pool, b"t", ctypes.byref(number), ctypes.c_size_t(8)))
        check(library.perdure_scalar(pool, b"perdure.python", text, ctypes.c_size_t(8192)))
        shape, array = (ctypes.c_uint64 * 2)(2, 3), ctypes.c_void_p()
        check(library.perdure_array_open(pool, b"u", 1, 2, shape, 1, None, ctypes.byref(array)))

    c_pool(path, bind)
    for command in (("show",), ("show", "--json"), ("dump", "u"), ("dump", "t")):
        ran = perdure("pool", command[0], path, *command[1:])
        assert ran.code == 0, ran.err
    assert "byte[2, 3] copy" in shown(perdure, path)


def test_a_text_of_cpp_is_dumped_as_text_and_read_as_bytes(perdure, tmp_path):
    path = tmp_path / "pool"
    for stored, words in ((b"so long", '"so long"'), (b"\xff\0b", '"ff0062"')):
        head = struct.pack("<8sQQQ", b"PRDSTAT1", 11, 1, len(stored))
        raw = head + b'{"bytes":0}' + bytes(5) + stored.ljust(8, b"\0")
        assert unpack(np.frombuffer(raw, "u1"), "the state") == stored
        with api.open(path, discard=True) as pool:
            array = pool.array("perdure.state.motto", len(raw), "u1", "log", marks=True)
            pool.restart()
            array.working[:] = np.frombuffer(raw, "u1")
            array.mark(0, len(raw))
            pool.commit()
        assert words in perdure("pool", "dump", path, "motto").out.decode()
        with api.open(path) as pool:
            pool.state({}, "motto")
            with pytest.raises(api.WrongShape, match="is bytes in the pool, not dict"):
                pool.restart()


def test_a_state_that_was_crafted_is_an_error_of_dump(perdure, tmp_path):
    path = tmp_path / "pool"
    for raw in (b"x" * 40, b"PRDSTAT1" + (3).to_bytes(8, "little") + bytes(8) + b"{]}" + bytes(5)):
        with api.open(path, discard=True) as pool:
            array = pool.array("perdure.state.s", len(raw), "u1")
            pool.restart()
            array.working[:] = np.frombuffer(raw, "u1")
            pool.commit()
        ran = perdure("pool", "dump", path, "s")
        assert ran.code == 1 and "state 's' of rank 0" in ran.err, ran.err


def test_arrays_that_nobody_opens_are_named_with_their_room_until_they_are_dropped(
    perdure, tmp_path
):
    path = tmp_path / "pool"

    def run(*names, drop=()):
        with api.open(path, job="x") as pool:
            for name in names:
                pool.array(name, 5000)
            pool.restart()
            for name in drop:
                pool.remove(pool.array(name))
            pool.commit()

    def opened():
        (rank,) = json.loads(perdure("pool", "show", path, "--json").out)["rank_files"]
        return {each["name"]: each["opened"] for each in rank["arrays"]}, rank["arrays"]

    run("u", "old", "older")
    assert "carried on" not in shown(perdure, path)
    assert opened()[0] == {"u": True, "old": True, "older": True}
    for _ in range(2):
        run("u")
        text = shown(perdure, path)
        assert "2 arrays are carried on although the job did not open them: old, older" in text
        assert "pool.remove(pool.array(name))" in text
        known, arrays = opened()
        assert known == {"u": True, "old": False, "older": False}
        assert all(80_000 <= each["room_bytes"] <= 200_000 for each in arrays)
    run("u", drop=["old"])
    assert "1 array is carried on although the job did not open them: older, with" in shown(
        perdure, path
    )
    run("u", "older")
    assert "carried on" not in shown(perdure, path)
    assert opened()[0] == {"u": True, "older": True}
    names = {each["name"] for each in scalars_of(perdure, path).values()}
    assert not any(name.startswith("perdure.unopened") for name in names)


def test_names_without_room_in_the_note_of_unopened_arrays_are_left_out(perdure, tmp_path):
    path = tmp_path / "pool"
    with api.open(path, job="x") as pool:
        for number in range(300):
            pool.array(f"{number:03}".ljust(100, "u"), 8)
        pool.restart()
        pool.commit()
    with api.open(path, job="x") as pool:
        pool.array("u", 8)
        pool.restart()
        pool.commit()
    (rank,) = json.loads(perdure("pool", "show", path, "--json").out)["rank_files"]
    left = [each for each in rank["arrays"] if not each["opened"]]
    assert 30 < len(left) < 40 and len(rank["arrays"]) == 301
