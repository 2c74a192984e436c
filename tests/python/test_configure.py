# SPDX-License-Identifier: BSD-3-Clause
"""What CMake finds when packages come after a tree was first configured, as by `make demo`."""

from __future__ import annotations

import json
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
    """The probe, in the same tree each time, unless `options` name another."""
    command = ["cmake", "-S", str(place), "-B", str(place / "build"), *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


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


def test_the_tree_is_configured_where_there_is_no_mpi(tmp_path):
    none = [f"-DPERDURE_MPICC_{name}=OFF" for name in ("MPICH", "OPENMPI", "ANY")]
    ran = configure(ROOT, "-B", str(tmp_path), "-DPERDURE_PYTHON=ON", *none)
    assert ran.returncode == 0, ran.stderr
    assert "No MPI found" in ran.stdout


def entries(place: Path, text: str) -> dict[str, dict[str, object]]:
    """The properties of ctest's entries that `text` makes with the MPIs one and two."""
    (place / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(probe NONE)\nenable_testing()\n"
        "set(PERDURE_MPI_NAMES one two)\nset(PERDURE_MPIEXEC_one /1/mpiexec)\n"
        "set(PERDURE_MPIEXEC_two /2/mpiexec)\nset(PERDURE_TEST_PYTHON /venv/python)\n"
        f'include("{ROOT}/cmake/perdure_module.cmake")\n'
        f'include("{ROOT}/cmake/perdure_tests.cmake")\n'
        + text)
    ran = configure(place)
    assert ran.returncode == 0, ran.stderr
    command = ["ctest", "--test-dir", str(place / "build"), "-C", "soak", "--show-only=json-v1"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout
    return {
        test["name"]: {"command": test.get("command")}
        | {each["name"]: each["value"] for each in test["properties"]}
        for test in json.loads(shown)["tests"]
    }


def test_an_entry_with_an_at_sign_is_one_for_each_mpi(tmp_path):
    made = entries(tmp_path, "perdure_test_entry(a.@ COMMAND sh @MPIEXEC @)\n"
                             "perdure_test_entry(b.@ ONLY two COMMAND sh -c @)\n")
    assert sorted(made) == ["a.one", "a.two", "b.two"]
    assert [made[name]["command"][1:] for name in sorted(made)] == [
        ["/1/mpiexec", "one"], ["/2/mpiexec", "two"], ["-c", "two"]]  # fmt: skip


def test_an_entry_with_a_long_form_has_its_labels_and_an_end_of_its_own(tmp_path):
    made = entries(tmp_path, "perdure_test_entry(a COMMAND sh k.sh SHORT few LONG .long 60 --all\n"
                             "                   TIMEOUT 5 LABELS kill SKIPS)\n")
    short, long = made["a"], made["a.long"]
    assert (short["command"][1:], long["command"][1:]) == (["k.sh", "few"], ["k.sh", "--all"])
    assert (short["LABELS"], sorted(long["LABELS"])) == (["kill"], ["kill", "soak"])
    assert (short["TIMEOUT"], long["TIMEOUT"]) == (5.0, 60.0)
    assert short["SKIP_RETURN_CODE"] == long["SKIP_RETURN_CODE"] == 77


def test_a_word_that_no_entry_knows_is_refused(tmp_path):
    assert sorted(entries(tmp_path, "perdure_test_entry(a SOAK COMMAND sh)\n")) == ["a"]
    text = (tmp_path / "CMakeLists.txt").read_text()
    (tmp_path / "CMakeLists.txt").write_text(text.replace("SOAK", "SOKE"))
    ran = configure(tmp_path)
    assert ran.returncode != 0
    assert "a: 'SOKE' is said of it, which is not known" in " ".join(ran.stderr.split())
