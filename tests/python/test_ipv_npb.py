# SPDX-License-Identifier: BSD-3-Clause
# ctest: COST 50
"""perdure ipv on the NAS benchmarks and eddy: what they carry, and hooks over all iterations."""

from __future__ import annotations

import json
import subprocess

import pytest

from conftest import BUILD, ROOT, SLOW, a_few

IN_THIS_PROCESS = True
NPB = ROOT / "apps/npb"
EDDY = ROOT / "apps/eddy"
HOOKED = ROOT / "tests/ipv_check/sp_hooked.cpp"
INCLUDES = (f"-I{ROOT / 'apps'}", f"-I{ROOT / 'include'}")
LIBRARIES = (BUILD / "apps/npb/libnpb_program.a", BUILD / "apps/npb/libnpb_state.a",
             f"-L{BUILD / 'src/capi'}", f"-Wl,-rpath,{BUILD / 'src/capi'}", "-lperdure")

# What a short run does of the first three, which are recorded, and of the others, whose rows are
# checked: another one each time.
DRAWN = a_few((("cg",), ("mg",), ("sp",), ("mg", "S"), ("sp", "S")), 1)


def slow(*case):
    """A case of the long form only."""
    return pytest.param(
        *case, marks=pytest.mark.skipif(not SLOW, reason="PERDURE_SLOW_TESTS=1 runs it")
    )


if not (BUILD / "trace/lib/libperdure_ipv_check.so").exists():
    pytest.skip("a build with a sanitizer", allow_module_level=True)
if not (BUILD / "trace/lib/PerdurePass.so").exists() or not LIBRARIES[0].exists():
    pytest.skip("a build without LLVM 19, or without applications", allow_module_level=True)


def together(folder, sources: list) -> list:
    """One file that includes all: most of the time would go with their headers. Not if SLOW."""
    if SLOW:
        return sources
    whole = folder / "whole.cpp"
    whole.write_text("".join(f'#include "{path}"\n' for path in sorted(sources)))
    return [whole]


def compiled(tmp_path, program: str, *options: str):
    """A program of apps/npb, or eddy; what all of them share is taken as it was built."""
    folders = [EDDY if program == "eddy" else NPB / program]
    if program in ("sp", "bt", "lu"):
        folders.append(NPB / "flow")
    sources = [path for place in folders for path in place.glob("*.cpp")
               if "planted" not in path.name and "test" not in path.name]
    more = [NPB / "fft.cpp"] if program in ("ft", "eddy") else []
    built = tmp_path / program
    subprocess.run(
        [BUILD / "trace/bin/perdure-clang++", *options, "-std=c++20", *INCLUDES,
         *together(tmp_path, [*sources, *more, NPB / "ranks_serial.cpp"]), *LIBRARIES, "-o", built],
        check=True,
    )  # fmt: skip
    return built


def recorded(perdure, tmp_path, program: str) -> dict:
    """The report for class S."""
    built = compiled(tmp_path, program, "--ipv-record", "-O1")
    ran = perdure("ipv", "record", "--json", "--", built, "--class", "S")
    assert ran.code == 0, ran.err
    text = ran.out.decode()
    assert "\nverified" in text, "the program must go on as it did"
    (report,) = json.loads(text[text.index("{\n") :])["reports"]
    return report


@pytest.fixture(scope="module")
def hooked(tmp_path_factory):
    """SP with u an object, hooked by hand, built for the checker."""
    folder = tmp_path_factory.mktemp("hooked")
    built = folder / "sp"
    sources = [path for place in ("sp", "flow") for path in (NPB / place).glob("*.cpp")
               if path.name != "main.cpp"]
    subprocess.run(
        [BUILD / "trace/bin/perdure-clang++", "--ipv-check", "-O2", "-std=c++20", *INCLUDES,
         *together(folder, [HOOKED, *sources, NPB / "ranks_serial.cpp"]), *LIBRARIES, "-o", built],
        check=True,
    )  # fmt: skip
    return built


def checked(perdure, built, fault: str) -> tuple[int, dict, list[str]]:
    """The exit code, the report and the norms."""
    ran = perdure("ipv", "check", "--json", "--", built, fault)
    text = ran.out.decode()
    (report,) = json.loads(text[text.index("{\n") :])["reports"]
    return ran.code, report, text[: text.index("{\n")].split()


def names(report: dict, verdict: str) -> list[str]:
    return [found["name"].split(" (")[0] for found in report["objects"]
            if found["verdict"] == verdict]


