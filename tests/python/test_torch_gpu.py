# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth TIMEOUT 1200
"""perdure.torch with tensors on GPUs: on the tests' driver, whose memory the processor can't touch.

No PyTorch runs on that driver. So tensors are of PyTorch's CPU, at addresses of the driver's
memory: whatever reads or writes one by the processor ends the process. What PyTorch itself would be
asked for (gpu.TorchGpu: streams, memory, copies within the GPU) is asked of the driver here.
"""

from __future__ import annotations

import signal
import subprocess

import pytest

from conftest import BUILD
from test_torch import HEADER, PYTHON, environment

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs PyTorch, as test_torch.py")

FAKE = f"""
import ctypes, os, signal, threading
driver = ctypes.CDLL({str(BUILD / "tests/gpu/fake/libcuda.so.1")!r}, ctypes.RTLD_GLOBAL)
""" + """
def ask(name, *arguments):
    code = getattr(driver, name)(*arguments)
    if code != 0:
        raise RuntimeError(f"{name}: {code}")

size_t, u64, pointer = ctypes.c_size_t, ctypes.c_uint64, ctypes.c_void_p
for name in ("fake_cuda_calls", "fake_cuda_registrations", "fake_cuda_registered_bytes",
             "fake_cuda_device_bytes"):
    getattr(driver, name).restype = u64
ask("cuInit", 0)
context = pointer()
ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
ask("cuCtxSetCurrent", context)

def calls():
    return driver.fake_cuda_calls(None)

class Stream:
    def __init__(self):
        self.cuda_stream = pointer()
        ask("cuStreamCreateWithPriority", ctypes.byref(self.cuda_stream), 1, 0)

class Memory:
    # Of the driver, freed with the last tensor on it.
    def __init__(self, size):
        self.at = u64()
        self.held = driver.cuMemAlloc_v2(ctypes.byref(self.at), size_t(size)) == 0
    def __del__(self):
        if self.held:
            driver.cuCtxSetCurrent(context)
            driver.cuMemFree_v2(self.at)

spans = []

def far(size):
    # Bytes of a GPU, as a tensor; None: there is no room.
    memory = Memory(size)
    if not memory.held:
        return None
    held = (ctypes.c_char * size).from_address(memory.at.value)
    held.memory = memory
    spans.append((memory.at.value, memory.at.value + size))
    return torch.frombuffer(held, dtype=torch.uint8)

def host_to_device(to, source, stream):
    ask("cuMemcpyHtoDAsync_v2", u64(to.data_ptr()), pointer(source.data_ptr()),
        size_t(source.nbytes), stream.cuda_stream)

def on_gpu(contents):
    # A tensor of the GPU with these contents, at once.
    made = far(contents.nbytes).view(contents.dtype).view(contents.shape)
    put(made, contents)
    return made

def put(tensor, contents):
    kept.append(contents.contiguous())
    host_to_device(tensor, kept[-1], training)

def seen(tensor):
    found = torch.empty(tensor.shape, dtype=tensor.dtype)
    ask("cuMemcpyDtoHAsync_v2", pointer(found.data_ptr()), u64(tensor.data_ptr()),
        size_t(found.nbytes), training.cuda_stream)
    ask("cuStreamSynchronize", training.cuda_stream)
    return found

def pinned(size):
    at = pointer()
    ask("cuMemHostAlloc", ctypes.byref(at), size_t(size), 0)
    held = (ctypes.c_char * size).from_address(at.value)
    held.memory = Pinned(at)
    return torch.frombuffer(held, dtype=torch.uint8)

class Pinned:
    def __init__(self, at):
        self.at = at
    def __del__(self):
        driver.cuCtxSetCurrent(context)
        driver.cuMemFreeHost(self.at)

class FakeTorch:
    has_room = True
    has_pinned = True
    puts = 0  # of tensors or rows, for each of which the host waits
    def has(self, tensor):
        return any(begin <= tensor.data_ptr() < end for begin, end in spans)
    def is_gpu(self, device):
        return device is not None
    def current_stream(self, device):
        return training
    def new_stream(self, device):
        return Stream()
    def mark(self, stream):
        event = pointer()
        ask("cuCtxSetCurrent", context)
        ask("cuEventCreate", ctypes.byref(event), 2)
        ask("cuEventRecord", event, stream.cuda_stream)
        return event
    def follow(self, stream, other):
        event = self.mark(other)
        ask("cuStreamWaitEvent", stream.cuda_stream, event, 0)
        ask("cuEventDestroy_v2", event)
    def wait(self, mark):
        ask("cuCtxSetCurrent", context)
        ask("cuEventSynchronize", mark)
    def memory(self, size, device):
        return far(size) if self.has_room else None
    def room(self, device):
        ask("cuCtxSetCurrent", context)
        room, whole = size_t(), size_t()
        ask("cuMemGetInfo_v2", ctypes.byref(room), ctypes.byref(whole))
        return room.value
    def clear(self, memory):
        ask("cuMemsetD8Async", u64(memory.data_ptr()), 0, size_t(memory.nbytes),
            training.cuda_stream)
    def copy(self, targets, sources, stream):
        for target, source in zip(targets, sources, strict=True):
            assert target.is_contiguous() and source.is_contiguous()
            ask("cuMemcpyDtoDAsync_v2", u64(target.data_ptr()), u64(source.data_ptr()),
                size_t(source.nbytes), stream.cuda_stream)
    def on_host(self, tensor):
        assert not self.has_room, "the host waits, and has a second state"
        return seen(tensor)
    def fill(self, target, source):
        assert registered_at(source.data_ptr()), "it would not come by the copy engine"
        host_to_device(target, source, training)
        ask("cuStreamSynchronize", training.cuda_stream)

    def pinned(self, size):
        return pinned(size) if self.has_pinned else None
    def send(self, target, source, stream):
        assert registered_at(source.data_ptr()), "it would not go by the copy engine"
        host_to_device(target, source, stream)
    def put(self, target, source):
        self.puts += 1
        assert target.dtype == source.dtype
        if not target.is_contiguous():
            for part, of in zip(target, source, strict=True):
                self.put(part, of)
            return
        source = source.contiguous()
        host_to_device(target, source, training)
        ask("cuStreamSynchronize", training.cuda_stream)

def registered_at(address):
    page = pointer(address // 4096 * 4096)
    code = driver.cuMemHostRegister_v2(page, size_t(4096), 0)
    if code == 0:
        driver.cuMemHostUnregister(page)
    return code == 712

from perdure.torch import gpu
training = Stream()
kept = []
gpu.torch_gpu = FakeTorch()

def contents(step):
    torch.manual_seed(step)
    return {"a": torch.randn(300, 70), "b": torch.randn(11).to(torch.bfloat16),
            "n": torch.arange(40_000) + step, "small": torch.tensor(float(step)),
            "none": torch.empty(0, 3)}

def on_gpus(state):
    return {name: on_gpu(value) if value.numel() else value for name, value in state.items()}

def put_all(state, step):
    for name, value in contents(step).items():
        if value.numel():
            put(state[name], value)

def equal(found, step):
    return same(dict(found), contents(step))
"""


