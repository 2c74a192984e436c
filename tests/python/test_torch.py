# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth
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
import copy, io, itertools, pathlib, random, sys, warnings
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
import numpy as np
import torch
import perdure, perdure.torch
from perdure.torch import Checkpoint, PoolReader, PoolWriter
import torch.distributed.checkpoint as dcp
path = pathlib.Path(sys.argv[1])
numbers = itertools.count()
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
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return (
            one.dtype == other.dtype and one.shape == other.shape
            and one.stride() == other.stride() and one.requires_grad == other.requires_grad
            and torch.equal(one, other) and same(vars(one), vars(other))
        )
    if isinstance(one, np.ndarray):
        rows = other.flags.c_contiguous or not other.flags.f_contiguous
        return (
            one.dtype == other.dtype and one.shape == other.shape
            and one.flags.c_contiguous == rows
            and one.tobytes() == other.tobytes()
        )
    if isinstance(one, dict):
        return (
            same(list(one), list(other)) and all(same(one[key], other[key]) for key in one)
            and same(getattr(one, "__dict__", 0), getattr(other, "__dict__", 0))
            and getattr(one, "default_factory", 0) is getattr(other, "default_factory", 0)
        )
    if isinstance(one, (list, tuple, deque)):
        room = getattr(one, "maxlen", 0) == getattr(other, "maxlen", 0)
        return room and len(one) == len(other) and all(map(same, one, other))
    return one == other or (one != one and other != other)

def loaded(state):
    # What Checkpoint gives back.
    folder = path / f"state-{next(numbers)}"
    with Checkpoint(folder) as kept:
        kept.save(state)
    with Checkpoint(folder) as kept:
        return kept.load()

def saved_and_loaded(state):
    # The same, and what torch.save and torch.load give back.
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return loaded(state), torch.load(file, weights_only=False)
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


def test_a_checkpoint_has_room_for_two_states_and_without_more_keeps_the_old_one(memory_path):
    run("""
import perdure.torch.block_writer as writing
kept = Checkpoint(path)
kept.save({"u": torch.full((1 << 24,), 1.5)})
room = sum(file.stat().st_blocks * 512 for file in path.rglob("*"))
assert 2 * (64 << 20) <= room < 2.2 * (64 << 20), room
class Full:
    NoSpace, Error = perdure.NoSpace, perdure.Error
    def open(self, *where, **options):
        raise perdure.NoSpace("full")
whole, writing.perdure = writing.perdure, Full()
refused(perdure.NoSpace, "full", kept.save, {"u": torch.ones(2 << 24)})
writing.perdure = whole
assert kept.load()["u"].eq(1.5).all() and kept.number == 1
assert kept.save({"u": torch.full((2 << 22,), 2.5)}) == 2
assert kept.load()["u"].eq(2.5).all() and len(list(path.iterdir())) == 1
kept.close()
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
import enum
Colour = enum.IntEnum("Colour", "RED")
Point = namedtuple("Point", "x y")
class Own(torch.Tensor):
    pass
class OwnDict(dict):
    pass
for value, words in (
    (object(), "is object"), (Colour.RED, "keep int("), (Point(1, 2), "keep tuple("),
    (OwnDict(), "keep dict("), (torch.ones(2).as_subclass(Own), "Own"), (len, "builtin"),
    (np.ma.array([1]), "keep numpy.array("), (np.array([None]), "dtype object"),
    (torch.Generator(), "Generator"), (defaultdict(lambda: 0), "defaultdict of"),
    (torch.nn.Linear(1, 1), "Linear"), (torch.eye(3).to_sparse(), "sparse"),
    (torch.empty(3, device="meta"), "meta"),
    (slice(1), "slice"), (bytearray(b"x"), "bytearray"), (range(3), "range"),
):
    refused(TypeError, words, kept.save, {"model": {"x": value}})
    refused(TypeError, "state['model'][1]", kept.save, {"model": [0, value]})
refused(TypeError, "state's key ", kept.save, {Colour.RED: 3})
loop = {}
loop["self"] = [loop]
refused(TypeError, "state['self'][0] contains itself", kept.save, loop)
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


def test_types_and_keys_come_back_as_they_were(memory_path):
    run("""
state = {
    "types": [
        OrderedDict(b=1, a=2), Counter("abca"), defaultdict(list, {1: [2]}), defaultdict(None),
        deque([1, 2], 5), deque(), (1, [2], ()), {1, 2}, frozenset("ab"), torch.Size([2, 3]),
        2**70, -2**5000, 1 + 2j, float("nan"), -0.0, b"x" * 3000, b"", "\\ud800", None, True,
        torch.float16, torch.device("cuda:1"), np.float32(1.5), np.bool_(True), np.str_("a"),
        np.datetime64("2026-11-28T12", "ms"),
    ],
    "keys": {1: "i", 2.5: "f", None: "n", (1, b"b"): "t", b"k": "b", frozenset({3}): "s"},
    "bools": {True: 1, False: 0}, "ints": {1: True, 0: False},
    "arrays": [
        np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((3, 4), ">i2")), np.array(5),
        np.zeros((0, 3)), np.array(["2026-11-28"], "M8[D]"), np.array([1, 2], "m8[25s]"),
        np.array([(1, "a", [2, 3])], [("n", "i1"), ("t", "U4"), ("v", ">f4", (2,))]),
        np.zeros(3, np.dtype([("a", "i1"), ("b", "f8")], align=True)), np.array([b"ab", b"c"]),
        np.ones(2, np.longdouble), np.arange(10)[::-3],
    ],
}
state["types"][0]._metadata = OrderedDict({"": {"version": 2}})
ours = loaded(state)
assert same(ours, state), ours
""", memory_path / "run")  # fmt: skip


def test_shared_storages_are_kept_once_and_come_back_shared(memory_path):
    run("""
