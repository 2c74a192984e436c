# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth TIMEOUT 1200
"""perdure.torch with tensors on GPUs and several processes: as test_torch_gpu.py, which says how
that is without a GPU. Each process has a driver of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from test_torch import HEADER, PYTHON, environment
from test_torch_gpu import FAKE
from test_torch_gpu import pytestmark as pytestmark

RANKS = """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
store = dist.FileStore(os.environ["MEETING"], ranks)
dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
mesh = init_device_mesh("cpu", (ranks,))
"""


def run_ranks(count: int, script: str, path: Path, **more: object) -> None:
    """As run(), in so many processes: a driver that was asked something survives no fork."""
    assert PYTHON is not None
    meeting = path.parent / f"meeting-{count}-{os.urandom(4).hex()}"
    settings = {"FAKE_CUDA_QUIET": "1", "WORLD_SIZE": count, "MEETING": meeting, **more}
    given = environment() | {name: str(value) for name, value in settings.items()}
    script = HEADER + FAKE + RANKS + script + "\ndist.destroy_process_group()\n"
    jobs = [
        subprocess.Popen(
            [PYTHON, "-c", script, str(path)], env=given | {"RANK": str(rank)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for rank in range(count)
    ]  # fmt: skip
    try:
        said = [job.communicate(timeout=200)[0] for job in jobs]
    finally:
        for job in jobs:
            job.kill()
    assert [job.returncode for job in jobs] == [0] * count, "\n".join(said)


@pytest.mark.parametrize("room", [True, False], ids=["snapshot", "no room for one"])
def test_tensors_that_all_processes_have_wait_on_the_gpu_for_the_one_that_keeps_them(
    memory_path, room
):
    run_ranks(2, f"FakeTorch.has_room = {room}" + """
state = on_gpus(contents(0))
writer = PoolWriter(path)
held = []
for step in range(1, 9):
    put_all(state, step)
    saved = dcp.async_save(state, storage_writer=writer)
    put_all(state, -step)
    saved.result()
    found = {name: torch.zeros_like(value) for name, value in contents(0).items()}
    dcp.load(found, storage_reader=PoolReader(path))
    assert equal(found, step), step
    ask("cuCtxSetCurrent", context)
    held.append((driver.fake_cuda_device_bytes(), driver.fake_cuda_registrations()))
    dist.barrier()
assert len(set(held[4:])) == 1, held  # when each of the three copies is registered
writer.close()
""", memory_path / "run", FAKE_CUDA_DELAY_US=300)  # fmt: skip


def test_a_process_whose_gpu_can_not_stage_has_the_save_fail_on_all(memory_path):
    run_ranks(2, """
state = on_gpus(contents(1))
writer = PoolWriter(path)
dcp.async_save(state, storage_writer=writer).result()
put_all(state, 2)
if rank == 1:
    driver.fake_cuda_fail(b"cuMemcpyDtoDAsync_v2", u64(1), 999, 0)
saved = dcp.async_save(state, storage_writer=writer)
driver.fake_cuda_fail(None, u64(0), 0, 0)
try:
    saved.result(timeout=60)
except BaseException as error:  # torch's own is no Exception
    assert "cuMemcpyDtoDAsync_v2: 999" in str(error), error
else:
    raise AssertionError("saved")
for step in (1, 3):
    if step == 3:
        put_all(state, 3)
        dcp.async_save(state, storage_writer=writer).result()
    found = {name: torch.zeros_like(value) for name, value in contents(0).items()}
    dcp.load(found, storage_reader=PoolReader(path))
    assert equal(found, step), step
writer.close()
""", memory_path / "run")  # fmt: skip


# Shards of each kind, on the GPU; of some shapes a process has nothing.
SHARDS = """
kinds = {"rows": [Shard(0)], "columns": [Shard(1)], "same": [Replicate()]}

def shards(step):
    state, held = {}, {}
    for shape in ((5, 7), (2, 1), (640, 900)):
        for kind, places in kinds.items():
            whole = (torch.arange(shape[0] * shape[1]) * 0.5 + step).view(shape)
            of = distribute_tensor(whole, mesh, places)
            own = of.to_local().contiguous()
            there = on_gpu(own) if own.numel() else own
            state[f"{kind}-{shape}"] = DTensor.from_local(
                there, mesh, places, run_check=False, shape=of.shape, stride=of.stride())
            held[f"{kind}-{shape}"] = own
    return state, held

def set_all(state, held):
    for name, own in held.items():
        if own.numel():
            put(state[name].to_local(), own)

def check(state, held):
    for name, own in held.items():
        assert not own.numel() or torch.equal(seen(state[name].to_local()), own), name
"""


@pytest.mark.parametrize("old, new, way", [(3, 2, "async_save"), (1, 3, "save")])
def test_shards_on_gpus_come_back_to_the_gpus_of_another_number_of_processes(
    memory_path, old, new, way
):
    run_ranks(old, SHARDS + f"way = '{way}'" + """
state, _ = shards(0)
held = {step: shards(step)[1] for step in (6, 7, -1)}  # which sends, as the saves do
writer = PoolWriter(path)
for step in (6, 7):
    set_all(state, held[step])
    saved = getattr(dcp, way)(state, storage_writer=writer)
    set_all(state, held[-1])
    if way == "async_save":
        saved.result()
writer.close()
""", memory_path / "run", FAKE_CUDA_DELAY_US=300)  # fmt: skip
    run_ranks(new, SHARDS + """
state, _ = shards(0)
dcp.load(state, storage_reader=PoolReader(path))
check(state, shards(7)[1])
""", memory_path / "run", FAKE_CUDA_DELAY_US=300)  # fmt: skip
