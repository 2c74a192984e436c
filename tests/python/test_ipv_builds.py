# SPDX-License-Identifier: BSD-3-Clause
"""A build is recorded as checked if a run of a build of the same source broke no rule."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, ROOT
from perdure.ipv.builds import notes_of

CLANG = BUILD / "trace/bin/perdure-clang"
SOURCE = ROOT / "examples/ripples_ipv.c"

if not (BUILD / "trace/lib/libperdure_ipv_check.so").exists():
    pytest.skip("a build without LLVM 19, or with a sanitizer", allow_module_level=True)


def compiled(folder: Path, name: str, *flags: str, source: Path = SOURCE) -> Path:
    shutil.copy(source, folder / "ripples_ipv.c")
    subprocess.run([CLANG, "--ipv", *flags, "ripples_ipv.c", "-lm", "-o", name], check=True,
                   cwd=folder)
    return folder / name


@pytest.fixture(scope="module")
def builds(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("builds")
    return (compiled(folder, "ripples", "-O3", "-g0"),
            compiled(folder, "checked", "--ipv-check", "-O3"))


@pytest.fixture
def ripples(builds, tmp_path) -> Path:
    return Path(shutil.copy(builds[0], tmp_path / "ripples"))


def builds_in_report(program: Path, folder: Path) -> list[dict]:
    report = folder / "report.json"
    subprocess.run([program, "64", "5", folder / "pool"], check=True, capture_output=True,
                   env=os.environ | {"PERDURE_IPV": f"report={report}"})
    return json.loads(report.read_text())["builds"]


def test_a_build_of_what_was_checked_says_so_where_it_runs(perdure, builds, ripples, tmp_path):
    assert builds_in_report(ripples, tmp_path) == [{"source": "ripples_ipv.c", "checked": False}]
    mode = ripples.stat().st_mode
    ran = perdure("ipv", "check", "--for", ripples, "--", builds[1], "64", "5", "unused")
    assert ran.code == 0, ran.err
    assert f"{ripples} is recorded as checked: ripples_ipv.c" in ran.out.decode()
    assert builds_in_report(ripples, tmp_path) == [{"source": "ripples_ipv.c", "checked": True}]
    assert ripples.stat().st_mode == mode
    again = perdure("ipv", "check", "--json", "--for", ripples, "--", builds[1], "64", "5", "x")
    text = again.out.decode()
    recorded = json.loads(text[text.index("{\n"):])["recorded"]
    assert (again.code, recorded) == (0, {str(ripples): ["ripples_ipv.c"]})


def test_a_build_of_other_source_or_options_is_not_recorded(perdure, builds, tmp_path):
    changed = tmp_path / "changed.c"
    changed.write_text(SOURCE.read_text().replace("0.25", "0.125") + "\nint more = 1;\n")
    others = {"source": compiled(tmp_path, "other", "-O3", source=changed),
              "options": compiled(tmp_path, "slower", "-O1")}
    for what, other in others.items():
        before = other.read_bytes()
        ran = perdure("ipv", "check", "--for", other, "--", builds[1], "64", "5", "unused")
        assert ran.code == 1, what
        assert "is not what was checked" in ran.err, what
        assert other.read_bytes() == before, what


def test_a_run_that_fails_or_breaks_a_rule_records_nothing(perdure, builds, ripples):
    before = ripples.read_bytes()
    ran = perdure("ipv", "check", "--for", ripples, "--", builds[1], "too few arguments")
    assert ran.code == 2
    assert "is not recorded as checked" in ran.err
    assert ripples.read_bytes() == before


def test_a_file_without_a_box_is_refused(perdure, builds, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(b"no note\n")
    ran = perdure("ipv", "check", "--for", plain, "--", builds[1], "64", "5", "unused")
    assert ran.code == 2
    assert "announces no box" in ran.err


def test_notes_that_are_not_whole_are_none(ripples):
    content = ripples.read_bytes()
    (note,) = notes_of(content)
    assert (note.checked, note.source) == (False, "ripples_ipv.c")
    begin = content.index(b"PERDURE-IPV-BUILD-1 ")
    for cut in range(begin, content.index(b"\0", begin)):
        assert notes_of(content[:cut]) == []
    assert notes_of(b"PERDURE-IPV-BUILD-1 " + b"z" * 32 + b" checked     x\0") == []
