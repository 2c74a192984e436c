# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth TIMEOUT 1200
"""Checkpoints of several processes of PyTorch: shards that come back on other numbers of them,
asynchronous saves, kills. Skipped where PyTorch is missing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time

import pytest

from test_torch import DISTRIBUTED, HEADER, PYTHON, environment, run
from test_torch import pytestmark as pytestmark

# Two layers of a model whose rows nobody's number of processes divides, as FSDP2 shards them.
SHARDED = (
    DISTRIBUTED
    + """
import hashlib, json
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate

def trained(mesh, steps):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(7, 9), torch.nn.ReLU(), torch.nn.Linear(9, 3))
    fully_shard(net[0], mesh=mesh)
    fully_shard(net, mesh=mesh)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    for step in range(steps):
        optimizer.zero_grad()
        net(torch.linspace(-1, 1, 28).view(4, 7) + step).square().sum().backward()
        optimizer.step()
    return net, optimizer

def whole(value):
    # The same on all numbers of processes: what is divided is put together.
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, (list, tuple)) else value

def digest(value):
    if isinstance(value, torch.Tensor):
        flat = value.detach().contiguous().reshape(-1).view(torch.uint8)
        return hashlib.sha256(flat.numpy().tobytes()).hexdigest() + str(value.dtype)
    if isinstance(value, dict):
        return [[str(key), digest(value[key])] for key in sorted(value, key=str)]
    return [digest(item) for item in value] if isinstance(value, list) else repr(value)
"""
)


@pytest.mark.parametrize("old, new", [(4, 2), (2, 3), (1, 4)])
def test_a_model_of_fsdp_comes_back_on_another_number_of_processes(memory_path, old, new):
    run(SHARDED + f"old, new = {old}, {new}" + """
def save(rank, path, mesh):
    model, optimizer = get_state_dict(*trained(mesh, 2))
    dcp.save({"model": model, "optimizer": optimizer, "epoch": 5},
             storage_writer=PoolWriter(path + "/run"))
    if rank == 0:
        pathlib.Path(path + "/said").write_text(json.dumps(digest(whole([model, optimizer]))))
    else:
        whole([model, optimizer])

def load(rank, path, mesh):
    net, rest = trained(mesh, 1)
    model, optimizer = get_state_dict(net, rest)
    state = {"model": model, "optimizer": optimizer, "epoch": 0}
    dcp.load(state, storage_reader=PoolReader(path + "/run"))
    set_state_dict(net, rest, model_state_dict=state["model"],
                   optim_state_dict=state["optimizer"])
    found = digest(whole(list(get_state_dict(net, rest))))
    assert found == json.loads(pathlib.Path(path + "/said").read_text()) and state["epoch"] == 5

path.mkdir()
run_job(old, "save")
run_job(new, "load")
""", memory_path / "run")  # fmt: skip


def test_a_planner_that_keeps_its_plans_has_no_process_s_pool_removed(memory_path):
    run(DISTRIBUTED + """
def write_kept(rank, path, mesh):
    writer = PoolWriter(path)
    for step in range(1, 4):
        dcp.save(state_of(step, mesh), storage_writer=writer,
                 planner=dcp.DefaultSavePlanner(enable_plan_caching=True))
        read(rank, path, mesh, step)
    writer.close()

run_job(3, "write_kept")
run_job(2, "read")
""", memory_path / "run")  # fmt: skip


def test_a_process_that_can_not_stage_has_the_save_fail_on_all(memory_path):
    run(DISTRIBUTED + """
import resource

def limited(rank, path, mesh):
    writer = PoolWriter(path)
    dcp.async_save(state_of(1, mesh), storage_writer=writer).result()
    large = {"large": distribute_tensor(torch.ones(1 << 20), mesh, [Shard(0)])}
    if rank == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, resource.RLIM_INFINITY))
    saved = dcp.async_save(large, storage_writer=writer)
    try:
        saved.result(timeout=60)
    except BaseException as error:  # CheckpointException is no Exception
        assert "ulimit -f" in str(error), error
    else:
        raise AssertionError("saved")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    read(rank, path, mesh, 1)
    dcp.async_save(state_of(2, mesh), storage_writer=writer).result()
    read(rank, path, mesh, 2)
    writer.close()

