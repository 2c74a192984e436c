# SPDX-License-Identifier: BSD-3-Clause
"""`pip install` gives a working command and interface. Slow: only with PERDURE_SLOW_TESTS=1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile

import pytest

from conftest import MPIS, ROOT


@pytest.mark.skipif(os.environ.get("PERDURE_SLOW_TESTS") != "1", reason="PERDURE_SLOW_TESTS=1")
def test_wheel_installs_the_command_and_the_interface(tmp_path):
    def run(*words) -> str:
        command = [str(word) for word in words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    options = ["--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path]
    run(sys.executable, "-m", "pip", "wheel", ROOT, *options)
    (wheel,) = tmp_path.glob("perdure-*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    requirements = ROOT / "tools/requirements.txt"
    run(tmp_path / "venv/bin/pip", "install", "--quiet", wheel, "-c", requirements)
    command = tmp_path / "venv/bin/perdure"
    installed = sum(path.lstat().st_size for path in (tmp_path / "venv").rglob("*"))
    assert installed < 200e6, f"{installed} bytes"
    assert run(command, "--version").startswith("perdure 0.")
    assert len(json.loads(run(command, "devices", "--json"))["devices"]) > 5
    assert run(command, "run", "--", "echo", "started") == "started\n"
    assert "bench" not in run(command, "--help"), "benchmarks are of a clone"
    names = [name.rsplit("/", 1)[-1] for name in zipfile.ZipFile(wheel).namelist()]
    libraries = {"libperdure.so.0.1", "libperdure_preload.so"}
    libraries |= {"nanobind.txt", "robin_map.txt", "xxhash.txt"}
    libraries |= {f"libperdure_mpi_{mpi}.so" for mpi in MPIS}
    assert {"py.typed", "_api.pyi", *libraries} <= set(names)
    python = tmp_path / "venv/bin/python"
    heat = ROOT / "examples/heat.py"
    assert run(python, "-I", heat, tmp_path / "pool").startswith("begins at step 0\n")
    assert run(python, "-I", heat, tmp_path / "pool").startswith("begins at step 500\n")
    found = "from perdure.cache.preload import find_library; print(find_library().parent)"
    package = run(python, "-I", "-c", "import perdure; print(perdure.__path__[0])")
    assert run("env", "-u", "PERDURE_BUILD", python, "-I", "-c", found) == package
