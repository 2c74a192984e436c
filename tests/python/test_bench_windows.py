# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench windows` makes the facts of single operations of what its program says."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer import BadParameter

from perdure.programs import Program
from perdure_bench import command, windows, windows_making, windows_micro

PUT, WHOLE = "put 8 B, flush", "put-whole 32 MiB, fence"
FLOOR = "put-whole 32 MiB, floor"


def facts_of(made) -> dict:
    """By case and metric; those without an operation under an operation of their own."""
    return {(fact.case, fact.metric): fact for fact in made if "operation" in fact.more}


@pytest.mark.parametrize(
    "operation, case",
    [
        (PUT, "put-8B"),
        ("get 64 KiB, fence", "get-fence-64KiB"),
        ("put 1 MiB, complete", "put-complete-1MiB"),
        ("get-whole 32 MiB, fence", "get-whole-fence-32MiB"),
        ("fence", None),
    ],
)
def test_a_case_is_a_transfer_with_its_size(operation, case):
    assert windows_micro._case_of(operation) == case


def test_what_the_plain_program_differs_from_itself_by_stands_beside_each_ratio():
    times = {"plain": 10, "again": 12, "interposed": 10, "copy": 11, "log": 11}
    times |= {"twin": 5, "flush": 20}
    facts = facts_of(windows_micro._facts("mpich", [{v: {PUT: t} for v, t in times.items()}], True))
    assert facts["put-8B", "floor_ratio"].value == pytest.approx(1.2)
    assert facts["put-8B", "floor_ratio"].target is None
    flush = facts["put-8B-flush", "ratio_to_plain"]
    assert (flush.value, flush.target, flush.holds) == (2, 1.1, False)
    assert facts["put-8B-twin", "ratio_to_plain"].holds


def test_the_operations_of_a_size_have_a_median_and_their_ends():
    get, fence = "get 8 B, flush", "put 8 B, fence"
    around = {v: {PUT: 10, get: 10, fence: 10} for v in ("plain", "again", "interposed", "copy")}
    around |= {v: {PUT: 5, get: 30, fence: 8} for v in ("log", "twin", "flush")}
    facts = windows_micro._facts("mpich", [around], True)
    of_size = next(fact for fact in facts if fact.case == "all-8B-twin")
    assert (of_size.value, of_size.low, of_size.high, of_size.n) == (0.8, 0.5, 3, 3)


def test_a_commit_of_a_copy_is_compared_with_a_memcpy_and_one_of_a_twin_is_not():
    variants = ["plain", "again", *windows_micro.MODES]
    variants += [mode + windows_micro._COMMITS for mode in windows_micro.MODES]
    around = {variant: {WHOLE: 10, FLOOR: 16} for variant in variants}
    for mode in windows_micro.MODES:
        around[mode + windows_micro._COMMITS] = {WHOLE: 20, FLOOR: 30}
    facts = facts_of(windows_micro._facts_of_whole("openmpi", [around]))
    assert facts["put-whole-fence-32MiB-log", "ratio_to_plain"].value == 1
    for mode, floor in (("copy", 1.6), ("log", 1.6), ("twin", 1), ("flush", 1)):
        assert facts[f"put-whole-commit-32MiB-{mode}", "ratio_to_plain"].value == 2
        assert facts[f"put-whole-commit-32MiB-{mode}", "floor_ratio"].value == floor


def test_making_windows_is_compared_in_each_mode_and_with_itself():
    program = Program("mpich", Path("bench_window_making"), "mpiexec")
    variants = {"plain": 10, "again": 11, "copy": 12, "log": 20, "twin": 21, "flush": 5}
    ran = [
        {
            variant if variant in ("plain", "again") else f"{variant};commit=none": {
                "make-free-64B": ns * around
            }
            for variant, ns in variants.items()
        }
        for around in (1, 2, 3)
    ]
    facts = {fact.case: fact for fact in windows_making.facts_of(program, 4, ran, True)}
    assert facts["make-free-64B"].value == pytest.approx(1.1)
    assert facts["make-free-64B-copy"].value == pytest.approx(1.2)
    assert facts["make-free-64B-copy"].more["operation_ns"] == 24
    assert facts["make-free-64B-log"].holds and not facts["make-free-64B-twin"].holds
    assert all(fact.more["ranks"] == 4 for fact in facts.values())


def test_only_what_is_named_is_measured(monkeypatch):
    monkeypatch.setattr(windows, "_of_applications", lambda quick: ["applications", quick])
    monkeypatch.setattr(windows_micro, "measure", lambda quick: ["operations", quick])
    monkeypatch.setattr(windows_making, "measure", lambda quick: ["making", quick])
    assert list(windows.measure(True, ("making",))) == ["making", True]
    assert list(windows.measure(False, ())) == [
        "applications", False, "operations", False, "making", False
    ]  # fmt: skip
    with pytest.raises(BadParameter, match="none of applications"):
        command._check_parts(["windows"], ("mg",))