run_job(2, "limited")

""", memory_path / "run")  # fmt: skip


def test_processes_that_see_different_directories_have_the_save_fail_on_all(memory_path):
    run(DISTRIBUTED + """
def apart(rank, path, mesh):
    writer = PoolWriter(f"{path}/node-{rank}")
    for asynchronous in (False, True):
        try:
            if asynchronous:
                dcp.async_save(state_of(1, mesh), storage_writer=writer).result(timeout=60)
            else:
                dcp.save(state_of(1, mesh), storage_writer=writer)
        except BaseException as error:  # CheckpointException is no Exception
            assert "give one that all nodes share" in str(error), error
        else:
            raise AssertionError("saved")
    assert not PoolReader(f"{path}/node-{rank}").has_checkpoint()
    writer.close()

run_job(2, "apart")

""", memory_path / "run")  # fmt: skip


def test_a_save_that_waits_for_an_asynchronous_one_leaves_it_its_name(memory_path):
    run("""
class Slow(dcp.DefaultSavePlanner):
    def create_local_plan(self):
        time.sleep(0.3)
        return super().create_local_plan()

import json, time
from perdure.torch.blocks import read_blocks
writer = PoolWriter(path)
label = lambda: read_blocks(path / "metadata").index["label"]
saved = dcp.async_save({"a": torch.ones(3)}, checkpoint_id="first", storage_writer=writer,
                       planner=Slow())
named = []
finish = writer.finish
def finish_and_note(**given):
    finish(**given)
    named.append(label())
writer.finish = finish_and_note
dcp.save({"a": torch.ones(3)}, checkpoint_id="second", storage_writer=writer)
saved.result()
assert named == ["first", "second"], named
writer.close()
""", memory_path / "run")  # fmt: skip


# Each kind of division, of dtypes and shapes, some of them with nothing for some process.
MADE = """
def whole_of(dtype, shape, step):
    numbers = torch.arange(int(np.prod(shape)), dtype=torch.float64).reshape(shape) * 0.5 + step
    return numbers.to(dtype)

def all_of(mesh, step):
    kinds = {"rows": [Shard(0)], "columns": [Shard(1)], "same": [Replicate()]}
    state = {}
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.complex64, torch.bool):
        for shape in ((5, 7), (2, 1), (13, 3, 4), (640, 900)):
            for kind, places in kinds.items():
                name = f"{str(dtype)[6:]}-{shape}-{kind}"
                state[name] = distribute_tensor(whole_of(dtype, shape, step), mesh, places)
    plain = {"number": torch.tensor(float(step)), "none": torch.empty(0, 3), "step": step,
             "turned": whole_of(torch.float32, (3, 5), step).t(), "words": ["a", step]}
    return {"tensors": state, "plain": plain}

def check(found, expected):
    for name, tensor in expected["tensors"].items():
        assert torch.equal(found["tensors"][name].to_local(), tensor.to_local()), name
    for name, value in expected["plain"].items():
        is_tensor = isinstance(value, torch.Tensor)
        other = found["plain"][name]
        assert torch.equal(other, value) if is_tensor else other == value, (name, other)

def read_all(rank, path, mesh):
    found = all_of(mesh, 0)
    dcp.load(found, storage_reader=PoolReader(path))
    check(found, all_of(mesh, 7))
"""


@pytest.mark.parametrize(
    "old, new, way", [(4, 2, "save"), (2, 3, "async_save"), (3, 1, "async_save")]
)
def test_each_kind_of_shard_comes_back_on_another_number_of_processes(memory_path, old, new, way):
    run(SHARDED + MADE + f"old, new, way = {old}, {new}, '{way}'" + """
def write_all(rank, path, mesh):
    writer = PoolWriter(path)
    for step in (6, 7):
        saved = getattr(dcp, way)(all_of(mesh, step), storage_writer=writer)
        if way == "async_save":
            saved.result()
    writer.close()

run_job(old, "write_all")
run_job(new, "read_all")
""", memory_path / "run")  # fmt: skip


def test_a_mesh_of_two_dimensions_comes_back_on_one_process(memory_path):
    run(SHARDED + """
