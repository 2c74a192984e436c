# SPDX-License-Identifier: BSD-3-Clause
"""`perdure sim`: runs, sweeps, the best capacities, pictures; and what is refused."""

from __future__ import annotations

import itertools
import json
import random
import signal

import pytest

from conftest import Perdure, in_this_process
from html_page import Elements
from perdure import _core
from perdure.sim.machine import Options, devices_named
from perdure.sim.optimise import local_minima
from perdure.sim.quantities import joules_text, mib_text, parse_budget
from perdure.sim.sweep import run_once
from perdure.units import parse_size
from perdure.watching import Watch
from perdure_bench import memsim, memsim_plot

MIB = 1 << 20
PAGE = 4096


@pytest.fixture
def perdure():
    """The command in this process: starting one for each of these tests would take a minute."""
    return in_this_process


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A program with 256 hot pages that are always used, and 768 cold ones that are used once."""
    place = tmp_path_factory.mktemp("trace")
    draw = random.Random(7)
    lines = [f"1 {PAGE * page:x}" for page in range(1024)]
    for turn in range(40_000):
        page = draw.randrange(256)
        lines.append(f"{turn % 3 == 0:d} {PAGE * page + 64 * draw.randrange(64):x}")
    (place / "accesses.din").write_text("\n".join(lines) + "\n")
    _core.TraceImport("din", str(place / "accesses.din"), str(place / "t.ptrace"), "it").run()
    return place / "t.ptrace"


def facts(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def rows(ran):
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.decode().splitlines()]


def test_a_run_accounts_for_every_access_and_every_term(perdure, trace):
    ran = perdure("sim", "run", trace, "--dram", "2MiB", "--mram", "1MiB", "--json")
    found = facts(ran)
    info = _core.summarise_trace(str(trace))
    counters = found["counters"]
    assert sum(counters[m]["reads"] for m in ("dram", "mram")) == info.reads
    assert sum(counters[m]["writes"] for m in ("dram", "mram")) == info.writes
    assert sum(counters[m]["first_touches"] for m in ("dram", "mram")) == 1024
    known = [term["nj"] for term in found["terms"] if term["nj"] is not None]
    assert sum(known) == pytest.approx(found["energy_nj"], rel=1e-12)
    assert found["dynamic_nj"] + found["static_nj"] == pytest.approx(found["energy_nj"], rel=1e-12)


def test_the_terms_are_printed_for_people(perdure, trace):
    ran = perdure("sim", "run", trace, "--dram", "4MiB")
    assert ran.code == 0, ran.err
    out = ran.out.decode()
    assert "lru" in out and "DRAM reads" in out and "energy" in out


@pytest.mark.parametrize("policy", ["lru", "mram_fixed", "low_power", "clock", "arc", "two_q"])
def test_every_policy_runs(perdure, trace, policy):
    found = facts(
        perdure(
            "sim", "run", trace, "--dram", "2MiB", "--mram", "1MiB", "--policy", policy, "--json"
        )
    )
    assert found["policy"] == policy and found["time_ns"] > 0


def test_a_sweep_has_the_points_of_single_runs(perdure, trace):
    swept = rows(
        perdure(
            "sim", "sweep", trace, "--mram", "1MiB", "--policy", "low_power", "--step", "512KiB",
            "--json",
        )
    )
    assert {row["by"] for row in swept} <= {"pass", "run"} and len(swept) > 8
    for row in swept[:: len(swept) // 4]:
        one = facts(
            perdure(
                "sim", "run", trace, "--policy", "low_power", "--json",
                "--dram", str(row["dram_bytes"]), "--mram", str(row["mram_bytes"]),
            )
        )
        assert one["time_ns"] == pytest.approx(row["time_s"] * 1e9, rel=1e-9)
        assert one["energy_nj"] == pytest.approx(row["energy_j"] * 1e9, rel=1e-9)


def test_a_curve_has_faults_and_write_backs_of_every_capacity(trace):
    devices = _core.devices_of("paging-paper-dram", "paging-paper-mram", "paging-paper-flash", True)
    curve = _core.sim_sweep(str(trace), [0], devices).curves[0]
    assert len(curve.page_ins) == len(curve.page_outs) == 1025
    for frames in (256, 512, 1024):
        counters = curve.counters(frames)
        assert curve.page_ins[frames] == counters.dram.page_ins
        assert curve.page_outs[frames] == counters.dram.page_outs
    assert curve.page_ins[256] > curve.page_ins[1024] == 0


def test_the_optimum_holds_the_hot_pages_and_the_budget(perdure, trace):
    found = facts(
        perdure(
            "sim", "optimise", trace, "--mram", "1MiB", "--budget", "slowdown=300000%",
            "--typical", "16MiB", "--step", "64KiB", "--json",
        )
    )
    best, reference = found["best"], found["reference"]
    assert best["time_s"] <= reference["time_s"] * (1 + found["budget"])
    assert best["energy_j"] <= min(notch["energy_j"] for notch in found["notches"])
    assert reference["page_ins"] == 0 and reference["dram_bytes"] == 4 * MIB
    assert found["typical"]["dram_bytes"] == 16 * MIB


def test_a_tighter_budget_gives_a_faster_machine_that_takes_more_energy(perdure, trace):
    def best(budget):
        found = facts(
            perdure("sim", "optimise", trace, "--mram", "1MiB", "--compute", "10", "--budget",
                    f"slowdown={budget}%", "--step", "64KiB", "--json")
        )
        assert found["best"]["time_s"] <= found["reference"]["time_s"] * (1 + budget / 100)
        return found["best"]

    tight, loose = best(0.1), best(20)
    assert tight["time_s"] < loose["time_s"] and tight["energy_j"] > loose["energy_j"]


def test_no_machine_in_the_budget_is_said(perdure, trace):
    ran = perdure("sim", "optimise", trace, "--mram", "1MiB", "--budget", "slowdown=0%")
    assert ran.code == 0, ran.err
    assert b"least energy" in ran.out or b"no machine" in ran.out


def test_locality_says_how_many_pages_get_the_accesses(perdure, trace):
    row = facts(perdure("sim", "locality", trace, "--json"))["traces"][0]
    assert row["pages"] == 1024
    assert row["pages_for_90%"] < 0.26 < row["pages_for_99%"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("png", ("sweep", "--mram", "1MiB")),
        ("svg", ("sweep", "--mram", "1MiB", "--policy", "lru", "--policy", "mram_fixed")),
        ("png", ("optimise", "--mram", "1MiB")),
        ("svg", ("locality",)),
    ],
)
def test_pictures_are_drawn(perdure, trace, tmp_path, words, kind):
    file = tmp_path / f"picture.{kind}"
    ran = perdure("sim", words[0], trace, *words[1:], "--plot", file)
    assert ran.code == 0, ran.err
    assert file.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "TRACE", "--dram", "a lot"), "128MiB"),
        (("run", "TRACE", "--dram", "1MiB", "--policy", "best"), "low_power"),
        (("run", "TRACE", "--dram", "1MiB", "--policy", "lru", "--option", "alpha=1"), "alpha"),
        (("run", "TRACE", "--dram", "100"), "100"),
        (("run", "TRACE", "--dram", "1MiB", "--preset", "mine"), "hosogaya2008"),
        (("run", "no.ptrace", "--dram", "1MiB"), "no.ptrace"),
        (("optimise", "TRACE", "--budget", "much"), "slowdown=20%"),
        (("sweep", "TRACE", "--policy", "best"), "low_power"),
    ],
)
def test_what_is_wrong_is_said_with_a_remedy(perdure, trace, words, said):
    ran = perdure("sim", *(str(trace) if word == "TRACE" else word for word in words))
    assert ran.code == 2
    assert said in ran.err and "Traceback" not in ran.err


def test_a_truncated_trace_is_refused(perdure, trace, tmp_path):
    short = tmp_path / "short.ptrace"
    short.write_bytes(trace.read_bytes()[:-20])
    ran = perdure("sim", "run", short, "--dram", "8MiB")
    assert ran.code == 2 and str(short) in ran.err


def test_the_benchmark_says_where_a_policy_is_worst_and_why_a_machine_is_best(trace):
    subject = memsim.Subject("cg", (), (), (), 4.2)
    found = list(memsim.subject_facts(subject, True, trace, 1e9))
    values = {(fact.case, fact.metric): fact for fact in found}
    assert values["cg", "footprint_mb"].value == pytest.approx(1024 * PAGE / 1e6)
    assert values["cg-best", "time_s"].more["why"]
    assert values["cg-best", "energy_ratio"].value < 1
    worst = [fact for fact in found if fact.metric == "worst_time_ratio"]
    assert {fact.case for fact in worst} == {"cg-mram_fixed", "cg-low_power"}
    devices = devices_named("hosogaya2008", None, None, None, True)
    for fact in worst[:4]:
        policy = fact.case.removeprefix("cg-")
        seconds = [
            run_once(
                str(trace), Options(devices, compute_ns=1e9), each, {},
                dram_bytes=int(fact.more["dram_mib"] * MIB),
                mram_bytes=int(fact.more["mram_mib"] * MIB),
            ).cost.time_ns
            for each in (policy, "lru")
        ]
        assert fact.value == pytest.approx(seconds[0] / seconds[1])


def test_the_best_machine_may_be_mram_alone_if_it_holds_the_program(tmp_path):
    pages = 60 * MIB // PAGE
    lines = [f"0 {PAGE * (turn % pages) + 64 * (turn % 64):x}" for turn in range(4 * pages)]
    (tmp_path / "it.din").write_text("\n".join(lines) + "\n")
    place = tmp_path / "it.ptrace"
    _core.TraceImport("din", str(tmp_path / "it.din"), str(place), "it").run()
    subject = memsim.Subject("small", (), (), ())
    found = {(fact.case, fact.metric): fact
             for fact in memsim.subject_facts(subject, False, place, 1e9)}
    best = found["small-best", "energy_j"]
    assert (best.more["mram_mib"], best.more["dram_mib"]) == (64, 0)


def test_a_picture_has_what_was_run_and_goes_on_to_the_typical_memory(trace, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda figure, *_, **__: drawn.append(figure)
    )
    found = list(memsim.subject_facts(memsim.Subject("cg", (), (), (), 4.2), True, trace, 1e9))
    memsim_plot.draw(found, "it", "it.png")
    titles = [axis.get_title() for axis in drawn[0].axes]
    assert titles == ["cg: policies beside MRAM", "concentration of accesses", "cg", "cg"]
    typical = next(fact for fact in found if fact.case == "cg-typical")
    for line in drawn[0].axes[-1].get_lines():
        assert max(line.get_xdata()) == pytest.approx(typical.more["dram_mib"])
        assert min(line.get_ydata()) < line.get_ydata()[-1]


def test_minima_are_those_that_both_sides_rise_from():
    assert local_minima([5, 3, 4, 1, 2]) == [1, 3]
    assert local_minima([1, 2, 3]) == [0]
    assert local_minima([3, 2, 1]) == [2]
    assert local_minima([5, 3, 3.001, 2.999, 5]) == [3]
    assert local_minima([]) == []


def test_capacities_and_budgets_as_people_write_them():
    assert parse_size("1.5 GiB") == 3 << 29 and parse_size("64MB") == 64 * 10**6
    assert parse_budget("slowdown=20%") == 0.2 and parse_budget("slowdown = 0.2") == 0.2
    for wrong in ("", "12 parsecs", "-1MiB", "1.5"):
        with pytest.raises(ValueError):
            parse_size(wrong)


@pytest.fixture
def stop_after(monkeypatch):
    """Sends this process Ctrl-C when a replay, or a series of them, has reported so often."""

    def arrange(method, calls):
        original = getattr(Watch, method)

        def watched(watch, *words):
            tell, reports = original(watch, *words), itertools.count(1)

            def telling(*progress):
                if next(reports) == calls:
                    signal.raise_signal(signal.SIGINT)
                return tell(*progress)

            return telling

        monkeypatch.setattr(Watch, method, watched)

    return arrange


@pytest.fixture(scope="module")
def long_trace(tmp_path_factory):
    """Several frames of records, on 1024 pages of which each comes again."""
    place = tmp_path_factory.mktemp("long")
    lines = (f"{turn % 5 == 0:d} {PAGE * (turn * 389 % 1024):x}" for turn in range(70_000))
    (place / "accesses.din").write_text("\n".join(lines) + "\n")
    _core.TraceImport("din", str(place / "accesses.din"), str(place / "t.ptrace"), "it").run()
    return place / "t.ptrace"


def test_a_run_that_is_stopped_says_what_it_has(perdure, long_trace, stop_after):
    stop_after("of", 2)
    words = ("sim", "run", long_trace, "--dram", "2MiB")
    ran = perdure(*words, "--json")
    assert ran.code == 130 and "stopped" in ran.err
    found = json.loads(ran.out)
    accesses = sum(found["counters"]["dram"][kind] for kind in ("reads", "writes"))
    assert found["partial"] and 0 < accesses < _core.summarise_trace(str(long_trace)).reads
    ran = perdure(*words)
    assert ran.code == 130 and b"partial: stopped after" in ran.out


def test_a_sweep_that_is_stopped_in_its_pass_has_points_of_the_accesses_so_far(
    perdure, long_trace, stop_after, tmp_path
):
    stop_after("of", 2)
    picture = tmp_path / "partial.svg"
    words = ("sim", "sweep", long_trace, "--mram", "2MiB", "--step", "512KiB")
    ran = perdure(*words, "--json", "--plot", picture)
    assert ran.code == 130 and "of the trace" in ran.err
    found = [json.loads(line) for line in ran.out.decode().splitlines()]
    assert len(found) >= 6 and picture.exists()
    assert all(row["partial"] and 0 < row["trace_share"] < 1 for row in found)
    ran = perdure(*words)
    assert ran.code == 130
    assert ran.out.decode().count("(partial: ") == len(found)


def test_a_sweep_that_is_stopped_in_its_replays_has_those_that_were_finished(
    perdure, long_trace, stop_after
):
    words = ("sim", "sweep", long_trace, "--mram", "2MiB", "--policy", "arc", "--step", "256KiB",
             "--json")
    whole = {row["dram_bytes"]: row for row in rows(perdure(*words)) if row["mram_bytes"] == 0}
    assert len(whole) > 8 and not any(row["partial"] for row in whole.values())
    stop_after("count", 3)
    ran = perdure(*words)
    assert ran.code == 130 and "were finished" in ran.err
    found = [json.loads(line) for line in ran.out.decode().splitlines()]
    assert 3 <= len(found) < len(whole)
    for row in found:
        assert row == {**whole[row["dram_bytes"]], "partial": True}
        assert row["trace_share"] == 1.0


def test_a_sweep_that_is_stopped_before_any_point_says_so(perdure, long_trace, stop_after):
    stop_after("of", 1)
    ran = perdure("sim", "sweep", long_trace, "--mram", "2MiB", "--policy", "arc", "--json")
    assert ran.code == 130 and "no point" in ran.err and ran.out == b""


def test_an_optimum_of_half_a_trace_is_not_given(perdure, long_trace, stop_after):
    stop_after("of", 1)
    ran = perdure("sim", "optimise", long_trace, "--mram", "2MiB")
    assert ran.code == 130 and "stopped" in ran.err and ran.out == b""


@pytest.mark.parametrize("words", [("run", "--dram", "2MiB"), ("sweep", "--mram", "0")])
def test_ctrl_c_ends_the_command_itself_with_130(long_trace, tmp_path, words):
    ran = Perdure(tmp_path).interrupted(long_trace.read_bytes(), "sim", words[0], "pipe",
                                        *words[1:], "--json")
    assert ran.code == 130, ran.err
    assert ran.out.count(b'"partial": true') > 0


def test_a_report_is_one_page_with_the_numbers_of_the_other_verbs(perdure, trace, tmp_path):
    file = tmp_path / "report.html"
    words = (trace, "--mram", "1MiB,64MiB", "--typical", "16MiB", "--budget", "slowdown=300000%")
    ran = perdure("sim", "report", *words, "-o", file)
    assert ran.code == 0, ran.err
    page = Elements(file.read_text(encoding="utf-8"))
    assert page.open == [] and page.counts["svg"] == 3 and page.counts["script"] == 0
    assert all(link.startswith("#") for link in page.links), "the page needs no other file"
    text = page.words
    found = facts(perdure("sim", "optimise", *words, "--json"))
    best, usual = found["best"], found["typical"]
    assert f"{100 * best['energy_j'] / usual['energy_j']:.3g} % of the energy" in text
    assert mib_text(best["dram_bytes"]) in text
    assert joules_text(best["energy_j"]).replace("u", "µ") in text
    assert found["notches"] and all(notch["reason"] in text for notch in found["notches"])
    assert "1 024 pages" in text
    assert "beside 1 MiB of MRAM" in text, "a capacity that holds all leaves nothing to choose"
    for part in ("Notches", "Concentration of accesses", "Policies", "standby"):
        assert part in text


@pytest.mark.parametrize(("mram", "best_mram"), [("1MiB,4MiB", 4), ("1MiB,16MiB", 0), ("0", 0)])
def test_a_report_and_optimise_name_the_same_best_machine(
    perdure, trace, tmp_path, mram, best_mram
):
    """With long computation standby decides: MRAM is best that just holds the whole program."""
    file = tmp_path / "report.html"
    words = (trace, "--mram", mram, "--compute", "10", "--typical", "16MiB")
    best = facts(perdure("sim", "optimise", *words, "--json"))["best"]
    assert best["mram_bytes"] == best_mram * MIB
    ran = perdure("sim", "report", *words, "-o", file)
    assert ran.code == 0, ran.err
    text = Elements(file.read_text(encoding="utf-8")).words
    memory = f"{mib_text(best['dram_bytes'])} of DRAM"
    if best["mram_bytes"]:
        memory = f"{mib_text(best['mram_bytes'])} of MRAM and {memory}"
    joules = joules_text(best["energy_j"]).replace("u", "µ")
    said = f"The machine with least energy {memory} under low_power: {joules}"
    assert said in text


def test_a_report_of_a_program_that_fits_mram_has_no_policies_to_compare(perdure, trace, tmp_path):
    file = tmp_path / "small.html"
    ran = perdure("sim", "report", trace, "--mram", "64MiB", "-o", file)
    assert ran.code == 0, ran.err
    page = Elements(file.read_text(encoding="utf-8"))
    assert page.open == [] and page.counts["svg"] == 2
    assert "nothing to choose" in page.words


def test_what_a_trace_says_can_not_become_html(perdure, tmp_path):
    (tmp_path / "a.din").write_text("0 1000\n1 2000\n" * 400)
    into = tmp_path / "odd<b>.ptrace"
    _core.TraceImport("din", str(tmp_path / "a.din"), str(into), "<script>x</script>").run()
    file = tmp_path / "odd.html"
    ran = perdure("sim", "report", into, "-o", file)
    assert ran.code == 0, ran.err
    page = Elements(file.read_text(encoding="utf-8"))
    assert page.counts["script"] == 0 and page.counts["b"] < 10 and page.open == []
    assert "<script>x</script>" in " ".join(page.text)


def test_a_report_that_is_stopped_or_can_not_be_written_leaves_nothing(
    perdure, trace, tmp_path, stop_after
):
    ran = perdure("sim", "report", trace, "-o", tmp_path / "no" / "report.html")
    assert ran.code == 2 and "report.html" in ran.err
    stop_after("of", 1)
    ran = perdure("sim", "report", trace, "--mram", "1MiB", "-o", tmp_path / "report.html")
    assert ran.code == 130 and "no report" in ran.err
    assert list(tmp_path.iterdir()) == []
