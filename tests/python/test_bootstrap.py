# SPDX-License-Identifier: BSD-3-Clause
"""tools/bootstrap.sh: which packages it asks for, and what it leaves as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT

TOOLS = ("awk", "bash", "cat", "comm", "cut", "dirname", "env", "mkdir", "mktemp", "printf", "rm",
         "sed", "sha256sum", "sort", "touch")  # fmt: skip
# A Debian: what is installed is a file of names, and so are the alternatives. The package that
# comes last is preferred, as Debian does with Open MPI.
FAKES = {
    "id": 'echo "${FAKE_UID:-0}"',
    "dpkg-query": 'grep -qx -- "${@: -1}" "$FAKE/installed" && printf installed',
    "grep": 'exec /usr/bin/grep "$@"',
    "apt-get": """[ "$1" = install ] || exit 0
        for name in "$@"; do
          case $name in -* | install) continue ;; esac
          echo "$name" >>"$FAKE/installed"
          for mpi in mpich openmpi; do
            case $name in $mpi | $mpi-bin)
              touch "$FAKE/mpirun.$mpi"
              echo "mpirun auto $FAKE/mpirun.$mpi" >"$FAKE/alternatives" ;;
            esac
          done
        done""",
    "update-alternatives": """case $1 in
          --get-selections) cat "$FAKE/alternatives" ;;
          --quiet) echo "$3 manual $4" >"$FAKE/alternatives" ;;
        esac""",
}


class Debian:
    """A clone's tools in an empty folder, on a fake Debian."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tools").mkdir()
        shutil.copy(ROOT / "tools/bootstrap.sh", folder / "tools")
        (folder / "tools/requirements.txt").touch()
        self.programs = folder / "programs"
        for place in (self.programs, folder / ".venv/bin"):
            place.mkdir(parents=True)
        for name in TOOLS:
            (self.programs / name).symlink_to(shutil.which(name))
        for name, text in FAKES.items():
            self.put(self.programs / name, text)
        self.put(folder / ".venv/bin/python", "exit 0")
        for name in ("installed", "alternatives"):
            (folder / name).touch()

    @staticmethod
    def put(path: Path, text: str) -> None:
        path.write_text(f"#!/usr/bin/env bash\n{text}\n")
        path.chmod(0o755)

    def bootstrap(self, *words: str, uid: int = 0) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.programs), "FAKE": str(self.folder), "FAKE_UID": str(uid)}
        return subprocess.run([self.folder / "tools/bootstrap.sh", *words], env=environment,
                              capture_output=True, text=True, check=False)  # fmt: skip

    def installed(self) -> set[str]:
        return set((self.folder / "installed").read_text().split())

    def mpirun(self) -> str:
        return Path((self.folder / "alternatives").read_text().split()[-1]).name


@pytest.fixture
def debian(tmp_path) -> Debian:
    return Debian(tmp_path)


@pytest.mark.parametrize("first", [None, "--install"])
def test_mpiexec_stays_that_of_mpich_when_open_mpi_comes(debian, first):
    if first is not None:
        assert debian.bootstrap(first).returncode == 0
    ran = debian.bootstrap("--no-build")
    assert ran.returncode == 0, ran.stderr
    assert {"mpich", "openmpi-bin", "spin"} <= debian.installed()
    assert debian.mpirun() == "mpirun.mpich"


def test_an_mpi_that_was_chosen_before_stays_and_the_way_back_is_said(debian):
    (debian.folder / "mpirun.own").touch()
    chosen = f"mpirun manual {debian.folder}/mpirun.own\n"
    (debian.folder / "alternatives").write_text(chosen)
    ran = debian.bootstrap("--no-build")
    assert debian.mpirun() == "mpirun.own"
    assert "update-alternatives --auto mpirun" in ran.stdout


def test_without_root_the_remedy_is_the_command_that_was_given(debian):
    ran = debian.bootstrap("--install", uid=1000)
    assert ran.returncode == 1 and debian.installed() == set()
    assert "PERDURE_SKIP_PACKAGES=1 tools/bootstrap.sh --install\n" in ran.stderr
    assert "clang-19" in ran.stdout


def test_an_installation_demands_no_second_mpi(debian):
    wanted = debian.bootstrap("--install", uid=1000).stdout.splitlines()
    packages = next(line for line in wanted if line.startswith("  ")).split()
    assert "mpich" in packages and "openmpi-bin" not in packages
    debian.put(debian.programs / "mpicc", "exit 0")  # of any MPI
    (debian.folder / "installed").write_text("\n".join(set(packages) - {"mpich", "libmpich-dev"}))
    ran = debian.bootstrap("--install", uid=1000)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "does without openmpi-bin libopenmpi-dev mpich libmpich-dev" in ran.stdout


def test_an_unknown_word_shows_what_there_is():
    ran = subprocess.run([ROOT / "tools/bootstrap.sh", "--demmo"], capture_output=True, text=True,
                         check=False, env={**os.environ, "PERDURE_SKIP_PACKAGES": "1"})  # fmt: skip
    assert ran.returncode == 2 and "--demo" in ran.stderr and "set -euo" not in ran.stderr
