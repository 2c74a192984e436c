# SPDX-License-Identifier: BSD-3-Clause
"""`perdure report`: the pages of jobs and of benchmarks, and what is refused."""

from __future__ import annotations

import copy
import json
import random
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, Perdure, in_this_process
from html_page import Elements
from perdure.energy.formulas.model import Machine, time_per_work
from perdure.report.advice import Judgement
from perdure.report.job import read_job
from perdure.run.page import Phase, RunPage
from perdure.run.totals import SAMPLES_MAX, History

JOB = """
import sys, time
sys.path[:0] = [{paths}]
import perdure
with perdure.open("pool") as pool:
    state = pool.scalars(iteration=0)
    u = pool.array("u", 1000)
    pool.restart()
    while state.iteration < 12:
        state.iteration += 1
        u.working[:] += 1
        time.sleep(0.05)
        pool.commit()
""".format(paths=f"'{ROOT / 'python'}', '{BUILD / 'python'}'")


def page_of(document, folder, *options):
    """The page of a document, or of lines; and what ran."""
    file = folder / "it.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    ran = in_this_process("report", file, "-o", folder / "it.html", *options)
    assert ran.code in (0, 2), ran.err
    if ran.code:
        return None, ran
    page = Elements((folder / "it.html").read_text(encoding="utf-8"))
    assert page.open == [] and page.counts["script"] == 0
    assert all(link.startswith("#") for link in page.links), "the page needs no other file"
    return page, ran


def attempt(number, began_s, seconds, commits, every_s, ended="exit", code=0, first=0, **more):
    """An attempt that starts in 2 s, and then commits every `every_s`, 0.5 s long each."""
    times = [2 + every_s * each for each in range(1, commits + 1)]
    return {
        "attempt": number, "ended": ended, "why": None, "nodes": [], "lost": [],
        "asked_to_end": False, "exit_code": code,
        "signal": "SIGKILL" if ended == "signal" else None,
        "began_s": began_s, "seconds": seconds, "start_s": 2.0, "ranks": 4, "ranks_reporting": 4,
        "restored_version": first, "restart_s": 0.5, "version": first + commits, "iteration": None,
        "commits": commits, "commit_s": 0.5 * commits, "commit_bytes": 10**9 * commits,
        "model_s": 0.0, "commit_share": 0.1, "ranks_unclosed": [], "processes_ended": [],
        "shared_memory_removed": [],
        "history": {
            "seconds": times, "version": [first + each for each in range(1, commits + 1)],
            "commits": list(range(1, commits + 1)),
            "commit_s": [0.5 * each for each in range(1, commits + 1)],
            "commit_bytes": [10**9 * each for each in range(1, commits + 1)],
        }, **more,
    }  # fmt: skip


def job(attempts, seconds, **more):
    """The document of a job."""
    last = attempts[-1]
    return {
        "kind": "run", "schema": 1, "command": ["mpiexec", "-n", "4", "./solver"],
        "perdure": "perdure 0.1.0", "host": "n0", "began": "2026-11-29T01:02:03+00:00",
        "exit_code": last["exit_code"], "completed": last["exit_code"] == 0, "stopped_by": None,
        "seconds": seconds, "restarts": len(attempts) - 1, "requeued": False, "levels": None,
        "plan": None, "rehearsal": None, "left_behind": [], "attempts": attempts, **more,
    }  # fmt: skip


# Killed 7 s after its ninth version at 92 s; then 11 more; 3 s between them.
KILLED = job(
    [attempt(1, 0.0, 99.0, 9, 10, "signal", 137), attempt(2, 102.0, 115.0, 11, 10, first=9)], 217.0
)


def read(document, tmp_path):
    return read_job(tmp_path / "run.json", document)


