# SPDX-License-Identifier: BSD-3-Clause
"""What CMake finds when packages come after a tree was first configured, as by `make demo`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from conftest import ROOT

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(probe C)
find_package(Threads REQUIRED)
set(CMAKE_PROGRAM_PATH "@BIN@")
set(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH FALSE)
set(CMAKE_FIND_USE_CMAKE_SYSTEM_PATH FALSE)
include("@ROOT@/cmake/perdure_mpi.cmake")
message(STATUS "flavours: ${PERDURE_MPI_NAMES}")
"""


def install_mpi(place: Path, name: str) -> None:
    """A compiler wrapper and a launcher, as far as CMake asks them."""
    for program, says in (("mpicc", "gcc -lmpi"), ("mpiexec", "HYDRA build details: 4.0")):
        file = place / f"{program}.{name}"
        file.write_text(f"#!/bin/sh\necho {says}\n")
        file.chmod(0o755)


def flavours(place: Path, *options: str) -> list[str]:
    """Of the probe, configured in the same tree each time."""
    command = ["cmake", "-S", str(place), "-B", str(place / "build"), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stderr
    line = next(line for line in ran.stdout.splitlines() if "flavours: " in line)
    return line.split("flavours: ")[1].split(";")


def probe(tmp_path: Path) -> Path:
    programs = tmp_path / "bin"
    programs.mkdir()
    project = PROJECT.replace("@BIN@", str(programs)).replace("@ROOT@", str(ROOT))
    (tmp_path / "CMakeLists.txt").write_text(project)
    return programs


def test_an_mpi_that_is_installed_later_is_found(tmp_path):
    programs = probe(tmp_path)
    install_mpi(programs, "mpich")
    assert flavours(tmp_path) == ["mpich"]
    install_mpi(programs, "openmpi")
    assert flavours(tmp_path) == ["mpich", "openmpi"]


def test_the_mpis_that_a_user_names_stay(tmp_path):
    programs = probe(tmp_path)
    install_mpi(programs, "mpich")
    install_mpi(programs, "openmpi")
    named = f"-DPERDURE_MPI_WRAPPERS=openmpi={programs}/mpicc.openmpi"
    assert flavours(tmp_path, named) == ["openmpi"]
    assert flavours(tmp_path) == ["openmpi"]