def whole_pages(size_bytes: int) -> int:
    """What the programs' arrays take."""
    return (size_bytes // 4096 + 1) * 4096


def in_short_form(program: str):
    return pytest.mark.skipif((program,) not in DRAWN, reason="another one is drawn this time")


@in_short_form("cg")
def test_cg_carries_x_alone(perdure, tmp_path):
    report = recorded(perdure, tmp_path, "cg")
    assert report["iterations"] == 15
    assert names(report, "carried") == ["x"]
    assert sorted(names(report, "rewritten before use")) == ["p", "q", "r", "z"]
    x = report["objects"][0]
    assert x["carried_bytes"] == 1400 * 8
    assert x["size_bytes"] == whole_pages(1400 * 8)
    assert x["kept_per_iteration_max_bytes"] == x["size_bytes"] - 1400 * 8


@in_short_form("mg")
def test_mg_carries_u_alone(perdure, tmp_path):
    report = recorded(perdure, tmp_path, "mg")
    assert report["iterations"] == 4
    assert names(report, "carried") == ["u_array"]
    assert names(report, "rewritten before use") == ["r_array"]
    assert names(report, "read only") == ["v_array"]
    assert report["warnings"] == []


@in_short_form("sp")
def test_sp_carries_u_alone(perdure, tmp_path):
    report = recorded(perdure, tmp_path, "sp")
    assert report["iterations"] == 100
    (carried,) = [found for found in report["objects"] if found["verdict"] == "carried"]
    points = 12
    assert carried["size_bytes"] == whole_pages(5 * 8 * points**3)
    assert carried["ordinal"] == 1, "u is the first of the three that one line allocates"
    inner = 5 * 8 * (points - 2) ** 3
    assert carried["carried_bytes"] == inner, "the boundary never changes"
    assert carried["kept_per_iteration_max_bytes"] == carried["size_bytes"] - inner
    assert carried["last_writer"]["function"] == "add_change"


def test_sp_with_right_hooks_breaks_no_rule_in_any_iteration(perdure, hooked):
    native = subprocess.run([hooked, "native"], capture_output=True, text=True, check=True)
    code, report, norms = checked(perdure, hooked, "right")
    assert (code, report["violation_count"], report["iterations"]) == (0, 0, 100)
    assert norms == native.stdout.split(), "in every digit"
    assert report["stores"] == 100 * 5 * 10**3
    assert report["loads"] > 10**7
    (u,) = report["objects"]
    assert u["fresh_row_bytes"] == 100 * 8 * 5 * 10**3
    assert u["copied_bytes"] == 100 * 8 * 5 * (12**3 - 10**3), "the boundary, each time"


@pytest.mark.parametrize(
    ("fault", "rule"), [("skip", "row_not_stored"), ("late", "wrong_version_read")]
)
def test_sp_with_a_mistake_in_one_iteration_is_caught_in_it(perdure, hooked, fault, rule):
    code, report, _ = checked(perdure, hooked, fault)
    first = report["violations"][0]
    lines = HOOKED.read_text().splitlines()
    assert code == 86
    assert (first["rule"], first["first_iteration"], first["last_iteration"]) == (rule, 50, 50)
    assert lines[first["site"]["line"] - 1].endswith(f"// MISTAKE {fault}")
    assert first["count"] == (1 if fault == "skip" else 10), "one box; the rows of one plane"


ITERATIONS = {"S": {"cg": 15, "mg": 4, "ft": 6, "sp": 100, "bt": 60, "lu": 50},
              "W": {"cg": 15, "mg": 4, "ft": 6, "sp": 400, "bt": 200, "lu": 300}}


@pytest.mark.parametrize(
    ("program", "problem_class"),
    [case if case in DRAWN else slow(*case)
     for case in ((program, name) for name, counts in ITERATIONS.items() for program in counts)],
)  # fmt: skip
def test_rows_of_the_compiler_break_no_rule_in_any_iteration(perdure, tmp_path, program,
                                                             problem_class):
    text = check_rows(perdure, tmp_path, program, ITERATIONS[problem_class][program],
                      "--class", problem_class)
    assert "\nverified" in text


@pytest.mark.parametrize(("cells", "steps"), [slow(32, 40), slow(128, 100)])
def test_rows_of_eddy_break_no_rule_in_any_step(perdure, tmp_path, cells, steps):
    text = check_rows(perdure, tmp_path, "eddy", steps, "--n", cells, "--steps", steps)
    assert "\nverified" in text


def check_rows(perdure, tmp_path, program: str, iterations: int, *words) -> str:
    """Checks all iterations of a program with the rows that the compiler announces."""
    built = compiled(tmp_path, program, "--ipv=all", "--ipv-check", "-O2")
    words = (*words, "--protect", "ipv", "--pool", tmp_path / "pool")
    ran = perdure("ipv", "check", "--json", "--", built, *words, limit_s=900)
    text = ran.out.decode()
    (report,) = json.loads(text[text.index("{\n") :])["reports"]
    assert (ran.code, report["violation_count"]) == (0, 0), ran.err
    assert report["iterations"] == iterations
    assert all(found["rows"] > 0 for found in report["objects"])
    print(f"{program} {words[1]}: {report['loads']} loads, {report['stores']} stores")
    return text
