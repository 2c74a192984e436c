"""An installed Perdure is found by pkg-config and CMake, from C and from C++, with each MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, ROOT

SOURCE = ROOT / "tests/python/programs/counter.c"
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(perdure 0.1 REQUIRED)
add_executable(in_c counter.c)
target_link_libraries(in_c PRIVATE perdure::perdure)
add_executable(in_cxx counter.cpp)
target_link_libraries(in_cxx PRIVATE perdure::perdure)
target_compile_options(in_cxx PRIVATE -Wall -Wextra -Werror)
"""


def run(*words, **options) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    """An installation that was moved after it was made."""
    made = tmp_path_factory.mktemp("made")
    run("cmake", "--install", BUILD, "--prefix", made)
    moved = made.with_name("moved")
    shutil.move(made, moved)
    yield moved
    shutil.rmtree(moved)


def flags(prefix: Path, package: str) -> list[str]:
    (directory,) = prefix.glob("lib*/**/pkgconfig")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(directory)}
    return run("pkg-config", "--cflags", "--libs", package, env=environment).split()


def libraries(prefix: Path) -> dict[str, str]:
    (directory,) = {path.parent for path in prefix.glob("lib*/**/libperdure.so")}
    return {**os.environ, "LD_LIBRARY_PATH": str(directory)}


@pytest.mark.parametrize("compiler, language", [("cc", "c"), ("c++", "c++")])
def test_pkg_config_builds_a_user(prefix, tmp_path, compiler, language):
    program = tmp_path / "user"
    run(compiler, "-x", language, SOURCE, "-o", program, *flags(prefix, "perdure"))
    out = run(program, tmp_path / "pool", 3, env=libraries(prefix))
    assert out == "counted to 3\n"


@pytest.mark.parametrize("mpi", MPIS)
def test_pkg_config_builds_a_user_with_mpi(prefix, tmp_path, mpi):
    program = tmp_path / "user"
    wrapper = os.environ[f"PERDURE_TEST_MPICC_{mpi}"]
    words = [SOURCE, "-o", program, *flags(prefix, f"perdure_mpi_{mpi}")]
    run(wrapper, "-DPERDURE_COUNTER_MPI", *words)
    launcher = os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]
    out = run(launcher, "-n", 2, program, tmp_path / "pool", 3, env=libraries(prefix))
    assert out.count("counted to 3") == 2


def test_find_package_builds_users_in_c_and_cxx(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    for name in ("counter.c", "counter.cpp"):
        shutil.copy(SOURCE, tmp_path / name)
    build = tmp_path / "build"
    run("cmake", "-S", tmp_path, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", build)
    for program in ("in_c", "in_cxx"):
        assert run(build / program, tmp_path / program, 3) == "counted to 3\n"


def test_find_package_offers_every_mpi(prefix):
    (config,) = prefix.glob("lib*/**/perdure-config.cmake")
    text = config.read_text()
    assert all(f"perdure::mpi_{mpi}" in text for mpi in MPIS)


def test_only_headers_of_the_interface_are_installed(prefix):
    names = {path.name for path in (prefix / "include/perdure").iterdir()}
    assert {"perdure.h", "perdure_mpi.h"} <= names
    assert all(name.endswith((".h", ".hpp")) for name in names)


def test_a_tree_without_tests_and_programs_configures(tmp_path):
    """As pip does it."""
    off = [f"-DPERDURE_{part}=OFF" for part in ("TESTS", "APPS")]
    words = ["-G", "Ninja", *off, "-DPERDURE_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    run("cmake", "-S", ROOT, "-B", tmp_path, *words)
    assert "python_package" in run("ninja", "-C", tmp_path, "-t", "targets", "all")
