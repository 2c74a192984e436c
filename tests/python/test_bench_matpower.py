# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench matpower`: its facts, from runs that were not made, and its model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.programs import ProgramFailed
from perdure_bench.matpower import (
    check_cached,
    facts_of,
    modelled_facts,
    outcome_of,
)
from perdure_bench.matpower_cases import FULL, QUICK, STOCK, Setting, settings_of, target_of
from perdure_bench.matpower_model import MODELLED_RANKS, Outcome, fit
from perdure_bench.matpower_plot import draw
from perdure_bench.solver import file_system_of

GLUSTER = {"file_system": "glusterfs"}


def outcome(total: float, io: float = 1.0) -> Outcome:
    return Outcome(total, open=0.1, io=io, compute=0.5, close=0.2, moved_bytes=1e8, answer="a")


def rounds_of(settings: list[Setting], cached: float, count: int = 3) -> list[dict]:
    """Rounds in which stock takes 10 s, the others `cached` times that."""
    runs = [(setting, variant) for setting in settings for variant in setting.variants]
    times = {run: outcome(10.0 if run[1] == STOCK else 10.0 * cached) for run in runs}
    return [times] * count


@pytest.mark.parametrize("size", [QUICK, FULL])
def test_every_case_has_a_name_of_its_own(size):
    names = [name for setting in settings_of(size) for name in setting.names]
    assert len(set(names)) == len(names)
    assert {f"p{p}-doc-{mode}" for p in size.powers for mode in ("off", "on")} <= set(names)
    for nodes in size.swept_nodes:
        assert {f"p{p}-n{nodes}-doc-{mode}" for p in (2, 8) for mode in ("off", "on")} <= set(names)
    for ranks in size.swept_ranks:
        assert {f"p2-ranks{ranks}-doc-off", f"p8-ranks{ranks}-doc-off"} <= set(names)


def test_targets_are_those_of_gluster_and_of_full_runs():
    settings = {setting.names[0]: setting for setting in settings_of(FULL)}
    wanted = {"p2-doc-off": None, "p4-doc-off": None, "p8-doc-off": 0.6, "p16-doc-off": 0.6}
    wanted |= {"p2-doc-on": 1.0, "p4-doc-on": 1.0, "p8-doc-on": 0.6, "p16-doc-on": 0.6}
    wanted |= {"p2-ranks1-doc-off": None, "p8-ranks16-doc-off": None, "p8-synced-doc-off": None}
    for name, target in wanted.items():
        assert target_of(settings[name], FULL, "glusterfs") == target, name
        assert target_of(settings[name], FULL, "ext4") is None
        assert target_of(settings[name], QUICK, "glusterfs") is None


@pytest.mark.parametrize("ratio, holds", [(0.5, True), (0.7, False)])
def test_ratio_is_cached_over_stock_and_judged(ratio, holds):
    settings = settings_of(FULL)
    facts = list(facts_of(settings, rounds_of(settings, ratio), FULL, GLUSTER))
    found = {(fact.case, fact.metric): fact for fact in facts}
    assert len(found) == len(facts)
    fact = found["p8-doc-off", "time_ratio"]
    assert fact.value == pytest.approx(ratio) and (fact.target, fact.holds) == (0.6, holds)
    assert found["p2-doc-on", "time_ratio"].holds is True
    assert found["p2-doc-off", "time_ratio"].holds is None
    assert found["p8-async", "time_ratio_to_sync"].value == pytest.approx(1)
    assert found["p8-doc-off", "stock_s"].value == 10
    assert found["p8-doc-off", "stock_s"].more["io_s"] == 1
    assert all(fact.more["file_system"] == "glusterfs" and fact.n == 3 for fact in facts)


def test_ratio_that_must_be_below_one_is_not_one():
    settings = settings_of(FULL)
    facts = list(facts_of(settings, rounds_of(settings, 1.0), FULL, GLUSTER))
    judged = {f.case: f.holds for f in facts if f.metric == "time_ratio" and f.holds is not None}
    assert judged["p2-doc-on"] is False


