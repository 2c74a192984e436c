# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench advise`: which predictions count as wrong, and its short form."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conftest import BUILD, SLOW
from perdure_bench.advise import (
    Filed,
    Looped,
    Round,
    facts_of,
    is_right,
    is_right_of_files,
    wrong_fact,
)


def test_the_benchmark_counts_a_prediction_as_wrong_if_it_is_far_off_or_advised_otherwise():
    assert is_right(1.05, 1.12) and not is_right(1.05, 1.2)
    assert is_right_of_files(0.2, 0.9) and is_right_of_files(1.4, 3.0)
    assert not is_right_of_files(0.5, 1.5) and is_right_of_files(0.97, 1.03)
    case = Looped("a", "C", list, lambda pool, mode: [], lambda text: (1.0, 1))
    rounds = [Round(1.1, 1.15, 1.01, {"advised": "pool"})] * 3
    assert [fact.metric for fact in facts_of(case, rounds)] == [
        "predicted_ratio", "measured_ratio", "recording_ratio", "right"]
    assert facts_of(case, rounds)[-1].value == 1
    windows = [replace(one, about={"advised": "windows"}) for one in rounds]
    assert facts_of(case, windows)[-1].value == 0
    cached = Filed("b", "C", "b", "bench", 1, ())
    assert facts_of(cached, [Round(0.5, 0.6, None)])[-1].value == 1


def test_fewer_than_one_in_eight_may_be_wrong():
    assert wrong_fact(["a"], 15, False).holds and not wrong_fact(["a", "b"], 15, False).holds
    assert wrong_fact(["a", "b"], 15, True).holds is None


@pytest.mark.skipif(not SLOW, reason="PERDURE_SLOW_TESTS=1 runs it")
def test_the_short_form_predicts_and_measures_every_program(perdure):
    stems = ("hpccg", "pagerank", "matpower", "npb", "eddy")
    missing = [stem for stem in stems if not (BUILD / "apps" / stem).is_dir()]
    if missing:
        pytest.skip(f"not built: {', '.join(missing)}")
    ran = perdure("bench", "advise", "--quick", "--json", limit_s=400)
    assert ran.code == 0, ran.err
    facts = [json.loads(line) for line in ran.out.splitlines()]
    cases: dict[str, dict[str, dict]] = {}
    for fact in facts:
        cases.setdefault(fact["case"], {})[fact["metric"]] = fact
    counted = cases.pop("all")["wrong"]
    assert counted["programs"] == len(cases) >= 8 and counted["holds"] is None
    for name, metrics in cases.items():
        assert {"predicted_ratio", "measured_ratio", "right"} <= set(metrics), name
        assert metrics["predicted_ratio"]["value"] > 0 and metrics["measured_ratio"]["value"] > 0
        assert metrics["right"]["value"] in (0, 1)
        files = name in ("matpower", "records", "dump")
        # Of runs as short as these nobody can say more: test_advise.py has longer ones.
        known = ("cache", "no cache") if files else ("pool", "windows", "nothing")
        assert metrics["right"]["advised"] in known, name