nn = torch.nn
net = nn.Sequential(nn.Linear(64, 64, bias=False), nn.Linear(64, 64, bias=False))
net[1].weight = net[0].weight
whole = torch.arange(1000.0)
wide = torch.ones(1).expand(3000, 4000)
again = [1, 2]
state = {
    "net": net.state_dict(), "whole": whole, "part": whole[10:20],
    "turned": whole.view(10, 100).t(), "bytes": whole.view(torch.uint8)[40:80],
    "wide": wide, "twice": [again, again], "array": [a := np.ones(3), a],
    "small": torch.zeros(10**7)[5:8],
    "image": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    "gaps": torch.randn(9, 9)[::2, 1:5], "none": torch.empty(0, 4), "one": torch.tensor(3),
    "parameter": nn.Parameter(torch.ones(2), requires_grad=False), "own": net[0].weight,
    "leaf": torch.ones(3, requires_grad=True), "conj": torch.tensor([1 + 2j]).conj(),
}
state["leaf"].colour = ["red"]
ours = loaded(state)
assert same(ours, state), ours
room = sum(entry.stat().st_size for entry in path.rglob("rank-*"))
assert room < 2 * 10**6, room  # of the 10**7 floats three are kept, and tied weights once
ours["whole"][12] = -1
assert ours["part"][2] == -1 and ours["turned"][12, 0] == -1
assert ours["bytes"].view(torch.float32)[2] == -1
first, second = list(ours["net"].values())
first[0, 0] = 7
assert second[0, 0] == 7 and ours["own"][0, 0] == 7
assert ours["twice"][0] is ours["twice"][1] and ours["array"][0] is ours["array"][1]
assert ours["image"].is_contiguous(memory_format=torch.channels_last)
assert same(ours["net"]._metadata, state["net"]._metadata)
""", memory_path / "run")  # fmt: skip


def test_streams_of_random_numbers_go_on_where_they_were(memory_path):
    run("""
def draw():
    return [torch.rand(3), np.random.rand(3), [g.random(3) for g in generators], random.random(),
            own.initial_seed(), torch.rand(3, generator=own)]

