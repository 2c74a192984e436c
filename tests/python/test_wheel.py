# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 3600
"""A clone in a path with a space, built by a normal user without a network, and the wheel that pip
makes of it: programs in four languages, with each MPI, are built with either, killed, restarted.

One build serves both, as it takes minutes: only with PERDURE_SLOW_TESTS=1. The wheel's is that of
`pip install .`, in the clone's build/dev.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import MPIS, ROOT
from normal_user import MEMORY, NormalUser, folder_of_a_user
from whole_programs import (
    LANGUAGES,
    check_cmake,
    check_language,
    check_mpi,
    check_mpi_in_fortran,
    put_sources,
    skip_without,
)

pytestmark = pytest.mark.skipif(
    os.environ.get("PERDURE_SLOW_TESTS") != "1", reason="PERDURE_SLOW_TESTS=1"
)
REQUIREMENTS = ROOT / "tools/requirements.txt"


def copy_clone(place: Path) -> None:
    """The files that git would have, and .venv, which bootstrap.sh makes with a network."""
    ask = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name, follow_symlinks=False)
    subprocess.run(["cp", "-a", f"{(ROOT / '.venv').resolve()}", place / ".venv"], check=True)


@pytest.fixture(scope="module")
def clone() -> Iterator[Path]:
    """The clone, built; beside it wheels/ with Perdure's and those that it requires."""
    with folder_of_a_user() as folder:
        tree = folder / "my clone"
        copy_clone(tree)
        pip = [sys.executable, "-m", "pip"]
        required = ["typer", "rich", "numpy", "-c", REQUIREMENTS, "-d", folder / "wheels"]
        subprocess.run([str(w) for w in (*pip, "download", "-q", *required)], check=True)
        user = NormalUser(tree, folder, [])
        user.owns(folder)
        options = "--no-deps --no-build-isolation --config-settings=build-dir=build/dev"
        user(f".venv/bin/python -m pip wheel -q . {options} -w ../wheels")
        yield tree


@pytest.fixture(scope="module")
def wheel(clone) -> Path:
    (wheel,) = (clone.parent / "wheels").glob("perdure-*.whl")
    return wheel


@pytest.fixture(scope="module", params=["clone", "pip"])
def user(request, clone, wheel) -> Iterator[NormalUser]:
    """Somebody with the clone's command, or with pip's."""
    with folder_of_a_user(MEMORY) as pools:
        yield user_of(request.param, clone, wheel, pools)


def user_of(way: str, clone: Path, wheel: Path, pools: Path) -> NormalUser:
    work = clone.parent / f"work with {way}"
    put_sources(work)
    if way == "clone":
        user = NormalUser(work, pools, [clone])
        imports = 'env PYTHONPATH="$(perdure config --pythonpath)"'
        user.python = f"{imports} '{clone}/.venv/bin/python'"
    else:
        user = NormalUser(work, pools, [work / "venv/bin"])
        user.python = "venv/bin/python"
    user.owns(work, pools)
    if way == "pip":
        user(f"'{clone}/.venv/bin/python' -m venv venv")
        user(f"venv/bin/pip install -q --no-index --find-links ../wheels '{wheel}'")
    return user


@pytest.mark.parametrize("language", [*LANGUAGES, "ipv"])
def test_a_program_that_is_built_with_it_survives_a_kill(user, language):
    skip_without(language)
    check_language(user, language, user.python)


@pytest.mark.parametrize("mpi", MPIS)
def test_programs_with_an_mpi_survive_a_kill(user, mpi):
    check_mpi(user, mpi)


@pytest.mark.parametrize("mpi", MPIS)
def test_a_fortran_program_with_an_mpi_survives_a_kill(user, mpi):
    check_mpi_in_fortran(user, mpi)


def test_cmake_finds_it(user):
    check_cmake(user)


@pytest.mark.parametrize("compiler", ["clang++", "g++"])
def test_a_program_is_traced(user, compiler):
    skip_without("ipv" if compiler == "clang++" else "c++")
    flags = "-std=c++20 -O1 -o traced heat.cpp $(perdure config --cflags --libs)"
    user(f'compiler="$(perdure config --bindir)/perdure-{compiler}";'
         f' eval "\'$compiler\' --trace {flags}"')  # fmt: skip
    user(f'perdure trace -o {compiler}.ptrace -- ./traced "$POOLS/{compiler}"')
    (trace,) = json.loads(user(f"perdure trace info --json {compiler}.ptrace"))["traces"]
    assert trace["writes"] >= 1000 * 8 // 64, "the lines of the array's cells"


def test_the_network_was_left(user):
    """Or this run has shown less than it says."""
    if not user.alone:
        pytest.skip("this kernel does not let a normal user leave the network")
    assert set(user("ls /sys/class/net || true; cat /proc/net/dev").split()) >= {"lo:"}
    assert len(user("cat /proc/net/dev").splitlines()) == 3, "the heading and lo"


def test_the_wheel_has_what_programs_need_and_no_file_twice(wheel):
    with zipfile.ZipFile(wheel) as archive:
        files = {file.filename: file for file in archive.infolist()}
    names = {name.rsplit("/", 1)[-1] for name in files}
    libraries = {"libperdure.so.0.1", "libperdure_preload.so"}
    libraries |= {"nanobind.txt", "robin_map.txt", "xxhash.txt"}
    libraries |= {f"libperdure_mpi_{mpi}.so.0.1" for mpi in MPIS}
    assert {"py.typed", "_api.pyi", "_core.pyi", *libraries} <= names
    headers = {path.name for path in (ROOT / "include/perdure").rglob("*.h*")}
    modules = {path.name for path in (ROOT / "fortran").iterdir()}
    assert headers | modules <= names
    sums = [file.CRC for file in files.values() if file.file_size > 20_000]
    assert len(sums) == len(set(sums)), "a library is there twice"


def test_the_installed_command_is_whole(clone, wheel, user):
    if user.python != "venv/bin/python":
        pytest.skip("of the wheel")
    venv = user.folder / "venv"
    installed = sum(path.lstat().st_size for path in venv.rglob("*"))
    assert installed < 200e6, f"{installed} bytes"
    assert user("perdure --version").startswith("perdure 0.")
    assert len(json.loads(user("perdure devices --json"))["devices"]) > 5
    assert user("perdure run -- echo started") == "started\n"
    assert "bench" not in user("perdure --help"), "benchmarks are of a clone"
    assert "man perdure" in user('perdure help --man "$POOLS/man"; ls "$POOLS/man/man1/perdure.1"')
    assert user("perdure-gcc --help").startswith("perdure-gcc [--trace")
    found = "from perdure.cache.preload import find_library; print(find_library().parent)"
    assert user(f'{user.python} -I -c "{found}"') == user("perdure config --libdir")
