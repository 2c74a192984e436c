# SPDX-License-Identifier: BSD-3-Clause
"""The cases of `perdure bench gpu` that are PyTorch's, for a Python that has it: its own ways to
save tensors on a GPU, and Perdure's. The tests run them on the CPU, for what they compare."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from perdure.files import open_new

Way = Callable[[Path, int, int], tuple[dict[str, list[float]], int]]
"""Of a place, bytes and rounds: the samples, by metric, and how many bytes were wrong."""


def clear(place: Path) -> None:
    """A way may have made a file or a folder there."""
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


@dataclass(frozen=True)
class Saver:
    """A way to save one state, at one place."""

    save: Callable[[], object]
    settle: Callable[[], object]  # returns when that is durable
    load: Callable[[], Mapping[str, Any]]  # what is there then, on the processor


def measure(
    saver: Callable[[dict[str, Any], Path], AbstractContextManager[Saver]],
    place: Path,
    size_bytes: int,
    rounds: int,
    device: str = "cuda",
    tensors: int = 16,
) -> tuple[dict[str, list[float]], int]:
    """Samples, and how many bytes were wrong. Another device than CUDA's has no streams. Many
    tensors are of sizes as a model has them: few have most of it."""
    import torch

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    counts = _elements(size_bytes // 4, tensors)
    state = {f"t{i}": torch.zeros(count, device=device) for i, count in enumerate(counts)}
    gigabytes = sum(counts) * 4 / 1e9
    samples: dict[str, list[float]] = {"blocked_ms_per_GB": [], "durable_ms_per_GB": []}
    wrong = 0
    with saver(state, place) as way:
        for number in range(rounds + 1):
            _fill(state, number)
            wait()
            began = time.monotonic_ns()
            way.save()
            if device == "cuda":
                torch.cuda.current_stream().synchronize()  # it goes on
            blocked = time.monotonic_ns() - began
            _fill(state, -1 - number)  # as the program would, which has all of it to itself
            way.settle()
            durable = time.monotonic_ns() - began
            if number > 0:  # the first one makes the files
                samples["blocked_ms_per_GB"].append(blocked / 1e6 / gigabytes)
                samples["durable_ms_per_GB"].append(durable / 1e6 / gigabytes)
            if number in (0, rounds):
                wrong += _wrong_bytes(way.load(), number, counts)
    return samples, wrong


def _elements(all_of_them: int, tensors: int) -> list[int]:
    """Of each: the same, or of many the fewer the more tensors have so many; at least one."""
    if tensors <= 16:
        return [all_of_them // tensors] * tensors
    weights = [1 / (1 + place * 37 % tensors) for place in range(tensors)]  # in no order of size
    return [max(1, int(all_of_them * weight / sum(weights))) for weight in weights]


def _fill(state: Mapping[str, Any], number: int) -> None:
    for place, tensor in enumerate(state.values()):
        tensor.fill_(number * len(state) + place + 1)


def _wrong_bytes(found: Mapping[str, Any], number: int, counts: Sequence[int]) -> int:
    """Of what _fill() had given to tensors of so many elements; all of one that is not so long."""
    wrong = 0
    for place, count in enumerate(counts):
        tensor = found[f"t{place}"]
        value = number * len(counts) + place + 1
        same = int((tensor == value).sum()) if tensor.numel() == count else 0
        wrong += (count - same) * tensor.element_size()
    return wrong


@contextmanager
def checkpoint(state: dict[str, Any], place: Path) -> Iterator[Saver]:
    from perdure.torch import Checkpoint

    with Checkpoint(place) as kept:
        yield Saver(partial(kept.save, state, wait=False), kept.wait, kept.load)


@contextmanager
def torch_save(state: dict[str, Any], place: Path) -> Iterator[Saver]:
    import torch

    def save() -> None:
        place.unlink(missing_ok=True)
        with open_new(place) as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())

    yield Saver(save, lambda: None, partial(torch.load, place, map_location="cpu"))


@contextmanager
def dcp_async(state: dict[str, Any], place: Path) -> Iterator[Saver]:
    import torch.distributed.checkpoint as dcp

    named = {"checkpoint_id": str(place)}
    with _alone(place):
        yield _dcp_saver(state, lambda: clear(place), partial(dcp.load, **named), named)


@contextmanager
def pool_writer(state: dict[str, Any], place: Path) -> Iterator[Saver]:
    import torch.distributed.checkpoint as dcp

    from perdure.torch import PoolReader, PoolWriter

    writer = PoolWriter(place)

    def load(found: dict[str, Any]) -> None:
        dcp.load(found, storage_reader=PoolReader(place))

    with _alone(place):
        try:
            yield _dcp_saver(state, lambda: None, load, {"storage_writer": writer})
        finally:
            writer.close()


def _dcp_saver(
    state: dict[str, Any],
    prepare: Callable[[], None],
    load_to: Callable[[dict[str, Any]], object],
    options: Mapping[str, Any],
) -> Saver:
    import torch
    import torch.distributed.checkpoint as dcp

    under_way: list[Any] = []

    def save() -> None:
        prepare()
        under_way.append(dcp.async_save(state, **options))

    def load() -> dict[str, Any]:
        found = {name: torch.zeros_like(of, device="cpu") for name, of in state.items()}
        load_to(found)
        return found

    return Saver(save, lambda: under_way.pop().result(), load)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """One process, as torch.distributed has it."""
    import torch.distributed as dist

    meeting = place.with_suffix(".meeting")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()
        meeting.unlink(missing_ok=True)


WAYS: Mapping[str, Way] = {
    "torch": partial(measure, checkpoint),
    "torch-500": partial(measure, checkpoint, tensors=500),
    "torch-dcp": partial(measure, pool_writer),
    "torch-save": partial(measure, torch_save),
    "dcp-async": partial(measure, dcp_async),
}
