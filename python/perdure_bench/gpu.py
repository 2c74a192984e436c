# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench gpu`: commits of an array in memory of a GPU, and what others take for the same.

The programs' own times are of the driver alone (bench/gpu.c); the cases of PyTorch need a PyTorch
with CUDA. Pools and files are on tmpfs. All is per GB (10^9 bytes) of state.

    blocked_ms_per_GB   from the commit's call until the program's stream goes on
    durable_ms_per_GB   until the version is durable
    run_time_ratio      of a program with a commit every three transfers of its state, over none
    durable_over_bus    durable, over a bare transfer of the bytes to the host
    wrong               bytes that were not as committed, after a restart on the processor that
                        compared each block with the checksum that the GPU had made; PyTorch's
                        ways: after a load, of tensors that the program changed while they saved

The case `processor` is a program whose array is in memory of the host:

    libraries           of a GPU's driver in a process that has not loaded one
    calls               of the driver in commits, where the program has loaded it, and has its array
                        in memory of the host; the tests' driver counts them
    commit_time_ratio   of the latter over the former, by turns

On the tests' driver without a GPU no other times are reported: they would say nothing of a GPU.
"""

from __future__ import annotations

import operator
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from perdure.programs import ProgramFailed, find_program, run_lines
from perdure.progress import progress
from perdure_bench import gpu_torch
from perdure_bench.facts import Fact
from perdure_bench.solver import huge_page_directory, pool_directory

SUMMARY = "commits of arrays in memory of a GPU, over the bus and over others' ways"
_CASES = ("bus", "copy", "copy-snapshot", "log-1", "log-100", "restart", "fti-way")
# What the design promises on a GPU of a data centre.
_TARGETS = {
    ("copy-snapshot", "blocked_ms_per_GB"): 1.0,
    ("copy-snapshot", "run_time_ratio"): 1.03,
    ("copy-snapshot", "durable_over_bus"): 1.1,
    ("log-1", "durable_ms_per_GB"): 0.7,
    ("restart", "blocked_ms_per_GB"): 40.0,
    ("torch", "blocked_ms_per_GB"): 1.0,
    ("processor", "commit_time_ratio"): 1.03,
}
_PAIRS = 5  # of programs without the driver and with it
_HOST_COMMITS = 9
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
        with progress("bench gpu", _PAIRS + len(_CASES) + len(ways)) as advance:
            bus: list[float] = []
            more = {"device": device}
            yield from _processor(place / "state", size_bytes, is_fake, advance, more)
            for case in _CASES:
                samples, counts = _run(case, place / "state", size_bytes, rounds)
                bus = samples.get("transfer_ms_per_GB", bus)
                more = {"device": device, "emulated": _FAKE} if is_fake else {"device": device}
                wrong = counts["wrong"]
                yield Fact.of("gpu", case, "wrong", [wrong], "bytes", 0, operator.le, more)
                if not is_fake:
                    yield from _facts(case, samples, bus, more)
                advance()
            for case, way in ways.items():
                samples, wrong = way(place / "state", size_bytes, rounds)
                more = {"device": device}
                yield Fact.of("gpu", case, "wrong", [wrong], "bytes", 0, operator.le, more)
                yield from _facts(case, samples, bus, more)
                gpu_torch.clear(place / "state")
                advance()


def _bytes(quick: bool, is_fake: bool) -> int:
    given = os.environ.get("BENCH_GPU_BYTES")
    if given:
        return int(given)
    return 3 << 20 if is_fake else (1 << 30 if quick else 6 << 30)


def _processor(
    place: Path, size_bytes: int, is_fake: bool, advance: Callable[[], None], more: dict
) -> Iterator[Fact]:
    """What a program without arrays on a GPU has of it."""
    counts = {"wrong": 0, "libraries": 0, "calls": 0}
    ratios = []
    for _ in range(_PAIRS):
        alone, without = _run("host", place, size_bytes, _HOST_COMMITS)
        beside, loaded = _run("host-driver", place, size_bytes, _HOST_COMMITS)
        if loaded["libraries"] == 0:
            raise ProgramFailed("bench_gpu host-driver found no driver in its own process")
        counts["wrong"] += without["wrong"] + loaded["wrong"]
        counts["libraries"] += without["libraries"]
        counts["calls"] += loaded["calls"]
        times = [statistics.median(each["commit_ms_per_GB"]) for each in (beside, alone)]
        ratios.append(times[0] / times[1])
        advance()
    for metric, value in counts.items():
        unit = "bytes" if metric == "wrong" else ""
        yield Fact.of("gpu", "processor", metric, [value], unit, 0, operator.le, more)
    target = None if is_fake else _TARGETS["processor", "commit_time_ratio"]
    yield Fact.of("gpu", "processor", "commit_time_ratio", ratios, "", target, more=more)


def _run(
    case: str, place: Path, size_bytes: int, rounds: int
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """The samples of one case, by metric, and what it counted: how many bytes were wrong."""
    command = [find_program("bench_gpu"), case, place, size_bytes, rounds]
    samples: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    for line in run_lines([str(word) for word in command]):
        words = line.split()
        if words[:1] == ["sample"]:
            samples.setdefault(words[1], []).append(float(words[2]))
        elif words[:1] in (["wrong"], ["calls"], ["libraries"]):
            counts[words[0]] = int(words[1])
    gpu_torch.clear(place)
    if "wrong" not in counts:
        raise ProgramFailed(f"bench_gpu {case} did not say whether what it read back was right")
    return samples, counts


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


def _ways_of_torch(is_fake: bool) -> Mapping[str, gpu_torch.Way]:
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
    if not why:
        return gpu_torch.WAYS
    print(f"perdure bench gpu: {', '.join(gpu_torch.WAYS)} are skipped: {why}", file=sys.stderr)
    return {}
