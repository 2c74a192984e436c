"""perdure ipv record on the NAS benchmarks: what is carried, as an analysis by hand has it."""

from __future__ import annotations

import json
import subprocess

import pytest
from conftest import BUILD, ROOT

NPB = ROOT / "apps/npb"
OBJECTS = BUILD / "apps/npb/CMakeFiles"

if not (BUILD / "trace/lib/libperdure_ipv_check.so").exists():
    pytest.skip("a build with a sanitizer", allow_module_level=True)
if not (BUILD / "trace/lib/PerdurePass.so").exists() or not OBJECTS.exists():
    pytest.skip("a build without LLVM 19, or without applications", allow_module_level=True)


def recorded(perdure, tmp_path, program: str) -> dict:
    """The report for class S; what all programs share is taken as it was built."""
    sources = [path for path in (NPB / program).glob("*.cpp") if "planted" not in path.name]
    shared = [OBJECTS / f"npb_{program}.dir/{name}.cpp.o"
              for name in ("program", "verification", "ranks_serial")]
    compiler = BUILD / "trace/bin/perdure-clang++"
    built = tmp_path / program
    subprocess.run(
        [compiler, "--ipv-record", "-O1", "-std=c++20", f"-I{ROOT / 'apps'}", *sources, *shared,
         "-o", built],
        check=True,
    )  # fmt: skip
    ran = perdure("ipv", "record", "--json", "--", built, "--class", "S")
    assert ran.code == 0, ran.err
    text = ran.out.decode()
    assert "\nverified" in text, "the program must go on as it did"
    (report,) = json.loads(text[text.index("[\n") :])
    return report


def names(report: dict, verdict: str) -> list[str]:
    return [found["name"].split(" (")[0] for found in report["objects"]
            if found["verdict"] == verdict]


def test_cg_carries_x_alone(perdure, tmp_path):
    report = recorded(perdure, tmp_path, "cg")
    assert report["iterations"] == 15
    assert names(report, "carried") == ["x"]
    assert sorted(names(report, "rewritten before use")) == ["p", "q", "r", "z"]
    x = report["objects"][0]
    assert x["carried_bytes"] == x["size_bytes"] == 1400 * 8
    assert x["kept_per_iteration_max_bytes"] == 0


def test_mg_carries_u_and_r(perdure, tmp_path):
    report = recorded(perdure, tmp_path, "mg")
    assert report["iterations"] == 4
    assert names(report, "carried") == ["u_array", "r_array"]
    assert names(report, "read only") == ["v_array"]
    assert report["warnings"] == []


def test_sp_carries_u_alone(perdure, tmp_path):
    report = recorded(perdure, tmp_path, "sp")
    assert report["iterations"] == 100
    (carried,) = [found for found in report["objects"] if found["verdict"] == "carried"]
    points = 12
    assert carried["size_bytes"] == 5 * 8 * points**3
    assert carried["ordinal"] == 1, "u is the first of the three that one line allocates"
    inner = 5 * 8 * (points - 2) ** 3
    assert carried["carried_bytes"] == inner, "the boundary never changes"
    assert carried["kept_per_iteration_max_bytes"] == carried["size_bytes"] - inner
    assert carried["last_writer"]["function"] == "add_change"
