# SPDX-License-Identifier: BSD-3-Clause
"""An installed Perdure is found by pkg-config and CMake, from C and from C++, with each MPI."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, ROOT, a_few
from normal_user import MEMORY, NormalUser, folder_of_a_user
from whole_programs import LANGUAGES, check_language, put_sources, skip_without

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
def prefix() -> Iterator[Path]:
    """An installation that was moved after it was made."""
    with folder_of_a_user() as folder:
        run("cmake", "--install", BUILD, "--prefix", folder / "made")
        moved = folder / "moved to here"
        shutil.move(folder / "made", moved)
        yield moved


def flags(prefix: Path, package: str) -> list[str]:
    (directory,) = prefix.glob("lib*/**/pkgconfig")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(directory)}
    return shlex.split(run("pkg-config", "--cflags", "--libs", package, env=environment))


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


@pytest.mark.parametrize("mpi", MPIS)
def test_pkg_config_builds_a_program_that_was_written_for_veloc(prefix, tmp_path, mpi):
    program, config = tmp_path / "heat", tmp_path / "heat.cfg"
    wrapper = os.environ[f"PERDURE_TEST_MPICC_{mpi}"]
    source = ROOT / "tests/veloc/heat.c"
    run(wrapper, source, "-o", program, *flags(prefix, "perdure_veloc"), "-lm")
    scratch, persistent = tmp_path / "scratch", tmp_path / "persistent"
    config.write_text(f"scratch = {scratch}\npersistent = {persistent}\nmode = async\n")
    launcher = os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]
    out = run(launcher, "-n", 2, program, config, 20, 5, env=libraries(prefix))
    assert "at 20\n" in out and list(scratch.iterdir())


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
    files = [path for path in (prefix / "include/perdure").rglob("*") if not path.is_dir()]
    names = {path.name for path in files}
    assert {"perdure.h", "perdure_mpi.h"} <= names
    assert all(name.endswith((".h", ".hpp")) for name in names)


def command(prefix: Path, *words) -> list[object]:
    """The installed command, in an environment that knows nothing of this clone."""
    kept = [f"{name}={os.environ[name]}" for name in ("HOME", "PATH") if name in os.environ]
    folder = next(prefix.glob("lib*/**/perdure/python"))
    kept += [f"PERDURE_PYTHON={sys.executable}", f"PYTHONPATH={folder}"]
    kept += [f"LD_LIBRARY_PATH={folder.parents[1]}"]
    return ["env", "-i", *kept, prefix / "bin/perdure", *words]


@pytest.fixture(scope="module")
def user(prefix) -> Iterator[NormalUser]:
    """Somebody with the prefix, who need not be able to enter where this clone is."""
    with folder_of_a_user(MEMORY) as pools:
        yield user_of(prefix, pools)


def user_of(prefix: Path, pools: Path) -> NormalUser:
    work = prefix.with_name("my work")
    put_sources(work)
    variables = {"PERDURE_PYTHON": sys.executable}
    user = NormalUser(work, pools, [prefix / "bin"], variables)
    user.owns(work, pools)
    if not user.can_run(Path(sys.executable)):
        user = NormalUser(work, pools, [prefix / "bin"], variables, as_root=True)
    return user


@pytest.mark.parametrize("language", a_few([*LANGUAGES, "ipv"], 2))
def test_a_program_that_is_built_with_it_survives_a_kill(user, language):
    skip_without(language)
    python = f"env PYTHONPATH=\"$(perdure config --pythonpath)\" '{sys.executable}'"
    check_language(user, language, python)


def test_the_command_is_whole_where_it_was_moved(prefix):
    assert run(*command(prefix, "--version")) == run(ROOT / "perdure", "--version")
    assert len(json.loads(run(*command(prefix, "devices", "--json")))["devices"]) > 5
    assert "bench" not in run(*command(prefix, "--help")), "benchmarks are of a clone"


def test_documents_examples_and_the_module_file_are_installed(prefix):
    for name in ("heat.py", "heat.c", "Makefile", "CMakeLists.txt"):
        assert (prefix / "share/perdure/examples" / name).exists()
    assert (prefix / "share/doc/perdure/docs/walks.md").exists()
    (module,) = prefix.glob("share/modulefiles/perdure/*.lua")
    text = module.read_text()
    assert '"perdure/python"' in text and "@" not in text
    pages = {page.name for page in (prefix / "share/man/man1").iterdir()}
    assert {"perdure.1", "perdure-run.1", "perdure-pool.1"} <= pages


def test_the_shells_complete_the_words_of_the_command(prefix):
    script = prefix / "share/bash-completion/completions/perdure"
    wanted = {"perdure po": "pool", "perdure pool sh": "show", "perdure run --kill-a": "--kill-at"}
    for line, last in wanted.items():
        words = shlex.split(line)
        ask = (
            f". '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
            f"_perdure_completion perdure; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
        started = command(prefix)[:-1]
        path = f"PATH={prefix / 'bin'}:{os.environ['PATH']}"
        assert last in run(*started, path, "bash", "-c", ask).splitlines(), line
    for place in ("zsh/site-functions/_perdure", "fish/vendor_completions.d/perdure.fish"):
        text = (prefix / "share" / place).read_text()
        assert "_PERDURE_COMPLETE=complete_" in text


def test_isa_l_need_not_be_there(prefix, tmp_path):
    (library,) = prefix.glob("lib*/**/libperdure.so")
    needed = run("readelf", "-d", library)
    assert "libisal" not in needed and "libperdure.so.0.1" in needed
    program = tmp_path / "user"
    run("cc", SOURCE, "-o", program, *flags(prefix, "perdure"))
    without = {**libraries(prefix), "PERDURE_ISAL": "off"}
    for end, environment in ((3, libraries(prefix)), (6, without), (9, libraries(prefix))):
        assert run(program, tmp_path / "pool", end, env=environment) == f"counted to {end}\n"


def test_uninstall_leaves_what_it_did_not_install(tmp_path):
    prefix = tmp_path / "pre fix"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    (prefix / "lib/perdure/python/mine").write_text("a user's file")
    run("cmake", "-D", f"MANIFEST={BUILD / 'install_manifest.txt'}",
        "-P", ROOT / "cmake/uninstall.cmake")  # fmt: skip
    left = [str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()]
    assert left == ["lib/perdure/python/mine"]


def test_a_tree_without_tests_and_programs_configures(tmp_path):
    """As pip does it."""
    off = [f"-DPERDURE_{part}=OFF" for part in ("TESTS", "APPS")]
    words = ["-G", "Ninja", *off, "-DPERDURE_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    run("cmake", "-S", ROOT, "-B", tmp_path, *words)
    assert "python_package" in run("ninja", "-C", tmp_path, "-t", "targets", "all")
