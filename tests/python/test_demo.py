# SPDX-License-Identifier: BSD-3-Clause
"""`perdure demo`: what it prints and draws."""

from __future__ import annotations

import pytest

from conftest import BUILD
from perdure_bench.demo.costs import Cost, overhead_text

PROTECTIONS = ["none", "disk", "copy", "twin", "log"]
SMALL = ("--iterations", 20, "--edge", 8, "--rounds", 1)


def test_demo_kills_a_solver_tells_the_costs_and_draws_them(perdure, tmp_path):
    if not (BUILD / "apps/hpccg").is_dir():
        pytest.skip("hpccg is not built (CLI11 or MPI is missing)")
    (tmp_path / "seen").mkdir()
    ran = perdure("demo", *SMALL, "--picture", tmp_path / "seen/demo.png")
    assert ran.code == 0, ran.err
    text = ran.out.decode()
    assert "the answers are equal, bit for bit\n" in text and "version 9 " in text
    rows = [line.split()[0] for line in text.splitlines() if line]
    assert [row for row in rows if row in PROTECTIONS] == PROTECTIONS
    assert text.endswith("\npicture: seen/demo.png\n")
    assert (tmp_path / "seen/demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "ratio, text", [(1.034, "+3.4 %"), (0.98, "-2.0 %"), (0.9999, "+0.0 %"), (4.81, "4.8 times")]
)
def test_overheads_are_percents_until_they_are_multiples(ratio, text):
    assert overhead_text(ratio) == text


@pytest.mark.parametrize(("low", "high", "text"), [
    (0.98, 1.06, "+2.0 %"), (0.96, 1.08, "too noisy"), (0.5, 1.02, "too noisy"),
])  # fmt: skip
def test_an_overhead_whose_quartiles_are_far_apart_is_not_said(low, high, text):
    assert Cost("copy", 0.01, 1.02, low, high, 0.001, 0.001).overhead == text
