# SPDX-License-Identifier: BSD-3-Clause
# ctest: COST 50
"""perdure ipv record and check: programs of which it is known what they carry and break."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, a_few

IN_THIS_PROCESS = True
PROGRAMS = ROOT / "tests/ipv_check"
BIN = BUILD / "trace/bin"
PLUGIN = BUILD / "trace/lib/PerdurePass.so"
# One that is drawn for all tests, so that a program is compiled once; each of them in slow tests.
LEVELS = pytest.mark.parametrize("level", a_few(["-O0", "-O1", "-O3"], 1))

if not PLUGIN.exists() or not (BUILD / "trace/lib/libperdure_ipv_check.so").exists():
    pytest.skip("a build without LLVM 19, or with a sanitizer", allow_module_level=True)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Compiles and links in two steps, as makefiles do; each program once for all tests."""

    @cache
    def compiled(source: str, option: str, *flags: str, libraries: tuple = ()) -> str:
        folder = tmp_path_factory.mktemp("build")
        how = [str(BIN / "perdure-clang"), option, *flags]
        subprocess.run([*how, "-c", str(ROOT / source), "-o", "program.o"], check=True,
                       cwd=folder)
        subprocess.run([*how, "program.o", "-o", "program", *libraries], check=True, cwd=folder)
        return str(folder / "program")

    return compiled


def report_of(ran) -> dict:
    text = ran.out.decode()
    (report,) = json.loads(text[text.index("{\n") :])["reports"]
    return report


def line_of_mistake(source: str, name: str) -> int:
    lines = (PROGRAMS / source).read_text().splitlines()
    endings = (f"MISTAKE {name} */", f"MISTAKE {name}")
    (found,) = [n for n, line in enumerate(lines, 1) if line.endswith(endings)]
    return found


# --- record --------------------------------------------------------------------------------------


@LEVELS
def test_a_loop_is_told_what_it_carries(perdure, build, level):
    program = build("tests/ipv_check/record.c", "--ipv-record", level)
    ran = perdure("ipv", "record", "--json", "--", program)
    assert ran.code == 0, ran.err
    report = report_of(ran)
    found = {thing["name"].split(" ")[0]: thing for thing in report["objects"]}
    assert {name: thing["verdict"] for name, thing in found.items()} == {
        "u": "carried", "half": "carried", "late": "carried", "first": "carried",
        "heap": "carried", "total": "carried", "result": "read after the loop",
        "rewritten": "rewritten before use", "once": "rewritten before use",
        "buffer": "rewritten before use", "norm": "rewritten before use", "waste": "never read",
        "table": "read only",
    }  # fmt: skip
    assert report["iterations"] == 12
    size = 512 * 8
    assert {name: thing["carried_bytes"] for name, thing in found.items()
            if thing["carried_bytes"]} == {
        "u": size, "half": size // 2, "late": size, "first": size, "heap": size, "total": 8,
    }  # fmt: skip
    assert (found["total"]["kind"], found["u"]["kind"], found["heap"]["kind"]) == (
        "scalar", "variable", "heap")  # fmt: skip
    assert found["buffer"]["blocks"] == 12
    assert found["late"]["stored_per_iteration_min_bytes"] == 0


def test_writers_have_their_lines_and_late_ones_are_warned_of(perdure, build):
    program = build("tests/ipv_check/record.c", "--ipv-record", "-O2")
    report = report_of(perdure("ipv", "record", "--json", "--", program))
    source = (PROGRAMS / "record.c").read_text().splitlines()
    found = {thing["name"].split(" ")[0]: thing for thing in report["objects"]}

    def text_at(site: dict) -> str:
        return source[site["line"] - 1]

    half = found["half"]
    assert "half[i] = u[i]" in text_at(half["first_writer"])
    assert "half[i] += " in text_at(half["last_writer"])
    assert "for (" in source[half["last_writer"]["nest_line"] - 1]
    assert "once[i]" in text_at(next(
        w for w in found["total"]["writers"] if w["iterations"] == 1))
    late = {(name, w["first_iteration"], w["iterations"]) for name, thing in found.items()
            for w in thing["writers"] if w["first_iteration"] > 1}
    assert late == {("late", 5, 2), ("first", 2, 11)}
    assert [warning.split(":")[0] for warning in report["warnings"]] == ["late", "first"]
    assert found["first"]["first_writer_differs"] and not found["u"]["first_writer_differs"]