def write_mesh(rank, path, mesh):
    square = init_device_mesh("cpu", (2, 2))
    state = {"both": distribute_tensor(torch.arange(35.).view(5, 7), square, [Shard(0), Shard(1)]),
             "copies": distribute_tensor(torch.arange(6.), square, [Replicate(), Shard(0)])}
    writer = PoolWriter(path)
    dcp.save(state, storage_writer=writer)
    dcp.async_save(state, storage_writer=writer).result()

def read_mesh(rank, path, mesh):
    state = {"both": torch.zeros(5, 7), "copies": torch.zeros(6)}
    dcp.load(state, storage_reader=PoolReader(path))
    assert torch.equal(state["both"], torch.arange(35.).view(5, 7)), state
    assert torch.equal(state["copies"], torch.arange(6.)), state

run_job(4, "write_mesh")
run_job(1, "read_mesh")
""", memory_path / "run")  # fmt: skip


def test_parts_of_a_tensor_are_read_as_indexing_gives_them(memory_path):
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns() % 2**32))
    print("seed", seed)
    run(f"chance = random.Random({seed})" + """
from perdure.torch.block_writer import BlockWriter
from perdure.torch.blocks import Block, read_blocks
shapes = [(700, 900), (3, 400, 300), (2, 3, 4, 5), (100000,), (1, 9), (), (0, 4), (2, 600000)]
tensors = [torch.rand(shape).to(chance.choice([torch.float32, torch.float64, torch.bfloat16]))
           for shape in shapes]
writer = BlockWriter(path, {})
writer.begin([Block(str(n), tensor) for n, tensor in enumerate(tensors)], {})
writer.wait()
found = read_blocks(path)
for _ in range(150):
    number = chance.randrange(len(shapes))
    tensor = tensors[number]
    extents = [chance.choice([whole, chance.randint(0, whole)]) for whole in tensor.shape]
    first = [chance.randint(0, whole - count) for whole, count in zip(tensor.shape, extents)]
    expected = tensor[tuple(slice(a, a + n) for a, n in zip(first, extents))]
    target = torch.zeros(extents, dtype=chance.choice([tensor.dtype, torch.float64]))
    if chance.random() < 0.5 and len(extents) > 1:
        target = torch.zeros(extents[::-1], dtype=target.dtype).permute(*range(len(extents))[::-1])
    found.fill(str(number), first, extents, target)
    assert torch.equal(target, expected.to(target.dtype)), (shapes[number], first, extents)
assert all(torch.equal(found.tensor(str(n)), tensor) for n, tensor in enumerate(tensors))
refused(perdure.WrongShape, "asked for", found.fill, "0", [1, 1], [700, 1], torch.zeros(700, 1))
refused(perdure.WrongShape, "asked for", found.fill, "0", [-1, 1], [7, 1], torch.zeros(7, 1))
refused(perdure.WrongShape, "asked for", found.fill, "0", [1, 1], [7, 1], torch.zeros(1, 7))
writer.close()
""", memory_path / "run")  # fmt: skip


def test_a_reader_that_is_used_again_gives_the_newest_checkpoint(memory_path):
    run("""
writer, reader = PoolWriter(path), PoolReader(path)
for step in range(5):
    dcp.save({"u": torch.full((9,), float(step))}, storage_writer=writer, no_dist=True)
    found = {"u": torch.zeros(9)}
    dcp.load(found, storage_reader=reader, no_dist=True)
    assert found["u"].eq(step).all(), (step, found)
""", memory_path / "run")  # fmt: skip


def test_damage_of_a_shard_is_an_error_and_only_for_who_reads_it(memory_path):
    run("""
writer = PoolWriter(path)
state = {name: torch.full((1 << 20,), value) for name, value in (("a", 1.5), ("b", 2.5))}
dcp.save(state, storage_writer=writer, no_dist=True)
writer.close()
[file] = path.glob("rank-00000/layout-*/rank-*")
bytes_of = bytearray(file.read_bytes())
bytes_of[bytes_of.index(torch.full((1 << 20,), 2.5).numpy().tobytes()) + (1 << 18)] ^= 1
file.write_bytes(bytes_of)
found = {"a": torch.zeros(1 << 20)}
dcp.load(found, storage_reader=PoolReader(path), no_dist=True)
assert found["a"].eq(1.5).all()
try:
    dcp.load({"b": torch.zeros(1 << 20)}, storage_reader=PoolReader(path), no_dist=True)
