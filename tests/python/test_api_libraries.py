# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of a pool with JAX and Numba on processors: with this Python, or the one that
PERDURE_JAX_PYTHON names, where it has them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from conftest import BUILD, ROOT

PYTHON = os.environ.get("PERDURE_JAX_PYTHON") or sys.executable
PRELUDE = """
import sys
import numpy as np
import perdure

def refused(kind, call, words):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError("it was not refused")

path = sys.argv[1]
"""


def environment() -> dict[str, str]:
    paths = [str(ROOT / "python"), str(BUILD / "python"), os.environ.get("PYTHONPATH", "")]
    return dict(os.environ, PYTHONPATH=os.pathsep.join(paths), JAX_PLATFORMS="cpu")


def needs(library: str) -> None:
    """Skips where it is missing."""
    probe = [PYTHON, "-c", f"import numpy, {library}"]
    if subprocess.run(probe, env=environment(), capture_output=True, check=False).returncode != 0:
        pytest.skip(f"needs {library}: pip install {library}, or PERDURE_JAX_PYTHON")


def run(library: str, program: str, path: object) -> None:
    """A program with that library, which must end well."""
    needs(library)
    ran = subprocess.run(
        [PYTHON, "-c", PRELUDE + dedent(program), str(path)],
        capture_output=True, text=True, timeout=200, env=environment(), check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_loop_of_jax_that_is_killed_ends_with_the_same_answer(tmp_path):
    needs("jax")
    program = [PYTHON, str(ROOT / "examples/heat_jax.py")]

    def lines(place: str, **more: str) -> list[str]:
        ran = subprocess.run(
            [*program, str(tmp_path / place)], capture_output=True, text=True, timeout=200,
            env=environment() | more, check=False,
        )  # fmt: skip
        assert ran.returncode == (-signal.SIGKILL if more else 0), ran.stderr
        return ran.stdout.splitlines()

    begun, answer = lines("undisturbed")
    assert begun == "begins at step 0" and answer.startswith("u[10] is 0.")
    lines("killed", PERDURE_KILL="rank=0,iteration=300,point=data")
    assert lines("killed") == ["begins at step 299", answer]


def test_what_jax_never_changes_is_no_buffer(tmp_path):
    run(
        "jax",
        """
        import jax.numpy as jnp
        with perdure.open(path) as pool:
            refused(perdure.InvalidArgument,
                    lambda: pool.array("u", 3, "f4", buffer=jnp.zeros(3)), "not writable")
        """,
        tmp_path / "pool",
    )


def test_functions_of_numba_work_in_the_pool(tmp_path):
    run(
        "numba",
        """
        import numba

        @numba.njit
        def advance(now, following):
            for i in range(now.shape[0]):
                following[i] = now[i] * 1.5 + 1

        for start in range(2):
            with perdure.open(path) as pool:
                u = pool.array("u", 1000, mode="twin")
                assert pool.restart() == (3 if start else None)
                expected = np.zeros(1000)
                for step in range(3 * start):
                    expected = expected * 1.5 + 1
                assert (u.consistent == expected).all()
                for step in range(3):
                    advance(u.consistent, u.working)
                    pool.commit()
        """,
        tmp_path / "pool",
    )
