# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth
"""perdure.read() and `perdure pool export`: what they give is what was committed, whole."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from datetime import datetime, timezone

import numpy as np
import pytest

import perdure
from conftest import BUILD, MPIS, ROOT, Perdure, in_this_process
from perdure.core import load_core

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}:{BUILD / 'python'}"}
RECORD = np.dtype([("place", "f8"), ("age", "i4")])
MOMENT = datetime(2026, 11, 28, 12, 0, tzinfo=timezone.utc)
KINDS = {
    "u": ("f8", (3, 4)), "half": ("f2", (5,)), "when": ("M8[s]", (2,)), "words": ("U4", (3,)),
    "flags": ("?", (7,)), "none": ("f8", (0, 3)), "one": ("f2", ()), "wave": ("c8", (2,)),
}  # fmt: skip


def fill(shape, dtype, seed=1):
    values = np.arange(1, 1 + int(np.prod(shape))) * seed
    return values.astype(dtype).reshape(shape)


@pytest.fixture
def pool(tmp_path, monkeypatch):
    """A pool with two versions, in the working directory."""
    monkeypatch.chdir(tmp_path)
    with perdure.open("pool", keep=3) as made:
        arrays = {name: made.array(name, shape, dtype) for name, (dtype, shape) in KINDS.items()}
        records = made.array("records", 2, RECORD)
        twin = made.array("twin", 6, "i8", mode="twin")
        made.array("flushed", 3, mode="flush")
        state = made.scalars(iteration=0, t=0.5, name="heat", ok=True, raw=b"a\0", began=MOMENT)
        made.restart()
        for seed in (1, 2):
            for name, (dtype, shape) in KINDS.items():
                arrays[name].working[...] = fill(shape, dtype, seed)
            records.working["place"], records.working["age"] = seed, 7
            twin.working[:] = seed
            state.iteration = seed
            made.commit()
    return tmp_path / "pool"


def expect(read, seed: int) -> None:
    for name, (dtype, shape) in KINDS.items():
        assert read[name].dtype == np.dtype(dtype) and read[name].shape == shape, name
        assert np.array_equal(read[name], fill(shape, dtype, seed)), name
        assert not read[name].flags.writeable
    assert read["records"].dtype == RECORD and read["records"]["place"][1] == seed
    assert list(read["twin"]) == [seed] * 6
    assert (read["iteration"], read["t"], read["name"], read["ok"]) == (seed, 0.5, "heat", True)
    assert (read["raw"], read["began"]) == (b"a\0", MOMENT)


def test_arrays_and_scalars_come_back_as_the_program_had_them(pool):
    newest = perdure.read(pool)
    assert (newest.version, newest.ranks, newest.left_out) == (2, 1, [])
    expect(newest, 2)
    expect(perdure.read("pool", 1), 1)
    assert set(newest) == {*KINDS, "records", "twin", "flushed", "iteration", "t", "name", "ok",
                           "raw", "began"}  # fmt: skip
    assert list(perdure.read(pool, names=["u"]).arrays) == ["u"]


def test_maps_show_the_file_itself_and_are_refused_while_a_job_uses_it(pool):
    maps = perdure.read(pool, mmap=True)
    expect(maps, 2)
    assert isinstance(maps["u"], np.memmap)
    with perdure.open("pool", job="test_read", any_job=True) as job:
        job.restart()
        with pytest.raises(perdure.Busy, match="is in use"):
            perdure.read(pool, mmap=True)
        read = perdure.read(pool)  # copies are given meanwhile
        assert read.left_out == ["flushed"]
        with pytest.raises(KeyError, match="a job uses the pool"):
            read["flushed"]


def test_what_is_not_there_is_said(pool):
    with pytest.raises(perdure.NotFound, match="no version 9; it holds 2, 1"):
        perdure.read(pool, 9)
    with pytest.raises(perdure.NotFound, match="has no array 'v'; it has u"):
        perdure.read(pool, names=["v"])
    with pytest.raises(perdure.NotFound, match="holds no pool"):
        perdure.read(pool.parent)
    with pytest.raises(KeyError, match="there are u"):
        perdure.read(pool)["v"]


def test_what_was_drained_is_read_when_the_pool_is_gone(tmp_path):
    (tmp_path / "level").mkdir(mode=0o700)
    levels = {"every": 1, "drain": str(tmp_path / "level"), "drain_keep": 2}
    with perdure.open(tmp_path / "pool", levels=levels) as made:
        u = made.array("u", (2, 3), "f2")
        state = made.state({"step": 0, "seen": []})
        made.restart()
        for step in (1, 2):
            u.working[:], state["step"] = step, step
            state["seen"].append(step)
            made.commit()
            made.levels_wait()
    shutil.rmtree(tmp_path / "pool")
    place = tmp_path / "level" / "pool"
    for read, step in ((perdure.read(place), 2), (perdure.read(place, 1, mmap=True), 1)):
        assert read["u"].dtype == np.float16 and read["u"].tolist() == [[step] * 3] * 2
        assert not read["u"].flags.writeable and not isinstance(read["u"], np.memmap)
        (found,) = read.states.values()
        assert found == {"step": step, "seen": list(range(1, step + 1))}
    with pytest.raises(perdure.NotFound, match="no version 9; it holds 2, 1"):
        perdure.read(place, 9)
    with pytest.raises(perdure.NotFound, match="has no array 'v'; it has u"):
        perdure.read(place, names=["v"])
    with pytest.raises(perdure.NotFound, match="holds no pool"):
        perdure.read(place.parent)
    (node,) = place.rglob("version-2*/node-00000")
    node.chmod(0o600)
    node.write_bytes(node.read_bytes()[:-5000] + bytes(5000))
    assert perdure.read(place).version == 1
    with pytest.raises(perdure.NotFound, match="no version 2; it holds 1"):
        perdure.read(place, 2)


def test_damage_is_an_error_and_never_an_array(pool):
    place = perdure.read(pool, mmap=True)["half"]
    with open(place.filename, "r+b") as file:
        file.seek(place.offset + 3)
        file.write(b"\xff")
    with pytest.raises(perdure.Damaged, match="half"):
        perdure.read(pool)
    assert perdure.read(pool, names=["u"])["u"][0, 0] == 2


def test_a_pool_that_this_process_has_open_is_named_at_once(pool):
    with perdure.open("pool", any_job=True):
        began = time.monotonic()
        with pytest.raises(perdure.Busy, match="open in this process already"):
            perdure.open("pool", any_job=True)
        assert time.monotonic() - began < 9  # it did not wait for itself


def test_what_is_read_beside_a_job_that_commits_all_the_time_is_of_one_version(memory_path):
    """Twin arrays have no checksums: only the slots say that a copy was stored over."""
    stop, torn, read = threading.Event(), [], []
    program = (
        "import sys, perdure\n"
        "with perdure.open(sys.argv[1], keep=int(sys.argv[2])) as pool:\n"
        "    a = pool.array('a', 200_000, 'i8', mode='twin')\n"
        "    b = pool.array('b', 200_000, 'i8', mode='copy')\n"
        "    s = pool.scalars(iteration=0)\n"
        "    pool.restart()\n"
        "    print('ready', flush=True)\n"
        "    while sys.stdin.readable() and s.iteration < 400:\n"
        "        s.iteration += 1\n"
        "        a.working[:] = s.iteration; b.working[:] = s.iteration\n"
        "        pool.commit()\n"
    )
    for keep in (1, 3):
        place = memory_path / f"pool{keep}"
        job = subprocess.Popen([sys.executable, "-c", program, place, str(keep)], env=ENVIRONMENT,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
        assert job.stdout.readline() == b"ready\n"
        while job.poll() is None:
            try:
                seen = perdure.read(place)
            except perdure.Busy:
                continue
            if seen.version == 0:
                continue
            values = {seen["iteration"], *np.unique(seen["a"]), *np.unique(seen["b"])}
            read.append(seen.version)
            torn += [(seen.version, values)] if len(values) != 1 else []
        assert job.wait() == 0
        assert perdure.read(place)["iteration"] == 400
    stop.set()
    print(f"{len(read)} reads of {len(set(read))} versions")
    assert torn == [] and len(read) > 0


def test_export_needs_no_more_than_a_name(pool):
    command = Perdure(pool.parent)
    ran = command("pool", "export", "pool", "--to", "o.npz", "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["version"] == 2 and document["left_out"] == []
    assert {"name": "u", "dtype": "<f8", "shape": [3, 4]} in document["arrays"]
    made = np.load("o.npz")
    for name, (dtype, shape) in KINDS.items():
        assert made[name].dtype == np.dtype(dtype)
        assert np.array_equal(made[name], fill(shape, dtype, 2)), name
    assert made["records"].dtype == RECORD
    assert (made["iteration"], made["t"], made["name"]) == (2, 0.5, "heat")
    assert bytes(made["raw"]) == b"a\0"
    assert command("pool", "export", "pool", "--to", "o.npz", "--version", 1).code == 0
    assert np.load("o.npz")["u"][0, 0] == 1
    assert sorted(os.listdir()) == ["o.npz", "pool"]


def test_export_says_what_is_wrong_and_leaves_what_there_was(pool):
    command = Perdure(pool.parent)
    (pool.parent / "o.npz").write_text("mine")
    for words, code, sentence in (
        (("pool", "--to", "o.txt"), 2, ".npz, .h5"),
        (("nowhere", "--to", "o.npz"), 2, "holds no pool"),
        (("pool", "--to", "o.npz", "--version", 9), 2, "no version 9"),
        (("pool", "--to", "no/o.npz"), 2, "no folder"),
    ):
        ran = command("pool", "export", *words)
        assert ran.code == code and sentence in ran.err, ran.err
    assert (pool.parent / "o.npz").read_text() == "mine"
    assert sorted(os.listdir()) == ["o.npz", "pool"]


@pytest.mark.parametrize("kind", ["h5", "zarr"])
def test_export_to_other_formats_has_the_same(pool, kind):
    module = {"h5": "h5py", "zarr": "zarr"}[kind]
    ran = in_this_process("pool", "export", "pool", "--to", f"o.{kind}")
    if importlib.util.find_spec(module) is None:
        assert ran.code == 1 and f"this needs {module}" in ran.err
        return
    assert ran.code == 0, ran.err
    if kind == "h5":
        made = importlib.import_module(module).File("o.h5", "r")
    else:
        made = importlib.import_module(module).open_group("o.zarr", mode="r")
    for name, (dtype, shape) in KINDS.items():
        found = made[name][()]
        if "dtype" in made[name].attrs:
            found = np.ascontiguousarray(found).view(made[name].attrs["dtype"]).reshape(shape)
        assert np.array_equal(found, fill(shape, dtype, 2)), name
    assert made.attrs["iteration"] == 2 and made.attrs["name"] == "heat"


def test_names_that_could_be_paths_are_none(tmp_path):
    from perdure.pool.export import safe_name

    assert [safe_name(name) for name in ("u", "../a/b", "a\\\n", "ü ñ", ".")] == [
        "u", "%2E.%2Fa%2Fb", "a%5C%0A", "ü ñ", "%2E"
    ]  # fmt: skip




@pytest.mark.parametrize("mpi", MPIS)
def test_arrays_of_several_ranks_are_whole_where_they_have_boxes(tmp_path, mpi):
    """By a C program of two ranks, which says boxes and leaves one array without."""
    source = tmp_path / "boxes.c"
    source.write_text(
        "#include <perdure/perdure_mpi.h>\n#include <stdlib.h>\n"
        "static void ok(int code) {\n"
        "if (code) { puts(perdure_last_error()); MPI_Abort(MPI_COMM_WORLD, 1); } }\n"
        "int main(int n, char** a) { (void)n; int r; MPI_Init(0, 0);\n"
        "MPI_Comm_rank(MPI_COMM_WORLD, &r); perdure_pool* p; perdure_array *u, *v;\n"
        "ok(perdure_open_mpi(MPI_COMM_WORLD, a[1], NULL, &p));\n"
        "uint64_t s[2] = {2, 3}, g[2] = {4, 3}, f[2] = {2 * (uint64_t)r, 0};\n"
        "uint64_t seed = 10 + (uint64_t)r;\n"
        "ok(perdure_array_open(p, \"u\", PERDURE_INT64, 2, s, PERDURE_COPY, NULL, &u));\n"
        "ok(perdure_array_open(p, \"v\", PERDURE_INT64, 1, s, PERDURE_COPY, NULL, &v));\n"
        "ok(perdure_array_box(u, g, f)); ok(perdure_scalar(p, \"seed\", &seed, 8));\n"
        "uint64_t same = 5; ok(perdure_scalar(p, \"iteration\", &same, 8));\n"
        "ok(perdure_restart(p, NULL));\n"
        "for (int i = 0; i < 6; i++) ((int64_t*)perdure_working(u))[i] = 100 * r + i;\n"
        "for (int i = 0; i < 2; i++) ((int64_t*)perdure_working(v))[i] = r;\n"
        "ok(perdure_commit(p, NULL)); ok(perdure_close(p)); MPI_Finalize(); return 0; }\n"
    )
    library = BUILD / "src/capi"
    compiler = os.environ[f"PERDURE_TEST_MPICC_{mpi}"]
    built = subprocess.run(
        [compiler, source, f"-I{ROOT / 'include'}", f"-L{library}", f"-lperdure_mpi_{mpi}",
         f"-Wl,-rpath,{library}", "-o", tmp_path / "boxes"], capture_output=True, text=True,
        check=False)  # fmt: skip
    assert built.returncode == 0, built.stderr
    launcher = [ROOT / "tools/mpirun.sh", os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"], "2"]
    done = subprocess.run([*launcher, tmp_path / "boxes", tmp_path / "pool"], capture_output=True,
                          text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "level").mkdir(mode=0o700)
    load_core().drain_pool(str(tmp_path / "pool"), str(tmp_path / "level"), 2, False, None)
    for place in ("pool", "level/pool"):
        expect_boxes(perdure.read(tmp_path / place))


def expect_boxes(read) -> None:
    assert read.ranks == 2 and read["iteration"] == 5
    assert read["u"].tolist() == [[0, 1, 2], [3, 4, 5], [100, 101, 102], [103, 104, 105]]
    assert (list(read["v.rank0"]), list(read["v.rank1"])) == ([0, 0], [1, 1])
    assert read["seed.rank1"] == 11 and "seed" not in read