def run(script: str, *arguments: object, killed: list[bool] | None = None, **more: object) -> str:
    """What the script printed. It must end well; or, where `killed` is given, may be killed, which
    is noted there."""
    assert PYTHON is not None
    settings = {name: str(value) for name, value in more.items()}
    done = subprocess.run(
        [PYTHON, "-c", HEADER + FAKE + script, *map(str, arguments)], capture_output=True,
        text=True, env=environment() | {"FAKE_CUDA_QUIET": "1", **settings}, timeout=200,
        check=False,
    )  # fmt: skip
    if killed is not None:
        killed.append(done.returncode == -signal.SIGKILL)
    assert done.returncode == 0 or (killed and killed[-1]), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("room", [True, False], ids=["snapshot", "no room for one"])
def test_a_checkpoint_has_what_the_stream_left_and_nothing_of_later_steps(memory_path, room):
    run(f"FakeTorch.has_room = {room}" + """
state = on_gpus(contents(0))
with Checkpoint(path) as kept_state:
    for step in range(1, 8):
        put_all(state, step)
        kept_state.save({"gpu": state, "step": step, "cpu": torch.full((9,), step)},
                        wait=step % 2 == 0)
        put_all(state, -step)  # the next one, which the stream does after the snapshot
        assert driver.fake_cuda_registrations() == min(step, 2)  # copies in the pool
assert driver.fake_cuda_registrations() == 0
with Checkpoint(path) as kept_state:
    found = kept_state.load()
    assert found["step"] == 7 and equal(found["gpu"], 7), found
    assert same(found["cpu"], torch.full((9,), 7))
""", memory_path / "run")  # fmt: skip


