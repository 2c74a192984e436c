# SPDX-License-Identifier: BSD-3-Clause
"""Saves tensors of PyTorch on a GPU, changes them at once, and compares what comes back.

    torch_check.py cuda    the GPU of this machine
    torch_check.py cpu     for what is compared; the tests run that

Checkpoint, asynchronous saves of a model that FSDP2 has divided (a first one of each start, and
later ones), and elements that a twin array takes. Prints facts, and ends with 1 if one of them does
not hold. Ends with 0 and a sentence where this Python has no PyTorch, or that no GPU.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

STEPS = 6
SMALL = 200  # tensors of a few hundred bytes


def _state(torch: Any, device: str) -> dict[str, Any]:
    kinds = [torch.float32, torch.bfloat16, torch.int64, torch.bool]
    small = {
        f"small{number}": torch.zeros(7 + number, dtype=kinds[number % 4], device=device)
        for number in range(SMALL)
    }
    large = torch.zeros(3000, 1111, device=device)
    return {**small, "large": large, "turned": torch.zeros(70, 300, device=device).t()}


def _fill(torch: Any, state: Mapping[str, Any], step: int) -> None:
    """All kinds that are here have these numbers exactly."""
    for place, tensor in enumerate(state.values()):
        numbers = torch.arange(tensor.numel(), device=tensor.device).add(place + step)
        tensor.copy_(numbers.remainder(251).view(tensor.shape))


def _wrong(torch: Any, found: Mapping[str, Any], expected: Mapping[str, Any]) -> int:
    """Bytes of elements that are others."""
    wrong = 0
    for name, value in expected.items():
        other = found[name].detach().to("cpu")
        wrong += int((other != value).sum()) * value.element_size()
    return wrong


def _copies(state: Mapping[str, Any]) -> dict[str, Any]:
    return {name: of.detach().to("cpu", copy=True) for name, of in state.items()}


def _checkpoint(torch: Any, device: str, place: Path) -> int:
    from perdure.torch import Checkpoint

    state, wrong = _state(torch, device), 0
    for step in range(1, STEPS + 1):
        with Checkpoint(place) as kept:  # each step is a start
            for of in (step, step + 100):
                _fill(torch, state, of)
                expected = _copies(state)
                kept.save(state, wait=False)
                _fill(torch, state, -1)
                wrong += _wrong(torch, kept.load(device), expected)
        with Checkpoint(place) as kept:
            wrong += _wrong(torch, kept.load(), expected)
    return wrong


def _sharded(torch: Any, device: str, place: Path) -> int:
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from perdure.torch import PoolReader, PoolWriter

    def locals_of(state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: of.to_local() for name, of in state.items()}

    backend = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
    dist.init_process_group(
        backend, init_method=f"file://{place}.meeting", rank=0, world_size=1
    )  # fmt: skip
    net = torch.nn.Sequential(torch.nn.Linear(300, 900), torch.nn.Linear(900, 7)).to(device)
    fully_shard(net, mesh=init_device_mesh(device, (1,)))
    wrong = 0
    for step in range(1, STEPS + 1):
        writer = PoolWriter(place)  # each step is a start
        for of in (step, step + 100):
            state = net.state_dict()
            _fill(torch, locals_of(state), of)
            expected = _copies(locals_of(state))
            saved = dcp.async_save({"model": state}, storage_writer=writer)
            _fill(torch, locals_of(state), -1)
            saved.result()
            dcp.load({"model": state}, storage_reader=PoolReader(place))
            wrong += _wrong(torch, locals_of(state), expected)
        writer.close()
    dist.destroy_process_group()
    return wrong


def _parts(torch: Any, device: str, place: Path) -> int:
    import perdure

    rows, size = 5, 100_000
    wrong = 0
    with perdure.open(place) as pool:
        u = pool.array("u", (rows, size), "f4", "twin", checksums=True)
        pool.restart()
        if device != "cpu":
            pool.stream(torch.cuda.current_stream())
        for step in range(1, STEPS + 1):
            for row in range(rows):
                u.write(row * size, torch.full((size,), float(step + row), device=device))
            pool.commit_begin()
            torch.full((rows, size), -1.0, device=device)  # where the elements were, perhaps
            pool.commit_wait()
            found = torch.tensor(u.consistent)
            expected = torch.arange(rows).add(step).view(rows, 1).expand(rows, size)
            wrong += 4 * int((found != expected).sum())
    return wrong


CASES: Mapping[str, Callable[[Any, str, Path], int]] = {
    "PyTorch, Checkpoint": _checkpoint,
    "PyTorch, shards": _sharded,
    "PyTorch, parts of a twin array": _parts,
}


def main(device: str) -> int:
    """The exit code."""
    if importlib.util.find_spec("torch") is None:
        print(f"torch_check: skipped, because {sys.executable} has no PyTorch")
        return 0
    import torch

    warnings.filterwarnings("ignore", message=".*torch.distributed is .*")
    if device != "cpu" and not torch.cuda.is_available():
        print(f"torch_check: skipped, because PyTorch {torch.__version__} finds no GPU here")
        return 0
    good = True
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for case, wrong_of in CASES.items():
        with tempfile.TemporaryDirectory(prefix="perdure-torch-", dir=memory) as folder:
            wrong = wrong_of(torch, device, Path(folder) / "state")
        fact = {"bench": "gpu_check", "case": case, "metric": "wrong", "value": wrong}
        more = {"unit": "bytes", "n": STEPS, "target": 0, "holds": wrong == 0}
        print(json.dumps(fact | more), flush=True)
        good &= wrong == 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
