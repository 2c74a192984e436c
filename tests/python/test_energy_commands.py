# SPDX-License-Identifier: BSD-3-Clause
"""`perdure energy plan|simulate|explain`: what comes out, what is refused, what is read."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT, Ran, in_this_process
from perdure.energy import quantities as q
from perdure.energy.plan.failures import Failures, estimate, read_failures
from perdure.energy.plan.file import read_plan
from perdure.energy.profile.file import machine_here, profile_of, read_profile

BASE = ("--write-time", "130s", "--read-time", "90s", "--mtbf", "14.66h")
POWERS = ("--power", "471.1W", "--write-power", "280W", "--read-power", "295W")
LEVELS = (
    "--levels", "local,partner,pfs", "--share", "70%,25%,5%", "--mtbf", "14.66h",
    "--write-time", "128s,290s,20min", "--read-time", "87s,200s,15min",
)  # fmt: skip


class InThisProcess:
    """The command without a process of its own: hundreds of calls in seconds."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, *words) -> Ran:
        return in_this_process(*words)


@pytest.fixture
def perdure(tmp_path, monkeypatch) -> InThisProcess:
    monkeypatch.chdir(tmp_path)
    return InThisProcess(tmp_path)


def quantity(mean: float) -> dict:
    return {"mean": mean, "sd": 0.01 * mean, "n": 3, "low": 0.99 * mean, "high": 1.01 * mean}


def profile(**changes) -> dict:
    """A profile of this machine, with a meter."""
    points = [
        {"op": op, "freq_kHz": freq, "writers": writers, "bytes": 2 * 10**9,
         "bandwidth_MBps": quantity(speed * (0.4 if writers == 48 else 1)),
         "power_W": quantity(200 + freq / 2e4 + 2 * writers),
         "energy_J_per_MB": quantity((200 + freq / 2e4 + 2 * writers) / speed),
         "cpu_s_per_GB": quantity(0.2), "settled": True, "load_1min": 0.1, "of_tomorrow": 1}
        for op, speed in (("write", 453.0), ("read", 735.0))
        for freq in (800_000, 2_100_000)
        for writers in (2, 48)
    ]  # fmt: skip
    here = machine_here()
    fingerprint = {**here, "meter": {"name": "rapl", "scope": "node"}, "unknown": [1]}
    made = {"schema": 1, "kind": "perdure-energy-profile", "created": "2026-01-01T00:00:00Z",
            "fingerprint": fingerprint, "idle_power_W": None, "points": points}
    return {**made, **changes}


@pytest.fixture
def saved(tmp_path):
    def save(document, name: str = "profile.json"):
        text = document if isinstance(document, str) else json.dumps(document)
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return save


def result(ran) -> dict:
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_a_plan_has_what_the_library_reads(perdure, saved):
    made = result(perdure("energy", "plan", saved(profile()), "--size", "64GB", "--mtbf", "14.66h",
                          "--power", "471W", "--objective", "energy", "--json", "-o", "plan.json"))
    assert (made["schema"], made["kind"]) == (1, "perdure-energy-plan")
    (level,) = made["levels"]
    assert level["write"]["writers"] == 2 and level["every"] == 1
    expected = made["expected"]
    assert expected["bytes_per_day"] == pytest.approx(64e9 * expected["checkpoints_per_day"])
    assert 1 < expected["time_per_work"] < 1.2 and expected["energy_per_work_W"] > 471
    assert {each["name"] for each in made["governors"]} == {"performance", "powersave", "ondemand"}
    assert json.loads((perdure.folder / "plan.json").read_text()) == made
    assert read_plan(perdure.folder / "plan.json").work_s == made["interval_s"]


def test_a_profile_without_a_meter_gives_time_and_no_energy(perdure, saved):
    document = profile()
    for point in document["points"]:
        point["power_W"] = point["energy_J_per_MB"] = point["freq_kHz"] = None
    words = ("energy", "plan", saved(document), "--size", "64GB", "--mtbf", "14.66h", "--power",
             "471W")
    made = result(perdure(*words, "--json"))
    assert made["expected"]["energy_per_work_W"] is None
    refused = perdure(*words, "--objective", "energy")
    assert refused.code == 2 and "no meter" in refused.err and "Traceback" not in refused.err