def test_the_table_says_what_to_save(perdure, build):
    program = build("tests/ipv_check/record.c", "--ipv-record", "-O2")
    said = perdure("ipv", "record", "--", program).out.decode()
    advice = next(line for line in said.splitlines() if line.startswith("save "))
    assert re.fullmatch(r"save u, late, half, first, heap \(record.c:\d+\), total", advice) or (
        set(re.findall(r"\w+", advice)) >= {"u", "late", "half", "first", "heap", "total"}
    )
    assert "read after the loop" in said and "warning: late" in said
    assert "\ntable\t" not in said, "what is only read is shown by --all"
    assert "\ntable\t" in perdure("ipv", "record", "--all", "--", program).out.decode()


def test_persistence_points_mark_iterations_and_objects_have_their_names(perdure, build):
    program = build("tests/ipv_check/threads.c", "--ipv-record", "-O2", "-pthread")
    report = report_of(perdure("ipv", "record", "--json", "--", program))
    assert report["marks"] == "persist" and report["iterations"] == 20
    verdicts = {(thing["kind"], thing["name"]): thing["verdict"] for thing in report["objects"]}
    assert verdicts["named", "u"] == "carried"
    assert verdicts["variable", "flux"] == "rewritten before use"
    assert verdicts["scalar", "u"] == "read only", "the pointer"


@pytest.mark.skipif(shutil.which("flang-new-19") is None, reason="no Flang")
@pytest.mark.parametrize("level", a_few(["-O0", "-O2"], 1))
def test_a_fortran_loop_is_seen_with_its_assignments_of_arrays(perdure, tmp_path, level):
    program = str(tmp_path / "program")
    library = PLUGIN.parent
    made = run(["flang-new-19", level, "-gline-tables-only", f"-fpass-plugin={PLUGIN}",
                "-module-dir", str(tmp_path),
                str(PROGRAMS / "record.f90"), "-o", program, f"-L{library}",
                f"-Wl,-rpath,{library}", "-lperdure_ipv_check"], PERDURE_PASS="ipv-check")
    assert made.returncode == 0, made.stderr
    unseen = "record.f90:32: warning: perdure ipv check: accesses of _FortranASumReal8 are not"
    assert (unseen in made.stderr) == (level == "-O0"), "otherwise it is a loop"
    report = report_of(perdure("ipv", "record", "--json", "--", program))
    found = {thing["name"]: thing for thing in report["objects"]}
    size = 64 * 64 * 8
    assert found["field::fixed"]["carried_bytes"] == 8
    assert found["u/w (record.f90:20) #1"]["carried_bytes"] == size
    assert found["u/w (record.f90:20) #2"]["verdict"] == "rewritten before use"
    assert found["strided (record.f90:21)"]["stored_per_iteration_max_bytes"] == size // 2
    assert report["iterations"] == 10


CARRIED_PARTS = {
    "cells": ("cell", [("position.x", 0, 8, 1600), ("faces[]", 16, 24, 4800)]),
    "sites": ("site", [("value", 4, 4, 800)]),
    "grid": ("grid", [("sum", 0, 8, 8), ("cells[]", 8, 3200, 1600)]),
}


@pytest.mark.parametrize("debug", ["-g", "-gline-tables-only"])
@LEVELS
def test_carried_bytes_of_structs_have_offsets_and_names_of_members(perdure, build, level, debug):
    program = build("tests/ipv_check/structs.c", "--ipv-record", level, debug)
    report = report_of(perdure("ipv", "record", "--json", "--", program))
    found = {thing["name"].split(" ")[0]: thing for thing in report["objects"]}
    named = debug == "-g"
    for name, (struct, parts) in CARRIED_PARTS.items():
        elements = found[name]["elements"]
        assert elements["struct"] == struct and elements["has_names"] == named
        listed = [(part["member"], part["offset"], part["bytes"], part["carried_bytes"])
                for part in elements["carried"]]
        if named:
            assert listed == parts
        elif name != "grid":  # every second of its numbers
            assert listed == [(None, *part[1:]) for part in parts]
    assert found["plain"]["elements"] is None
    said = perdure("ipv", "record", "--", program).out.decode()
    if named:
        assert ("of each struct cell of 48 bytes it carries position.x (bytes 0 to 7), "
                "faces[] (bytes 16 to 39)") in said
        assert "compile with -g" not in said
    else:
        assert "it carries bytes 0 to 7, bytes 16 to 39; for the names of members compile" in said


