# SPDX-License-Identifier: BSD-3-Clause
"""Tells what a job left behind in /dev/shm."""

from __future__ import annotations

import os
import time
from pathlib import Path

from perdure.run.directory import RUN_PREFIX
from perdure.run.leftovers import SHARED_MEMORY, leased

_GRACE_S = 2.0  # what another job is just making or removing is not left behind


class SharedMemoryWatch:
    """Remembers the names in a directory; what is there later, and unused, was left behind.

    Counted are files and run directories of this user. Other directories are pools, which stay
    on purpose, and what a live process has open or mapped is in use.
    """

    def __init__(self, directory: Path = SHARED_MEMORY):
        self._directory = directory
        self._before = set(self._names())

    def leftovers(self, grace_s: float = _GRACE_S) -> list[str]:
        """Names made since, of which nothing is in use, in order."""
        found = self._unused(set(self._names()) - self._before)
        deadline = time.monotonic() + grace_s
        while found and time.monotonic() < deadline:
            time.sleep(0.1)
            found = self._unused(found & set(self._names()))
        return sorted(found)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._directory)
        except OSError:
            return []

    def _unused(self, names: set[str]) -> set[str]:
        files = [(name, path) for name in names if (path := self._file_of(name)) is not None]
        return {name for name, path in files if _is_unused(path)}

    def _file_of(self, name: str) -> Path | None:
        """The file that shows whether `name` is in use; None if it is not to be counted."""
        path = self._directory / name
        try:
            if path.lstat().st_uid != os.getuid():
                return None
        except OSError:
            return None
        if path.is_dir():
            return path / "lock" if name.startswith(RUN_PREFIX) else None
        return path


def _is_unused(path: Path) -> bool:
    with leased(path) as unused:
        return unused or not path.exists()
