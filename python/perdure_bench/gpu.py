# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench gpu`: commits of an array in memory of a GPU, and what others take for the same.

The programs' own times are of the driver alone (bench/gpu.c); the cases of PyTorch need a PyTorch
with CUDA. Pools and files are on tmpfs. All is per GB (10^9 bytes) of state.

    blocked_ms_per_GB   from the commit's call until the program's stream goes on
    durable_ms_per_GB   until the version is durable
    run_time_ratio      of a program with a commit every three transfers of its state, over none
    durable_over_bus    durable, over a bare transfer of the bytes to the host
    wrong               bytes that were not as committed, after a restart on the processor that
                        compared each block with the checksum that the GPU had made

On the tests' driver without a GPU only `wrong` is reported: times would say nothing of a GPU.
"""

from __future__ import annotations

import operator
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perdure.files import open_new
from perdure.programs import ProgramFailed, find_program, run_lines
from perdure.progress import progress
from perdure_bench.facts import Fact
from perdure_bench.solver import huge_page_directory, pool_directory

SUMMARY = "commits of arrays in memory of a GPU, over the bus and over others' ways"
_CASES = ("bus", "copy", "copy-snapshot", "log-1", "log-100", "restart", "fti-way")
_OF_TORCH = ("torch", "torch-save", "dcp-async")
# What the design promises on a GPU of a data centre.
_TARGETS = {
    ("copy-snapshot", "blocked_ms_per_GB"): 1.0,
    ("copy-snapshot", "run_time_ratio"): 1.03,
    ("copy-snapshot", "durable_over_bus"): 1.1,
    ("log-1", "durable_ms_per_GB"): 0.7,
    ("restart", "blocked_ms_per_GB"): 40.0,
    ("torch", "blocked_ms_per_GB"): 1.0,
}
_FAKE = "a driver without a GPU: nothing is measured"


def driver_name() -> str | None:
    """The device that the driver has, "fake: …" of the tests' driver; None where there is none."""
    found = subprocess.run(
        [str(find_program("bench_gpu")), "driver"], capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        return None
    words = [line for line in found.stdout.splitlines() if line.startswith("driver ")]
    return words[-1].removeprefix("driver ")


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within a minute. Raises ProgramFailed."""
    device = driver_name()
    if device is None:
        raise ProgramFailed("there is no GPU here whose driver (libcuda.so.1) can be loaded")
    is_fake = device.startswith("fake: ")
    size_bytes = _bytes(quick, is_fake)
    rounds = 2 if is_fake else 3 if quick else 9
    with pool_directory() as place, huge_page_directory(place):
        ways = _ways_of_torch(is_fake)
        with progress("bench gpu", len(_CASES) + len(ways)) as advance:
            bus: list[float] = []
            for case in _CASES:
                samples, wrong = _run(case, place / "state", size_bytes, rounds)
                bus = samples.get("transfer_ms_per_GB", bus)
                more = {"device": device, "emulated": _FAKE} if is_fake else {"device": device}
                yield Fact.of("gpu", case, "wrong", [wrong], "bytes", 0, operator.le, more)
                if not is_fake:
                    yield from _facts(case, samples, bus, more)
                advance()
            for case, way in ways.items():
                yield from _facts(case, way(place / "state", size_bytes, rounds), bus,
                                  {"device": device})  # fmt: skip
                _clear(place / "state")
                advance()


def _bytes(quick: bool, is_fake: bool) -> int:
    given = os.environ.get("BENCH_GPU_BYTES")
    if given:
        return int(given)
    return 3 << 20 if is_fake else (1 << 30 if quick else 6 << 30)


def _clear(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _run(case: str, place: Path, size_bytes: int, rounds: int) -> tuple[dict, int]:
    """The samples of one case, by metric, and how many bytes were wrong."""
    command = [find_program("bench_gpu"), case, place, size_bytes, rounds]
    samples: dict[str, list[float]] = {}
    wrong = None
    for line in run_lines([str(word) for word in command]):
        words = line.split()
        if words[:1] == ["sample"]:
            samples.setdefault(words[1], []).append(float(words[2]))
        elif words[:1] == ["wrong"]:
            wrong = int(words[1])
    _clear(place)
    if wrong is None:
        raise ProgramFailed(f"bench_gpu {case} did not say whether what it read back was right")
    return samples, wrong


def _facts(
    case: str, samples: Mapping[str, list[float]], bus: list[float], more: dict
) -> Iterator[Fact]:
    for metric, values in samples.items():
        unit = "ms/GB" if metric.endswith("_per_GB") else ""
        target = _TARGETS.get((case, metric))
        yield Fact.of("gpu", case, metric, values, unit, target, more=more)
    if "durable_ms_per_GB" in samples and bus:
        ratios = [durable / statistics.median(bus) for durable in samples["durable_ms_per_GB"]]
        target = _TARGETS.get((case, "durable_over_bus"))
        yield Fact.of("gpu", case, "durable_over_bus", ratios, "", target, more=more)


# --- PyTorch ------------------------------------------------------------------------------------

_Way = Callable[[Path, int, int], dict[str, list[float]]]


def _ways_of_torch(is_fake: bool) -> dict[str, _Way]:
    """The cases of PyTorch, or none and a sentence that says why."""
    why = ""
    if is_fake:
        why = "the driver is the tests', which PyTorch cannot use"
    elif find_spec("torch") is None:
        why = "PyTorch is not there"
    else:
        import torch

        if not torch.cuda.is_available():
            why = "this PyTorch has no CUDA"
    if why:
        print(f"perdure bench gpu: {', '.join(_OF_TORCH)} are skipped: {why}", file=sys.stderr)
        return {}
    return {
        "torch": partial(_measure_torch, _checkpoint),
        "torch-save": partial(_measure_torch, _torch_save),
        "dcp-async": partial(_measure_torch, _dcp_async),
    }


# Of a state and a place: what saves, and what waits until that is durable.
_Saver = tuple[Callable[[], object], Callable[[], object]]


def _measure_torch(
    saver: Callable[[dict[str, Any], Path], AbstractContextManager[_Saver]],
    place: Path,
    size_bytes: int,
    rounds: int,
) -> dict[str, list[float]]:
    import torch

    tensors = 16
    elements = size_bytes // tensors // 4
    state = {f"t{i}": torch.zeros(elements, device="cuda") for i in range(tensors)}
    gigabytes = tensors * elements * 4 / 1e9
    samples: dict[str, list[float]] = {"blocked_ms_per_GB": [], "durable_ms_per_GB": []}
    with saver(state, place) as (save, settle):
        for number in range(rounds + 1):
            for tensor in state.values():
                tensor.fill_(number + 1)
            torch.cuda.synchronize()
            began = time.monotonic_ns()
            save()
            passed = torch.cuda.Event()
            passed.record()
            passed.synchronize()  # the stream goes on
            blocked = time.monotonic_ns() - began
            settle()
            durable = time.monotonic_ns() - began
            if number > 0:  # the first one makes the files
                samples["blocked_ms_per_GB"].append(blocked / 1e6 / gigabytes)
                samples["durable_ms_per_GB"].append(durable / 1e6 / gigabytes)
    return samples


@contextmanager
def _checkpoint(state: dict[str, Any], place: Path) -> Iterator[_Saver]:
    from perdure.torch import Checkpoint

    with Checkpoint(place) as kept:
        yield partial(kept.save, state, wait=False), kept.wait


@contextmanager
def _torch_save(state: dict[str, Any], place: Path) -> Iterator[_Saver]:
    import torch

    def save() -> None:
        place.unlink(missing_ok=True)
        with open_new(place) as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())

    yield save, lambda: None


@contextmanager
def _dcp_async(state: dict[str, Any], place: Path) -> Iterator[_Saver]:
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp

    meeting = place.with_suffix(".meeting")
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=0, world_size=1)
    under_way: list[Any] = []

    def save() -> None:
        _clear(place)
        under_way.append(dcp.async_save(state, checkpoint_id=str(place)))

    try:
        yield save, lambda: under_way.pop().result()
    finally:
        dist.destroy_process_group()
        meeting.unlink(missing_ok=True)
