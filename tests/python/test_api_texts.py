# SPDX-License-Identifier: BSD-3-Clause
"""Arguments that C would cut or can't take: a sentence that names them, and nothing is made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import perdure
from conftest import BUILD, ROOT


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "", "x" * 256])
def test_a_name_that_would_be_cut_or_is_no_utf_8_makes_nothing(tmp_path, name):
    with perdure.open(tmp_path / "pool") as pool:
        with pytest.raises(perdure.InvalidArgument, match="name"):
            pool.array(name, 3)
        with pytest.raises(perdure.InvalidArgument, match="name"):
            pool.scalars(**{name: 1})
        pool.array("a", 3)
        pool.scalars(b=1)
        with pytest.raises(TypeError, match="bytes, not str"):
            pool.array(b"a", 3)


@pytest.mark.parametrize("option", ["job", "emulate", "levels"])
def test_an_option_that_would_be_cut_is_refused(tmp_path, option):
    for wrong in ("a\0b", "\ud800"):
        with pytest.raises(perdure.InvalidArgument, match=option):
            perdure.open(tmp_path / "pool", **{option: wrong})
    assert not (tmp_path / "pool").exists()


@pytest.mark.parametrize("shape", [(2**62,), (2**40, 2**40), (2**64,), 2**63, (0, 2**64)])
def test_a_shape_beyond_all_sizes_is_a_sentence(tmp_path, shape):
    with perdure.open(tmp_path / "pool") as pool:
        with pytest.raises(perdure.InvalidArgument, match="array 'u' .* larger than"):
            pool.array("u", shape)
        u = pool.array("u", 4, mode="log", marks=True)
        t = pool.array("t", 4, mode="twin")
        pool.restart()
        for call in (lambda: u.mark(2**63, 1), lambda: u.mark(-1, 1), lambda: t.write(2**64, [1]),
                     lambda: u.mark(0, 2**64)):  # fmt: skip
            with pytest.raises(perdure.InvalidArgument, match="reach beyond the 4"):
                call()
        with pytest.raises(perdure.InvalidArgument, match="2.48"):
            u.box(2**64, 0)


def test_a_path_may_be_bytes_and_what_can_not_be_a_path_is_named(tmp_path):
    with perdure.open(os.fsencode(tmp_path / "pool")) as pool:
        assert pool.path == str(tmp_path / "pool")
    for wrong in ("a\0b", b"a\0b", b"\xff", "\ud800"):
        with pytest.raises(perdure.InvalidArgument, match="path"):
            perdure.open(wrong)
    with pytest.raises(TypeError, match="int"):
        perdure.open(3)


def test_truth_values_of_numpy_stay_truth_values(tmp_path):
    with perdure.open(tmp_path / "pool") as pool:
        state = pool.scalars(done=np.bool_(False), count=np.int32(3), rate=np.float32(0.5))
        pool.restart()
        state.done = np.bool_(True)
        pool.commit()
        assert state.done is True and state.count == 3 and state.rate == 0.5
    with perdure.open(tmp_path / "pool") as pool:
        state = pool.scalars(done=False, count=0, rate=0.0)
        pool.restart()
        assert (state.done, state.count, state.rate) == (True, 3, 0.5)
        assert type(state.done) is bool


@pytest.mark.parametrize("value", [np.arange(3), np.ones(1), np.array(2), np.array("x")])
def test_an_array_given_as_a_scalar_is_named(tmp_path, value):
    with perdure.open(tmp_path / "pool") as pool:
        with pytest.raises(TypeError, match=r"scalar 'a' is an ndarray of shape \(.*Pool.array"):
            pool.scalars(a=value)
        state = pool.scalars(a=1, b=1.0, c=True, d="", e=b"")
        for name in "abcde":
            with pytest.raises(TypeError, match=f"scalar '{name}' is an ndarray"):
                setattr(state, name, value)
        with pytest.raises(perdure.InvalidArgument, match="half a character"):
            state.d = "\ud800"


@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)", "raise SystemExit"])
@pytest.mark.parametrize("within", ["pool = open()", "with open() as pool:"])
def test_a_forked_child_ends_without_a_word(tmp_path, leave, within):
    """And a program that closes its pool by ending says that once, and no more."""
    indent = "    " if within.startswith("with") else ""
    script = f"""
import os, sys, warnings
import perdure
def open():
    return perdure.open(sys.argv[1])
{within}
{indent}u = pool.array("u", 8, mode="twin")
{indent}pool.restart()
{indent}pool.commit()
{indent}if os.fork() == 0:
{indent}    {leave}
{indent}print("child ended with", os.wait()[1])
{indent}pool.commit()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "pool")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{BUILD / 'python'}"},
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "child ended with 0\n"), done
    assert done.stderr == "", done.stderr
    with perdure.open(Path(tmp_path) / "pool", any_job=True) as pool:
        pool.array("u", 8, mode="twin")
        assert pool.restart() == 2
