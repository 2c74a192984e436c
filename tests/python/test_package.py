# SPDX-License-Identifier: BSD-3-Clause
"""The Debian package in a clean Debian: four languages, a normal user, a path with a space, no
network. Slow: only with PERDURE_SLOW_TESTS=1, as root, and with mmdebstrap."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD
from test_install import FORTRAN, PYTHON, SOURCE

pytestmark = [
    pytest.mark.skipif(os.environ.get("PERDURE_SLOW_TESTS") != "1", reason="PERDURE_SLOW_TESTS=1"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a root of its own"),
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="needs mmdebstrap"),
]
TOOLS = ("python3-numpy", "gcc", "g++", "gfortran", "libc6-dev", "pkg-config")
FOLDER = "/srv/tester/my work"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def run(*words: object) -> str:
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


class Root:
    """A Debian of its own in a folder."""

    def __init__(self, place: Path):
        self.place = place

    def run(self, script: str, user: str = "tester") -> str:
        """What a shell prints there, without a network and with its own /proc and /dev/shm."""
        place = shlex.quote(str(self.place))
        inner = (
            f"mount -t proc proc {place}/proc && mount -t tmpfs -o mode=1777 shm {place}/dev/shm &&"
            f" exec chroot --userspec={user}:{user} {place}"
            f" env -i HOME=/srv/{user} PATH={PATH} sh -ec {shlex.quote(script)}"
        )
        return run("unshare", "-n", "-m", "-p", "-f", "sh", "-c", inner)


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Root:
    folder = tmp_path_factory.mktemp("package")
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", folder / "made")
    (package,) = (folder / "made").glob("*.deb")
    depends = run("dpkg-deb", "-f", package, "Depends")
    names = [re.split(r"[ (|]", name.strip())[0] for name in depends.split(",")]
    place = folder / "root"
    include = "--include=" + ",".join(["ca-certificates", *names, *TOOLS])
    run("mmdebstrap", "--variant=minbase", include, "bookworm", place)
    shutil.copy(package, place / "perdure.deb")
    root = Root(place)
    root.run("dpkg -i /perdure.deb >/dev/null", "root")
    root.run("useradd -m -d /srv/tester -s /bin/sh tester", "root")
    root.run(f"mkdir {shlex.quote(FOLDER)}")
    yield root
    shutil.rmtree(place)


def user_in(root: Root, language: str) -> str:
    """Makes a program of 50 iterations there; the words that start it."""
    work = root.place / FOLDER.lstrip("/")
    (work / "count.py").write_text(PYTHON)
    (work / "count.f90").write_text(FORTRAN)
    shutil.copy(SOURCE, work / "count.c")
    made = {
        "c": "gcc -o count_c count.c",
        "c++": "g++ -x c++ -o count_cxx count.c -x none",
        "fortran": "gfortran -I/usr/share/perdure -o count_f /usr/share/perdure/perdure.f90"
        " count.f90",
    }
    if language in made:
        flags = "$(pkg-config --cflags --libs perdure)"
        root.run(f"cd '{FOLDER}' && {made[language]} {flags}")
    return {
        "c": "./count_c pool-c 50",
        "c++": "./count_cxx pool-cxx 50",
        "fortran": "./count_f pool-fortran",
        "python": "env PYTHONPATH=/usr/lib/perdure/python python3.11 count.py pool-python",
    }[language]


@pytest.mark.parametrize("language", ["c", "c++", "fortran", "python"])
def test_a_killed_program_is_restarted(root, language):
    words = user_in(root, language)
    said = root.run(
        f"cd '{FOLDER}' && perdure run --restarts 1 --kill-at 20 --json job.json -- {words}"
    )
    assert "counted to 50" in said
    job = json.loads((root.place / FOLDER.lstrip("/") / "job.json").read_text())
    assert len(job["attempts"]) == 2


def test_the_command_and_its_pages_are_there_and_go_again(root):
    assert root.run("perdure --version").startswith("perdure 0.")
    assert (root.place / "usr/share/man/man1/perdure-run.1").exists() or (
        root.place / "usr/share/man/man1/perdure-run.1.gz"
    ).exists()
    root.run("dpkg -r perdure >/dev/null", "root")
    left = [p for p in (root.place / "usr").rglob("*perdure*") if not p.is_dir()]
    assert left == []
