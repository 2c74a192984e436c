# SPDX-License-Identifier: BSD-3-Clause
"""Notices that nothing progresses any more: a rank that is stopped, or loops, or waits for ever.

Progress is any change in any rank's run page: a version, an iteration, a commit, another phase.
What a rank computes between commits does not show. Commits are made by all ranks together, so one
rank that stands still soon stops the pages of the others.
"""

from __future__ import annotations

from collections.abc import Callable

from perdure.run.page import Phase, RunPage
from perdure.units import seconds_text

_WARN_S = 300.0
_WARN_VERSIONS = 20  # as many times the longest time between two versions
_RANKS_NAMED = 8


class StallWatch:
    """Follows the pages of one attempt; times are those of the caller's clock."""

    def __init__(self, now_s: float, limit_s: float | None = None, warn_s: float = _WARN_S):
        """`limit_s`: after as long without progress the attempt is to end; None for never."""
        self._limit_s = limit_s
        self._warn_s = warn_s
        self._progress_s = now_s
        self._pages: dict[int, tuple[RunPage, float]] = {}
        self._version = 0
        self._version_s: float | None = None
        self._longest_s = 0.0
        self._warned = False

    def look(self, pages: list[RunPage], now_s: float) -> None:
        """Takes notice of what has changed."""
        for page in pages:
            if page.rank not in self._pages or self._pages[page.rank][0] != page:
                self._pages[page.rank] = (page, now_s)
                self._progress_s = now_s
                self._warned = False
        if any(page.has_restarted for page in pages):
            self._note_version(max(page.version for page in pages), now_s)

    def _note_version(self, version: int, now_s: float) -> None:
        if self._version_s is None:
            self._version, self._version_s = version, now_s
        elif version != self._version:
            self._longest_s = max(self._longest_s, now_s - self._version_s)
            self._version, self._version_s = version, now_s

    def is_over(self, now_s: float) -> bool:
        """Whether the limit has passed; counts from the start if no rank has reported anything."""
        return self._limit_s is not None and now_s - self._progress_s > self._limit_s

    def warning(self, now_s: float, state_of: Callable[[int], str]) -> str | None:
        """Once for each time that nothing progresses for long: a sentence. While a pool is open."""
        limit_s = max(self._warn_s, _WARN_VERSIONS * self._longest_s)
        working = any(page.phase != Phase.closed for page, _ in self._pages.values())
        if self._warned or not working or now_s - self._progress_s <= limit_s:
            return None
        self._warned = True
        return self.text(now_s, state_of)

    def text(self, now_s: float, state_of: Callable[[int], str]) -> str:
        """How long nothing has progressed, and where the ranks are, the oldest first."""
        quiet = seconds_text(now_s - self._progress_s)
        if not self._pages:
            return f"no rank has opened a pool for {quiet}"
        oldest = sorted(self._pages.items(), key=lambda item: (item[1][1], item[0]))
        named = [
            f"rank {rank} {_phase_text(page)} for {seconds_text(now_s - since_s)}, "
            f"version {page.version} ({state_of(rank)})"
            for rank, (page, since_s) in oldest[:_RANKS_NAMED]
        ]
        if len(oldest) > _RANKS_NAMED:
            named.append(f"and {len(oldest) - _RANKS_NAMED} ranks that changed later")
        return f"no rank has progressed for {quiet}: " + "; ".join(named)


def _phase_text(page: RunPage) -> str:
    return "has closed its pool" if page.phase == Phase.closed else Phase(page.phase).name
