# SPDX-License-Identifier: BSD-3-Clause
"""`perdure config`: what it says of a build tree, in a path with a space, and of what a wheel has.

The whole of a clone and of a wheel: test_wheel.py; of a prefix: test_install.py.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, ROOT, Ran, a_few, in_this_process
from normal_user import MEMORY, NormalUser, folder_of_a_user
from perdure.mpi_wrappers import Mixture
from whole_programs import LANGUAGES, check_cmake, check_language, put_sources, skip_without

PC = """
prefix=${pcfiledir}/..
libdir=${prefix}/src/capi
includedir=${prefix}/../include
bindir=${prefix}/bin
fortrandir=${prefix}/../fortran
cmakedir=${prefix}/cmake

Name: NAME
Version: 0.1.0
Libs: -L${libdir} -lNAME
# Libs: -lcomment
Libs.private: -lsodium
Cflags: -I${includedir}
"""


@pytest.fixture
def tree(tmp_path, monkeypatch) -> Path:
    """A build tree in a path with a space."""
    tree = tmp_path / "my tree/build"
    for folder in ("pkgconfig", "src/capi"):
        (tree / folder).mkdir(parents=True)
    (tree / "src/capi/libperdure.so").touch()
    for name in ("perdure", "perdure_mpi_mpich", "perdure_mpi_abi", "perdure_veloc"):
        (tree / f"pkgconfig/{name}.pc").write_text(PC.replace("NAME", name))
    monkeypatch.setenv("PERDURE_BUILD", str(tree))
    monkeypatch.setenv("PATH", str(tmp_path))  # whichever mpicc the machine has
    return tree


def said(*words: str) -> str:
    ran = in_this_process("config", *words)
    assert (ran.code, ran.err) == (0, ""), ran.err
    return ran.out.decode()


def refused(*words: str, code: int = 2) -> str:
    ran: Ran = in_this_process("config", *words)
    assert (ran.code, ran.out) == (code, b"")
    return ran.err


def test_flags_are_words_of_a_shell_in_one_line(tree):
    out = said("--libs", "--cflags")
    assert out.count("\n") == 1
    libdir, include = tree / "src/capi", tree.parent / "include"
    assert shlex.split(out) == [f"-I{include}", f"-L{libdir}", f"-Wl,-rpath,{libdir}", "-lperdure"]


@pytest.mark.parametrize("option, name", [
    (("--mpi", "mpich"), "perdure_mpi_mpich"), (("--mpi=abi",), "perdure_mpi_abi"),
    (("--veloc",), "perdure_veloc"),
])  # fmt: skip
def test_each_library_has_its_flags(tree, option, name):
    assert shlex.split(said("--libs", *option))[-1] == f"-l{name}"


def test_fortran_is_compiled_with_the_sources_of_its_modules(tree):
    folder = tree.parent / "fortran"
    base, ipv = [f"-I{folder}", f"{folder}/perdure.f90"], f"{folder}/perdure_ipv.f90"
    assert shlex.split(said("--fortran")) == [*base, ipv]
    with_mpi = shlex.split(said("--fortran", "--mpi", "mpich"))
    assert with_mpi == [*base, f"{folder}/perdure_mpi.f90", ipv]


@pytest.mark.parametrize("option, place", [
    ("--includedir", "../include"), ("--libdir", "src/capi"), ("--bindir", "bin"),
    ("--fortrandir", "../fortran"), ("--cmakedir", "cmake"), ("--pkgconfigdir", "pkgconfig"),
])  # fmt: skip
def test_a_folder_is_a_line_as_it_is(tree, option, place):
    assert said(option) == f"{(tree / place).resolve()}\n"


def test_all_of_it_is_said_where_nothing_is_asked(tree):
    lines = said("--mpi", "mpich").splitlines()
    assert [line.split()[0] for line in lines] == [
        "cflags", "fortran", "libs", "includedir", "libdir", "bindir", "fortrandir", "cmakedir",
        "pkgconfigdir", "pythonpath",
    ]  # fmt: skip
    assert "-lperdure_mpi_mpich" in lines[2] and lines[0].startswith("cflags       '-I")


def test_folders_that_compilers_look_in_are_no_flags(tree, monkeypatch):
    text = PC.replace("${prefix}/src/capi", "/usr/lib").replace("${prefix}/../include",
                                                                "/usr/include")  # fmt: skip
    (tree / "pkgconfig/perdure_mpi_mpich.pc").write_text(text.replace("NAME", "perdure"))
    assert said("--cflags", "--libs", "--mpi", "mpich") == "-lperdure\n"


@pytest.mark.parametrize("words, sentence", [
    (("--mpi", "openmpi"), "this Perdure has no library for openmpi: it has abi, mpich"),
    (("--mpi", ""), "has no library for ''"), (("--mpi", "../x"), "has no library for ../x"),
    (("--veloc", "--mpi", "mpich"), "--veloc serves every MPI: leave --mpi out"),
])  # fmt: skip
def test_what_there_is_not_is_named(tree, words, sentence):
    assert sentence in refused("--libs", *words)


def put_mpicc(folder: Path, macro: str) -> None:
    """A compiler wrapper whose mpi.h defines that macro."""
    wrapper = folder / "mpicc"
    wrapper.write_text(f"#!/bin/sh\necho '#define __x86_64__ 1'\necho '#define {macro} 1'\n")
    wrapper.chmod(0o755)


def test_an_mpicc_of_another_mpi_is_named_before_anything_is_linked(tree, tmp_path):
    put_mpicc(tmp_path, "OPEN_MPI")
    ran = in_this_process("config", "--libs", "--mpi", "mpich")
    assert ran.code == 0 and ran.out.decode().strip().endswith("-lperdure_mpi_mpich")
    assert f"{tmp_path}/mpicc is of another MPI, openmpi" in ran.err
    assert "as mpicc.mpich on Debian, or --mpi openmpi" in ran.err
    put_mpicc(tmp_path, "MPICH_VERSION")
    assert said("--libs", "--mpi", "mpich")
    assert said("--libs")  # of no MPI


def test_a_fortran_compiler_that_links_two_mpis_is_named_with_the_remedy(
    tree, tmp_path, monkeypatch
):
    mixed = Mixture("mpifort.mpich", ("libmpi.so.12", "libmpi.so.40"), "-L/opt/mpich")
    monkeypatch.setattr("perdure.config.mixture_of", lambda name: mixed)
    (tmp_path / "mpifort.mpich").touch(mode=0o755)
    ran = in_this_process("config", "--fortran", "--mpi", "mpich")
    assert ran.code == 0 and b"perdure_mpi.f90" in ran.out
    assert "mpifort.mpich links libmpi.so.12 and libmpi.so.40" in ran.err
    assert "give it -L/opt/mpich before all else" in ran.err
    assert said("--libs", "--mpi", "mpich")  # of C


def test_a_perdure_without_mpi_says_so(tree):
    for file in (tree / "pkgconfig").glob("perdure_*"):
        file.unlink()
    assert "no library for mpich: it was built without MPI" in refused("--mpi", "mpich")
    assert "no library for MPI: it was built without MPI" in refused("--veloc")


def test_a_file_of_another_version_is_refused(tree):
    file = tree / "pkgconfig/perdure.pc"
    file.write_text(re.sub(r"(?m)^(bindir=|Libs:).*$", "", PC))
    assert f"{file} does not say Libs, bindir" in refused("--cflags", code=1)


def test_what_is_not_built_is_a_failure_that_names_the_places(monkeypatch, tmp_path):
    monkeypatch.setenv("PERDURE_BUILD", str(tmp_path))
    monkeypatch.setattr("perdure.programs.CLONE", tmp_path)
    sentence = refused(code=1)
    assert f"no library with its perdure.pc in {tmp_path}/pkgconfig, " in sentence
    assert "build it: make all" in sentence


# --- programs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def user(tmp_path_factory) -> Iterator[NormalUser]:
    """Whoever runs the tests, with this clone and its build."""
    work = tmp_path_factory.mktemp("config") / "my work"
    put_sources(work)
    with folder_of_a_user(MEMORY) as pools:
        yield NormalUser(work, pools, [ROOT], {"PERDURE_BUILD": str(BUILD)}, as_root=True)


# test_install.py has them of a prefix.
@pytest.mark.parametrize("language", a_few([*LANGUAGES, "ipv"], 1))
def test_a_program_that_is_built_with_the_tree_survives_a_kill(user, language):
    skip_without(language)
    python = f"env PYTHONPATH=\"$(perdure config --pythonpath)\" '{sys.executable}'"
    check_language(user, language, python)


def test_cmake_finds_the_tree(user):
    check_cmake(user)


@pytest.fixture(scope="module")
def wheel_user(tmp_path_factory) -> Iterator[NormalUser]:
    """Somebody with what a wheel is packed from, unpacked; pip's script is left out."""
    folder = tmp_path_factory.mktemp("config")
    site, work = folder / "site packages", folder / "my work"
    shutil.copytree(ROOT / "python/perdure", site / "perdure")
    install = ["cmake", "--install", BUILD, "--component", "python", "--prefix", site]
    subprocess.run([str(word) for word in install], check=True, stdout=subprocess.DEVNULL)
    put_sources(work)
    (work / "perdure").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m perdure "$@"\n')
    (work / "perdure").chmod(0o755)
    with folder_of_a_user(MEMORY) as pools:
        yield NormalUser(work, pools, [work], {"PYTHONPATH": str(site)}, as_root=True)
    shutil.rmtree(site)


def test_what_a_wheel_has_is_enough_for_programs(wheel_user):
    for language in a_few(("c", "python"), 1):
        check_language(wheel_user, language, f"'{sys.executable}'")
    check_cmake(wheel_user)


def test_a_wheel_has_no_links(wheel_user):
    site = Path(wheel_user("perdure config --pythonpath").strip())
    assert site.name == "site packages"
    assert [path for path in site.rglob("*") if path.is_symlink()] == []
    libraries = {path.name for path in (site / "perdure/lib").glob("*.so*")}
    assert {"libperdure.so", "libperdure.so.0.1"} <= libraries
    assert {f"libperdure_mpi_{mpi}.so.0.1" for mpi in MPIS} <= libraries
