# SPDX-License-Identifier: BSD-3-Clause
"""perdure-clang --ipv and perdure ipv explain."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from conftest import BUILD, ROOT
from perdure.ipv.explanation import REMEDIES

IN_THIS_PROCESS = True
BIN = BUILD / "trace/bin"
if not (BUILD / "trace/lib/PerdurePass.so").exists() or shutil.which("clang-19") is None:
    pytest.skip("no LLVM 19", allow_module_level=True)

SOURCE = """
#ifdef MARKED
#include <perdure/perdure_ipv.h>
PERDURE_IPV_ARRAY double kept[10];
#endif
void scale(double* u, long rows, long n) {
  for (long j = 1; j < rows; ++j)
    for (long i = 0; i < n; ++i) u[j * n + i] *= 0.5;
}
void smooth(double* u, long n) {
  for (long i = 1; i < n - 1; ++i) u[i] = 0.5 * (u[i - 1] + u[i + 1]);
}
int main(void) { return 0; }
"""
FORTRAN = """
subroutine scale(u, n)
  integer, intent(in) :: n
  double precision, intent(inout) :: u(n)
  u = u * 0.5d0
end subroutine
"""


def compiled(folder, name: str, *words: str, source: str = SOURCE, code: int = 0):
    file = folder / ("nest.f90" if name == "perdure-flang" else "nest.c")
    file.write_text(source)
    command = [str(BIN / name), *words, "-O2", file.name]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                         env={key: value for key, value in os.environ.items()
                              if not key.startswith("PERDURE_")})
    assert ran.returncode == code, ran.stderr
    return ran


def called(folder) -> bool:
    symbols = subprocess.run(["nm", folder / "nest.o"], capture_output=True, text=True, check=True)
    return "U perdure_ipv_box_begin" in symbols.stdout


def test_only_marked_files_are_transformed(tmp_path):
    said = compiled(tmp_path, "perdure-clang", "--ipv", "-Werror", "-c").stderr
    assert len(said.splitlines()) == 1
    assert "--ipv changes nothing in nest.c" in said
    unmarked = (tmp_path / "nest.o").read_bytes()
    compiled(tmp_path, "perdure-clang", "-c")
    assert unmarked == (tmp_path / "nest.o").read_bytes()
    assert not compiled(tmp_path, "perdure-clang", "--ipv", "-DMARKED", "-c").stderr
    assert called(tmp_path)
    assert not compiled(tmp_path, "perdure-clang", "--ipv=all", "-c").stderr
    assert called(tmp_path)


def test_a_program_is_linked_with_the_library(tmp_path):
    if "perdure_ipv_box_begin" not in subprocess.run(
        ["nm", "-D", BUILD / "src/capi/libperdure.so"], capture_output=True, text=True, check=True
    ).stdout:
        pytest.skip("a library without in-place versioning")
    compiled(tmp_path, "perdure-clang", "--ipv", "-DMARKED", "-o", "nest")
    assert subprocess.run([tmp_path / "nest"], check=False).returncode == 0


@pytest.mark.skipif(shutil.which("flang-new-19") is None, reason="no flang-19")
def test_flang_takes_the_pass(tmp_path):
    compiled(tmp_path, "perdure-flang", "--ipv=all", "-c", source=FORTRAN)
    assert called(tmp_path)


def test_wrong_options_are_refused_with_a_sentence(tmp_path):
    ran = compiled(tmp_path, "perdure-clang", "--ipv=some", "-c", code=2)
    assert "there are --ipv and --ipv=all" in ran.stderr
    ran = compiled(tmp_path, "perdure-clang", "--ipv", "--trace", "-c", code=1)
    assert "build two programs" in ran.stderr
    ran = compiled(tmp_path, "perdure-gcc", "--ipv", "-c", code=1)
    assert "perdure-clang" in ran.stderr
    ran = compiled(tmp_path, "perdure-clang", "--ipv-explain", "-c", code=1)
    assert "--ipv" in ran.stderr


def test_explain_names_nests_and_what_stopped_others(perdure, tmp_path):
    compiled(tmp_path, "perdure-clang", "--ipv=all", "--ipv-explain=why.json", "-c")
    explained = json.loads(perdure("ipv", "explain", tmp_path / "why.json", "--json").out)
    assert explained["objects"] is None
    nests = [entry for entry in explained["entries"] if entry["kind"] == "nest"]
    assert [(entry["function"], entry["base"], entry["nest"]["line"]) for entry in nests] == [
        ("scale", "u", 7)
    ]
    assert [place["line"] for place in nests[0]["rows"]] == [8]
    (stopped,) = [entry for entry in explained["entries"] if entry["kind"] == "refused"]
    assert (stopped["function"], stopped["obligation"], stopped["at"]["line"]) == ("smooth", "S2",
                                                                                  11)
    text = perdure("ipv", "explain", tmp_path / "why.json").out.decode()
    assert "nest.c:7" in text and "u[j * n + i] *= 0.5;" in text and "S2" in text
    (reason,) = explained["reasons"]
    assert reason["why"] == stopped["why"] and reason["functions"] == ["smooth"]
    assert reason["places"] == [stopped["at"]] and (reason["stops"], reason["alone"]) == (1, 1)
    only = json.loads(perdure("ipv", "explain", tmp_path / "why.json", "--function", "smooth",
                              "--json").out)
    assert {entry["function"] for entry in only["entries"]} == {"smooth"}


def test_explain_says_that_a_file_is_not_marked(perdure, tmp_path):
    compiled(tmp_path, "perdure-clang", "--ipv", "--ipv-explain=why.json", "-c")
    (entry,) = json.loads(perdure("ipv", "explain", tmp_path / "why.json", "--json").out)["entries"]
    assert entry["kind"] == "module" and entry["module"].endswith("nest.c")
    text = " ".join(perdure("ipv", "explain", tmp_path / "why.json").out.decode().split())
    assert "nest.c: it calls no function perdure_ipv_" in text and "--ipv=all" in text


def _stopped(function: str, row: int, why: str, at: int) -> dict:
    def place(line: int) -> dict:
        return {"file": "/none/f.c", "line": line}

    return {"kind": "refused", "module": "f.c", "function": function, "base": "u",
            "nest": place(1), "row": place(row), "obligation": "S4", "at": place(at), "why": why}


def test_explain_has_the_reason_first_that_stops_most(perdure, tmp_path):
    entries = [_stopped("f", 10, "calls log()", 20), _stopped("f", 10, "calls exp()", 30)]
    entries += [_stopped(f"g{i}", 40, "calls log()", 50 + i) for i in range(5)]
    (tmp_path / "why.json").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    reasons = json.loads(perdure("ipv", "explain", tmp_path / "why.json", "--json").out)["reasons"]
    assert [(found["why"], found["stops"], found["alone"]) for found in reasons] == [
        ("calls log()", 6, 5), ("calls exp()", 1, 0)
    ]
    text = perdure("ipv", "explain", tmp_path / "why.json").out.decode()
    assert "rows or loops: 6, 5 by nothing else; in f, g0, g1, 3 more (--places)" in text
    assert "    to win 5: take the call out of the nest" in text
    assert "to win 0" not in text and max(map(len, text.splitlines())) <= 100
    assert "f.c:51" in text and "f.c:52" not in text
    assert "f.c:54" in perdure("ipv", "explain", tmp_path / "why.json", "--places").out.decode()


def test_each_remedy_is_of_a_reason_that_the_pass_gives():
    sources = " ".join(path.read_text() for path in (ROOT / "pass").glob("*.cpp"))
    for begin, _remedy in REMEDIES:
        assert f'"{begin}' in sources, begin


def test_explain_joins_what_a_run_recorded(perdure, tmp_path):
    compiled(tmp_path, "perdure-clang", "--ipv=all", "--ipv-explain=why.json", "-c")
    objects = [
        {"name": name, "kind": "heap", "size_bytes": 8000, "carried_bytes": carried,
         "writers": [{"file": str(tmp_path / "nest.c"), "line": line} for line in lines]}
        for name, carried, lines in (("u", 8000, [8]), ("v", 0, [8, 11]), ("w", 0, []))
    ]
    (tmp_path / "record.json").write_text(json.dumps({"reports": [{"objects": objects}]}))
    words = ("ipv", "explain", tmp_path / "why.json", "--record", tmp_path / "record.json")
    explained = json.loads(perdure(*words, "--json").out)["objects"]
    assert [(found["object"], found["carried"], found["tier"]) for found in explained] == [
        ("u", True, "box"), ("v", False, "box at 1 of 2 places"), ("w", False, "never written")
    ]
    assert b"box at 1 of 2 places" in perdure(*words).out


def test_explain_says_what_is_wrong_with_its_file(perdure, tmp_path):
    ran = perdure("ipv", "explain", tmp_path / "none.json")
    assert ran.code == 2 and "--ipv-explain" in ran.err
    (tmp_path / "bad.json").write_text("{}\n")
    ran = perdure("ipv", "explain", tmp_path / "bad.json")
    assert ran.code == 2 and "bad.json:1" in ran.err
