# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth
"""Training loops in PyTorch that are killed and go on: weights, losses and random numbers at the
end are those of a loop that was left alone, bit for bit. Skipped where PyTorch is missing."""

from __future__ import annotations

import os
import random
import subprocess
import time

import pytest

from test_torch import HEADER, PYTHON, environment, run
from test_torch import pytestmark as pytestmark

TRAINING = """
import hashlib, os, signal
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler
from perdure.torch import TrainState
kind, kill_at, place = sys.argv[2], int(sys.argv[3]), sys.argv[4]

class Noisy(Dataset):
    def __len__(self):
        return 22
    def __getitem__(self, number):  # draws from all three streams, in this process or in a worker
        noise = torch.rand(8) + random.random() + float(np.random.random())
        return torch.full((8,), float(number)) + noise, torch.tensor([number % 3.0])

def make_loader():
    options = {"batch_size": 4}
    if kind == "own":
        options |= {"shuffle": True, "generator": torch.Generator().manual_seed(5)}
    elif kind == "global":
        options |= {"shuffle": True}
    elif kind == "workers":
        options |= {"shuffle": True, "num_workers": 2}
    else:
        weights = torch.arange(1.0, 23.0)
        options |= {"sampler": WeightedRandomSampler(weights, 22, generator=torch.Generator())}
    return DataLoader(Noisy(), **options)

def maybe_die(here, batches):
    if place == here and batches == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

torch.manual_seed(11); random.seed(12); np.random.seed(13)
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.3), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7)
loader, log = make_loader(), {"losses": [], "batches": 0}
train = TrainState(path, net, optimizer, scheduler, log, loader)
for epoch in train.epochs(3):
    if place == "top":
        train.save()
        maybe_die("top", log["batches"])
    jitter = torch.rand(1)  # runs again after a restart in the middle
    for x, y in train.batches():
        log["batches"] += 1
        optimizer.zero_grad()
        loss = ((net(x) * random.random() - y) ** 2).mean()
        loss.backward()
        maybe_die("before_step", log["batches"])
        optimizer.step()
        log["losses"].append(float(loss))
        maybe_die("before_save", log["batches"])
        if log["batches"] % 2 or place != "seldom":
            train.save()
        maybe_die("after_save", log["batches"])
        maybe_die("seldom", log["batches"])
    maybe_die("epoch_end", log["batches"])
    scheduler.step()
    train.save()
    maybe_die("after_epoch", log["batches"])
digest = hashlib.sha256(b"".join(of.numpy().tobytes() for of in net.state_dict().values()))
print(digest.hexdigest(), len(log["losses"]), log["losses"][-1].hex(), torch.rand(1).item(),
      random.random(), np.random.random(), scheduler.get_last_lr())
"""


@pytest.mark.parametrize("kind", ["own", "global", "workers", "weighted"])
def test_a_training_loop_that_is_killed_ends_with_the_same_bits(memory_path, kind):
    seed = int(os.environ.get("PERDURE_TEST_SEED", time.time_ns() % 2**32))
    print("seed", seed)
    chance = random.Random(seed)
    straight = run(TRAINING, memory_path / "straight", kind, 0, "")
    places = ["before_step", "before_save", "after_save", "seldom"]
    ends = [(6, "epoch_end"), (12, "after_epoch")]
    points = sorted([(chance.randint(1, 18), chance.choice(places)), chance.choice(ends)])
    codes = []
    for batch, place in points:
        command = [PYTHON, "-c", HEADER + TRAINING, memory_path / "killed", kind, batch, place]
        killed = subprocess.run([str(word) for word in command], env=environment(), check=False,
                                capture_output=True, timeout=200)  # fmt: skip
        print(points, killed.stderr[-2000:])
        codes.append(killed.returncode)
    assert codes in ([-9, -9], [-9, 0]), codes  # the second place may have been passed before
    assert run(TRAINING, memory_path / "killed", kind, 0, "") == straight


