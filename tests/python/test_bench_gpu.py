# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench gpu` and tools/gpu_check.sh: their logic, on a driver that needs no GPU."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from conftest import BUILD, LIMIT_S, ROOT
from perdure_bench import command, gpu
from perdure_bench.facts import Fact

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


def test_every_case_brings_back_what_was_committed_and_nothing_is_called_measured():
    done = _run("./perdure", "bench", "gpu", "--json", BENCH_CUDA_DRIVER=FAKE)
    assert done.returncode == 0, done.stderr
    facts = _facts(done.stdout)
    assert [fact["case"] for fact in facts] == list(CASES)
    reported = {(fact["metric"], fact["value"], fact["holds"]) for fact in facts}
    assert reported == {("wrong", 0, True)}
    assert all(fact["device"].startswith("fake: ") for fact in facts)
    assert all("nothing is measured" in fact["emulated"] for fact in facts)
    assert "torch, torch-save, dcp-async are skipped: " in done.stderr


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


def test_the_check_of_a_gpu_runs_all_of_its_steps():
    done = _run("tools/gpu_check.sh", BUILD, BENCH_CUDA_DRIVER=FAKE, GPU_CHECK_BLOCKS=50,
                GPU_CHECK_BYTES=1_000_000)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    facts = _facts(done.stdout)
    assert all(fact["holds"] for fact in facts)
    cases = [fact["case"] for fact in facts]
    assert cases[0] == "sums of blocks" and cases[-len(CASES) :] == list(CASES)
    kills = [fact["n"] for fact in facts if fact["case"].startswith("kills in a DMA")]
    assert kills == [4, 4]


def test_the_check_of_a_gpu_skips_where_there_is_none():
    done = _run("tools/gpu_check.sh", BUILD, BENCH_CUDA_DRIVER=FAKE, FAKE_CUDA_DEVICES=0)
    assert done.returncode == 0
    assert "skipped: bench_gpu: there is no GPU here" in done.stdout
