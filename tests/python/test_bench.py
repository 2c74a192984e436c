# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench`: facts are read, shown with what was missed, and drawn."""

from __future__ import annotations

import io
import json
import operator
import os
import subprocess
import time
from dataclasses import replace

import pytest
from rich.console import Console

from conftest import LIMIT_S, ROOT
from perdure.run.process_table import read_process
from perdure_bench import python as commits
from perdure_bench import veloc
from perdure_bench.facts import Fact, NotAFact, facts_table, number_text, parse_fact, read_facts
from perdure_bench.plot import draw, metrics_of

LINE = {
    "bench": "persist", "case": "copy 64 MiB", "metric": "ratio to memcpy", "value": 1.25,
    "unit": "", "low": 1.2, "high": 1.3, "n": 9, "target": 1.0, "holds": False,
    "emulated": "bandwidth 1/8",
}  # fmt: skip


def test_fact_keeps_every_field_and_writes_the_same_line():
    fact = parse_fact(json.dumps(LINE))
    assert (fact.value, fact.holds, fact.more) == (1.25, False, {"emulated": "bandwidth 1/8"})
    assert json.loads(fact.line()) == LINE


@pytest.mark.parametrize(
    "samples, low, middle, high",
    [
        ([7.0], 7.0, 7.0, 7.0),
        ([1.0, 2.0], 1.25, 1.5, 1.75),  # the exclusive method says 0.75 and 2.25: beyond both
        ([3.0, 1.0, 2.0], 1.5, 2.0, 2.5),  # and here 1 and 3, which are the ends
        ([5.0, 1.0, 2.0, 4.0, 3.0], 2.0, 3.0, 4.0),
    ],
)
def test_quartiles_of_few_samples_lie_between_them(samples, low, middle, high):
    fact = Fact.of("bench", "case", "metric", samples, "s", more={"mpi": "mpich"})
    assert (fact.low, fact.value, fact.high) == (low, middle, high)
    assert (fact.n, fact.unit, fact.holds) == (len(samples), "s", None)
    assert fact.more == {"mpi": "mpich"}


def test_a_target_is_kept_by_the_median_and_not_by_the_best_sample():
    samples = [0.9, 1.1, 1.2]
    assert Fact.of("bench", "case", "ratio", samples, target=1.0).holds is False
    assert Fact.of("bench", "case", "ratio", samples, target=1.1).holds is True
    assert Fact.of("bench", "case", "ratio", samples, target=1.1, keeps=operator.lt).holds is False
    assert Fact.of("bench", "case", "speedup", samples, target=1.0, keeps=operator.ge).holds is True


def test_only_facts_compute_quartiles():
    makers = [path for path in (ROOT / "python").rglob("*.py") if "quantiles(" in path.read_text()]
    assert [path.name for path in makers] == ["facts.py"]


def test_optional_fields_may_be_null_or_absent():
    short = {key: LINE[key] for key in ("bench", "case", "metric", "value", "unit")}
    fact = parse_fact(json.dumps({**short, "target": None, "holds": None, "low": None}))
    assert fact == Fact("persist", "copy 64 MiB", "ratio to memcpy", 1.25, "")


@pytest.mark.parametrize("line", ["{", "{}", '{"bench": 1}', json.dumps({**LINE, "value": "big"})])
def test_what_is_no_fact_is_refused(line):
    with pytest.raises(NotAFact):
        parse_fact(line)


def test_lines_that_are_not_json_are_left_out():
    assert [fact.value for fact in read_facts(["# note\n", json.dumps(LINE), "\n"])] == [1.25]


def test_table_shows_misses_and_emulation():
    held = parse_fact(json.dumps({**LINE, "case": "other", "holds": True}))
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(facts_table("title", [parse_fact(json.dumps(LINE)), held]))
    text = console.export_text()
    assert "MISSED" in text and "holds" in text and "bandwidth 1/8" in text and "1.2 to 1.3" in text


@pytest.mark.parametrize(
    "value, text",
    [(0, "0"), (12, "12"), (1.0, "1"), (12345, "12 345"), (0.12345, "0.1235"), (1e-7, "1e-07")],
)
def test_numbers_have_four_digits(value, text):
    assert number_text(value) == text


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_plot_is_drawn_with_a_panel_per_metric(tmp_path, suffix):
    facts = [parse_fact(json.dumps({**LINE, "case": f"case {i}"})) for i in range(3)]
    facts.append(parse_fact(json.dumps({**LINE, "metric": "time", "unit": "s", "holds": None})))
    assert [len(group) for group in metrics_of(facts).values()] == [3, 1]
    draw(facts, "persist", tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").stat().st_size > 1000


def test_plot_without_facts_is_refused(tmp_path):
    with pytest.raises(ValueError):
        draw([], "nothing", tmp_path / "a.png")


@pytest.fixture
def bench(tmp_path):
    """`perdure bench` with a bench_persist that prints `text` and ends with `code`."""

    def run(text: str, code: int, *words) -> subprocess.CompletedProcess:
        program = tmp_path / "bench/bench_persist"
        program.parent.mkdir(exist_ok=True)
        (tmp_path / "facts").write_text(text)
        program.write_text(f'#!/bin/sh\ncat "{tmp_path}/facts"\necho "$@" >&2\nexit {code}\n')
        program.chmod(0o755)
        environment = {**os.environ, "PERDURE_BUILD": str(tmp_path)}
        command = [str(ROOT / "perdure"), "bench", "persist", *words]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=60, check=False
        )

    return run


