# SPDX-License-Identifier: BSD-3-Clause
"""Which files a program writes, again and again or bit by bit, seen from outside.

The kernel reports files that are closed after writing, or renamed, in folders that are watched
(inotify(7)): the program's own folder, those that its command line names, and those of files that a
process has open at a look. What is open then is read from /proc/PID/fd.
"""

from __future__ import annotations

import ctypes
import os
import re
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass, field

from perdure.run.process_table import proc_text

_CLOSED_WRITTEN, _MOVED_TO = 0x8, 0x80
_ONLY_FOLDERS = 0x01000000
_EVENT = struct.Struct("iIII")
_FOLDERS_MAX = 64
_HIDDEN = ("/proc/", "/dev/", "/sys/", "/memfd:")
_UNWATCHED = ("/proc", "/sys")


@dataclass
class Written:
    """Files whose names differ in their numbers only; in a row: `rank-0.ckpt`, `rank-1.ckpt`."""

    pattern: str
    paths: set[str] = field(default_factory=set)
    closed: int = 0  # how often one of them was closed after writing
    renamed: int = 0
    sizes: list[int] = field(default_factory=list)  # when it was closed, or seen
    grew: int = 0  # looks at which an open file was longer than before

    @property
    def bytes(self) -> int:
        return max(self.sizes, default=0)

    @property
    def again(self) -> bool:
        """Whether it is written anew again and again, as checkpoints are."""
        return max(self.closed, self.renamed) >= 3 * max(len(self.paths), 1) or (
            self.closed >= 3 and len(self.paths) >= 3 and self.is_numbered)

    @property
    def is_numbered(self) -> bool:
        return "#" in os.path.basename(self.pattern)


class WrittenFiles:
    """The watch. Without inotify only what is open at a look is seen."""

    def __init__(self, ignored: tuple[str, ...] = ()) -> None:
        self.found: dict[str, Written] = {}
        self.bytes_by_pid: dict[int, int] = {}  # written by system calls so far
        self._ignored = ignored
        self._folders: dict[int, str] = {}
        self._open: dict[tuple[int, str], int] = {}
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._events = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    def close(self) -> None:
        if self._events >= 0:
            os.close(self._events)
            self._events = -1

    def watch(self, folder: str) -> None:
        """From here on what happens in it is seen, if it is a folder."""
        folder = os.path.realpath(folder)
        known = folder in self._folders.values() or len(self._folders) >= _FOLDERS_MAX
        if known or self._events < 0 or folder.startswith(_UNWATCHED):
            return
        wanted = _CLOSED_WRITTEN | _MOVED_TO | _ONLY_FOLDERS
        number = self._libc.inotify_add_watch(self._events, os.fsencode(folder), wanted)
        if number >= 0:
            self._folders[number] = folder

    def take_events(self) -> None:
        """Takes in what has happened since the last call."""
        while self._events >= 0:
            try:
                said = os.read(self._events, 1 << 16)
            except OSError:
                return
            at = 0
            while at + _EVENT.size <= len(said):
                number, kind, _, length = _EVENT.unpack_from(said, at)
                name = said[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                at += _EVENT.size + length
                if number in self._folders and name:
                    self._note(os.path.join(self._folders[number], os.fsdecode(name)), kind)

    def look(self, pids: list[int]) -> None:
        """Looks at the open files of processes."""
        for pid in pids:
            text = proc_text(f"{pid}/io")
            counted = re.search(r"^wchar: (\d+)$", text, re.MULTILINE)
            if counted:
                self.bytes_by_pid[pid] = int(counted[1])
            with suppress(OSError):
                for number in os.listdir(f"/proc/{pid}/fd"):
                    self._look_at(pid, number)

    def _look_at(self, pid: int, number: str) -> None:
        try:
            path = os.readlink(f"/proc/{pid}/fd/{number}")
            if not path.startswith("/") or path.startswith(_HIDDEN) or path.endswith("(deleted)"):
                return
            status = os.stat(f"/proc/{pid}/fd/{number}")
        except OSError:
            return
        flags = re.search(r"^flags:\s*([0-7]+)$", proc_text(f"{pid}/fdinfo/{number}"), re.M)
        writes = flags is not None and int(flags[1], 8) & os.O_ACCMODE
        if not writes or not stat.S_ISREG(status.st_mode):
            return
        self.watch(os.path.dirname(path))
        if path.startswith(self._ignored):
            return
        written = self._of(path)
        before = self._open.get((pid, path))
        written.grew += before is not None and status.st_size > before
        written.sizes.append(status.st_size)
        self._open[pid, path] = status.st_size

    def _note(self, path: str, kind: int) -> None:
        if path.startswith(self._ignored):
            return
        written = self._of(path)
        written.closed += bool(kind & _CLOSED_WRITTEN)
        written.renamed += bool(kind & _MOVED_TO)
        with suppress(OSError):
            written.sizes.append(os.stat(path).st_size)

    def _of(self, path: str) -> Written:
        folder, name = os.path.split(path)
        pattern = os.path.join(folder, re.sub(r"\d+", "#", name))
        written = self.found.setdefault(pattern, Written(pattern))
        written.paths.add(path)
        return written


def folders_in(command: list[str]) -> list[str]:
    """Folders that a command line names, itself or by a file in them."""
    found = []
    for word in command:
        for part in (word, word.partition("=")[2]):
            folder = part if os.path.isdir(part) else os.path.dirname(part)
            if folder and os.path.isdir(folder):
                found.append(folder)
    return found
