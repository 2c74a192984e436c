# SPDX-License-Identifier: BSD-3-Clause
"""docs/cpp.md and the headers of C++: every call of C has its face, and what they need is said."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
HEADERS = ("perdure.h", "perdure_mpi.h", "perdure_ipv.h")


def declared() -> set[str]:
    """The calls of C."""
    text = "".join((INCLUDE / "perdure" / header).read_text() for header in HEADERS)
    return set(re.findall(r"^PERDURE_API .*?\b(perdure_\w+)\(", text, re.M))


def rows() -> dict[str, str]:
    """The table of docs/cpp.md: a call of C, and what stands for it in C++."""
    table = (ROOT / "docs/cpp.md").read_text().partition("\n## Calls")[2]
    return dict(re.findall(r"^\| `(perdure_\w+)` \| (.+) \|$", table, re.M))


def test_every_call_of_the_headers_has_its_place_in_the_table():
    assert set(rows()) == declared() and len(declared()) > 35


def test_every_face_in_the_table_is_in_the_headers_and_makes_its_call():
    cpp = "".join(path.read_text() for path in (INCLUDE / "perdure").glob("*.hpp"))
    assert {call for call in rows() if f"{call}(" not in cpp.replace(")", "(")} == set()
    faces = {face for text in rows().values() for face in re.findall(r"`([\w:]+)", text)}
    names = {face.rpartition("::")[2] for face in faces}
    missing = {name for name in names if not re.search(rf"\b{name}\b", cpp)}
    assert missing == set() and len(names) > 30


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_an_older_standard_ends_in_one_sentence(tmp_path, standard):
    program = tmp_path / "old.cpp"
    program.write_text('#include "perdure/perdure.hpp"\nint main() {}\n')
    done = subprocess.run(
        ["c++", f"-std={standard}", "-fsyntax-only", "-I", INCLUDE, program],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    errors = [line for line in done.stderr.splitlines() if "error" in line and "#error" in line]
    assert done.returncode != 0 and "-std=c++20" in errors[0]
    assert done.stderr.count("error:") == 1


def test_the_exported_target_asks_for_the_standard_and_c_programs_need_none(tmp_path):
    text = (ROOT / "src/capi/CMakeLists.txt").read_text()
    assert "target_compile_features(${target} INTERFACE cxx_std_20)" in text
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user C)\n"
        "add_library(perdure INTERFACE IMPORTED)\n"
        "target_compile_features(perdure INTERFACE cxx_std_20)\n"
        "add_executable(user user.c)\ntarget_link_libraries(user perdure)\n"
    )
    (tmp_path / "user.c").write_text("int main(void) { return 0; }\n")
    configure = ["cmake", "-S", tmp_path, "-B", tmp_path / "build"]
    subprocess.run(configure, check=True, capture_output=True, timeout=60)
