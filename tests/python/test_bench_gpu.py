# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench gpu` and tools/gpu_check.sh: their logic, on a driver that needs no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile

import pytest

from conftest import BUILD, LIMIT_S, ROOT
from perdure_bench import command, gpu
from perdure_bench.facts import Fact
from test_torch import PYTHON
from test_torch import run as run_torch

FAKE = BUILD / "tests/gpu/fake/libcuda.so.1"
CASES = ("bus", "copy", "copy-snapshot", "log-1", "log-100", "restart", "fti-way")


def _run(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PERDURE_BUILD": str(BUILD),
        "FAKE_CUDA_QUIET": "1",
        **{name: str(value) for name, value in more.items()},
    }
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False,
        env=environment, timeout=4 * LIMIT_S, cwd=ROOT,
    )  # fmt: skip


def _facts(printed: str) -> list[dict]:
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def _parts(facts: list[dict]) -> tuple[list[dict], list[dict]]:
    """Those of the processor, and the others."""
    processor = [fact for fact in facts if fact["case"] == "processor"]
    return processor, [fact for fact in facts if fact["case"] != "processor"]


def test_every_case_brings_back_what_was_committed_and_nothing_is_called_measured():
    done = _run("./perdure", "bench", "gpu", "--json", BENCH_CUDA_DRIVER=FAKE)
    assert done.returncode == 0, done.stderr
    processor, facts = _parts(_facts(done.stdout))
    assert [fact["case"] for fact in facts] == list(CASES)
    reported = {(fact["metric"], fact["value"], fact["holds"]) for fact in facts}
    assert reported == {("wrong", 0, True)}
    assert all(fact["device"].startswith("fake: ") for fact in facts)
    assert all("nothing is measured" in fact["emulated"] for fact in facts)
    assert "torch, torch-500, torch-dcp, torch-save, dcp-async are skipped: " in done.stderr
    counted = {fact["metric"]: (fact["value"], fact["holds"]) for fact in processor}
    assert counted.pop("commit_time_ratio")[1] is None  # of this driver nothing is claimed
    assert counted == dict.fromkeys(["wrong", "libraries", "calls"], (0, True))


def test_a_program_whose_arrays_are_on_the_processor_is_counted_as_it_is(tmp_path):
    # With the driver there from the start, which the program has not loaded itself.
    done = _run(BUILD / "bench/bench_gpu", "host", tmp_path / "pool", 100_000, 2, LD_PRELOAD=FAKE)
    assert done.returncode == 0, done.stderr
    counts = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
    assert int(counts["libraries"]) > 0 and counts["calls"] == "0" and counts["wrong"] == "0"


def test_without_a_gpu_there_is_a_sentence():
    done = _run("./perdure", "bench", "gpu", BENCH_CUDA_DRIVER="/nowhere/libcuda.so.1")
    assert done.returncode == 1
    assert "there is no GPU here" in done.stderr


def test_all_benchmarks_leave_it_out_where_there_is_no_gpu(monkeypatch, capsys):
    monkeypatch.setenv("BENCH_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    assert "gpu" not in command._check_names(["all"])
    assert "perdure bench gpu: skipped, because there is no GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    "durable, holds", [(20.0, True), (22.5, False)], ids=["at the bus", "beyond it"]
)
def test_what_is_durable_is_compared_with_the_bus(durable, holds):
    samples = {"blocked_ms_per_GB": [0.5], "durable_ms_per_GB": [durable]}
    facts: list[Fact] = list(gpu._facts("copy-snapshot", samples, [18.0, 20.0, 21.0], {}))
    held = {fact.metric: fact.holds for fact in facts}
    assert held == {"blocked_ms_per_GB": True, "durable_ms_per_GB": None, "durable_over_bus": holds}


@pytest.mark.skipif(PYTHON is None, reason="needs PyTorch, as test_torch.py")
@pytest.mark.parametrize(
    "way, tensors",
    [("checkpoint", 16), ("checkpoint", 500), ("pool_writer", 16), ("pool_writer", 500),
     ("torch_save", 16), ("dcp_async", 16)],
)  # fmt: skip
def test_what_pytorch_saved_is_compared_with_what_was_there(memory_path, way, tensors):
    run_torch(f"way, tensors = '{way}', {tensors}" + """
from contextlib import contextmanager
from perdure_bench import gpu_torch as gpu

samples, wrong = gpu.measure(getattr(gpu, way), path, 1 << 20, 3, "cpu", tensors)
assert wrong == 0, wrong
assert {name: len(values) for name, values in samples.items()} == {
    "blocked_ms_per_GB": 3, "durable_ms_per_GB": 3}
assert all(value > 0 for values in samples.values() for value in values)

@contextmanager
def late(state, place):
    # Saves what the tensors have when it is asked to settle.
    with getattr(gpu, way)(state, place) as of:
        yield gpu.Saver(lambda: None, lambda: (of.save(), of.settle()), of.load)

gpu.clear(path)
_, wrong = gpu.measure(late, path, 1 << 20, 3, "cpu", tensors)
counts = gpu._elements(1 << 18, tensors)
assert len(counts) == tensors and (len(set(counts)) > 200) == (tensors == 500)
assert wrong == 8 * sum(counts), wrong  # of the first round and of the last
""", memory_path / "state")  # fmt: skip


def test_the_check_of_a_gpu_runs_all_of_its_steps():
    done = _run("tools/gpu_check.sh", BUILD, BENCH_CUDA_DRIVER=FAKE, GPU_CHECK_BLOCKS=50,
                GPU_CHECK_BYTES=1_000_000)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    facts = _facts(done.stdout)
    assert all(fact["holds"] for fact in facts if fact["metric"] != "commit_time_ratio")
    cases = [fact["case"] for fact in facts]
    assert cases[0] == "sums of blocks" and cases[-len(CASES) :] == list(CASES)
    assert "processor" in cases
    assert "gpu_check: tensors of PyTorch" in done.stdout and "torch_check: skipped" in done.stdout
    kills = [fact["n"] for fact in facts if fact["case"].startswith("kills in a DMA")]
    assert kills == [4, 4]


@pytest.mark.skipif(PYTHON is None, reason="needs PyTorch, as test_torch.py")
def test_the_check_of_pytorch_compares_what_comes_back_with_what_was_saved():
    script = f"import sys\nsys.path.insert(0, {str(ROOT / 'tests/gpu')!r})" + """
import torch_check
assert torch_check.main("cpu") == 0
copies = torch_check._copies
torch_check._copies = lambda state: {**copies(state), "large": copies(state)["large"] + 1}
assert torch_check._checkpoint(torch, "cpu", path) == 18 * 4 * 3000 * 1111
"""
    with tempfile.TemporaryDirectory() as place:
        facts = _facts(run_torch(script, f"{place}/state"))
    assert [fact["case"] for fact in facts] == [
        "PyTorch, Checkpoint", "PyTorch, shards", "PyTorch, parts of a twin array"
    ]  # fmt: skip
    assert all(fact["holds"] and fact["n"] == 6 for fact in facts)


def test_the_check_of_a_gpu_skips_where_there_is_none():
    done = _run("tools/gpu_check.sh", BUILD, BENCH_CUDA_DRIVER=FAKE, FAKE_CUDA_DEVICES=0)
    assert done.returncode == 0
    assert "skipped: bench_gpu: there is no GPU here" in done.stdout