def test_a_restart_on_the_gpu_takes_the_tensors_straight_from_the_pool(memory_path):
    run("""
state = on_gpus(contents(3))
state["tied"] = state["a"]
with Checkpoint(path) as kept_state:
    kept_state.save(state)
with Checkpoint(path) as kept_state:
    found = kept_state.load("cpu")  # which FakeTorch says is a GPU
    assert found["tied"] is found["a"]
    for name, value in contents(3).items():
        if value.numel():
            assert gpu.torch_gpu.has(found[name]), name
            assert same(seen(found[name]), value), name
    assert driver.fake_cuda_registrations() == 1  # the copy that was read
    one_copy = driver.fake_cuda_registered_bytes()
    put_all(found, 4)
    kept_state.save(found)
    assert driver.fake_cuda_registered_bytes() == 2 * one_copy
assert driver.fake_cuda_registrations() == 0
with Checkpoint(path) as kept_state:
    found = kept_state.load()
    assert found.pop("tied") is found["a"] and equal(found, 4)
""", memory_path / "run")  # fmt: skip


# A model whose weights are on the GPU, where only this class can load them, an optimizer of torch
# with moments, a dict, and gradients.
TRAINED = """
from torch.utils.data import DataLoader
from perdure.torch import TrainState

class Net(torch.nn.Module):
    loads = 0
    def __init__(self, step):
        super().__init__()
        self.weight = torch.nn.Parameter(on_gpu(contents(step)["a"]))
        self.scale = torch.nn.Parameter(torch.full((3,), float(step)))  # on the CPU
    def load_state_dict(self, state):
        Net.loads += 1
        torch_gpu = gpu.torch_gpu
        assert torch_gpu.has(state["weight"]) == on_the_gpu, "by way of the CPU"
        assert not torch_gpu.has(state["scale"])
        put(self.weight, seen(state["weight"]) if on_the_gpu else state["weight"])
        self.scale.data.copy_(state["scale"])

def start(step):
    net = Net(step)
    optimizer = torch.optim.Adam(net.parameters())
    log = {"mean": on_gpu(torch.full((500,), float(step))), "step": step}
    return net, optimizer, log

def train_one(net, optimizer, log, step):
    for of in net.parameters():
        moment, other = torch.full(of.shape, step + 0.5), torch.full(of.shape, step + 0.25)
        there = on_gpu if gpu.torch_gpu.has(of) else torch.clone
        optimizer.state[of] = {"step": torch.tensor(float(step)), "exp_avg": there(moment),
                               "exp_avg_sq": there(other)}
        of.grad = there(moment)
    put(net.weight, contents(step)["a"])
    net.scale.data.fill_(step)
    put(log["mean"], torch.full((500,), float(step)))
    log["step"] = step

def check(net, optimizer, log, step):
    held = seen if on_the_gpu else torch.clone
    assert same(seen(net.weight), contents(step)["a"]) and net.scale.eq(step).all()
    for of in net.parameters():
        state, get = optimizer.state[of], held if gpu.torch_gpu.has(of) else torch.clone
        assert not gpu.torch_gpu.has(state["step"]) and float(state["step"]) == step
        assert get(state["exp_avg"]).eq(step + 0.5).all()
        assert get(state["exp_avg_sq"]).eq(step + 0.25).all()
        assert get(of.grad).eq(step + 0.5).all()
    assert held(log["mean"]).eq(step).all() and log["step"] == step

parts = start(0)
with TrainState(path, *parts, DataLoader(list(range(6)), 1), gradients=True) as train:
    for epoch in train.epochs(1):
        for number, batch in enumerate(train.batches()):
            train_one(*parts, number)
            train.save(wait=number % 2 == 0)
            if number == 3:
                break
        break
parts = start(9)
"""


