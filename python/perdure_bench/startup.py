# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench startup`: how long light verbs of the command take before they do anything.

Processor time of the whole process, user and system, which other work on the machine hardly moves.
The verbs take turns, so that all meet the same machine.

    cpu   of one call, in seconds
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import partial

from perdure.programs import CLONE, ProgramFailed
from perdure.progress import progress
from perdure_bench.facts import Fact, take_turns

SUMMARY = "processor time of light verbs"
_TARGET_S = 0.15
_VERBS = ("--version", "--help", "pool ls", "cache ls", "devices", "trace --help", "run -- true")


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within a minute. Raises ProgramFailed."""
    rounds = 5 if quick else 25
    total = rounds * len(_VERBS)
    with tempfile.TemporaryDirectory() as folder, progress("startup", total) as advance:
        ways = {verb: partial(_cpu_s, verb.split(), folder) for verb in _VERBS}
        samples = take_turns(ways, rounds, advance, warm=0)
    for verb, found in samples.items():
        yield Fact.of("startup", verb, "cpu", found, "s", target=_TARGET_S)


def _cpu_s(words: list[str], folder: str) -> float:
    """Seconds of one call in an empty folder. Raises ProgramFailed."""
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        os.execv(CLONE / "perdure", ["perdure", *words])
    _, status, used = os.wait4(child, 0)
    if status != 0:
        raise ProgramFailed(f"perdure {' '.join(words)} failed; run it by hand")
    return used.ru_utime + used.ru_stime