# What the two arrays of each loop of pairs.c are: None, a pair; or the rule that they break, and
# the byte if it is known.
TURNS = {"jacobi": None, "lbm": None, "walls": ("walls", 5 * 8), "wave": ("read", 41 * 8),
         "now_and_then": None, "column": ("stored", None)}  # fmt: skip


@pytest.mark.parametrize("case", TURNS)
@LEVELS
def test_two_arrays_that_take_turns_are_proposed_as_a_pair_where_they_are_one(
        perdure, build, case, level):
    program = build("tests/ipv_check/pairs.c", "--ipv-record", level)
    ran = perdure("ipv", "record", "--json", "--", program, case, "12")
    assert ran.code == 0, ran.err
    report = report_of(ran)
    alive = {thing["name"]: (thing["alive_after_odd_bytes"], thing["alive_after_even_bytes"])
             for thing in report["objects"] if thing["carried_bytes"]}
    (pair,) = report["pairs"]
    assert [bool(alive[name][1]) for name in pair["objects"]] == (
        [True, True] if case in ("wave", "column") else [False, True])
    broken = TURNS[case]
    assert pair["breach"] == (broken and {"rule": broken[0], "byte": broken[1]})
    said = perdure("ipv", "record", "--", program, case, "12").out.decode()
    assert ("perdure_ipv_pair()" in said) == (broken is None)
    assert ("no pair" in said) == (broken is not None)


@pytest.mark.parametrize("case", ["both", "twice"])
def test_arrays_that_take_no_turns_are_no_pair(perdure, build, case):
    program = build("tests/ipv_check/pairs.c", "--ipv-record", "-O1")
    ran = perdure("ipv", "record", "--json", "--", program, case, "12")
    assert ran.code == 0, ran.err
    assert report_of(ran)["pairs"] == []


def test_three_iterations_say_nothing_of_pairs(perdure, build):
    program = build("tests/ipv_check/pairs.c", "--ipv-record", "-O1")
    assert report_of(perdure("ipv", "record", "--json", "--", program, "lbm", "3"))["pairs"] == []


def test_two_arrays_of_waves_that_are_both_alive_are_no_pair(perdure, build):
    program = build("examples/ripples.c", "--ipv-record", "-DRECORD", "-O2", libraries=("-lm",))
    assert report_of(perdure("ipv", "record", "--json", "--", program, "32", "8"))["pairs"] == []


def test_a_program_without_marks_is_told_how_to_mark(perdure, build):
    program = build("tests/trace/triad.c", "--ipv-record", f"-I{ROOT / 'include'}")
    ran = perdure("ipv", "record", "--", program, 64, 1)
    assert ran.code == 1
    assert "mark the main loop by" in ran.err


# --- check ---------------------------------------------------------------------------------------


def sum_of_hooks() -> float:
    """What hooks.c computes without a mistake."""
    planes, plane = 6, 100
    u = [float(i) for i in range(planes * plane)]

    def total() -> float:
        result = 0.0
        for value in u:
            result += value
        return result

    for iteration in range(1, 61):
        for i in range(plane, (planes - 1) * plane):
            u[i] = 0.5 * u[i] + iteration
        if iteration % 7 == 0:
            u[3] += total() * 1e-6
    return total()


@LEVELS
def test_right_hooks_break_no_rule_and_change_no_result(perdure, build, level):
    program = build("tests/ipv_check/hooks.c", "--ipv-check", level)
    ran = perdure("ipv", "check", "--json", "--", program, "none")
    report = report_of(ran)
    assert (ran.code, report["violation_count"], report["iterations"]) == (0, 0, 60)
    assert f"60 versions, sum {sum_of_hooks():.12g}" in ran.out.decode()
    (u,) = report["objects"]
    assert (u["versions"], u["rows"], u["unannounced_stores"]) == (60, 60, 0)
    assert u["fresh_row_bytes"] == 240 * 100 * 8
    assert u["copied_bytes"] == 60 * 2 * 100 * 8, "the first and the last plane"
    assert report["stores"] == 60 * 400 + 8, "each iteration's, and each seventh one's"
    assert perdure("ipv", "check", "--", program, "rows").code == 0