def test_a_job_that_was_killed_and_restarted_has_a_page_with_its_figures(tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    perdure = Perdure(tmp_path)
    ran = perdure("run", "--kill-at", 5, "--json", "run.json", "--", sys.executable, "job.py")
    assert ran.code == 0, ran.err
    known = json.loads((tmp_path / "run.json").read_text())
    first, second = known["attempts"]
    assert first["history"]["version"][-1] == 4 and second["history"]["version"][-1] == 12
    assert second["began_s"] >= first["seconds"]
    ran = perdure("report", "run.json")
    assert ran.code == 0 and ran.err == "written: run.html\n"
    assert (tmp_path / "run.html").stat().st_mode & 0o044 == 0o044, "it may be mailed"
    page = Elements((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert page.open == [] and page.counts["script"] == 0 and page.counts["figure"] >= 1
    assert "completed" in page.words and "2 attempts, one failure was rehearsed" in page.words
    assert "12 commits" in page.words


def test_the_phases_are_the_jobs_time_and_lost_work_is_what_was_after_the_newest_version(tmp_path):
    phases = read(KILLED, tmp_path).phases()
    assert phases == pytest.approx({
        "starting": 4.0, "computing": 217 - 4 - 10 - 7 - 3, "commits": 10.0, "lost work": 7.0,
        "between attempts": 3.0,
    })  # fmt: skip
    assert sum(phases.values()) == pytest.approx(217)
    never = attempt(1, 0.0, 50.0, 0, 10, "exit", 3)
    assert read(job([never], 50.0), tmp_path).phases()["lost work"] == 48
    began_not = {**never, "start_s": None, "version": None, "restored_version": None}
    assert read(job([began_not], 50.0), tmp_path).phases()["starting"] == 50


def test_the_best_interval_is_that_of_the_planner(tmp_path):
    found = Judgement(read(KILLED, tmp_path), 3600.0)
    (interval,) = found.intervals()
    assert found.commit_s == 0.5 and found.again_s == 5.0  # two seconds, and three between
    assert found.job.interval_s == 9.5
    ran = in_this_process("energy", "plan", "--write-time", "0.5s", "--read-time", "5s", "--mtbf",
                          "3600s", "--downtime", "0s", "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    plan = json.loads(ran.out)
    assert interval.best_s == pytest.approx(plan["interval_s"], rel=1e-6)
    assert interval.best_share == pytest.approx(plan["expected"]["time_per_work"] - 1, rel=1e-6)
    now = time_per_work(9.5, Machine(1 / 3600, 0.5, 5.0)) - 1
    assert interval.now_share == pytest.approx(now)


def test_what_to_change_is_said_with_the_figures(tmp_path):
    text = page_of(KILLED, tmp_path, "--mtbf", "1h")[0].words
    assert "With a failure every 60 min, a commit after 59.7 s of computing would be best" in text
    assert "Now it comes after 9.5 s, and that costs" in text
    assert "Failures cost 7 s of work that was done again, of 3 min 37 s in all" in text
    once = job([attempt(1, 0.0, 99.0, 9, 10, "signal", 137)], 99.0)
    text = page_of(once, tmp_path)[0].words
    assert "The job did not complete. Its last attempt ended with SIGKILL" in text
    assert "perdure run --restarts 5 -- mpiexec -n 4 ./solver" in text
    assert "as this one job had them" in text, "one failure is few to go by"
    stranger = {**attempt(1, 0.0, 9.0, 0, 1), "ranks": 0, "ranks_reporting": 0}
    assert "does not use Perdure" in page_of(job([stranger], 9.0), tmp_path)[0].words
    good = job([attempt(1, 0.0, 1002.5, 1, 1000)], 1002.5)
    assert "Nothing: the job completed" in page_of(good, tmp_path)[0].words
    soon = {**attempt(1, 0.0, 99.0, 9, 10, "signal", 137), "seconds": 92.000076}
    text = page_of(job([soon, attempt(2, 102.0, 115.0, 11, 10, first=9)], 217.0), tmp_path)[0].words
    assert "Failures cost 76 µs of work" in text


def test_a_plan_and_a_profile_are_compared_with_what_was_measured(tmp_path):
    plan, profile = (ROOT / f"tests/schemas/{kind}.json" for kind in ("plan", "profile"))
    page, _ = page_of(KILLED, tmp_path, "--plan", plan, "--profile", profile)
    assert "Planned and measured" in page.words and "the device of the profile takes" in page.words
    of_the_job, ran = page_of({**KILLED, "plan": str(plan)}, tmp_path)
    assert "Planned and measured" in of_the_job.words
    gone, ran = page_of({**KILLED, "plan": str(tmp_path / "gone.json")}, tmp_path)
    assert "is gone: nothing is compared" in ran.err and "Planned and" not in gone.words


def test_words_of_others_are_shown_and_not_obeyed(tmp_path):
    nasty = "<script>alert(1)</script>\x1b[2J\u202e&"
    document = copy.deepcopy(KILLED)
    document.update(command=[nasty], host=nasty, levels=nasty, perdure=nasty, began=nasty)
    document["attempts"][0].update(why=nasty, lost=[nasty])
    page, _ = page_of(document, tmp_path)
    assert "\x1b" not in page.words and "\u202e" not in page.words
    assert page.words.count("<script>alert(1)</script>\\x1b[2J\\u202e&") >= 5
    figure = json.dumps({"bench": nasty, "case": nasty, "metric": nasty, "value": 1, "unit": ""})
    assert "\x1b" not in page_of(figure, tmp_path)[0].words


def places_in(value, place=()):
    """The path of every value in a document."""
    yield place
    items = value.items() if isinstance(value, dict) else (
        enumerate(value) if isinstance(value, list) else ())
    for key, inner in items:
        yield from places_in(inner, (*place, key))


def with_change(document, place, value):
    changed = copy.deepcopy(document)
    if not place:
        return value
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


def test_a_document_with_anything_in_any_place_is_shown_or_refused_in_a_sentence(tmp_path):
    small = job([attempt(1, 0.0, 30.0, 2, 10, "signal", 137), attempt(2, 31.0, 40.0, 3, 10)], 71.0)
    wrong = (None, -1, 1e400, float("nan"), "x", [], {}, True, [[]], 10**400)
    draw = random.Random(3)
    refused = shown = 0
    places = sorted(places_in(small), key=str)
    for place in places:
        document = with_change(small, place, draw.choice(wrong))
        try:
            read(document, tmp_path) if isinstance(document, dict) else None
        except Exception as failed:  # noqa: BLE001  # which ones is what is tested
            assert type(failed).__name__ == "Wrong", (place, failed)
            refused += 1
            assert "run.json" in str(failed), place
        else:
            shown += 1
    assert refused > len(places) // 2 and shown > 10
    for place in draw.sample(places, 12):
        page_of(with_change(small, place, draw.choice(wrong)), tmp_path)


@pytest.mark.parametrize(("text", "words"), [
    ("", "is empty"),
    ("{", "no valid JSON"),
    ("[1]", "must be an object"),
    ('{"kind": "pool"}', "kind is 'pool', none of run"),
    ('{"kind": "run", "schema": 99}', "is newer than"),
    ('{"bench": "x"}', "case is None"),
    ('{"bench": "x", "case": "y", "metric": "z", "value": 1, "unit": ""}\n{', "line 2 is no JSON"),
    ('{"figures": "x"}\n{"a": 1}', "line 2 is no figure"),
])  # fmt: skip
def test_what_is_no_job_and_no_figures_is_refused_in_a_sentence(tmp_path, text, words):
    page, ran = page_of(text, tmp_path)
    assert page is None and words in " ".join(ran.err.split()), ran.err
    assert not (tmp_path / "it.html").exists()


def test_options_of_a_job_are_refused_for_figures_and_times_are_read(tmp_path):
    figure = '{"bench": "x", "case": "y", "metric": "z", "value": 1, "unit": ""}'
    assert "is of a job" in page_of(figure, tmp_path, "--mtbf", "1h")[1].err
    assert "--mtbf" in page_of(KILLED, tmp_path, "--mtbf", "0s")[1].err
    assert "--mtbf" in page_of(KILLED, tmp_path, "--mtbf", "soon")[1].err


@pytest.mark.parametrize("name", ["hpccg", "state", "memsim", "earlier"])
def test_the_figures_of_a_benchmark_have_a_page_that_names_what_is_missed_and_noisy(tmp_path, name):
    lines = (ROOT / f"docs/figures/{name}.jsonl").read_text()
    known = [json.loads(line) for line in lines.splitlines()]
    page, _ = page_of(lines, tmp_path)
    figures = [each for each in known if "bench" in each]
    missed = [each for each in figures if each.get("holds") is False]
    held = sum(each.get("holds") is True for each in figures)
    noisy = [each for each in figures if each.get("low") is not None and each["value"]
             and each["high"] - each["low"] > 0.1 * abs(each["value"])]  # fmt: skip
    assert f"{len(figures)} figures" in page.words
    assert f"{held} of {held + len(missed)} targets hold" in page.words
    assert page.words.count("too noisy here") == len(noisy) + 1
    assert page.words.count("missed") >= len(missed)
    assert ("Where a target is missed" in page.words) == bool(missed)


def pages(commits):
    """A rank's page after so many commits."""
    return [RunPage(1, 0, 1, Phase.computing, commits, 0, commits, 1, commits, 1, commits, 0, 0, 0)]


@pytest.mark.parametrize("changes", [1, SAMPLES_MAX - 1, SAMPLES_MAX, 12_345])
def test_a_history_is_thinned_evenly_and_keeps_its_ends(changes):
    history = History()
    for each in range(changes):
        history.note(0.2 * each, pages(each))
        history.note(0.2 * each + 0.1, pages(each))  # nothing new
    rows = history.as_json()
    assert len(rows["seconds"]) <= SAMPLES_MAX + 1
    assert rows["version"][0] == 0 and rows["version"][-1] == changes - 1
    assert rows["seconds"][-1] == pytest.approx(0.2 * (changes - 1))
    gaps = [after - before for before, after in zip(rows["seconds"], rows["seconds"][1:-1])]
    assert all(gap >= 0 for gap in gaps)
    if changes > 4 * SAMPLES_MAX:
        assert len(rows["seconds"]) > SAMPLES_MAX // 4 and max(gaps) <= 4 * min(gaps)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium")
@pytest.mark.parametrize("scheme", [0, 1])  # dark, light
def test_a_browser_shows_the_page_without_a_complaint(tmp_path, scheme):
    page_of(KILLED, tmp_path)
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             f"--blink-settings=preferredColorScheme={scheme}", f"--user-data-dir={tmp_path}/own",
             "--dump-dom", f"file://{tmp_path}/it.html"]  # fmt: skip
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0 and "Where the time went" in ran.stdout
    assert "CONSOLE" not in ran.stderr, ran.stderr
