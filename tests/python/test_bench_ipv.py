# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench ipv`: facts from runs that were not made, the cache model against another."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import BUILD, SLOW
from perdure.programs import ProgramFailed, find_program, make_program
from perdure_bench import ipv, ipv_misses, ipv_programs, ipv_views
from perdure_bench.ipv_misses import FULL, NONE, QUICK, WAYS, Case, Counts, counts_of
from perdure_bench.ipv_plot import draw
from perdure_bench.ipv_programs import DRAM, EIGHTH, NATIVE, PROGRAMS
from perdure_bench.ipv_views import Charge
from perdure_bench.solver import pool_directory

MG = Case("mg", "npb_mg", ("--class", "A"))


def counted(**last_misses: int) -> dict:
    by_name = {way.name: way for way in WAYS}
    return {
        by_name[name.replace("_", "-")]: Counts(10**6, 10**5, misses, misses // 4)
        for name, misses in last_misses.items()
    }


def test_misses_are_compared_with_those_of_no_versions():
    facts = list(ipv_misses.facts_of(MG, FULL, counted(none=20000, stream=30000, copy=21000)))
    found = {(fact.case, fact.metric): fact for fact in facts}
    assert found["misses-mg-stream", "last_level_misses_ratio"].value == 1.5
    assert found["misses-mg-copy", "last_level_misses_ratio"].value == 1.05
    assert found["misses-mg-stream", "first_level_misses_ratio"].value == 1
    assert found["misses-mg-none", "last_level_miss_rate"].value == 20
    assert found["misses-mg-stream", "last_level_miss_rate"].value == 30
    assert ("misses-mg-none", "last_level_misses_ratio") not in found
    more = found["misses-mg-stream", "last_level_misses_ratio"].more
    assert more["runtime_share"] == 0.25
    assert more["modelled"] == "caches: 32 KiB of 8 ways, 20480 KiB of 20 ways"


def test_program_that_fits_the_caches_is_refused():
    with pytest.raises(ProgramFailed, match="mg fits the caches"):
        list(ipv_misses.facts_of(MG, FULL, counted(none=0, stream=5)))


def test_counts_are_those_of_program_and_runtime():
    part = '{"lines": %d, "first_misses": %d, "last_misses": %d}'
    pool = '{"loaded": 9, "put_out": 5, "flushed_clean": 2}'
    text = f'{{"program": {part % (100, 30, 10)}, "runtime": {part % (8, 6, 4)}, "pool": {pool}}}'
    assert counts_of(text) == Counts(108, 36, 14, 4, 9, 5, 2)


def test_runs_are_those_that_the_progress_bar_counts():
    assert ipv_misses.runs(False) == 7 * len(WAYS)
    assert ipv_misses.runs(True) == 2 * len(WAYS)
    assert (ipv_views.runs(True), ipv_views.runs(False)) == (2 + 4, 2 * (2 + 3 * 4))
    assert [case.name for case in ipv_misses.cases(True, ("ft", "eddy"))] == ["ft", "eddy"]
    assert ipv_programs.runs(False, ("mg",)) * 7 == ipv_programs.runs(False)


@pytest.mark.parametrize(
    "only, parts, programs",
    [
        ((), ipv.PARTS, ()),
        (("mg", "cg"), ("times", "misses"), ("mg", "cg")),
        (("mg", "misses"), ("misses",), ("mg",)),
        (("compile",), ("compile",), ()),
    ],
)
def test_only_names_parts_and_programs(only, parts, programs):
    assert ipv.chosen(only) == (parts, programs)


def test_every_way_is_run_and_each_round_has_the_unprotected_program():
    rounds = ipv_programs.rounds_of(False)
    assert all(pairs.count((NATIVE, DRAM)) == 1 for pairs in rounds)
    for way, emulation in ipv_programs.pairs_of(False):
        times = sum((way, emulation) in pairs for pairs in rounds)
        assert times == way.rounds[emulation] >= 1
    main = {way.name for way in ipv_programs.WAYS if way.rounds.get(EIGHTH) == 5}
    assert main == {"bypass", "ipv", "ipv-alone"}


def run_of(way, iterations: int, seconds_each: float) -> dict:
    run = {"iterations": iterations, "loop_s": iterations * seconds_each, "state_bytes": 10**6}
    run |= {"open_s": 0.02, "close_s": 0.01}
    run |= {"persist_s": 0 if way is NATIVE else iterations * 0.01, "model_ns": iterations * 5e6}
    if "flush" in way.options:
        run["copy_s"] = iterations * 0.003
    if "ipv" in way.options:
        run |= {"tiers": {"u": "copy"}, "swap_ns": iterations * 1e6, "swaps": 2 * iterations,
                "first_stores_ns": iterations * 2e6}
        run |= {"guard_faults": 0, "copied_bytes": 0, "streamed_bytes": 0}
        run["flushed_bytes"] = 64 * iterations
    return run


def rounds_like(quick: bool) -> list[dict]:
    """Each iteration takes 0.1 s alone, 0.12 s with a version; some ways make few iterations."""
    rounds = []
    for pairs in ipv_programs.rounds_of(quick):
        made = {}
        for way, emulation in pairs:
            iterations = min(40, way.most or 40)
            made[way.name, emulation] = run_of(way, iterations, 0.1 if way is NATIVE else 0.12)
        rounds.append(made)
    return rounds


@pytest.mark.parametrize("quick", [False, True])
def test_overhead_is_compared_by_iteration(quick):
    facts = list(ipv_programs.facts_of(PROGRAMS[0], rounds_like(quick), quick))
    names = [(fact.case, fact.metric) for fact in facts]
    assert len(set(names)) == len(names)
    ratios = [fact for fact in facts if fact.metric == "overhead_ratio"]
    assert len(ratios) == len(ipv_programs.pairs_of(quick)) - 1
    assert all(fact.value == pytest.approx(1.2) for fact in ratios)
    judged = {fact.case: fact.holds for fact in ratios if fact.holds is not None}
    assert judged == ({} if quick else {"cg": False, "cg-alone": False})
    floors = {fact.case: fact.value for fact in facts if fact.metric == "floor_ratio"}
    assert floors["cg"] == floors["cg-alone"] == 1  # 5 ms of the memory's are hidden in 100
    if not quick:
        by_case = {fact.case: fact for fact in ratios}
        assert (by_case["cg"].n, by_case["cg-disk-dram"].n) == (5, 1)
        assert by_case["cg-disk-dram"].more["options"].endswith("--iterations 5")


def test_breakdown_adds_up_to_what_the_loop_takes_longer():
    facts = list(ipv_programs.facts_of(PROGRAMS[0], rounds_like(False), False))
    values = {(fact.case, fact.metric): fact.value for fact in facts}
    for way in ("clflush", "par-clflush", "bypass", "ipv", "ipv-alone"):
        copied = way.endswith("clflush")
        parts = ("copy", "flush", "rest") if copied else ("persist", "swap", "rest")
        longer = sum(values[f"cg-{way}-{part}", "breakdown_ms"] for part in parts)
        assert longer == pytest.approx(20)
        assert values[f"cg-{way}-memory", "breakdown_ms"] == pytest.approx(5)
    assert values["cg-clflush-copy", "breakdown_ms"] == pytest.approx(3)
    assert values["cg-clflush-flush", "breakdown_ms"] == pytest.approx(7)
    assert values["cg-ipv-swap", "breakdown_ms"] == pytest.approx(1)
    assert values["cg-ipv-flushed", "bytes"] == 64
    assert values["cg", "overlapped_percent"] == pytest.approx(-20)


def test_average_judges_all_programs():
    facts = list(ipv_programs.average_facts({"": [1.0, 1.02], "-alone": [1.0, 1.2],
                                             "-bypass-dram-1/8": [1.01]}, False))
    judged = [(fact.case, fact.holds) for fact in facts]
    assert judged == [("average", True), ("average-alone", False), ("runtime-alone", True)]


def test_figure_has_times_and_misses(tmp_path):
    times = list(ipv_programs.facts_of(PROGRAMS[0], rounds_like(False), False))
    misses = list(ipv_misses.facts_of(MG, FULL, counted(none=20000, stream=30000, copy=21000)))
    sizes = []
    for name, facts in (("both", times + misses), ("times", times), ("misses", misses)):
        draw(facts, "ipv", tmp_path / f"{name}.png")
        sizes.append((tmp_path / f"{name}.png").stat().st_size)
    assert min(sizes) > 5000 and sizes[0] > max(sizes[1:])
    with pytest.raises(ValueError):
        draw([], "nothing", tmp_path / "none.png")


@pytest.fixture
def pools():
    """In memory, where the runtime flushes by instructions."""
    with pool_directory() as path:
        yield path


def program(name: str, find: Callable[..., Path] = find_program) -> str:
    try:
        return str(find(name, "apps"))
    except ProgramFailed as missing:
        if " failed:" in str(missing) and "unknown target" not in str(missing):
            raise  # it is here, and can't be built
        pytest.skip(str(missing))


def cachegrind(iterations: int) -> tuple[int, int]:
    """Misses of the first and of the last level, by loads and stores of npb_mg."""
    levels = ["--D1=32768,8,64", f"--LL={QUICK.last[0]},{QUICK.last[1]},64"]
    words = ["valgrind", "--tool=cachegrind", "--cachegrind-out-file=/dev/null", *levels]
    words += [program("npb_mg_clang"), "--class", "S", "--iterations", str(iterations)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    found = [re.search(rf"{name}\s+misses:\s+([\d,]+)", done.stderr) for name in ("D1", "LLd")]
    return tuple(int(match.group(1).replace(",", "")) for match in found)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_model_counts_what_cachegrind_does_where_there_are_no_versions(pools):
    made = Path(program("npb_mg_misses", make_program))
    (case,) = ipv_misses.cases(True, ("mg",))
    counts = ipv_misses.count(made, case, NONE, QUICK, pools)
    # cachegrind counts the whole program: the difference of two runs is two iterations.
    short, long = cachegrind(2), cachegrind(4)
    assert counts.first_misses == pytest.approx((long[0] - short[0]) / 2, rel=0.05)
    assert counts.last_misses == pytest.approx((long[1] - short[1]) / 2, rel=0.05)


@pytest.mark.parametrize("name", [
    "mg",  # which is built already
    pytest.param("sp", marks=pytest.mark.skipif(
        not SLOW, reason="PERDURE_SLOW_TESTS=1 runs it")),
])  # fmt: skip
def test_model_tells_versions_apart_and_leaves_the_program_its_answer(pools, name):
    made = program(f"npb_{name}_misses", make_program)
    (case,) = ipv_misses.cases(True, (name,))
    counts = {way.name: ipv_misses.count(Path(made), case, way, QUICK, pools) for way in WAYS}
    assert counts["stream"].last_misses > counts["none"].last_misses
    assert counts["stream-evicted"].last_misses > counts["stream"].last_misses
    assert counts["none"].runtime_last_misses == 0 < counts["copy"].runtime_last_misses
    whole = [made, "--class", "S", "--protect", "ipv", "--tier", "stream"]
    pool = ["--pool", str(pools / "pool")]
    done = subprocess.run([*whole, *pool], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "verified" in done.stdout, done.stderr


MODELLED = """
import ctypes, sys
model = ctypes.CDLL(sys.argv[1])
fd, page = int(sys.argv[2]), 4096
def call(name, *numbers):
    getattr(model, "perdure_" + name)(*map(ctypes.c_uint64, numbers))
def show(address, offset):
    call("cache_model_mapped", address, page, 1, fd, offset)  # 1: MAP_SHARED
one, two, three = 0x10000000, 0x20000000, 0x30000000
call("trace_thread_start")
model.perdure_trace_begin(b"iterations")
call("trace_iteration", 1)
show(one, 0)
show(two, 0)
show(three, page)
call("cache_model_loaded", one, 8)      # misses
call("cache_model_loaded", two + 8, 8)  # the same line, at another address
call("cache_model_loaded", three, 8)    # misses: another copy
show(one, page)
call("cache_model_loaded", one, 8)      # what `three` shows
call("cache_model_flushed", one, 64)    # keeps its line, or not
call("cache_model_loaded", three, 8)
call("cache_model_stored_past", one, 64)
call("cache_model_loaded", three, 8)    # misses
call("cache_model_unmapped", two, page)
call("cache_model_loaded", two, 8)      # misses: memory of its own
call("cache_model_copied", 0x50000000, 0x40000000, 128)  # two lines from, two to
call("cache_model_read", 0x50000000, 64)
call("trace_iteration", 2)
"""


def counts_by_model(tmp_path, program: str, settings: str) -> Counts:
    """What the model counts of a program's calls; it skips without the model."""
    model = BUILD / "bench/cache_model/libperdure_cache_model.so"
    if not model.exists():
        pytest.skip(f"no {model}")
    report = tmp_path / "report.json"
    settings = f"report={report},warm=0,measured=1,{settings}"
    with tempfile.TemporaryFile() as file:
        words = [sys.executable, "-c", program, str(model), str(file.fileno())]
        environment = {**os.environ, "PERDURE_CACHE_MODEL": settings}
        subprocess.run(words, env=environment, pass_fds=[file.fileno()], check=True, timeout=60)
    return counts_of(report.read_text())


@pytest.mark.parametrize("flush, misses", [("keeps", 4), ("evicts", 5)])
def test_model_goes_by_the_memory_that_an_address_shows(tmp_path, flush, misses):
    counts = counts_by_model(tmp_path, MODELLED, f"flush={flush}")
    assert counts == Counts(7 + 5, misses + 4, misses + 4, 4, misses - 1, 0, 1)


PUT_OUT = """
import ctypes, sys
model = ctypes.CDLL(sys.argv[1])
def call(name, *numbers):
    getattr(model, "perdure_" + name)(*map(ctypes.c_uint64, numbers))
pool, other = 0x10000000, 0x20000000
call("trace_thread_start")
model.perdure_trace_begin(b"iterations")
call("trace_iteration", 1)
call("cache_model_mapped", pool, 4096, 1, int(sys.argv[2]), 0)
call("trace_write", pool, 8)
call("trace_read", pool + 64, 8)
for line in range(8):
    call("trace_write", other + 64 * line, 8)
call("trace_read", pool, 8)
call("trace_iteration", 2)
"""


@pytest.mark.parametrize("front, pool", [("", (3, 1)), (",front=1024:16", (2, 0))])
def test_model_counts_what_the_pool_gives_and_gets_back(tmp_path, front, pool):
    counts = counts_by_model(tmp_path, PUT_OUT, f"first=128:2,last=256:4{front}")
    assert (counts.pool_loaded, counts.pool_put_out) == pool


def test_views_are_charged_for_what_flushes_do_not_write():
    counts = Counts(0, 0, 0, 0, pool_loaded=300, pool_put_out=90, pool_flushed_clean=30)
    assert ipv_views.charge_of(counts) == Charge(64 * 300, 64 * 60)
    assert ipv_views.charge_of(replace(counts, pool_flushed_clean=91)) == Charge(64 * 300, 0)
    (settings,) = Charge(6400, 0).protection("nvm").environment.values()
    assert settings == "helper=off,loads=6400"


def test_views_have_the_least_and_the_most_that_loads_and_stores_can_take():
    def run(loop_s: float, model_ms: float) -> dict:
        return {"iterations": 10, "loop_s": 10 * loop_s, "model_ns": 11e6 * model_ms}

    charges = {"free": Charge(), "nvm": Charge(6400, 1280)}
    rounds = [{"native": run(0.1, 0), "free": run(0.11, 5), "nvm": run(0.12, 25)}]
    found = {(fact.case, fact.metric): fact.value
             for fact in ipv_views.facts_of("mg", FULL, charges, rounds)}
    assert found == {
        ("views-mg-free", "overhead_ratio"): pytest.approx(1.1),
        ("views-mg-nvm", "overhead_ratio"): pytest.approx(1.2),
        ("views-mg-nvm-loaded", "view_bytes"): 6400,
        ("views-mg-nvm-stored", "view_bytes"): 1280,
        ("views-mg-nvm", "view_ms"): pytest.approx(20),
        ("views-mg-nvm", "added_ratio"): pytest.approx(1.3),
    }


def test_model_refuses_what_it_does_not_know():
    environment = {**os.environ, "PERDURE_CACHE_MODEL": "report=r,last=1000:3"}
    words = [program("npb_mg_misses"), "--class", "S"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2 and "1000:3 is no BYTES:WAYS" in done.stderr
