# SPDX-License-Identifier: BSD-3-Clause
"""Shows the progress of a job, without getting in the way of what its ranks print.

On a terminal the last row is taken out of the scrolling region, as apt does, and written with the
cursor saved: the job's output scrolls above it untouched. Elsewhere a plain line is written now
and then.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from perdure.run.page import NO_ITERATION, RunPage
from perdure.screen import plain
from perdure.units import bytes_text, rate_text, seconds_text

_TERMINAL_PERIOD_S = 0.25
_PLAIN_PERIOD_S = 30.0


def progress_text(attempt: int, pages: list[RunPage]) -> str:
    """One line: attempt, iteration, version, and what the commits cost. Slowest rank counts."""
    ranks = f"{len(pages)} of {pages[0].ranks} ranks" if len(pages) < pages[0].ranks else ""
    words = [f"attempt {attempt}", ranks, _iteration_text(pages)]
    words.append(f"version {max(page.version for page in pages)}")
    slowest = max(pages, key=lambda page: page.commit_ns_last)
    if slowest.commits:
        last_s = slowest.commit_ns_last * 1e-9
        mean_s = max(page.commit_ns_total / max(1, page.commits) for page in pages) * 1e-9
        size = sum(page.commit_bytes_last for page in pages)
        words.append(f"commit {seconds_text(last_s)} (mean {seconds_text(mean_s)})")
        words += [bytes_text(size), rate_text(size, last_s)]
    return " | ".join(word for word in words if word)


def _iteration_text(pages: list[RunPage]) -> str:
    known = [page.iteration for page in pages if page.iteration != NO_ITERATION]
    return f"iteration {max(known)}" if known else ""


class Live:
    """The base: shows nothing (`--quiet`)."""

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, attempt: int, pages: list[RunPage]) -> None:
        """Called at every look at the pages; decides itself how often to write."""

    def say(self, sentence: str) -> None:
        """Writes a sentence that stays."""

    def clear(self) -> None:
        """Gives the terminal back as it was."""


class PlainLive(Live):
    """For files and pipes: a line every _PLAIN_PERIOD_S."""

    def __init__(self, write: Callable[[str], object] | None = None):
        self._write = write or _write_stderr
        self._shown = time.monotonic()

    def show(self, attempt: int, pages: list[RunPage]) -> None:
        now = time.monotonic()
        if pages and now - self._shown >= _PLAIN_PERIOD_S:
            self._shown = now
            self.say(progress_text(attempt, pages))

    def say(self, sentence: str) -> None:
        self._write(f"perdure: {plain(sentence)}\n")


class TerminalLive(PlainLive):
    """For terminals: the last row, rewritten in place."""

    def __init__(
        self, size: Callable[[], os.terminal_size], write: Callable[[str], None] | None = None
    ):
        super().__init__(write)
        self._size_now = size
        self._size: os.terminal_size | None = None  # set while the row is reserved
        self._shown = 0.0

    def show(self, attempt: int, pages: list[RunPage]) -> None:
        now = time.monotonic()
        size = self._size_now()
        if not pages or now - self._shown < _TERMINAL_PERIOD_S or size.lines < 3:
            return
        self._shown = now
        if size != self._size:
            self._reserve(size)
        text = f" perdure | {progress_text(attempt, pages)} "[: size.columns]
        self._write(f"\0337\033[{size.lines};1H\033[2K\033[7m{text}\033[0m\0338")

    def _reserve(self, size: os.terminal_size) -> None:
        """Frees the last row, then lets only the rows above it scroll (which homes the cursor)."""
        self.clear()
        self._size = size
        self._write(f"\n\0337\033[1;{size.lines - 1}r\0338\033[1A")

    def say(self, sentence: str) -> None:
        self.clear()
        super().say(sentence)

    def clear(self) -> None:
        if self._size is not None:
            rows = self._size.lines
            self._size = None
            self._write(f"\0337\033[r\033[{rows};1H\033[2K\0338")


def make_live(quiet: bool) -> Live:
    """The kind that suits this process's stderr."""
    if quiet:
        return Live()
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return TerminalLive(lambda: os.get_terminal_size(sys.stderr.fileno()))
    return PlainLive()


def _write_stderr(text: str) -> None:
    """One write(2), so that it is not cut in two by the job's own output."""
    sys.stderr.flush()
    with suppress(OSError):  # whoever read stderr is gone; the job goes on
        os.write(sys.stderr.fileno(), text.encode())
