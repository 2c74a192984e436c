# SPDX-License-Identifier: BSD-3-Clause
"""Notices during an attempt that one of its nodes is lost.

A node without power answers nobody: neither the other ranks nor srun notice before the scheduler
does, which takes minutes. So the scheduler is asked, and the nodes are knocked at, but only while
the ranks here do not progress, and ever less often.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from perdure.run.allocation import Allocation, NoAllocation
from perdure.run.page import RunPage

_FIRST_LOOK_S = 5.0
_LONGEST_WAIT_S = 300.0
_CONFIRM_S = 1.0  # a loss counts if it is seen twice


class NodeWatch:
    """Of the nodes of one attempt. Questions are asked in a thread, so that none holds us up."""

    def __init__(self, allocation: Allocation, nodes: list[str]):
        self._allocation = allocation
        self._nodes = set(nodes)
        self._threads = ThreadPoolExecutor(1)
        self._answer: Future[set[str]] | None = None
        self._seen: list[RunPage] = []
        self._wait_s = _FIRST_LOOK_S
        self._next_s: float | None = None
        self._suspected: set[str] = set()

    def lost(self, pages: list[RunPage], now_s: float) -> set[str]:
        """The nodes that are lost for certain. Call it at every look at the pages."""
        if pages != self._seen or self._next_s is None:
            self._seen, self._wait_s, self._suspected = pages, _FIRST_LOOK_S, set()
            self._next_s = now_s + self._wait_s
        if self._answer is None and now_s >= self._next_s:
            self._answer = self._threads.submit(self._ask)
        if self._answer is None or not self._answer.done():
            return set()
        found, self._answer = self._answer.result(), None
        certain, self._suspected = found & self._suspected, found
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)
        self._next_s = now_s + (_CONFIRM_S if found else self._wait_s)
        return certain

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self) -> set[str]:
        try:
            return self._allocation.lost() & self._nodes
        except NoAllocation:
            return set()  # schedulers are started again, too
