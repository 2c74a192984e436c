# SPDX-License-Identifier: BSD-3-Clause
"""Removes the shared memory that a killed attempt of an MPI job leaves in /dev/shm.

A file is removed only if all of this holds: its name is one that an MPI or its transports give, or
Perdure to what the ranks of a job share; this user owns it; it was
made since the attempt began; and no live process has it open or mapped, or is named in it. The
kernel says so, not /proc, which has no processes of other containers that share /dev/shm.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_NAMES = (
    "mpich*",
    "MPICH*",
    "vader_segment.*",
    "sm_segment.*",
    "osc_*",
    "open_mpi.*",
    "pmix*",
    "psm2_shm.*",
    "psm3_shm.*",
    "ucx_*",
    "fi_shm*",
    "ofi_shm*",
    "Intel_MPI_*",
    "perdure-tokens-*",
    "perdure-ranks-" + 16 * "[0-9a-f]",  # until all ranks of a machine have mapped it
    "perdure-" + 32 * "[0-9a-f]",  # a job's id: the token bucket of an emulated memory
)
# LLVM's OpenMP closes it once it is written: the process that uses it is the one in its name.
_OF_PROCESS = re.compile(r"__KMP_REGISTERED_LIB_(\d+)_\d+")


def remove_leftovers(since: float, directory: Path = SHARED_MEMORY) -> list[str]:
    """Removes leftovers made after `since` (seconds since 1970) and returns their names."""
    removed = []
    for path in _candidates(since, directory):
        with leased(path) as unused:
            if unused:
                path.unlink(missing_ok=True)
                removed.append(path.name)
    return sorted(removed)


@contextmanager
def leased(path: Path) -> Iterator[bool]:
    """Whether no process has the file open or mapped, in this container or in another one.

    Then the kernel grants a lease for writing, which lasts as long as the context: whoever opens
    the file meanwhile waits. Where a file system grants none, the file counts as used.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        # Of one who waits the holder hears by a signal, whose default would end it.
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        granted = True
    except OSError:
        granted = False
    try:
        yield granted
    finally:
        os.close(file)


def _candidates(since: float, directory: Path) -> list[Path]:
    """Files that may be leftovers."""
    found: list[Path] = []
    try:
        entries = list(os.scandir(directory))
    except OSError:
        return found
    for entry in entries:
        if not _may_be_left(entry.name):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        ours = status.st_uid == os.getuid() and entry.is_file(follow_symlinks=False)
        if ours and status.st_ctime >= since:
            found.append(Path(entry.path))
    return found


def _may_be_left(name: str) -> bool:
    process = _OF_PROCESS.fullmatch(name)
    if process:
        return not Path("/proc", process[1]).exists()
    return any(fnmatchcase(name, pattern) for pattern in _NAMES)