def test_three_levels_are_planned_played_and_explained(perdure):
    made = result(perdure("energy", "plan", *LEVELS, "--json", "-o", "plan.json",
                          "--path", "/scratch,-,/pfs"))
    assert [level["every"] for level in made["levels"]] == [1, 2, 10]
    assert [level["path"] for level in made["levels"]] == ["/scratch", None, "/pfs"]
    played = result(perdure("energy", "simulate", "plan.json", "--seed", 1, "--json",
                            "--intervals", "2e5"))
    assert abs(played["sigmas"]) < 3 and played["energy_per_work_W"] is None
    assert result(perdure("energy", "explain", "plan.json", "--json"))["paper"]["compared"] is False


def test_the_command_itself_plans(perdure, tmp_path):
    words = [str(ROOT / "perdure"), "energy", "plan", *BASE, *POWERS]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "a checkpoint after every" in done.stdout and not done.stderr


def test_a_seed_is_printed_and_taken_back(perdure):
    result(perdure("energy", "plan", *BASE, *POWERS, "--json", "-o", "plan.json"))
    first = perdure("energy", "simulate", "plan.json", "--intervals", "1e4")
    seed = first.err.split("seed ")[1].split()[0]
    again = perdure("energy", "simulate", "plan.json", "--intervals", "1e4", "--seed", seed)
    assert first.code == 0 and first.out == again.out


@pytest.mark.parametrize("extra", [("--overhead", "5s", "--flush-power", "30W"),
                                   ("--downtime", "10min", "--down-power", "100W"),
                                   ("--law", "weibull:shape=0.7"), ("--objective", "edp"),
                                   ("--formula", "paper")])
def test_every_kind_of_plan_is_what_simulation_finds(perdure, extra):
    result(perdure("energy", "plan", *BASE, *POWERS, *extra, "--json", "-o", "plan.json"))
    played = result(perdure("energy", "simulate", "plan.json", "--seed", 2, "--json",
                            "--intervals", "3e5"))
    assert abs(played["sigmas"]) < 3
    low, high = (played["energy_per_work_W"][end] for end in ("low", "high"))
    planned = played["planned"]["energy_per_work_W"]
    assert low - (high - low) < planned < high + (high - low)


def test_explain_says_where_the_paper_is_wrong(perdure):
    result(perdure("energy", "plan", *BASE, *POWERS, "--json", "-o", "plan.json"))
    paper = result(perdure("energy", "explain", "plan.json", "--json"))["paper"]
    assert paper["exact"]["total"] == pytest.approx(paper["paper"]["total"], rel=1e-12)
    assert paper["paper"]["compute"] > paper["exact"]["compute"]
    ran = perdure("energy", "explain", "plan.json")
    assert ran.code == 0 and b"is counted as A" in ran.out


def test_a_log_of_failures_is_planned_with_and_replayed(perdure, saved):
    hours = [30, 41, 2, 55, 3, 90, 14, 8, 61, 5]
    log = saved("interval,node\n" + "".join(f"{hour}h,n{hour}\n" for hour in hours), "log.csv")
    ran = perdure("energy", "plan", *BASE[:4], "--failures", log, "--json", "-o", "plan.json")
    made = result(ran)["inputs"]
    assert 1 / made["rate_per_s"] == pytest.approx(sum(hours) * 360)
    assert made["mtbf_low_s"] < 1 / made["rate_per_s"] < made["mtbf_high_s"]
    assert "only 10 gaps" in ran.err
    played = result(perdure("energy", "simulate", "plan.json", "--failures", log, "--json",
                            "--seed", 3, "--intervals", "1e5"))
    assert played["failures"] == "observed" and played["in_order"]["failures"] == 10
    assert played["time_per_work"]["low"] < played["in_order"]["time_per_work"] * 1.05