MISTAKES = {
    "skip": ("row_not_stored", 50),
    "late": ("wrong_version_read", 1),
    "partial": ("row_not_stored", 1),
    "stencil": ("stale_read", 1),
    "unannounced": ("store_outside_row", 1),
    "flushed": ("store_after_flush", 1),
    "unended": ("nest_not_ended", 1),
    "committed": ("store_to_committed", 1),
}


@pytest.mark.parametrize("level", a_few(["-O0", "-O3"], 1))
def test_each_planted_mistake_is_found_at_its_line(perdure, build, level):
    program = build("tests/ipv_check/hooks.c", "--ipv-check", level)
    for name, (rule, iteration) in MISTAKES.items():
        ran = perdure("ipv", "check", "--json", "--", program, name)
        report = report_of(ran)
        assert ran.code == 86, name
        first = report["violations"][0]
        line = line_of_mistake("hooks.c", name)
        assert (first["rule"], first["first_iteration"]) == (rule, iteration), name
        assert first["site"]["line"] == line, name
        assert f"hooks.c:{line}:" in ran.err, name
        assert first["object"] == "u"


def test_a_plane_that_is_skipped_once_is_told_with_all_that_follows(perdure, build):
    program = build("tests/ipv_check/hooks.c", "--ipv-check", "-O2")
    report = report_of(perdure("ipv", "check", "--json", "--", program, "skip"))
    row, version, read = report["violations"]
    assert (row["count"], row["last_iteration"]) == (1, 50)
    assert (row["offset"], row["bytes"]) == (3 * 100 * 8, 100 * 8)
    assert (row["held_iteration"], row["current_iteration"]) == (48, 49)
    assert version["rule"] == "stale_commit" and version["first_iteration"] == 50
    assert read["rule"] == "wrong_version_read" and read["count"] == 100
    assert (read["first_iteration"], read["last_iteration"]) == (51, 51)


def test_threads_that_share_a_nest_are_watched_together(perdure, build):
    program = build("tests/ipv_check/threads.c", "--ipv-check", "-O2", "-pthread")
    right = perdure("ipv", "check", "--json", "--", program)
    assert (right.code, report_of(right)["violation_count"]) == (0, 0)
    assert report_of(right)["stores"] == 20 * 64 * 32, "none is lost"
    assert report_of(right)["loads"] == 2 * 20 * 64 * 32
    wrong = perdure("ipv", "check", "--json", "--", program, "neighbour")
    assert wrong.code == 86
    lines = {violation["site"]["line"] for violation in report_of(wrong)["violations"]}
    assert lines == {line_of_mistake("threads.c", "neighbour")}


def sum_of_rod() -> float:
    """What pair.c computes, as its two arrays do it."""
    cells = 1000
    now = [float(i % 7) for i in range(cells)]
    for _ in range(20):
        inner = [0.5 * now[i] + 0.25 * now[i - 1] + 0.25 * now[i + 1] for i in range(1, cells - 1)]
        now = [now[0], *inner, now[-1]]
    total = 0.0
    for value in now:
        total += value
    return total


@LEVELS
def test_a_pair_that_keeps_its_contract_is_right_under_the_checker(perdure, build, level):
    program = build("tests/ipv_check/pair.c", "--ipv-check", level)
    ran = perdure("ipv", "check", "--json", "--", program, "none")
    report = report_of(ran)
    assert (ran.code, report["violation_count"], report["iterations"]) == (0, 0, 20), ran.err
    assert f"20 versions, sum {sum_of_rod():.12g}" in ran.out.decode()
    (rod,) = report["objects"]
    assert (rod["name"], rod["versions"], rod["copied_bytes"]) == ("rod", 20, 0)
    assert report["stores"] >= 20 * 998


