# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints of PyTorch in pools, where PyTorch is: in this Python, or in the one that
PERDURE_TORCH_PYTHON names."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

from conftest import BUILD, ROOT

PYTHON = os.environ.get("PERDURE_TORCH_PYTHON") or (sys.executable if find_spec("torch") else None)
pytestmark = pytest.mark.skipif(
    PYTHON is None,
    reason="needs PyTorch: pip install torch, or PERDURE_TORCH_PYTHON=a python that has it",
)

HEADER = """
import sys, pathlib, warnings
import torch
import perdure, perdure.torch
from perdure.torch import Checkpoint, PoolReader, PoolWriter
import torch.distributed.checkpoint as dcp
path = pathlib.Path(sys.argv[1])
warnings.filterwarnings("ignore", message=".*torch.distributed is .*")

def refused(error, words, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError(f"no {error.__name__}")

def model():
    torch.manual_seed(1)
    nn = torch.nn
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 2))

def same(one, other):
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return one == other and type(one) is type(other)
"""


def environment() -> dict[str, str]:
    path = f"{ROOT / 'python'}:{BUILD / 'python'}"
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def run(script: str, *arguments: object) -> str:
    assert PYTHON is not None
    done = subprocess.run(
        [PYTHON, "-c", HEADER + script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stays" not in done.stderr, done.stderr
    return done.stdout


def test_a_state_dict_comes_back_bit_for_bit_in_a_new_process(memory_path):
    state = """
torch.manual_seed(3)
net = model()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(3):
    optimizer.zero_grad()
    net(torch.randn(5, 8)).sum().backward()
    optimizer.step()
state = {
    "model": dict(net.state_dict()), "optimizer": optimizer.state_dict(), "epoch": 7,
    "more": [torch.arange(6).reshape(2, 3).to(dtype) for dtype in
             (torch.bfloat16, torch.float16, torch.uint8, torch.int64, torch.complex64)],
    "plain": (None, True, 2.5, float("inf"), "ü", [], {}, ()), 3: torch.tensor(True),
    "empty": torch.empty(0, 4), "turned": torch.randn(4, 6).t(),
    "rows": torch.randn(9, 9)[::2, 1:5],
}
"""
    run(state + """
with Checkpoint(path) as kept:
    assert kept.load() is None
    assert kept.save(state) == 1
""", memory_path / "run")  # fmt: skip
    run(state + """
with Checkpoint(path) as kept:
    found = kept.load()
    assert kept.number == 1 and same(found, state), found
    net.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    found["model"]["0.weight"].zero_()  # a copy
    assert same(kept.load(), state)
""", memory_path / "run")  # fmt: skip


def test_what_is_saved_may_grow_shrink_and_change_its_type(memory_path):
    run("""
with Checkpoint(path) as kept:
    states = [{"a": torch.ones(n)} for n in (3, 3, 500, 2)]
    states += [{"a": torch.ones(2, dtype=torch.int32)}, {"a": torch.ones(2, 1)}, {"b": 1}]
    states += [{"b": "x" * n} for n in (10, 100, 5000, 7)]
    for number, state in enumerate(states, 1):
        assert kept.save(state) == number
        assert same(kept.load(), state)
        assert len(list(path.iterdir())) == 1  # what is of no use is gone
""", memory_path / "run")  # fmt: skip


def test_a_save_in_the_background_may_be_followed_by_changes_at_once(memory_path):
    run("""
kept = Checkpoint(path)
u = torch.zeros(1 << 20)
for step in range(20):
    u.fill_(step)
    assert kept.save({"u": u, "step": step}, wait=False) == step + 1
    u.fill_(-1)
found = kept.load()
assert found["step"] == 19 and bool((found["u"] == 19).all())
kept.close()
""", memory_path / "run")  # fmt: skip


def test_what_can_not_be_kept_is_named(memory_path):
    run("""
kept = Checkpoint(path)
kept.save({"good": torch.ones(2)})
refused(TypeError, "state['model']['x'] is set", kept.save, {"model": {"x": {1, 2}}})
refused(TypeError, "keys are str or int", kept.save, {(1, 2): 3})
refused(TypeError, "sparse", kept.save, {"s": torch.eye(3).to_sparse()})
refused(TypeError, "meta", kept.save, {"s": torch.empty(3, device="meta")})
refused(perdure.Busy, "", Checkpoint(path).save, {"u": 1})
assert same(kept.load(), {"good": torch.ones(2)})
kept.close()
damaged = next(path.glob("layout-*/rank-*"))
with open(damaged, "r+b") as file:
    text = file.read()
    place = text.index(b'"tree"')
    file.seek(place)
    file.write(b"!!!!!!")
refused(perdure.Error, "", Checkpoint(path).load)
""", memory_path / "run")  # fmt: skip


def test_a_making_that_was_cut_short_is_passed_over(memory_path):
    run("""
(path / "layout-00004").mkdir(parents=True)
with Checkpoint(path) as kept:
    assert kept.load() is None
    kept.save({"u": 1})
    assert [entry.name for entry in path.iterdir()] == ["layout-00005"]
""", memory_path / "run")  # fmt: skip


def test_a_process_that_is_killed_loses_nothing_that_was_saved(memory_path):
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns() % 2**32))
    print("seed", seed)
    chance = random.Random(seed)
    script = """
with Checkpoint(path) as kept:
    found = kept.load()
    step = 0 if found is None else found["step"]
    assert found is None or bool((found["u"] == step).all())
    assert kept.number == step
    print("begins", step, flush=True)
    while True:
        step += 1
        # Now and then it gets larger.
        kept.save({"u": torch.full((1000 + 100 * (step // 50),), step), "step": step})
        print("saved", step, flush=True)
"""
    acknowledged = 0
    for _ in range(6):
        assert PYTHON is not None
        with subprocess.Popen(
            [PYTHON, "-c", HEADER + script, str(memory_path / "run")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        ) as job:
            assert job.stdout is not None and job.stderr is not None
            begins = job.stdout.readline().split()
            assert begins, job.stderr.read()
            assert acknowledged <= int(begins[1]) <= acknowledged + 1
            time.sleep(chance.uniform(0, 0.3))
            job.kill()
            lines = job.stdout.read().splitlines()
        done = [int(line.split()[1]) for line in lines if line.startswith("saved ")]
        acknowledged = max([acknowledged, int(begins[1]), *done])
    assert acknowledged > 0


DISTRIBUTED = """
import os, torch.distributed as dist, torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor, Shard

def state_of(step, mesh):
    whole = torch.arange(64.).reshape(8, 8) + step
    own = torch.full((3,), float(step))
    return {"sharded": distribute_tensor(whole, mesh, [Shard(0)]), "same": own, "step": step}

def start(rank, ranks, port):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    return init_device_mesh("cpu", (ranks,))

def job(rank, ranks, port, path, what):
    mesh = start(rank, ranks, port)
    globals()[what](rank, path, mesh)
    dist.destroy_process_group()

def write(rank, path, mesh):
    writer = PoolWriter(path)
    for step in range(1, 4):
        dcp.save(state_of(step, mesh), storage_writer=writer)
    writer.close()

def read(rank, path, mesh, step=3):
    state = state_of(0, mesh)
    dcp.load(state, storage_reader=PoolReader(path))
    expected = state_of(step, mesh)
    assert torch.equal(state["sharded"].to_local(), expected["sharded"].to_local()), state
    assert torch.equal(state["same"], expected["same"]) and state["step"] == step, state

def cut_short(rank, path, mesh):
    # All processes have committed theirs, and the coordinator dies before it says so; twice.
    for step in (10, 11):
        writer = PoolWriter(path)
        writer.finish = lambda metadata, results: None
        dcp.save(state_of(step, mesh), storage_writer=writer)
        writer.close()
    read(rank, path, mesh)

def run_job(ranks, what):
    with __import__("socket").socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.start_processes(job, (ranks, port, str(path), what), nprocs=ranks, start_method="fork")
"""


def test_shards_are_written_and_read_by_other_numbers_of_processes(memory_path):
    run(DISTRIBUTED + """
run_job(2, "write")
for ranks in (2, 1, 4):
    run_job(ranks, "read")
""", memory_path / "run")  # fmt: skip


def test_a_checkpoint_that_was_not_finished_does_not_count(memory_path):
    run(DISTRIBUTED + """
run_job(2, "write")
run_job(2, "cut_short")
run_job(1, "read")
run_job(2, "write")
run_job(2, "read")
""", memory_path / "run")  # fmt: skip


def test_the_storage_of_one_process_keeps_names_and_bytes(memory_path):
    run("""
writer = PoolWriter(path)
net = model()
state = {"model": net.state_dict(), "more": {"lr": 0.5, "names": ["a", "b"]}, "steps": [1, 2]}
refused(perdure.NotFound, "no checkpoint", PoolReader(path).read_metadata)
dcp.save(state, storage_writer=writer, checkpoint_id="first", no_dist=True)
empty = {"model": {key: torch.zeros_like(value) for key, value in net.state_dict().items()},
         "more": {"lr": 0.0, "names": []}, "steps": [0, 0]}
dcp.load(empty, storage_reader=PoolReader(path), no_dist=True)
assert same(dict(empty["model"]), dict(net.state_dict()))
assert empty["more"] == state["more"] and empty["steps"] == state["steps"], empty
""", memory_path / "run")  # fmt: skip