except BaseException as error:  # of which torch derives its own
    assert "checksum is wrong" in str(error), error
else:
    raise AssertionError("it was loaded")
""", memory_path / "run")  # fmt: skip


def test_processes_that_are_no_more_leave_nothing_behind(memory_path):
    run(DISTRIBUTED + """
run_job(4, "write")
assert len(list(path.glob("rank-*"))) == 4
run_job(2, "write")
assert sorted(of.name for of in path.iterdir()) == ["metadata", "rank-00000", "rank-00001"]
run_job(3, "read")
""", memory_path / "run")  # fmt: skip


# --- asynchronous saves ---------------------------------------------------------------------------


def test_an_asynchronous_save_has_the_values_of_its_step_and_not_of_later_ones(memory_path):
    run(SHARDED + """
def later(rank, path, mesh):
    # All is changed as soon as async_save() has returned, while the others are still to come.
    writer = PoolWriter(path)
    state = {"shards": distribute_tensor(torch.zeros(400, 900), mesh, [Shard(0)]),
             "all": torch.zeros(300, 1000), "small": torch.zeros(3), "list": [0, {"n": 0}]}
    for step in range(1, 6):
        for name in ("shards", "all", "small"):
            state[name].fill_(step)
        state["list"][0] = state["list"][1]["n"] = step
        future = dcp.async_save(state, storage_writer=writer)
        for name in ("shards", "all", "small"):
            state[name].fill_(-step)
        state["list"][0] = state["list"][1]["n"] = -step
        future.result()
        found = {"shards": distribute_tensor(torch.zeros(400, 900), mesh, [Shard(0)]),
                 "all": torch.zeros(300, 1000), "small": torch.zeros(3), "list": [0, {"n": 0}]}
        dcp.load(found, storage_reader=PoolReader(path))
        for name in ("shards", "all", "small"):
            part = found[name].to_local() if name == "shards" else found[name]
            assert part.eq(step).all(), (step, name, part)
        assert found["list"] == [step, {"n": step}], found["list"]
    writer.close()

run_job(2, "later")
""", memory_path / "run")  # fmt: skip


def test_asynchronous_saves_that_follow_each_other_wait_for_one_another(memory_path):
    run(SHARDED + """
def one_after_another(rank, path, mesh):
    writer = PoolWriter(path)
    inner = writer.write_data
    def slow(plan, planner):
        import time
        time.sleep(0.3 if rank == 1 else 0)
        return inner(plan, planner)
    writer.write_data = slow
    state = {"shards": distribute_tensor(torch.zeros(64, 900), mesh, [Shard(0)]), "n": 0}
    futures = []
    for step in range(1, 5):
        state["shards"].fill_(step)
        state["n"] = step
        futures.append(dcp.async_save(state, storage_writer=writer))
    dcp.save(state | {"n": 99}, storage_writer=writer)  # waits, too
    assert all(future.done() for future in futures)
    for future in futures:
        future.result()
    found = {"shards": distribute_tensor(torch.zeros(64, 900), mesh, [Shard(0)]), "n": 0}
    dcp.load(found, storage_reader=PoolReader(path))
    assert found["shards"].to_local().eq(4).all() and found["n"] == 99, found
    dcp.async_save(state, storage_writer=writer)
    writer.close()
    dcp.load(found, storage_reader=PoolReader(path))
    assert found["n"] == 4, found

run_job(2, "one_after_another")
""", memory_path / "run")  # fmt: skip


def test_the_second_asynchronous_save_with_a_stager_of_torch_works_as_the_first(memory_path):
    run(SHARDED + """
from torch.distributed.checkpoint.staging import AsyncStager, DefaultStager, StagingOptions
assert isinstance(PoolWriter(path), AsyncStager)  # or async_save() would not let it stage

def twice(rank, path, mesh):
    writer = PoolWriter(path)
    for stager in (DefaultStager(StagingOptions(False, False, False, False)), None):
        for step in range(1, 4):
            state = {"shards": distribute_tensor(torch.full((8, 9), float(step)), mesh, [Shard(0)])}
            dcp.async_save(state, storage_writer=writer, async_stager=stager).result()
            found = {"shards": distribute_tensor(torch.zeros(8, 9), mesh, [Shard(0)])}
            dcp.load(found, storage_reader=PoolReader(path))
            assert found["shards"].to_local().eq(step).all(), (stager, step)
    writer.close()