# What breaks the contract of a pair: the rule, the line, the iteration, the array, the number.
BREACHES = {
    "committed": ("store_to_committed", "committed", 7, 1, 3),
    "skip": ("not_overwritten", "skip", 13, 2, 991),
    "once": ("not_overwritten", "skip", 7, 2, 0),
    "wave": ("read_before_store", "wave", 8, 1, 1),
    "walls": ("unequal_walls", "walls", 2, 2, 999),
}


@pytest.mark.parametrize("level", a_few(["-O0", "-O3"], 1))
def test_each_breach_of_the_contract_of_a_pair_is_found_at_its_line(perdure, build, level):
    program = build("tests/ipv_check/pair.c", "--ipv-check", level)
    for name, (rule, at, iteration, array, number) in BREACHES.items():
        ran = perdure("ipv", "check", "--json", "--", program, name)
        assert ran.code == 86, name
        first = report_of(ran)["violations"][0]
        assert (first["object"], first["rule"], first["first_iteration"], first["array"],
                first["offset"] // 8) == ("rod", rule, iteration, array, number), name
        assert first["site"]["line"] == line_of_mistake("pair.c", at), name
        assert f"rod (the {'first' if array == 1 else 'second'} array)" in ran.err


def test_the_arrays_of_a_pair_have_their_names_in_a_record(perdure, build):
    program = build("tests/ipv_check/pair.c", "--ipv-record", "-O2")
    ran = perdure("ipv", "record", "--json", "--", program, "none")
    assert ran.code == 0, ran.err
    assert f"sum {sum_of_rod():.12g}" in ran.out.decode()
    report = report_of(ran)
    (pair,) = report["pairs"]
    assert pair["breach"] is None
    assert [report["objects"][place]["name"] if isinstance(place, int) else place
            for place in pair["objects"]] == ["second array of rod", "first array of rod"]


def run(words: list, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, **variables})


def test_violations_change_the_exit_code_only_of_what_ended_well(build):
    program = build("tests/ipv_check/hooks.c", "--ipv-check", "-O2")
    assert run([program, "none", "3"]).returncode == 3
    assert run([program, "skip"]).returncode == 86
    assert run([program, "skip", "3"]).returncode == 3
    assert run([program, "skip", "_exit"]).returncode == 86
    said = run([program, "skip"]).stderr
    assert "102 violations at 3 places in 60 iterations" in said
    few = run([program, "skip"], PERDURE_IPV_CHECK="show=1").stderr
    assert few.count("there is the value of iteration") == 1 and "not shown here" in few


def test_the_checker_takes_the_place_of_libperdure(perdure, build, tmp_path):
    libperdure = ("-DWITH_POOL", f"-L{BUILD / 'src/capi'}")
    program = build("tests/ipv_check/hooks.c", "--ipv-check", "-O2", *libperdure, libraries=(
        "-lperdure", f"-Wl,-rpath,{BUILD / 'src/capi'}"))
    for _ in range(2):  # each begins anew, whatever the pool holds
        ran = perdure("ipv", "check", "--json", "--", program, "none")
        assert ran.code == 0, ran.err
        assert report_of(ran)["iterations"] == 60
        assert f"60 versions, sum {sum_of_hooks():.12g}" in ran.out.decode()
    assert (tmp_path / "pool").is_dir()


def test_only_every_so_many_persistence_points_make_a_version(build, tmp_path):
    program = build("tests/ipv_check/hooks.c", "--ipv-check", "-O2")
    report = tmp_path / "report.json"
    ran = run([program, "none"], PERDURE_IPV="every=7", PERDURE_IPV_CHECK=f"report={report}")
    assert f"8 versions, sum {sum_of_hooks():.12g}" in ran.stdout
    assert json.loads(report.read_text())["violation_count"] == 0


# --- what can't be -------------------------------------------------------------------------------


def test_wrong_settings_are_refused_with_what_is_possible(perdure, build):
    program = build("tests/ipv_check/hooks.c", "--ipv-check", "-O2")
    for settings, answer in (("mode=best", "check or record"),
                             ("fast=1", "no key is called 'fast'"),
                             ("record", "is not key=value"),
                             ("min=0", "a number of bytes from 1")):
        refused = run([program], PERDURE_IPV_CHECK=settings)
        assert refused.returncode == 2 and answer in refused.stderr, refused.stderr
    for verb in ("record", "check"):
        for command, code, answer in (("/bin/true", 1, f"--ipv-{verb}"),
                                      ("./none", 127, "no such program")):
            ran = perdure("ipv", verb, "--", command)
            assert ran.code == code and answer in ran.err and "Traceback" not in ran.err


