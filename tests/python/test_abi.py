# SPDX-License-Identifier: BSD-3-Clause
"""Programs that were linked with the library run with it as it is built: its binary interface."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

sys.path.append(str(ROOT / "tests/abi"))
import interface

REMEDY = (
    "If it is meant: raise the version where programs that exist would break, "
    "then run `python3 tests/abi/interface.py BUILD`"
)


def library(name: str):
    if not shutil.which("abidw") or not shutil.which("abidiff"):
        pytest.skip("libabigail is missing (Debian: abigail-tools)")
    if platform.machine() != "x86_64":
        pytest.skip(f"the interface is recorded for x86_64, this is {platform.machine()}")
    built = interface.built_at(BUILD, name)
    if not built.exists():
        pytest.skip(f"{built} is not built")
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    if "CMAKE_BUILD_TYPE:STRING=RelWithDebInfo" not in cache:
        pytest.skip("types are compared in builds of the type RelWithDebInfo")
    if re.search(r"PERDURE_SANITIZER:\w+=\w", cache):
        pytest.skip("a sanitizer adds symbols of its own")
    return built


def differences(before: str, after: str, folder) -> str:
    """What abidiff reports, nothing if programs cannot tell them apart."""
    old, new = folder / "before.abi", folder / "after.abi"
    old.write_text(before, encoding="utf-8")
    new.write_text(after, encoding="utf-8")
    command = ["abidiff", "--no-show-locs", old, new]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode & 3 == 0, f"abidiff failed: {done.stdout}{done.stderr}"
    return done.stdout if done.returncode else ""


def recorded(name: str) -> str:
    return (interface.HERE / f"{name}.abi").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", interface.LIBRARIES)
def test_the_built_interface_is_the_recorded_one(name, tmp_path):
    built = interface.describe(library(name))
    assert interface.LIBRARIES[name][1] in built
    found = differences(recorded(name), built, tmp_path)
    assert not found, f"{found}\n{REMEDY}"


@pytest.mark.parametrize("name", interface.LIBRARIES)
def test_a_removed_function_is_noticed(name, tmp_path):
    built, function = interface.describe(library(name)), interface.LIBRARIES[name][1]
    less = re.sub(rf".*<elf-symbol name='{function}' .*\n", "", built)
    body = re.compile(rf" *<function-decl name='{function}' .*?</function-decl>\n", re.DOTALL)
    less = body.sub("", less)
    assert less != built
    assert function in differences(built, less, tmp_path)


def test_a_longer_struct_is_noticed(tmp_path):
    built = interface.describe(library("libperdure"))
    longer = re.sub(
        r"(<class-decl name='perdure_options' size-in-bits=)'(\d+)'",
        lambda match: f"{match[1]}'{int(match[2]) + 64}'",
        built,
    )
    assert longer != built
    assert "perdure_options" in differences(built, longer, tmp_path)


@pytest.mark.parametrize("name", interface.LIBRARIES)
def test_only_what_perdure_declares_is_in_the_record(name):
    symbols = re.findall(r"<elf-symbol name='([^']*)'", recorded(name))
    prefix = interface.LIBRARIES[name][1].partition("_")[0]
    assert len(symbols) > (40 if prefix == "perdure" else 20)
    assert all(symbol.startswith(f"{prefix}_") for symbol in symbols)
    paths = re.findall(r"path='([^']*)'", recorded(name))
    assert paths and all(path.startswith("src/") for path in paths)