def test_model_gives_back_the_runs_it_was_taken_from():
    nodes, power, ranks = 1000, 3, 4
    moved = 2 * 5 * nodes**2
    stock = Outcome(4.3, 0.1, 3.0, 1.0, 0.2, moved, "a")
    cached = Outcome(2.0, 0.3, 0.5, 1.0, 0.2, moved, "a")
    model = fit(nodes, power, 4, stock, cached)
    assert model.moved_bytes(ranks) == moved
    assert model.stock_s(ranks) == pytest.approx(4.3)
    assert model.cached_s(ranks) == pytest.approx(2.0)


def test_model_bounds_stock_by_its_file_system_and_not_the_cache():
    model = fit(1000, 8, 4, outcome(2, io=2.0), outcome(2, io=2.0))
    times = [(model.stock_s(ranks), model.cached_s(ranks)) for ranks in MODELLED_RANKS]
    assert all(cached <= stock for stock, cached in times)
    ratios = [cached / stock for stock, cached in times]
    assert ratios == sorted(ratios, reverse=True)
    assert model.moved_bytes(576) / model.moved_bytes(4) == pytest.approx(49 / 5)


def test_modelled_facts_say_that_they_are():
    settings = settings_of(QUICK)
    facts = list(modelled_facts(settings, rounds_of(settings, 0.5), QUICK, GLUSTER, 2))
    assert all(f.case.endswith("-modelled") and f.more["modelled"] for f in facts)
    assert all(f.holds is None for f in facts)
    assert all(f.more["model_pfs_bytes_per_s"] == 1e8 for f in facts)
    assert len(facts) == 2 * 3 * len(MODELLED_RANKS)


@pytest.mark.parametrize(
    "path, kind", [("/mnt/a b/c", "glusterfs"), ("/mnt/a bc", "ext4"), ("/mnt/a b", "glusterfs")]
)
def test_kind_of_file_system_is_that_of_the_nearest_mount(path, kind):
    mounts = "disk / ext4 rw 0 0\nhost:/volume /mnt/a\\040b fuse.glusterfs rw 0 0\n"
    assert file_system_of(Path(path), mounts) == kind


def report(folder, rank: int, **fields) -> None:
    line = {"file": "/w/matpower-result.bin", "cached": True, "error": None} | fields
    (folder / f"report.{rank}").write_text(json.dumps(line) + "\n")


def test_run_counts_only_if_every_rank_says_that_its_file_was_cached(tmp_path):
    report(tmp_path, 0)
    report(tmp_path, 1)
    check_cached(tmp_path, 2, "case")
    with pytest.raises(ProgramFailed, match="rank 2 did not report"):
        check_cached(tmp_path, 3, "case")
    report(tmp_path, 1, cached=False)
    with pytest.raises(ProgramFailed, match="rank 1 did not report"):
        check_cached(tmp_path, 2, "case")
    report(tmp_path, 1, error="device is full")
    with pytest.raises(ProgramFailed, match="rank 1: device is full"):
        check_cached(tmp_path, 2, "case")


def test_what_a_run_prints_is_read():
    metrics = {"total_s": 5, "open_s": 1, "io_s": 2, "compute_s": 3, "close_s": 4}
    metrics |= {"read_bytes": 10, "written_bytes": 20}
    about = {"bench": "matpower", "case": "views", "unit": "s", "hash": "ff"}
    lines = [json.dumps(about | {"metric": m, "value": v}) for m, v in metrics.items()]
    assert outcome_of("noise\n" + "\n".join(lines)) == Outcome(5, 1, 2, 3, 4, 30, "ff")
    with pytest.raises(ProgramFailed, match="did not report"):
        outcome_of("noise")


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_figure_is_drawn(tmp_path, suffix):
    settings = settings_of(QUICK)
    rounds = rounds_of(settings, 0.5)
    facts = list(facts_of(settings, rounds, QUICK, GLUSTER))
    facts += modelled_facts(settings, rounds, QUICK, GLUSTER, 2)
    draw(facts, "matpower", tmp_path / f"figure{suffix}")
    assert (tmp_path / f"figure{suffix}").stat().st_size > 10000
    with pytest.raises(ValueError):
        draw([], "nothing", tmp_path / f"none{suffix}")