@pytest.mark.parametrize("kills", [
    [(0, "top")],
    [(6, "top")],
    [(3, "after_save"), (3, "top")],  # the epoch is under way
])  # fmt: skip
@pytest.mark.parametrize("kind", ["own", "global"])
def test_a_save_before_the_batches_of_an_epoch_is_gone_on_from(memory_path, kind, kills):
    straight = run(TRAINING, memory_path / "straight", kind, 0, "")
    for batch, place in kills:
        command = [PYTHON, "-c", HEADER + TRAINING, memory_path / "killed", kind, batch, place]
        killed = subprocess.run([str(word) for word in command], env=environment(), check=False,
                                capture_output=True, timeout=200)  # fmt: skip
        assert killed.returncode == -9, killed.stderr
    assert run(TRAINING, memory_path / "killed", kind, 0, "") == straight


def test_what_the_program_does_before_it_asks_for_batches_again_does_not_last(memory_path):
    run("""
from torch.utils.data import DataLoader
from perdure.torch import TrainState

def start():
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    log = {"sum": torch.zeros(3)}
    loader = DataLoader(torch.arange(24.0).view(6, 4), batch_size=2)
    return net, optimizer, log, TrainState(path, net, optimizer, log, loader)

def step(net, optimizer, log, x):
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()
    log["sum"] += 1

def held(net, optimizer, log):
    moments = [of["momentum_buffer"] for of in optimizer.state.values()]
    return [of.detach().clone() for of in (*net.parameters(), *moments, log["sum"])]

*parts, train = start()
for epoch in train.epochs(1):
    step(*parts, next(train.batches()))
    train.save()
    break
kept = held(*parts)
train.close()
for saves in (False, True):
    *parts, train = start()
    assert same(held(*parts), kept)
    for epoch in train.epochs(1):
        step(*parts, torch.ones(2, 4))  # runs again after a restart in the middle
        if saves:
            train.save()
        next(train.batches())
        assert all(same(*each) for each in zip(held(*parts), kept)), saves
        break
    train.close()
""", memory_path / "run")  # fmt: skip


def test_what_a_training_loop_is_made_of_is_checked(memory_path):
    run("""
from torch.utils.data import DataLoader
from perdure.torch import TrainState
net, loader = model(), DataLoader(list(range(8)), 2)
refused(perdure.InvalidArgument, "int has no state_dict", TrainState, path / "a", 3)
refused(perdure.InvalidArgument, "two loaders", TrainState, path / "a", loader, loader)
workers = DataLoader([1], num_workers=1, persistent_workers=True)
refused(perdure.InvalidArgument, "persistent", TrainState, path / "a", workers)
with TrainState(path / "b", net, loader, gradients=True) as train:
    for epoch in train.epochs(1):
        for number, batch in enumerate(train.batches()):
            net[0].weight.grad = torch.full_like(net[0].weight, number)
            train.save()
            if number == 1:
                break
        break
refused(perdure.WrongShape, "Sequential were kept", TrainState, path / "b", {"a": 1}, loader)
with TrainState(path / "b", net, loader, gradients=True) as train:
    net[0].weight.grad = None
    rest = [batch.tolist() for _ in train.epochs(1) for batch in train.batches()]
    assert rest == [[4, 5], [6, 7]]
    assert net[0].weight.grad.eq(1).all()
with TrainState(path / "b", net, DataLoader([1], 1)) as train:
    next(train.epochs(1))
    refused(perdure.WrongState, "1 batches", lambda: list(train.batches()))
with TrainState(path / "c", net) as train:
    refused(perdure.WrongState, "no loader", lambda: list(train.batches()))
with Checkpoint(path / "d") as kept:
    kept.save({"a": 1})
refused(perdure.WrongShape, "Checkpoint of the program's", TrainState, path / "d", net)

class Stateful(DataLoader):  # what torchdata's StatefulDataLoader promises
    at = 0
    def __iter__(self):
        for number in range(self.at, 5):
            self.at = number + 1
            yield number
        self.at = 0
    def state_dict(self):
        return {"at": self.at}
    def load_state_dict(self, state):
        self.at = state["at"]

stateful = Stateful([0])
with TrainState(path / "e", stateful) as train:
    for epoch in train.epochs(1):
        for batch in train.batches():
            train.save()
            if batch == 2:
                break
        break
with TrainState(path / "e", Stateful([0])) as train:
    assert [list(train.batches()) for _ in train.epochs(1)] == [[3, 4]]
""", memory_path)  # fmt: skip
