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


def install_wrapper(place: Path, macro: str) -> Path:
    """An mpicc whose mpi.h defines `macro`, as an MPI's own does, and its launcher."""
    place.mkdir()
    (place / "mpi.h").write_text(f"#define {macro}\n")
    (place / "mpicc").write_text(f"""#!/bin/sh
if [ "$1" = -show ]; then echo gcc -I{place}; else exec gcc -I{place} "$@"; fi
""")
    (place / "mpiexec").write_text("#!/bin/sh\necho 4.1\n")
    for program in ("mpicc", "mpiexec"):
        (place / program).chmod(0o755)
    return place / "mpicc"


def configure(place: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The probe, in the same tree each time."""
    command = ["cmake", "-S", str(place), "-B", str(place / "build"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def flavours(place: Path, *options: str) -> list[str]:
    """Of the probe."""
    ran = configure(place, *options)
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


def test_an_mpi_without_a_name_is_called_after_what_it_is(tmp_path):
    probe(tmp_path)
    openmpi = install_wrapper(tmp_path / "one", "OPEN_MPI 1")
    mpich = install_wrapper(tmp_path / "other", 'MPICH_VERSION "4.1"')
    named = f"-DPERDURE_MPI_WRAPPERS={openmpi};{mpich}"
    assert flavours(tmp_path, named) == ["openmpi", "mpich"]


def test_an_mpi_by_the_name_of_another_is_refused(tmp_path):
    """A library of a wrong name crashes the programs that it is loaded into."""
    probe(tmp_path)
    openmpi = install_wrapper(tmp_path / "one", "OPEN_MPI 1")
    ran = configure(tmp_path, f"-DPERDURE_MPI_WRAPPERS=mpich={openmpi}")
    assert ran.returncode != 0
    assert "is not mpich, it is openmpi" in " ".join(ran.stderr.split())