def test_times_of_failures_are_read_in_both_forms(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("# begin: 2026-01-01\n# end: 2026-01-11\nnode,time\nn1,2026-01-03T00:00:00Z\n"
                    "n2,2026-01-03T00:00:30Z\nn1,2026-01-06T00:00:00+00:00\n")
    found = read_failures(file, merge_s=60)
    assert found.gaps_s == (2 * 86400, 3 * 86400) and found.censored_s == (5 * 86400,)
    assert found.watched_s == 10 * 86400 and found.events == 2 and len(found.warnings) == 1
    assert estimate(found).mtbf_s == 5 * 86400
    (warning,) = estimate(Failures((300.0,), 300.0, 1)).warnings
    assert warning.startswith("only 1 gap between failures"), warning
    file.write_text("time\n100\n\n160\n# note\n400\n")
    assert read_failures(file).gaps_s == (60, 240)


def test_clustered_failures_are_noticed_and_exponential_ones_are_not(tmp_path):
    import numpy as np

    file, random = tmp_path / "log.csv", np.random.default_rng(5)
    for shape, noticed in ((0.5, True), (1.0, False)):
        gaps = 1e4 * random.weibull(shape, 300)
        file.write_text("interval\n" + "\n".join(map(str, gaps)))
        found = estimate(read_failures(file))
        assert found.law.shape == pytest.approx(shape, abs=0.1)
        assert (found.advice is not None and "--law weibull" in found.advice) is noticed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no failures in it"), ("node\nn1\n", "must name the columns"),
        ("time\nyesterday\n", "line 2: 'yesterday' is no time"),
        ("interval\n-3\n", "negative"), ("interval\n3h,\n4q\n", "'q' is no unit"),
        ("time\n5\n", "no time between two failures"), ("a,time\nx\n", "no time in 'x'"),
        ("# end: 3\ntime\n1\n9\n", "after # end"), ("interval\nnan\n", "no finite number"),
    ],
)
def test_bad_lists_of_failures_are_refused_with_their_line(tmp_path, text, said):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(q.Wrong, match=said):
        read_failures(tmp_path / "log.csv")


def without(key: str) -> dict:
    return {name: value for name, value in profile().items() if name != key}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (profile(schema=2), "newer than 1"), (profile(kind="other"), "kind is 'other'"),
        (profile(points=[]), "the grid is empty"), (without("points"), "no list 'points'"),
        (without("fingerprint"), "no 'fingerprint'"), (json.dumps(profile())[:700], "cut short"),
        ("", "is empty"), ("[1]", "must be an object"), (profile(schema="1"), "schema is '1'"),
        (profile(points=[{**profile()["points"][0], "op": "erase"}]), "op is 'erase'"),
        (profile(points=[{**profile()["points"][0], "writers": 0}]), "writers is 0"),
        (profile(points=[{**profile()["points"][0], "bandwidth_MBps": quantity(-1)}]),
         "more than 0"),
        (profile(points=[profile()["points"][0]]), "no point for 'read'"),
        (profile(fingerprint={"cpu_model": "Another", "cpus": 3}), "another machine"),
    ],
)
def test_bad_profiles_are_refused_with_a_remedy(perdure, saved, document, said):
    ran = perdure("energy", "plan", saved(document), "--size", "1GB", "--mtbf", "3h")
    assert ran.code == 2 and said in ran.err and "Traceback" not in ran.err


def test_truncation_at_any_byte_is_told_and_never_a_traceback(tmp_path):
    text = json.dumps(profile())
    for end in range(0, len(text), 7):
        (tmp_path / "cut.json").write_text(text[:end])
        with pytest.raises(q.Wrong):
            read_profile(tmp_path / "cut.json")


def test_a_profile_of_another_machine_is_taken_if_that_is_said(perdure, saved):
    file = saved(profile(fingerprint={"cpu_model": "Another", "cpus": 3}))
    ran = perdure("energy", "plan", file, "--size", "1GB", "--mtbf", "3h", "--other-machine")
    assert ran.code == 0 and "of another machine" in ran.err