def test_a_program_without_objects_is_no_success(perdure, build):
    ran = perdure("ipv", "check", "--", build("tests/ipv_check/record.c", "--ipv-check"))
    assert ran.code == 1 and "perdure_ipv_object()" in ran.err


def test_the_compilers_say_which_of_them_can(tmp_path):
    source = str(PROGRAMS / "record.c")
    for words, answer in (
        (["perdure-gcc", "--ipv-check"], "needs the pass of perdure-clang"),
        (["perdure-clang", "--trace", "--ipv-record"], "exclude each other"),
    ):
        ran = run([str(BIN / words[0]), *words[1:], "-c", source, "-o", str(tmp_path / "x.o")])
        assert ran.returncode == 1 and answer in ran.stderr
    ran = run(["clang-19", f"-fpass-plugin={PLUGIN}", f"-I{ROOT / 'include'}", "-c", source,
               "-o", str(tmp_path / "x.o")], PERDURE_PASS="ipv-chek")
    assert ran.returncode != 0 and "no pass is called 'ipv-chek'" in ran.stderr


# --- the pass and the names ----------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("FileCheck-19") is None, reason="no FileCheck")
def test_each_kind_of_access_is_announced():
    source = PROGRAMS / "accesses.ll"
    made = run(["opt-19", f"-load-pass-plugin={PLUGIN}", "-passes=perdure-ipv-check,verify", "-S",
                str(source)])
    assert made.returncode == 0, made.stderr
    checked = subprocess.run(["FileCheck-19", str(source)], input=made.stdout, text=True,
                             capture_output=True, check=False)
    assert checked.returncode == 0, checked.stderr
    again = subprocess.run(
        ["opt-19", f"-load-pass-plugin={PLUGIN}", "-passes=perdure-ipv-check", "-S"],
        input=made.stdout, text=True, capture_output=True, check=True)
    assert again.stdout.count("call void @perdure_ipv_check_") == made.stdout.count(
        "call void @perdure_ipv_check_"), "a module is instrumented once"


@pytest.mark.parametrize(
    ("line", "call", "callee", "name"),
    [
        ("  double* u = malloc(n);", "malloc", "", "u"),
        ("  flow.u = Array<double>(n);", "Array", "Array<double>::Array(long)", "flow.u"),
        ("  grid->r[k] = (double*)calloc(n, 8);", "calloc", "", "grid->r[k]"),
        ("  : x(rows), z(n) {}", "z", "Array<double>::Array(long)", "z"),
        ("  std::vector<double> p(n), q(n);", "q", "std::vector<double>::vector(long)", "q"),
        ("  allocate(n);", "allocate", "allocate(int)", ""),
        ("  return malloc(n);", "malloc", "", ""),
        ("  if (n == malloc_size(8))", "malloc_size", "malloc_size", ""),
    ],
)  # fmt: skip
def test_memory_has_the_name_of_the_variable_it_is_given_to(tmp_path, line, call, callee, name):
    from perdure.ipv.symbols import _variable_at

    source = tmp_path / "a.cpp"
    source.write_text(f"\n{line}\n")
    place = {"file": str(source), "line": 2, "column": line.rindex(call) + 1}
    assert _variable_at(place, callee) == name
    assert _variable_at({**place, "file": str(Path("none.cpp"))}, callee) == ""


@pytest.mark.parametrize("level", a_few(["-O1", "-O3"], 1))
def test_what_is_overwritten_in_part_is_not_announced(perdure, build, tmp_path, level):
    program = build("tests/ipv_check/parts.c", "--ipv-check", "--ipv", level)
    ran = perdure("ipv", "check", "--json", "--", program, tmp_path / "pool")
    assert ran.code == 0, ran.err
    report = report_of(ran)
    objects = {thing["name"]: thing for thing in report["objects"]}
    assert report["violation_count"] == 0
    assert (objects["p"]["rows"], objects["u"]["rows"]) == (0, 0)