def test_command_passes_facts_through_as_json(bench):
    done = bench(json.dumps(LINE) + "\n", 0, "--json", "--quick")
    assert json.loads(done.stdout) == LINE and done.returncode == 0 and "--quick" in done.stderr


def test_missed_target_of_a_full_run_is_a_failure(bench):
    done = bench(json.dumps(LINE) + "\n", 0)
    assert done.returncode == 1 and "0 of 1 targets hold, 1 missed" in done.stdout


def test_failed_or_unreadable_programs_are_told(bench):
    assert "ended with 3" in bench("", 3).stderr
    assert "not a JSON line" in bench("{nonsense\n", 0).stderr


def test_unknown_benchmarks_are_refused(perdure):
    ran = perdure("bench", "nothing")
    assert ran.code == 2 and "none of" in ran.err


def test_command_draws(bench, tmp_path):
    done = bench(json.dumps(LINE) + "\n", 0, "--quick", "--plot", tmp_path / "figure.png")
    assert done.returncode == 0 and (tmp_path / "figure.png").exists()


def ended_when(pattern: str, folder, *names: str) -> tuple[int, str]:
    """Exit code and messages of benchmarks that are ended when the folder has such a file."""
    words = [ROOT / "perdure", "bench", *names]
    environment = {**os.environ, "PERDURE_BENCH_DIR": str(folder)}
    running = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + LIMIT_S
    while not list(folder.glob(pattern)):
        assert running.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    running.terminate()
    said = running.communicate(timeout=LIMIT_S)[1]
    return running.returncode, said


def test_a_benchmark_that_is_ended_leaves_nothing_in_memory(tmp_path):
    code, said = ended_when("*/*.cfg", tmp_path, "veloc", "--json")
    assert (code, list(tmp_path.iterdir())) == (130, []), said


def test_a_campaign_that_is_ended_is_followed_by_no_other_benchmark(tmp_path):
    code, said = ended_when("*/*", tmp_path, "kill", "kill_windows", "--quick")
    assert code == 130 and "kill_windows" not in said, said


def test_a_benchmark_that_is_ended_ends_what_its_program_started(tmp_path):
    program = tmp_path / "bench/bench_persist"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\ntrap "" TERM\nsleep 600 &\necho $! >"{tmp_path}/pid"\nwait\n')
    program.chmod(0o755)
    environment = {**os.environ, "PERDURE_BUILD": str(tmp_path)}
    running = subprocess.Popen([ROOT / "perdure", "bench", "persist"], env=environment)
    until = time.monotonic() + LIMIT_S
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
        assert running.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    running.terminate()
    assert running.wait(LIMIT_S) == 130
    sleeping = read_process(int((tmp_path / "pid").read_text()))
    assert sleeping is None or not sleeping.is_live


# --- with small arrays; soak has those of 64 MiB that the cases are named after -------------------

SMALL = 1 << 20


def measured(bench) -> dict[tuple[str, str], Fact]:
    """The facts of a short form."""
    facts = bench.measure(True)
    return {(fact.case, fact.metric): fact for fact in facts}


def test_checkpoints_through_the_interface_of_veloc_are_measured(monkeypatch):
    monkeypatch.setattr(veloc, "_BYTES", SMALL)
    facts = measured(veloc)
    assert facts["checkpoint-64MiB", "blocked"].n == 12
    assert facts["checkpoint-64MiB-twin", "blocked"].n == facts["step-64MiB-twin", "whole"].n == 12
    assert facts["restart-64MiB", "restart"].n == facts["restart-64MiB-twin", "restart"].n == 2
    assert all(fact.value > 0 for fact in facts.values())
    own = {metric for _, metric in facts if metric.endswith("veloc")}  # where it is installed
    assert own in (set(), {"blocked_veloc", "restart_veloc", "whole_veloc", "ratio_to_veloc"})


def test_commits_from_python_are_compared_with_those_from_c(monkeypatch):
    cases = [replace(case, size_bytes=min(case.size_bytes, SMALL)) for case in commits.CASES]
    monkeypatch.setattr(commits, "CASES", cases)
    facts = measured(commits)
    assert all(fact.value > 0 for fact in facts.values())
    for case in ("commit-64MiB", "commit-64MiB-twin", "commit-64MiB-log"):
        assert facts[case, "ratio_to_c"].target == 1.02
        assert facts[case, "commit"].n == facts[case, "commit_in_c"].n > 10
    calls = {metric for case, metric in facts if case == "calls"}
    assert calls == {"open_and_close", "array", "scalar_set", "scalar_get", "working"}
