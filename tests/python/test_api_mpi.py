# SPDX-License-Identifier: BSD-3-Clause
"""Pools of communicators of mpi4py, under each MPI; and the examples, killed and started again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, ROOT
from mpi4py_tests import Mpi, mpis_of, surroundings
from preloading import flavour

PLACE = BUILD / "mpi4py"
PATHS = f"{ROOT / 'python'}:{BUILD / 'python'}"
PRELUDE = """
import os, sys
from mpi4py import MPI
import numpy as np
import perdure
world = MPI.COMM_WORLD
path = sys.argv[1]
def refused(error, words, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except error as refusal:
        assert words in str(refusal), refusal
        return
    raise AssertionError(f"{error.__name__} was not raised")
"""


@pytest.fixture(params=MPIS)
def mpi(request) -> Mpi:
    if not (PLACE / "wheel").is_dir():
        pytest.skip("mpi4py was not fetched: tools/mpi4py_tests.py fetches it")
    (found,) = [mpi for mpi in mpis_of(BUILD) if mpi.name == request.param]
    return found


def start(mpi: Mpi, words: list, ranks: int = 2, **more: str) -> subprocess.CompletedProcess:
    """A job of mpi4py."""
    around = surroundings(mpi, PLACE, PLACE / "wheel")
    around["PYTHONPATH"] = f"{PLACE / 'wheel'}:{PATHS}"
    del around["MPI4PY_RC_THREAD_LEVEL"]  # as mpi4py has it by itself: MPI_THREAD_MULTIPLE
    command = [mpi.mpiexec, "-n", ranks, "env", *(f"{k}={v}" for k, v in more.items()),
               sys.executable, "-W", "always", *words]  # fmt: skip
    return subprocess.run(
        [str(word) for word in command], env=around, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip


def run(mpi: Mpi, folder: Path, program: str, ranks: int = 2, **more: str) -> str:
    """What a program prints that ends well on all ranks."""
    script = folder / "program.py"
    script.write_text(PRELUDE + program)
    done = start(mpi, ["-m", "mpi4py", script, folder / "pool"], ranks, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_rank_has_its_part_of_one_version(mpi, memory_path):
    program = """
comm = world.Dup()
with perdure.open(path, comm) as pool:
    comm.Free()  # the pool has its own
    u = pool.array("u", (world.rank + 1, 3), mode="twin")
    state = pool.scalars(iteration=0, rank=world.rank)
    restored = pool.restart()
    assert restored == (state.iteration or None), restored
    assert state.rank == world.rank
    assert (u.consistent == state.iteration * (world.rank + 1)).all()
    for _ in range(3):
        u.working[:] = u.consistent + world.rank + 1
        state.iteration += 1
        assert pool.commit() == state.iteration
    assert pool.due() and pool.status().commits == 3
    kept = u.working
    print(restored)
kept[:] = 1
"""
    assert "".join(run(mpi, memory_path, program).split()) == 2 * "None"
    assert "".join(run(mpi, memory_path, program).split()) == 2 * "3"


def test_an_array_that_cannot_be_opened_is_an_error_of_its_rank_alone(mpi, memory_path):
    run(mpi, memory_path, """
with perdure.open(path, world) as pool:
    pool.array("u", 4)
    pool.restart()
    pool.commit()
with perdure.open(path, world) as pool:
    if world.rank == 1:  # alone: arrays are each rank's own
        refused(perdure.WrongShape, "", pool.array, "u", 5)
    refused(perdure.NotFound, "", pool.restore, 7)
    pool.array("u", 4)
    assert pool.restart() == 1
""")  # fmt: skip


def test_calls_that_do_not_match_raise_on_all_ranks(mpi, memory_path):
    run(mpi, memory_path, """
with perdure.open(path, world) as pool:
    u = pool.array("u", 4)
    pool.restart()
    call = (pool.commit, pool.restart)[world.rank]
    refused(perdure.InvalidArgument, "rank 1 is in perdure_restart", call)
    assert pool.commit() == 1
""")  # fmt: skip


def test_ranks_have_arrays_of_their_own_and_show_says_which(mpi, memory_path, perdure):
    program = """
with perdure.open(path, world) as pool:
    x = pool.array("x", 10 + world.rank, mode="twin")
    y = pool.array("y", 3)
    z = pool.array("z", 5) if world.rank == 0 else None
    print(pool.restart())
    for each in (x, y, z):
        assert each is None or (each.consistent == pool.status().version).all()
    for each in (x, y, z):
        if each is not None:
            each.working[:] = pool.status().version + 1
    pool.commit()
"""
    run(mpi, memory_path, program)
    assert "".join(run(mpi, memory_path, program).split()) == 2 * "1"
    text = perdure("pool", "show", memory_path / "pool").out.decode()
    held = {tuple(line.split()[:3]): line.split()[-2:] for line in text.splitlines()
            if "float64" in line}
    assert held == {("x", "float64[10]", "twin"): ["rank", "0"],
                    ("x", "float64[11]", "twin"): ["rank", "1"],
                    ("y", "float64[3]", "copy"): ["all", "ranks"],
                    ("z", "float64[5]", "copy"): ["rank", "0"]}, text


def test_another_number_of_ranks_is_refused(mpi, memory_path):
    run(mpi, memory_path, "perdure.open(path, world).close()")
    run(mpi, memory_path, """
refused(perdure.WrongRanks, "2", perdure.open, path, world)
refused(perdure.WrongRanks, "2", perdure.open, path)
""", ranks=1)  # fmt: skip


def test_a_rank_may_have_a_pool_of_its_own_beside_the_job_s(mpi, memory_path):
    run(mpi, memory_path, """
alone = perdure.open(f"{path}-{world.rank}")
with perdure.open(path, world) as pool, alone:
    a, b = alone.array("a", 1000, mode="log"), pool.array("b", 1000, mode="log")
    alone.restart(), pool.restart()
    for value in (1, 2):
        a.working[:] = value
        b.working[5] = value
        alone.commit(), pool.commit()
    assert alone.status().version == pool.status().version == 2
""")  # fmt: skip


def test_what_is_no_communicator_is_refused(mpi, memory_path):
    run(mpi, memory_path, """
for wrong in (3, "world", MPI.INFO_NULL, world.Get_group()):
    refused(TypeError, "not a communicator of mpi4py", perdure.open, path, wrong)
refused(perdure.InvalidArgument, "null", perdure.open, path, MPI.COMM_NULL)
between = MPI.COMM_SELF.Create_intercomm(0, world, 1 - world.rank)
refused(perdure.InvalidArgument, "intercommunicator", perdure.open, path, between)
between.Free()
MPI.Finalize()
refused(perdure.WrongState, "finalized", perdure.open, path, world)
""")  # fmt: skip


def test_a_pool_that_is_left_open_ends_no_job(mpi, memory_path):
    program = """
pool = perdure.open(path, world)
u = pool.array("u", 100, mode="twin")
state = pool.scalars(iteration=0)
print(pool.restart())
state.iteration += 1
u.working[:] = 5
pool.commit()
if world.rank == 0:
    del pool  # at another moment than on the other rank
    state.iteration += 1
    u.working[:] = 6
"""
    assert "".join(run(mpi, memory_path, program).split()) == 2 * "None"
    assert "".join(run(mpi, memory_path, program).split()) == 2 * "1"


@pytest.mark.parametrize("begun", [False, True])
def test_an_exception_on_one_rank_ends_the_job_in_or_after_a_commit(mpi, memory_path, begun):
    script = memory_path / "program.py"
    script.write_text(PRELUDE + f"""
with perdure.open(path, world) as pool:
    pool.array("u", 10)
    pool.restart()
    if {begun}:
        pool.commit_begin()
    if world.rank == 1:
        raise ValueError("of one rank")
    world.recv(source=1)
""")  # fmt: skip
    done = start(mpi, ["-m", "mpi4py", script, memory_path / "pool"])
    assert done.returncode != 0 and "ValueError: of one rank" in done.stderr


def test_the_library_of_another_mpi_is_refused_with_what_to_do(mpi, memory_path):
    others = [name for name in MPIS if name != mpi.name]
    if not others:
        pytest.skip("there is one MPI only")
    script = memory_path / "program.py"
    script.write_text(PRELUDE + f"""
refused(perdure.Unsupported, "libperdure_mpi_{others[0]}.so does not serve", perdure.open, path,
        world)
""")  # fmt: skip
    words = ["-m", "mpi4py", script, memory_path / "pool"]
    done = start(mpi, words, LD_PRELOAD=str(flavour(others[0])))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("stands aside") == 1
    assert not (memory_path / "pool").exists()


def test_a_preloaded_library_is_the_one_that_serves(mpi, memory_path):
    program = """
from perdure import windows
with perdure.open(path, world) as pool:
    pool.restart()
    pool.commit()
info = MPI.Info.Create({"perdure_name": "w", "perdure_pool": path + "-w"})
win = MPI.Win.Allocate(800, 8, info, world)
beside = windows.pool(win)
u = beside.array("u", 4, mode="twin")
state = beside.scalars(iteration=7)
refused(perdure.WrongState, "persistent windows", beside.close)
win.Fence()
state.iteration = 8
u.working[:] = 3
assert windows.commit(win) == 1
assert (u.consistent == 3).all()
del beside, u, state
win.Free()
again = MPI.Win.Allocate(800, 8, info, world)
assert windows.restart(again) == 1
assert windows.pool(again).scalars(iteration=0).iteration == 8
again.Free()
"""
    preload = BUILD / "src/capi/libperdure_preload.so"
    # With MPI_THREAD_MULTIPLE Open MPI 4.1 makes no windows.
    run(mpi, memory_path, program, LD_PRELOAD=str(preload), MPI4PY_RC_THREAD_LEVEL="serialized")


def test_a_missing_library_is_named(mpi, memory_path):
    """libperdure alone, as where it was built without MPI."""
    alone = memory_path / "lib"
    alone.mkdir()
    shutil.copy(BUILD / "src/capi/libperdure.so", alone / "libperdure.so.0.1")
    run(
        mpi,
        memory_path,
        f"""
refused(perdure.Unsupported, "there is no {alone}/libperdure_mpi_{mpi.name}.so", perdure.open, path,
        world)
perdure.open(path).close()
""",
        ranks=1,
        LD_LIBRARY_PATH=f"{alone}:{surroundings(mpi, PLACE, PLACE)['LD_LIBRARY_PATH']}",
    )


def example(mpi: Mpi | None, name: str, pool: Path, kill: str = "") -> tuple[int, list[str]]:
    """The exit code of an example, and its lines."""
    more = {"PERDURE_KILL": kill} if kill else {}
    words = [ROOT / "examples" / name, pool]
    if mpi is not None:
        done = start(mpi, ["-m", "mpi4py", *words], **more)
    else:
        done = subprocess.run(
            [sys.executable, *map(str, words)], capture_output=True, text=True, timeout=60,
            check=False, env={**os.environ, **more, "PYTHONPATH": PATHS},
        )  # fmt: skip
    return done.returncode, [line for line in done.stdout.splitlines() if "is" in line
                             or "begins" in line]  # fmt: skip


@pytest.mark.parametrize("point", ["data", "state"])
def test_jacobi_is_killed_and_ends_with_the_same_answer(mpi, memory_path, point):
    code, (began, answer) = example(mpi, "jacobi.py", memory_path / "undisturbed")
    assert (code, began) == (0, "begins at sweep 0")
    kill = f"rank=1,iteration=200,point={point}"
    code, lines = example(mpi, "jacobi.py", memory_path / "killed", kill)
    assert code != 0 and answer not in lines
    code, (began, again) = example(mpi, "jacobi.py", memory_path / "killed")
    assert (code, again) == (0, answer)
    assert began in ("begins at sweep 199", "begins at sweep 200")


@pytest.mark.parametrize(
    "name, begins, kill_at",
    [("heat.py", "begins at step", 300), ("kmeans.py", "begins at round", 9)],
)
def test_a_serial_example_is_killed_and_ends_with_the_same_answer(
    memory_path, name, begins, kill_at
):
    code, (began, answer) = example(None, name, memory_path / "undisturbed")
    assert (code, began) == (0, f"{begins} 0")
    kill = f"rank=0,iteration={kill_at},point=slot"
    assert example(None, name, memory_path / "killed", kill) == (-9, [f"{begins} 0"])
    code, lines = example(None, name, memory_path / "killed")
    assert (code, lines) == (0, [f"{begins} {kill_at - 1}", answer])


def test_perdure_run_kills_a_python_program_and_starts_it_again(perdure, memory_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", PATHS)
    heat = [sys.executable, ROOT / "examples/heat.py"]
    undisturbed = perdure.run([], [*heat, memory_path / "undisturbed"])
    killed = perdure.run(["--kill-at", "200", "--restarts", "1"], [*heat, memory_path / "killed"])
    assert (undisturbed.code, killed.code) == (0, 0), killed.err
    assert killed.out.splitlines()[-2:] == [b"begins at step 199", undisturbed.out.splitlines()[1]]


def test_the_program_of_the_page_is_the_example():
    code = (ROOT / "docs/python.md").read_text().split("```python\n")[1].split("```")[0]
    example = (ROOT / "examples/heat.py").read_text().split('"""')[2]

    def bare(text: str) -> list[str]:
        lines = [line.split("  #")[0].rstrip() for line in text.splitlines()]
        return [line for line in lines if line]

    assert bare(code) == bare(example)


def test_heat_has_the_same_answer_in_c_and_in_python(memory_path):
    program = BUILD / "tests/docs/readme_c"
    if not program.exists():
        pytest.skip("the program of README.md was not built")
    in_c = subprocess.run(
        [program, memory_path / "c"], capture_output=True, text=True, timeout=60, check=True
    )
    assert example(None, "heat.py", memory_path / "python")[1] == in_c.stdout.splitlines()