def test_a_training_loop_goes_on_with_its_tensors_straight_from_the_pool(memory_path):
    run("""
on_the_gpu = True
""" + TRAINED + """
with TrainState(path, *parts, DataLoader(list(range(6)), 1), gradients=True) as train:
    check(*parts, 3)
    for epoch in train.epochs(1):
        train_one(*parts, 77)  # runs again after a restart, and is not to last
        train.save()  # nor is this
        batches = train.batches()
        assert next(batches).tolist() == [4]
        check(*parts, 3)
    assert Net.loads == 2
""", memory_path / "run")  # fmt: skip


def test_a_training_loop_goes_on_by_way_of_the_cpu_where_the_gpu_has_no_room(memory_path):
    run("""
on_the_gpu = False
""" + TRAINED + """
FakeTorch.has_room = False
with TrainState(path, *parts, DataLoader(list(range(6)), 1), gradients=True) as train:
    check(*parts, 3)
    assert Net.loads == 1
""", memory_path / "run")  # fmt: skip


def test_where_the_driver_registers_nothing_the_bytes_are_the_same(memory_path):
    run("""
driver.fake_cuda_set_no_registering(1)
state = on_gpus(contents(0))
with Checkpoint(path) as kept_state:
    for step in range(1, 4):
        put_all(state, step)
        kept_state.save(state, wait=False)
        put_all(state, -step)
with Checkpoint(path) as kept_state:
    assert equal(kept_state.load(), 3)
""", memory_path / "run")  # fmt: skip


def test_without_tensors_on_gpus_the_driver_is_asked_nothing(memory_path):
    run("""
with Checkpoint(path) as kept_state:
    kept_state.save(contents(0))
    before = calls()
    for step in range(1, 4):
        kept_state.save(contents(step))
    kept_state.load()
    assert calls() == before, calls() - before
assert driver.fake_cuda_registrations() == 0
""", memory_path / "run")  # fmt: skip


def test_memory_of_the_gpu_and_registrations_do_not_grow_with_saves(memory_path):
    run("""
state = on_gpus(contents(0))
with Checkpoint(path) as kept_state:
    kept_state.save(state)
    held = driver.fake_cuda_device_bytes()
    for step in range(1, 20):
        put_all(state, step)
        kept_state.save(state, wait=step % 3 == 0)
        assert driver.fake_cuda_device_bytes() == held
        assert driver.fake_cuda_registrations() == 2
    state["a"] = on_gpu(torch.zeros(1000, 1000))  # another pool
    kept_state.save(state)
    assert driver.fake_cuda_registrations() == 1
    assert len(list(path.glob("layout-*"))) == 1
assert driver.fake_cuda_registrations() == 0
""", memory_path / "run")  # fmt: skip


