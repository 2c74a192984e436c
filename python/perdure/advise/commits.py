# SPDX-License-Identifier: BSD-3-Clause
"""One rank of a measurement of commits, which place.py starts in a process of its own.

Says "ready" when the pool has its first versions, waits for a line, commits, and prints one JSON
object. Beside it others do the same, as ranks of a node do.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np

import perdure

_ROUNDS_MIN, _ROUNDS_MAX = 5, 41
_SECONDS = 0.7
_PAGE = 4096


def main(directory: str, size: int, mode: str, share: float, in_memory: bool) -> None:
    """In memory a commit is the processor's work, and what it does for others does not count."""
    clock = time.process_time if in_memory else time.perf_counter
    began = clock()
    with perdure.open(directory) as pool:
        array = pool.array("state", size, np.uint8, mode=mode)  # type: ignore[arg-type]
        pool.restart()
        array.working[:] = 1
        open_s = clock() - began
        for turn in range(2):  # after which each copy has its memory
            array.working[::_PAGE] = turn
            pool.commit()
        print("ready", flush=True)
        sys.stdin.readline()
        seconds = _commits(pool, array, share, clock)
    began = clock()
    with perdure.open(directory) as pool:
        array = pool.array("state", size, np.uint8, mode=mode)  # type: ignore[arg-type]
        pool.restart()
        restart_s = clock() - began
    print(json.dumps({"commits_s": seconds, "open_s": open_s, "restart_s": restart_s}), flush=True)


def _commits(
    pool: perdure.Pool, array: perdure.Array, share: float, clock: Callable[[], float]
) -> list[float]:
    """Seconds of some commits, each after stores to `share` of the pages.

    In mode log the first store to a page costs a fault, which is a part of what versions cost: the
    stores are made twice, and what the first ones took longer is added.
    """
    pages = max(len(array.working) // _PAGE, 1)
    changed = np.arange(0, pages, max(1 / share, 1) if share else pages).astype(np.int64) * _PAGE
    seconds: list[float] = []
    while len(seconds) < _ROUNDS_MIN or (
        sum(seconds) < _SECONDS and len(seconds) < _ROUNDS_MAX
    ):
        turn = len(seconds) % 250
        if share >= 1:
            array.working[:] = turn  # what a sweep leaves in the cache
        times = [clock()]
        for again in (0, 1) if share < 1 else ():
            array.working[changed] = turn + again
            times.append(clock())
        faults_s = times[1] - times[0] - (times[2] - times[1]) if share < 1 else 0.0
        began = clock()
        pool.commit()
        seconds.append(clock() - began + max(faults_s, 0.0))
    return seconds
