# SPDX-License-Identifier: BSD-3-Clause
"""A normal user on this machine, as whom tests run shell scripts."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # for pools with many commits
LIMIT_S = 2400  # of a script; a wheel is built in one
_NOBODY = 65534


class NormalUser:
    """Somebody who is not root, without a network, in a folder with a space in its path.

    Scripts have the folder of their pools in $POOLS. As root the tests become nobody for it. Not
    everybody may leave the network: where the kernel refuses it, `alone` is empty.
    """

    def __init__(
        self, folder: Path, pools: Path, path: list[Path], more: dict[str, str] | None = None,
        as_root: bool = False,
    ):  # fmt: skip
        self.folder = folder
        self.path = path  # searched before the system's
        self.environment = {"POOLS": str(pools), **(more or {})}
        self.environment |= {k: v for k, v in os.environ.items() if k.startswith("OMPI_MCA")}
        self.python = "python3"
        self.alone = _leaving_the_network(os.geteuid() == 0)
        self.is_root = os.geteuid() == 0 and not as_root

    def owns(self, *folders: Path) -> None:
        """Gives them to the user, if that is somebody else."""
        if self.is_root:
            owner = ["chown", "-R", f"{_NOBODY}:{_NOBODY}"]
            subprocess.run([*owner, *map(str, folders)], check=True)

    def words(self, script: str) -> list[str]:
        path = [*map(str, self.path), "/usr/local/bin", "/usr/bin", "/bin"]
        settings = {"HOME": str(self.folder), "PATH": ":".join(path), **self.environment}
        pairs = [f"{name}={value}" for name, value in settings.items()]
        user = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
        become = user if self.is_root else []  # "as_root": stays so
        return [*self.alone, *become, "env", "-i", *pairs, "sh", "-ec", script]

    def __call__(self, script: str) -> str:
        """What the script prints."""
        done = subprocess.run(self.words(script), cwd=self.folder, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def can_run(self, program: Path) -> bool:
        """Whether the user may run it: it may be in somebody's home."""
        words = self.words(f"{shlex.quote(str(program))} --version")
        tried = subprocess.run(words, cwd=self.folder, capture_output=True, check=False)
        return tried.returncode == 0


def _leaving_the_network(is_root: bool) -> list[str]:
    """The words before a command that has a loopback device and no other."""
    user = [] if is_root else ["--map-current-user", "--keep-caps"]
    loopback = Path(__file__).parent / "programs/with_loopback.py"
    words = ["unshare", "-n", *user, sys.executable, str(loopback)]
    return words if subprocess.run([*words, "true"], check=False).returncode == 0 else []


@contextmanager
def folder_of_a_user(place: str | None = None) -> Iterator[Path]:
    """A folder with spaces in its path that everybody can enter."""
    folder = Path(tempfile.mkdtemp(prefix="perdure test ", dir=place))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
