# SPDX-License-Identifier: BSD-3-Clause
"""The private run directory: where ranks put their pages, removed when the launcher ends."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUN_PREFIX = "perdure-run-"
_STALE_S = 60.0


@contextmanager
def run_directory(shared: Path | None = None) -> Iterator[Path]:
    """A new directory in memory if there is one: $XDG_RUNTIME_DIR, /dev/shm, else $TMPDIR; or in
    `shared`, for what several nodes see.

    It is locked while in use; directories of launchers that were killed are removed first, but not
    from `shared`, where locks may not be those of other nodes.
    """
    parent = shared or _parent()
    if shared is None:
        _remove_stale(parent)
    path = Path(tempfile.mkdtemp(prefix=RUN_PREFIX, dir=parent))
    lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _parent() -> Path:
    for candidate in (os.environ.get("XDG_RUNTIME_DIR"), "/dev/shm"):
        if candidate and os.path.isdir(candidate) and os.access(candidate, os.W_OK | os.X_OK):
            return Path(candidate)
    return Path(tempfile.gettempdir())


def _remove_stale(parent: Path) -> None:
    for path in parent.glob(RUN_PREFIX + "*"):
        try:
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode):
                continue  # a link that somebody planted
            recent = time.time() - status.st_mtime < _STALE_S
            if status.st_uid == os.getuid() and not recent and not _is_locked(path / "lock"):
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue


def _is_locked(path: Path) -> bool:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