def test_unknown_keys_are_ignored():
    assert len(profile_of({**profile(), "later": {}}, "memory").points) == 8


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (BASE[:4], "how often failures come"), (("--mtbf=-3h", "--write-time", "1s"), "negative"),
        (("--rate=-1/s", "--write-time", "1s"), "must be more than nothing"),
        ((*BASE, "--size", "64"), "has no unit"), ((*BASE, "--size", "64gb"), "no unit of a size"),
        (("--mtbf", "14h"), "how long does a checkpoint take"),
        (("--write-time", "20h", "--mtbf", "14.66h"), "longer than the mean time between failures"),
        ((*BASE, "--objective", "energy"), "give --power"),
        ((*BASE, "--objective", "speed"), "there are time, energy, edp"),
        ((*BASE, "--law", "weibull:shape=0.01"), "outside of 0.2 to 20"),
        ((*LEVELS[:2], *LEVELS[4:]), "needs --share"), ((*BASE, "--interval", "0s"), "more than"),
        ((*BASE, "--pattern", "1,2"), "--pattern needs --levels"),
        ((*BASE, "--downtime", "1min", "--formula", "paper"), "know nothing of --downtime"),
        ((*BASE, "--interval", "3s", "--overhead", "1s"), "still being written"),
        ((*LEVELS, "--pattern", "1,2,5"), "must divide the next"),
        ((*LEVELS, "--law", "weibull:shape=0.7"), "not modelled together"),
        ((*LEVELS[:3], "70%,25%,15%", *LEVELS[4:]), "add up to 1.1"),
        ((*BASE, "--interval", "1000d"), "would hardly advance"),
        ((*BASE[:2], "--read-time", "3000h", "--mtbf", "3h", "--law",
          "weibull:shape=0.7"), "hardly advance"),
        (("--levels", "a,b", "--share", "50%,50%", "--write-time", "1s,2s", "--mtbf", "3h",
          "--interval", "9s", "--pattern", "1,1000000000"), "times as long as its work"),
        ((*BASE, "--power", "0W"), "more than no power"), ((*BASE, "--power", "-3W"), "negative"),
        (("--rate", "2", "--write-time", "1s"), "is no failure rate"),
        (("nothing.json", "--mtbf", "3h"), "nothing.json"),
        ((*BASE, "--plot", "a.nonsense"), "must end with .png"),
        ((*BASE, "-o", "no/dir"), "there is no folder no"),
        ((*BASE, "--front", "a.png"), "there is no front"),
    ],
)
def test_what_cannot_be_planned_with_is_refused_with_a_remedy(perdure, words, said):
    ran = perdure("energy", "plan", *words)
    assert ran.code == 2 and said in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 2}, "newer than 1"), ({"kind": "x"}, "kind is 'x'"),
        ({"interval_s": -1}, "interval_s is -1"), ({"inputs": None}, "cut short"),
        ({"levels": []}, "0 levels"), ({"objective": "fun"}, "objective is 'fun'"),
        ({"choice": [{}]}, "choice 0.write is None"), ({"choice": 5}, "choice is 5"),
        ({"schedule": {}}, "schedule.works_s is None"),
        ({"schedule": {"works_s": [9.0]}}, "schedule.expected is None"),
        ({"levels": [{"every": 1.5}]}, "level 0.every is 1.5; it must be a whole number"),
    ],
)
def test_bad_plans_are_refused_with_a_remedy(perdure, change, said):
    made = result(perdure("energy", "plan", *BASE, "--json"))
    (perdure.folder / "plan.json").write_text(json.dumps({**made, **change}))
    ran = perdure("energy", "explain", "plan.json")
    assert ran.code == 2 and said in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("words", "kind"),
    [((*BASE, *POWERS), "png"), ((*BASE, "--law", "weibull:shape=0.7"), "svg"), (LEVELS, "png")],
)
def test_pictures_are_drawn(perdure, words, kind):
    ran = perdure("energy", "plan", *words, "--plot", f"cost.{kind}")
    assert ran.code == 0 and (perdure.folder / f"cost.{kind}").stat().st_size > 1000
    if words[-1] == "295W":
        assert perdure("energy", "plan", *words, "--front", f"front.{kind}").code == 0
        assert (perdure.folder / f"front.{kind}").stat().st_size > 1000


def test_ctrl_c_prints_what_was_played_and_ends_with_130(perdure, tmp_path):
    result(perdure("energy", "plan", *BASE, *POWERS, "--json", "-o", "plan.json"))
    words = [str(ROOT / "perdure"), "energy", "simulate", "plan.json", "--intervals", "1e15"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        assert "seed" in process.stderr.readline()  # from here on it listens
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "intervals" in out
    assert "stopped" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "seconds"), [("130s", 130), ("14.66h", 52776), ("5min", 300), (" 1.5e3 ms ", 1.5)]
)
def test_times_are_read_with_their_units(text, seconds):
    assert q.parse_time(text) == pytest.approx(seconds)


def test_help_has_examples(perdure):
    for verb in ("plan", "simulate", "explain"):
        ran = perdure("energy", verb, "--help")
        assert ran.code == 0 and b"Example" in ran.out