bits = (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
generators = [np.random.Generator(kind(5)) for kind in bits]
own = torch.Generator().manual_seed(4)
draw()
state = {"torch": torch.get_rng_state(), "own": own.get_state(), "numpy": np.random.get_state(),
         "generators": [g.bit_generator.state for g in generators], "random": random.getstate()}
expected = [draw(), draw()]
ours = loaded(state)
torch.set_rng_state(ours["torch"])
own.set_state(ours["own"])
np.random.set_state(ours["numpy"])
for generator, found in zip(generators, ours["generators"]):
    generator.bit_generator.state = found
random.setstate(ours["random"])
assert same([draw(), draw()], expected)
""", memory_path / "run")  # fmt: skip


def test_each_optimizer_of_torch_goes_on_as_after_torch_save(memory_path):
    run("""
optim = torch.optim
kinds = {name: kind for name, kind in vars(optim).items()
         if isinstance(kind, type) and issubclass(kind, optim.Optimizer)}
del kinds["Optimizer"]
assert len(kinds) >= 13, kinds
more = {"SGD": {"momentum": 0.9, "nesterov": True}, "RMSprop": {"momentum": 0.1, "centered": True},
        "Adam": {"amsgrad": True}, "ASGD": {"t0": 1}, "LBFGS": {"history_size": 2}}

def steps(net, optimizer, count, sparse):
    for step in range(count):
        def loss():
            optimizer.zero_grad()
            entries = torch.tensor([step % 4, 2]) if sparse else torch.linspace(0, 1, 12).view(3, 4)
            found = net(entries).square().sum()
            found.backward()
            return found
        optimizer.step(loss)

for name, kind in sorted(kinds.items()):
    sparse = name == "SparseAdam"
    def fresh():
        torch.manual_seed(2)
        net = (torch.nn.Embedding(4, 3, sparse=True) if sparse
               else torch.nn.Linear(4, 3, bias=name != "Muon"))
        options = {"lr": 0.01} if name != "Adafactor" else {}
        return net, kind(net.parameters(), **options, **more.get(name, {}))
    net, optimizer = fresh()
    steps(net, optimizer, 3, sparse)
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
    ours, theirs = saved_and_loaded(state)
    assert same(ours, theirs) and same(ours, state), name
    ends = []
    for found in (ours, theirs):
        net, optimizer = fresh()
        net.load_state_dict(found["net"])
        optimizer.load_state_dict(found["optimizer"])
        steps(net, optimizer, 3, sparse)
        ends.append([net.state_dict(), optimizer.state_dict()])
    assert same(*ends), name
    print(name)
""", memory_path / "run")  # fmt: skip


def test_each_scheduler_of_torch_goes_on_as_after_torch_save(memory_path):
    run("""
from torch.optim import lr_scheduler as s, swa_utils
makers = {
    "LambdaLR": lambda o: s.LambdaLR(o, lambda n: 0.9 ** n),
    "MultiplicativeLR": lambda o: s.MultiplicativeLR(o, lambda n: 0.9),
    "StepLR": lambda o: s.StepLR(o, 2),
    "MultiStepLR": lambda o: s.MultiStepLR(o, [2, 2, 4]),
    "ConstantLR": lambda o: s.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda o: s.LinearLR(o, 0.5),
    "ExponentialLR": lambda o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda o: s.PolynomialLR(o, 6),
    "CosineAnnealingLR": lambda o: s.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda o: s.CosineAnnealingWarmRestarts(o, 2),
    "CyclicLR": lambda o: s.CyclicLR(o, 0.1, 1.0, step_size_up=2, cycle_momentum=False),
    "OneCycleLR": lambda o: s.OneCycleLR(o, 1.0, total_steps=20, cycle_momentum=False),
    "ReduceLROnPlateau": lambda o: s.ReduceLROnPlateau(o, patience=1),
    "SequentialLR": lambda o: s.SequentialLR(
        o, [s.ConstantLR(o, 1.0, 1), s.MultiStepLR(o, [3])], [3]),
    "ChainedScheduler": lambda o: s.ChainedScheduler(
        [s.ConstantLR(o, 0.5, 3), s.ExponentialLR(o, 0.9)]),
}
known = {name for name, kind in vars(s).items() if isinstance(kind, type)
         and (issubclass(kind, s.LRScheduler) or name == "ReduceLROnPlateau")}
assert known - {"LRScheduler", "_LRScheduler"} == set(makers), known

def steps(optimizer, scheduler, count):
    rates = []
    for step in range(count):
        optimizer.step()
        if isinstance(scheduler, s.ReduceLROnPlateau):
            scheduler.step(1.0)
        else:
            scheduler.step()
        rates.append([group["lr"] for group in optimizer.param_groups])
    return rates

for name, make in makers.items():
    def fresh():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.5)
        return optimizer, make(optimizer)
    for before in (0, 1, 4):
        optimizer, scheduler = fresh()
        steps(optimizer, scheduler, before)
        state = {"o": optimizer.state_dict(), "s": scheduler.state_dict()}
        ours, theirs = saved_and_loaded(state)
        assert same(ours, theirs) and same(ours, state), (name, ours, theirs)
        ends = []
        for found in (ours, theirs):
            optimizer, scheduler = fresh()
            optimizer.load_state_dict(found["o"])
            scheduler.load_state_dict(found["s"])
            ends.append([steps(optimizer, scheduler, 8), scheduler.state_dict()])
        assert same(*ends), (name, before, ends)
    print(name)
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.5)
averaged = swa_utils.SWALR(optimizer, 0.1, anneal_epochs=3).state_dict()
refusals = [key for key, value in averaged.items() if callable(value)]
if refusals:  # torch.save keeps a function by its name, which load() would have to look up
    with Checkpoint(path / "swa") as kept:
        refused(TypeError, f"state['{refusals[0]}'] is ", kept.save, averaged)