run_job(2, "twice")
""", memory_path / "run")  # fmt: skip


MEMORY = """
import gc, os
def anonymous_bytes():
    # Memory of the process that is no file's: the pool's mapping is not in it.
    gc.collect()
    [line] = [line for line in open("/proc/self/smaps_rollup") if line.startswith("Anonymous:")]
    return int(line.split()[1]) << 10

def peak_while(call):
    import threading
    stop, peak = threading.Event(), [anonymous_bytes()]
    begun = peak[0]
    def look():
        while not stop.wait(0.002):
            peak[0] = max(peak[0], anonymous_bytes())
    watcher = threading.Thread(target=look)
    watcher.start()
    call()
    stop.set()
    watcher.join()
    return peak[0] - begun
"""


@pytest.mark.parametrize("way", ["save", "async_save"])
def test_a_save_holds_no_second_copy_of_the_state_in_memory(memory_path, way):
    run(MEMORY + f"way = '{way}'" + """
import torch.distributed as dist
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
size = 96 << 20
state = {f"t{n}": torch.full((size // 4 // 8,), float(n)) for n in range(8)}
writer = PoolWriter(path)
def save():
    saved = getattr(dcp, way)(state, storage_writer=writer)
    if way == "async_save":
        saved.result()
save_small = {"t": torch.ones(3)}
dcp.save(save_small, storage_writer=PoolWriter(path.with_name("other")))  # what torch itself takes
for number in range(3):  # also the first
    grown = peak_while(save)
    print(number, grown >> 20)
    assert grown < size // 4, grown
before = anonymous_bytes()
rooms = {len(list(path.glob("rank-*/layout-*")))}
for _ in range(20):
    save()
    rooms.add(len(list(path.glob("rank-*/layout-*"))))
after = anonymous_bytes()
print(before >> 20, after >> 20, rooms)
assert after - before < size // 16 and rooms == {1}, (before, after, rooms)
assert not writer._own._staged  # nothing is held on to
writer.close()
""", memory_path / "run")  # fmt: skip


def test_pinned_memory_does_not_grow_with_asynchronous_saves(memory_path):
    said = run("""
print("cuda" if torch.cuda.is_available() else "none")
""", memory_path)  # fmt: skip
    if said.split() != ["cuda"]:
        pytest.skip("needs a GPU: without one PyTorch pins no memory")
    run("""
state = {f"t{n}": torch.full((1 << 20,), float(n), device="cuda") for n in range(8)}
writer = PoolWriter(path)
pinned = []
for _ in range(6):
    dcp.async_save(state, storage_writer=writer, no_dist=True).result()
    pinned.append(torch.cuda.host_memory_stats()["allocated_bytes.current"])
assert pinned[-1] == pinned[0] == 0, pinned
""", memory_path / "run")  # fmt: skip


def test_what_can_not_be_staged_is_named_and_leaves_the_checkpoint_as_it_was(memory_path):
    run("""
import pickle, torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
class Own(torch.Tensor):
    pass
writer = PoolWriter(path)
dcp.async_save({"u": torch.ones(3)}, storage_writer=writer).result()
for value, words in ((torch.ones(2).as_subclass(Own), "state['m'][0] is a Own"),
                     (torch.eye(3).to_sparse(), "sparse"), (torch.empty(2, device="meta"), "meta")):
    refused(TypeError, words, dcp.async_save, {"m": [value]}, storage_writer=writer)
refused(perdure.InvalidArgument, "AsyncCheckpointerType.THREAD", pickle.dumps, writer)
class Failing(dcp.DefaultSavePlanner):
    def create_local_plan(self):
        raise ValueError("no plan today")
failed = dcp.async_save({"u": torch.zeros(3)}, storage_writer=writer, planner=Failing())
dcp.async_save({"u": torch.full((3,), 2.0)}, storage_writer=writer).result()  # waits for that one
try:
    failed.result()
except BaseException as error:
    assert "no plan today" in str(error), error
else:
    raise AssertionError("it was saved")
found = {"u": torch.zeros(3)}
dcp.load(found, storage_reader=PoolReader(path))
assert found["u"].eq(2).all()
""", memory_path / "run")  # fmt: skip


def test_processes_keep_their_places_in_the_pools_from_save_to_save(memory_path):
    run(SHARDED + """
def places(rank, path, mesh):
    # Of what all have, one process keeps each; one of them keeps nothing at all.
    writer = PoolWriter(path)
    shards = distribute_tensor(torch.zeros(400, 900), mesh, [Shard(0)])
    state = {"all": torch.zeros(300, 1000), "more": torch.zeros(200, 1000), "n": torch.zeros(3)}
    states = [state, state | {"shards": shards}]
    for state in states:
        layouts, staged = [], []
        for step in range(1, 7):
            for tensor in state.values():
                tensor.fill_(step)
            saved = dcp.async_save(state, storage_writer=writer)
            staged.append(sorted(writer._own._in_pool))
            saved.result()
            layouts.append(writer._own._layout)
            if step == 4:
                dcp.save(state, storage_writer=writer)  # goes to the same places
        assert len(set(layouts[1:])) == 1 and staged[1] == staged[-1], (layouts, staged)
    found = {name: torch.zeros_like(tensor) for name, tensor in state.items()}
    dcp.load(found, storage_reader=PoolReader(path))
    for name, tensor in found.items():
        assert (tensor.to_local() if name == "shards" else tensor).eq(6).all(), (name, tensor)
    writer.close()

run_job(4, "places")
""", memory_path / "run")  # fmt: skip


# --- kills ----------------------------------------------------------------------------------------

KILLED = SHARDED + """
ranks, victim, way = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

def loop(rank, path, mesh):
    def state_at(step):
        rows = torch.full((37, 200), float(step))
        return {"shards": distribute_tensor(rows, mesh, [Shard(0)]), "step": step,
                "all": torch.full((1000,), float(step))}
    state = state_at(0)
    reader = PoolReader(path)
    if reader.has_checkpoint():
        dcp.load(state, storage_reader=reader)
    step = state["step"]
    assert state["shards"].to_local().eq(step).all() and state["all"].eq(step).all(), state
    print("begins", step, flush=True) if rank == 0 else None
    writer = PoolWriter(path)
    while True:
        step += 1
        saved = getattr(dcp, way)(state_at(step), storage_writer=writer)
        if way == "async_save":
            saved.result()
        if rank == 0:
            print("saved", step, flush=True)

def job(rank, ranks, port, path, what):
    mesh = start(rank, ranks, port)
    if rank == victim:
        print("victim", os.getpid(), flush=True)
    globals()[what](rank, path, mesh)

run_job(ranks, "loop")
"""


@pytest.mark.parametrize("way", ["save", "async_save"])
def test_a_process_that_is_killed_in_a_save_leaves_the_old_state_or_the_new_one(memory_path, way):
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns() % 2**32))
    print("seed", seed)
    chance = random.Random(seed)
    acknowledged = 0
    for ranks in (3, 2, 3, 1, 2):  # each goes on with what the others have left
        victim = chance.randrange(ranks)
        command = [PYTHON, "-c", HEADER + KILLED, memory_path / "run", ranks, victim, way]
        with subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
            start_new_session=True,
        ) as job:  # fmt: skip
            assert job.stdout is not None and job.stderr is not None
            lines: list[str] = []
            wanted = chance.randint(1, 4)
            while sum(line.startswith("saved") for line in lines) < wanted:
                lines.append(job.stdout.readline())
                assert lines[-1], job.stderr.read()
            begins = [int(line.split()[1]) for line in lines if line.startswith("begins")]
            [process] = [int(line.split()[1]) for line in lines if line.startswith("victim")]
            time.sleep(chance.uniform(0, 0.05))
            os.kill(process, signal.SIGKILL)
            time.sleep(0.2)
            os.killpg(job.pid, signal.SIGKILL)
            lines += job.stdout.read().splitlines()
        assert acknowledged <= begins[0] <= acknowledged + 1, (acknowledged, lines)
        done = [int(line.split()[1]) for line in lines if line.startswith("saved ")]
        acknowledged = max(done)