def test_room_for_a_snapshot_that_comes_later_is_taken_if_as_much_is_left(memory_path):
    run("""
FakeTorch.has_room = False
state = on_gpus(contents(0))
kept_state = Checkpoint(path)
held, room = 0, FakeTorch.room
def held_after(steps):
    for step in steps:
        put_all(state, step)
        kept_state.save(state, wait=step % 2 == 0)
        put_all(state, -step)
    return driver.fake_cuda_device_bytes() - held
size = sum(value.nbytes for value in state.values())
held = held_after(range(1, 2))  # with what the library has there
assert held_after(range(2, 6)) == 0
FakeTorch.has_room = True
FakeTorch.room = lambda self, device: size * 3 // 2  # of which the program may need some
assert held_after(range(6, 40)) == 0
FakeTorch.room = room
assert held_after(range(40, 49)) == 0
taken = held_after(range(49, 50))
assert size <= taken < size + 5000, taken
assert held_after(range(50, 60)) == taken
kept_state.close()
with Checkpoint(path) as kept_state:
    assert equal(kept_state.load(), 59)
""", memory_path / "run")  # fmt: skip


def test_a_save_of_which_any_call_fails_leaves_the_state_before(memory_path):
    said = run("""
state = on_gpus(contents(0))
kept_state = Checkpoint(path)
put_all(state, 1)
kept_state.save(state)
step, failed, call = 1, 0, 0
while True:
    call += 1
    put_all(state, step + 1)
    ask("cuStreamSynchronize", training.cuda_stream)
    before = calls()
    driver.fake_cuda_fail(None, u64(call), 999, 0)
    try:
        kept_state.save(state)
        saved = True
    except (perdure.Error, RuntimeError) as error:
        saved = False
        failed += 1
    passed = calls() - before < call
    driver.fake_cuda_fail(None, u64(0), 0, 0)
    step += saved
    assert equal(kept_state.load(), step), (call, saved)
    if passed:
        break
put_all(state, step + 1)
kept_state.save(state)
assert equal(kept_state.load(), step + 1)
kept_state.close()
assert driver.fake_cuda_registrations() == 0
print(failed)
""", memory_path / "run", FAKE_CUDA_DELAY_US=20)  # fmt: skip
    assert int(said.split()[-1]) >= 20, said


SAVES = """
state = on_gpus(contents(0))
with Checkpoint(path) as kept_state:
    for step in range(1, 4):
        put_all(state, step)
        kept_state.save(state, wait=False)
        print(kept_state.number - 1, flush=True)
        put_all(state, -step)
"""