print(averaged)
""", memory_path / "run")  # fmt: skip


def test_a_crafted_checkpoint_is_an_error_and_runs_nothing(memory_path):
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns() % 2**32))
    print("seed", seed)
    count = int(os.environ.get("PERDURE_FUZZ_INPUTS", "3000"))
    run(f"seed, count = {seed}, {count}" + """
import json
from perdure.torch.blocks import Blocks, InMemory
from perdure.torch.tensors import decode_state, encode_state

def checkpoint(text, entries, memory):
    index = {"format": 2, "room": 4096, "head": 2048, "number": 1, "blocks": entries}
    head = json.dumps(index).encode()
    whole = bytearray(len(head).to_bytes(8, "little") + head)
    whole += bytes(4096 - len(whole))
    whole[2048:2048 + len(memory)] = memory
    return Blocks(InMemory(memoryview(bytes(whole))), "crafted")

memory = bytes(range(64))
entry = {"key": "0", "kind": "uint8", "shape": [64], "room": 64, "offset": 2048, "size": 64}
good = {"storage": 0, "first": 0, "dtype": "float32", "shape": [4], "strides": [1], "grad": False}

def read(text, entries=(entry,)):
    return decode_state(json.dumps(text).encode(), checkpoint(text, list(entries), memory), "c")

assert read({"tensor": good}).shape == (4,)
wrong = [
    {"strides": [16]}, {"first": 61}, {"first": 2}, {"shape": [17]}, {"shape": [-1]},
    {"shape": [2**62], "strides": [0]}, {"shape": [2**40, 2**40], "strides": [0, 0]},
    {"strides": [2**63]}, {"strides": [-1]}, {"shape": [4, 1]}, {"dtype": "load"}, {"dtype": 3},
    {"dtype": "quint8"}, {"storage": 1}, {"storage": True}, {"storage": "0"}, {"shape": "4"},
    {"attributes": [[1, 2]]}, {"dtype": "int32", "grad": True}, {"shape": [1.0]},
]
for change in wrong:
    refused(perdure.Error, "", read, {"tensor": {**good, **change}})
for change in ({"offset": -8}, {"offset": 2**64}, {"size": 65}, {"room": 10**9}, {"shape": [-64]},
               {"shape": [65]}, {"kind": 1}, {"kind": "O"}, {"key": None}, {"offset": 2048.0}):
    refused(perdure.Error, "", read, {"tensor": good}, [{**entry, **change}])
for text in ({"ndarray": ["|O", [8], "C", 0]}, {"ndarray": ["<f8", [2**61], "C", 0]},
             {"ndarray": [{"names": ["a"], "formats": ["<f8"], "offsets": [60], "titles": [None],
                           "itemsize": 64, "aligned": False}, [1], "C", 0]},
             {"numpy": ["|O8", "AAAAAAAAAAA="]}, {"same": 0}, {"eval": "1"}, {"device": "x:y"},
             {"defaultdict": ["eval", []]}, {"int": "9" * 9000 + "g"}, {"Size": [-1]}):
    refused(perdure.Damaged, "", read, text)

state = {"t": torch.ones(2, 3), "a": np.arange(4), "l": [1, 2.5, b"x", {None: (1,)}],
         "o": Counter("a")}
text, blocks = encode_state(state)
chance = random.Random(seed)
entries = [{**entry, "key": str(n), "shape": [b.nbytes], "size": b.nbytes}
           for n, b in enumerate(blocks)]
found = checkpoint(None, entries, memory)
outcomes = Counter()
for _ in range(count):
    changed = bytearray(text)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(changed))
        pieces = [b"9", b"-1", b"[]", b"{}", b'"', b"null", b"0", b"]", b"1e999", b"\\x7f"]
        changed[place:place + chance.randint(0, 3)] = chance.choice(pieces)
    try:
        decode_state(bytes(changed), found, "c")
        outcomes["read"] += 1
    except (perdure.Damaged, perdure.NotFound):
        outcomes["refused"] += 1
print(outcomes)
assert outcomes["refused"] > count / 4
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
    while acknowledged == 0 or chance.random() < 0.8:
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
            # Some are killed in their first save; the others have saved something.
            lines = [job.stdout.readline()] if chance.random() < 0.7 else []
            time.sleep(chance.uniform(0, 0.3))
            job.kill()
            lines += job.stdout.read().splitlines()
        done = [int(line.split()[1]) for line in lines if line.startswith("saved ")]
        acknowledged = max([acknowledged, int(begins[1]), *done])


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
