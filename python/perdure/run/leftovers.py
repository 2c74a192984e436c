# SPDX-License-Identifier: BSD-3-Clause
"""Removes the shared memory that a killed attempt of an MPI job leaves in /dev/shm.

A file is removed only if all of this holds: its name is one that an MPI or its transports give, or
Perdure to what the ranks of a job share while a memory is emulated; this user owns it; it was
made since the attempt began; and no live process has it open or mapped, or is named in it.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from perdure.run.process_table import proc_text

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
    "perdure-" + 32 * "[0-9a-f]",  # a job's id: the token bucket of an emulated memory
)
# LLVM's OpenMP closes it once it is written: the process that uses it is the one in its name.
_OF_PROCESS = re.compile(r"__KMP_REGISTERED_LIB_(\d+)_\d+")


def remove_leftovers(since: float, directory: Path = SHARED_MEMORY) -> list[str]:
    """Removes leftovers made after `since` (seconds since 1970) and returns their names."""
    found = _candidates(since, directory)
    if not found:
        return []
    held = held_files()
    removed = []
    for identity, path in found.items():
        if identity not in held:
            path.unlink(missing_ok=True)
            removed.append(path.name)
    return sorted(removed)


def _candidates(since: float, directory: Path) -> dict[tuple[int, int], Path]:
    """Files that may be leftovers, by (device, inode)."""
    found: dict[tuple[int, int], Path] = {}
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
            found[status.st_dev, status.st_ino] = Path(entry.path)
    return found


def _may_be_left(name: str) -> bool:
    process = _OF_PROCESS.fullmatch(name)
    if process:
        return not Path("/proc", process[1]).exists()
    return any(fnmatchcase(name, pattern) for pattern in _NAMES)


def held_files() -> set[tuple[int, int]]:
    """(device, inode) of every file that a process has open or mapped, as far as we may look."""
    held: set[tuple[int, int]] = set()
    for process in Path("/proc").glob("[0-9]*"):
        held |= _open_files(process / "fd") | _mapped_files(process.name)
    return held


def _open_files(folder: Path) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                status = os.stat(folder / name)
                found.add((status.st_dev, status.st_ino))
    return found


def _mapped_files(pid: str) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    for line in proc_text(f"{pid}/maps").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[4] != "0":
            major, minor = (int(part, 16) for part in fields[3].split(":"))
            found.add((os.makedev(major, minor), int(fields[4])))
    return found