def test_a_process_that_is_killed_at_any_call_leaves_the_state_before_or_the_next(memory_path):
    log = memory_path / "log"
    run(SAVES, memory_path / "run", FAKE_CUDA_LOG=log, FAKE_CUDA_DELAY_US=20)
    names = [line.split()[2] for line in log.read_text(encoding="utf-8").splitlines()]
    kills = [("KILL_AT", at) for at in range(7, len(names) - 4, max(1, len(names) // 5))]
    kills += [("KILL_COPY", at) for at in (3, 6, 9, 12)]
    found: list[str] = []
    killed: list[bool] = []
    for number, (what, at) in enumerate(kills):
        path = memory_path / f"run{number}"
        said = run(SAVES, path, killed=killed, FAKE_CUDA_DELAY_US=20, **{f"FAKE_CUDA_{what}": at})
        found.append(f"{path}={max([0, *map(int, said.split())])}")
    assert all(killed[:-4]) and any(killed[-4:]), killed
    run("""
for each in sys.argv[1:]:
    place, _, durable = each.rpartition("=")
    with Checkpoint(place) as kept_state:
        found = kept_state.load()
        step = 0 if found is None else int(found["small"])
        assert int(durable) <= step <= int(durable) + 2, (each, step)
        assert step == 0 or equal(found, step), each
""", *found)  # fmt: skip


ASYNC = """
import torch.distributed as dist
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())

def loaded_by_processes():
    found = {name: torch.zeros_like(value) for name, value in contents(0).items()}
    dcp.load(found, storage_reader=PoolReader(path))
    return found
"""


@pytest.mark.parametrize("room", [True, False], ids=["snapshot", "no room for one"])
def test_asynchronous_saves_of_processes_have_the_values_of_their_step(memory_path, room):
    run(f"FakeTorch.has_room = {room}" + ASYNC + """
state = on_gpus(contents(0))
writer = PoolWriter(path)
for step in range(1, 6):
    put_all(state, step)
    saved = dcp.async_save(state, storage_writer=writer)
    put_all(state, -step)
    if step % 2 == 0:
        saved.result()  # else the next one finds it under way
    held = driver.fake_cuda_registrations()
    assert 1 <= held <= 3, held  # the copies in the pool
saved.result()
assert equal(loaded_by_processes(), 5)
put_all(state, 6)
dcp.save(state, storage_writer=writer)
assert equal(loaded_by_processes(), 6)
writer.close()
assert driver.fake_cuda_registrations() == 0
dist.destroy_process_group()
""", memory_path / "run")  # fmt: skip


def test_asynchronous_saves_hold_no_more_memory_from_save_to_save(memory_path):
    run(ASYNC + """
state = on_gpus(contents(0))
writer = PoolWriter(path)
held = []
for step in range(12):
    put_all(state, step)
    dcp.async_save(state, storage_writer=writer).result()
    ask("cuCtxSetCurrent", context)
    held.append((driver.fake_cuda_device_bytes(), driver.fake_cuda_registrations()))
assert len(set(held[2:])) == 1, held
writer.close()
dist.destroy_process_group()
""", memory_path / "run")  # fmt: skip


def test_an_asynchronous_save_whose_transfer_fails_leaves_the_checkpoint_before(memory_path):
    run(ASYNC + """
state = on_gpus(contents(0))
writer = PoolWriter(path)
put_all(state, 1)
dcp.async_save(state, storage_writer=writer).result()
for name in ("cuMemcpyDtoHAsync_v2", "cuEventSynchronize"):
    put_all(state, 2)
    ask("cuStreamSynchronize", training.cuda_stream)
    driver.fake_cuda_fail(name.encode(), u64(1), 999, 0)
    failure = None
    try:
        dcp.async_save(state, storage_writer=writer).result()
    except BaseException as error:  # torch's own is no Exception
        failure = error
    assert "999" in str(failure), (name, failure)
    driver.fake_cuda_fail(None, u64(0), 0, 0)
    assert equal(loaded_by_processes(), 1)
put_all(state, 3)
dcp.async_save(state, storage_writer=writer).result()
assert equal(loaded_by_processes(), 3)
writer.close()
dist.destroy_process_group()
""", memory_path / "run")  # fmt: skip


# A DTensor whose mesh says "cuda", and what torch does with a tensor that is to be there: nothing
# if it is, else a copy by the current stream, from what the memory has when that comes to it.
SHARDED = ASYNC + """
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
mesh = DeviceMesh("cpu", [0])
object.__setattr__(mesh, "_device_type", "cuda")
assert mesh.device_type == "cuda"
moved, real_to = [], torch.Tensor.to
def to(tensor, *where, **options):
    if where[:1] != ("cuda",):
        return real_to(tensor, *where, **options)
    if gpu.torch_gpu.has(tensor):
        return tensor
    moved.append(far(tensor.nbytes).view(tensor.dtype).view(tensor.shape))
    host_to_device(moved[-1], tensor, training)
    return moved[-1]
torch.Tensor.to = to

def loaded_alone(shape):
    found = {"w": torch.zeros(shape)}
    dcp.load(found, storage_reader=PoolReader(path))
    return found["w"]
"""


@pytest.mark.parametrize("kind", ["Shard(0)", "Replicate()"])
def test_asynchronous_saves_of_dtensors_have_what_was_transferred(memory_path, kind):
    run(SHARDED + f"places = [{kind}]" + """
of_gpu = on_gpu(torch.zeros(400, 900))
whole = DTensor.from_local(of_gpu, mesh, places).requires_grad_()
assert whole.to_local().data_ptr() == of_gpu.data_ptr()
writer = PoolWriter(path)
for step in range(1, 6):
    put(of_gpu, torch.full((400, 900), float(step)))
    staged = writer.stage({"w": whole})["w"] if step == 3 else whole
    assert staged.requires_grad and staged.placements == whole.placements
    assert staged.shape == whole.shape and staged.stride() == whole.stride()
    saved = dcp.async_save({"w": whole}, storage_writer=writer)
    put(of_gpu, torch.full((400, 900), -1.0))
    saved.result()
    assert loaded_alone((400, 900)).eq(step).all(), (step, loaded_alone((400, 900)).unique())
assert not moved, "staged bytes went back to the GPU"
writer.close()
dist.destroy_process_group()
""", memory_path / "run", FAKE_CUDA_DELAY_US=3000)  # fmt: skip


@pytest.mark.parametrize("place_bytes", [4096 * 3 + 8, 8 << 20], ids=["parts", "whole"])
def test_a_load_of_processes_passes_to_the_gpu_through_two_places(memory_path, place_bytes):
    run(f"gpu._PLACE_BYTES = {place_bytes}" + ASYNC + """
state = on_gpus(contents(3))
writer = PoolWriter(path)
for step, has_pinned in ((3, True), (4, False)):
    FakeTorch.has_pinned = has_pinned
    put_all(state, step)
    dcp.save(state, storage_writer=writer)
    put_all(state, -1)
    gpu.torch_gpu.puts = 0
    found = dict(state)
    dcp.load(found, storage_reader=PoolReader(path))
    for name, value in contents(step).items():
        assert not value.numel() or same(seen(state[name]), value), (step, name)
    assert (gpu.torch_gpu.puts == 0) == has_pinned, gpu.torch_gpu.puts
send = gpu.torch_gpu.send
def failing(target, source, stream):
    send(target, source, stream)
    raise RuntimeError("of a test")
gpu.torch_gpu.send, FakeTorch.has_pinned = failing, True
try:
    dcp.load(found, storage_reader=PoolReader(path))
except BaseException as error:  # torch's own is no Exception
    assert "of a test" in str(error), error
else:
    raise AssertionError("loaded")
writer.close()
dist.destroy_process_group()
""", memory_path / "run", FAKE_CUDA_DELAY_US=3000)  # fmt: skip


def test_a_staging_that_nobody_saved_stores_nothing_later_to_the_pool(memory_path):
    run(ASYNC + """
writer = PoolWriter(path)
of_gpu = on_gpu(torch.zeros(400, 900))
dcp.async_save({"a": of_gpu}, storage_writer=writer).result()
for step in range(1, 4):
    put(of_gpu, torch.full((400, 900), -1.0))
    writer.stage({"a": of_gpu})
    state = {"a": torch.full((400, 900), float(step))}  # the processor stores where that goes
    dcp.async_save(state, storage_writer=writer).result()
    found = {"a": torch.zeros(400, 900)}
    dcp.load(found, storage_reader=PoolReader(path))
    assert found["a"].eq(step).all(), (step, found["a"].unique())
writer.close()
dist.destroy_process_group()
""", memory_path / "run", FAKE_CUDA_DELAY_US=30_000)  # fmt: skip


def test_tensors_in_objects_of_the_program_are_copied_before_another_thread_reads_them(memory_path):
    run(ASYNC + """
class Held:
    # As an object that has a tensor of torch: deepcopy() asks its stream, pickle another one.
    def __init__(self, tensor):
        self.tensor = tensor
    def __deepcopy__(self, memo):
        made = far(self.tensor.nbytes).view(torch.float32)
        FakeTorch().copy([made], [self.tensor], training)
        memo[id(self.tensor)] = made
        return Held(made)
    def __reduce__(self):
        ask("cuCtxSetCurrent", context)
        found, other = torch.empty(self.tensor.shape), Stream()
        ask("cuMemcpyDtoHAsync_v2", pointer(found.data_ptr()), u64(self.tensor.data_ptr()),
            size_t(found.nbytes), other.cuda_stream)
        ask("cuStreamSynchronize", other.cuda_stream)
        return list, (found.tolist(),)

held = Held(on_gpu(torch.zeros(9)))
writer = PoolWriter(path)
for step in range(1, 4):
    put(held.tensor, torch.full((9,), float(step)))
    dcp.async_save({"held": held}, storage_writer=writer).result()
    found = {"held": None}
    dcp.load(found, storage_reader=PoolReader(path))
    assert found["held"] == [float(step)] * 9, found
writer.close()
dist.destroy_process_group()
""", memory_path / "run", FAKE_CUDA_DELAY_US=30_000)  # fmt: skip


def test_tensors_that_follow_each_other_in_the_pool_come_by_one_transfer(memory_path):
    run("""
def many(step):
    kinds = (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64)
    return [torch.arange(7 + 13 * number).add(step).to(kinds[number % 5]) for number in range(200)]

transfers = lambda: driver.fake_cuda_calls(b"cuMemcpyDtoHAsync_v2")
state = [on_gpu(tensor) for tensor in many(0)]
cpu = torch.arange(9.0)
with Checkpoint(path) as kept_state:
    for step in range(1, 4):
        for tensor, contents_of in zip(state, many(step)):
            put(tensor, contents_of)
        began = transfers()
        kept_state.save({"gpu": state[:100], "cpu": cpu + step, "more": state[100:]})
        assert transfers() - began == 2 or step == 1  # when the kernels are tried
        found = kept_state.load()
        assert same(found["gpu"] + found["more"], many(step)) and same(found["cpu"], cpu + step)
""", memory_path / "run")  # fmt: skip


def test_a_part_of_a_copy_on_the_gpu_is_transferred_from_there(memory_path):
    run("""
from perdure.torch.block_writer import BlockWriter, Leaf
from perdure.torch.blocks import Block
whole = on_gpu(torch.zeros(10, 10_000))
writer = BlockWriter(path, {}, 2)
for step in range(1, 4):
    put(whole, torch.arange(100_000.0).view(10, 10_000) + step)
    [copy] = writer.stage([Leaf("whole", whole, False)])
    assert gpu.torch_gpu.has(copy)
    put(whole, torch.full((10, 10_000), -1.0))
    ask("cuCtxSetCurrent", context)
    held = driver.fake_cuda_device_bytes()
    writer.begin([Block("rows", copy[3:])], {})  # the first one has kernels loaded
    found = writer.newest().tensor("rows")
    assert same(found, torch.arange(30_000.0, 100_000.0).view(7, 10_000) + step), found
    assert driver.fake_cuda_device_bytes() <= held + (step == 1), "another snapshot"
writer.close()
""", memory_path / "run", FAKE_CUDA_DELAY_US=300)  # fmt: skip


def test_copies_that_torch_is_asked_for_have_each_kind_of_tensor():
    run("""
from perdure.torch.gpu import TorchGpu
large = torch.randn(1 << 19)
sources = [torch.randn(5, 3), torch.tensor(7), torch.arange(6).bool(), torch.randn(4, 4).t(),
           torch.randn(3, dtype=torch.complex64).conj(), large, torch.randn(9, 9)[::2, 1:5],
           torch.arange(3, dtype=torch.bfloat16),
           torch.randn(3, dtype=torch.complex128).conj().imag]
assert sources[-1].is_neg()
targets = [torch.empty(each.shape, dtype=each.dtype) for each in sources]
TorchGpu().copy(targets, sources, None)
assert all(torch.equal(target, source) for target, source in zip(targets, sources))
found = TorchGpu().on_host(sources[4])
assert torch.equal(found, sources[4]) and not found.is_conj()
""", "nowhere")  # fmt: skip
