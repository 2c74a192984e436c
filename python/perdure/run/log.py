# SPDX-License-Identifier: BSD-3-Clause
"""The log of a job: its output, line by line, and a line at the begin and end of each attempt.

The job's stdout and stderr are pipes, from which a thread each copies to this process's own as it
comes, and to the log in whole lines: those of many ranks are not cut into each other there. The
log only grows; what was in it before stays.
"""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from perdure.ending import os_text
from perdure.files import open_append
from perdure.run.live import Live
from perdure.screen import plain
from perdure.units import seconds_text

_CHUNK = 1 << 16
_LINE_MAX = 1 << 20  # what has no end by then is a line
_PATIENCE_S = 2.0  # for output of processes that an attempt has left in the background


class Outputs(NamedTuple):
    """Descriptors that a job gets for stdout and stderr."""

    out: int
    err: int


class JobLog:
    """An open log. Use it as a context; start() and end() come once for each attempt."""

    def __init__(self, path: Path, live: Live):
        """Raises OSError if it can't be made or written; NotAFile for a link or a FIFO."""
        self._file: BinaryIO = open_append(path)
        self._path, self._live = path, live
        self._writing = threading.Lock()
        self._failed = False
        self._copies: list[threading.Thread] = []
        self._version: int | None = None  # the newest that an attempt has committed

    def __enter__(self) -> JobLog:
        return self

    def __exit__(self, *_: object) -> None:
        with self._writing, suppress(OSError):
            self._file.close()

    def start(self, number: int, of: int, command: list[str]) -> Outputs:
        """The marking line, and where the attempt's output goes: close both when it has them."""
        words = [f"attempt {number} of {of} begins" if of > 1 else "the job begins"]
        if self._version is not None:
            words.append(f"after version {self._version}" if self._version else "without a version")
        self._mark(f"{', '.join(words)}: {' '.join(command)}")
        self._copies, ends = [], []
        for to in (1, 2):
            source, end = os.pipe2(os.O_CLOEXEC)
            ends.append(end)
            copy = threading.Thread(target=self._copy, args=(source, to), daemon=True)
            copy.start()
            self._copies.append(copy)
        return Outputs(*ends)

    def end(self, text: str, seconds: float, restored: int | None, newest: int | None) -> None:
        """The marking line, after what the attempt wrote. Versions: None if no rank has said."""
        deadline = time.monotonic() + _PATIENCE_S
        for copy in self._copies:
            copy.join(max(0.0, deadline - time.monotonic()))
        words = [f"{text} after {seconds_text(seconds)}"]
        if restored is not None:
            words.append(f"went on from version {restored}" if restored else "began anew")
        if newest is not None:
            self._version = max(newest, self._version or 0)
            words.append(f"version {newest} committed" if newest else "nothing committed")
        self._mark("; ".join(words))

    def _mark(self, text: str) -> None:
        now = time.strftime("%Y-%m-%d %H:%M:%S %z")
        self._write(f"== perdure run, {now}: {plain(text)}\n".encode(errors="surrogateescape"))

    def _copy(self, source: int, to: int) -> None:
        """Until nobody has the other end any more. Only whole lines go to the log."""
        sys.stdout.flush()
        rest, forwards = b"", True
        while chunk := os.read(source, _CHUNK):
            forwards = forwards and _write_all(to, chunk)
            lines, newline, after = (rest + chunk).rpartition(b"\n")
            rest = after if newline else lines + after
            if newline:
                self._write(lines + newline)
            if len(rest) > _LINE_MAX:
                self._write(rest + b"\n")
                rest = b""
        if rest:
            self._write(rest + b"\n")
        os.close(source)

    def _write(self, content: bytes) -> None:
        with self._writing:
            if self._failed or self._file.closed:
                return
            try:
                self._file.write(content)
                self._file.flush()
            except OSError as failed:
                self._failed = True
                self._live.say(f"{self._path}: {os_text(failed)}; the job goes on without its log")


def _write_all(to: int, content: bytes) -> bool:
    """False: nobody reads it any more."""
    left = memoryview(content)
    while left:
        try:
            left = left[os.write(to, left) :]
        except BlockingIOError:
            select.select([], [to], [])
        except OSError:
            return False
    return True
