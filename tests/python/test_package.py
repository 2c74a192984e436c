# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 3600
"""The Debian package in a clean Debian: four languages, a normal user, a path with a space, no
network. Slow: only with PERDURE_SLOW_TESTS=1, as root, and with mmdebstrap."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD
from whole_programs import LANGUAGES, check_language, put_sources

pytestmark = [
    pytest.mark.skipif(os.environ.get("PERDURE_SLOW_TESTS") != "1", reason="PERDURE_SLOW_TESTS=1"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for a root of its own"),
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="needs mmdebstrap"),
]
TOOLS = ("python3-numpy", "gcc", "g++", "gfortran", "libc6-dev")
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
    put_sources(place / FOLDER.lstrip("/"))
    root.run(f"chown -R tester {shlex.quote(FOLDER)}", "root")
    yield root
    shutil.rmtree(place)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_program_that_is_built_with_it_survives_a_kill(root, language):
    python = "env PYTHONPATH=$(perdure config --pythonpath) python3.11"
    there = f"cd '{FOLDER}'; POOLS=$PWD; "
    check_language(lambda script: root.run(there + script), language, python)


def test_debians_python_imports_it(root):
    there = "import perdure; print(perdure.open('/dev/shm/pool').commit())"
    assert root.run(f'python3 -c "{there}"') == "1\n"


def test_what_the_system_looks_for_itself_is_no_flag(root):
    assert root.run("perdure config --cflags --libs") == "-lperdure\n"
    assert root.run("perdure config --includedir") == "/usr/include\n"


def test_the_command_and_its_pages_are_there_and_go_again(root):
    assert root.run("perdure --version").startswith("perdure 0.")
    assert (root.place / "usr/share/man/man1/perdure-run.1").exists() or (
        root.place / "usr/share/man/man1/perdure-run.1.gz"
    ).exists()
    root.run("dpkg -r perdure >/dev/null", "root")
    left = [p for p in (root.place / "usr").rglob("*perdure*") if not p.is_dir()]
    assert left == []
