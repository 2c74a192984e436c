# SPDX-License-Identifier: BSD-3-Clause
"""What a recorded program is: its memory that changes, its windows, its files. Pure.

Only the last third of the run counts: what is stored to before may be its preparation. Bytes
are of one rank, the one that has most, unless a name says otherwise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from perdure.advise.mappings import LEAST_BYTES, Block, is_of_mpi
from perdure.advise.memory import Watched
from perdure.advise.recording import Recording, Seen
from perdure.advise.written import Written
from perdure.cache.record import WindowUse

_LOOKS_MIN = 4
_ALMOST_ALL = 0.85  # of the pages: a sweep leaves out a border
_FEW = 0.4
_OF_POOL = re.compile(r"/rank-[0-9]{5}( \(deleted\))?$")
_PYTHON = re.compile(r"/python[0-9.]*$")


@dataclass(frozen=True)
class Memory:
    """Blocks of one kind, size and name of a rank; `share` is that of their pages that change."""

    kind: str
    name: str
    bytes: int
    count: int
    share: float

    @property
    def saved_bytes(self) -> int:
        """What a version must have of them: mapped memory may hold what never changes, too."""
        whole = self.kind != "mapped" and self.share > _FEW
        return round(self.bytes * self.count * (1.0 if whole else self.share))

    @property
    def changes(self) -> str:
        """In a word."""
        if self.share >= _ALMOST_ALL:
            return "all of it"
        return "few of its pages" if self.share < _FEW else "most of it"


@dataclass(frozen=True)
class WindowKind:
    """Windows that were made in the same way, of the rank that has most of them."""

    kind: str
    count: int
    bytes: int  # of all of them
    fences: int
    unlocks: int
    completes: int


@dataclass
class Program:
    """What was seen of it."""

    ranks: int = 1
    ranks_seen: int = 0
    is_mpi: bool = False
    is_python: bool = False
    uses_perdure: bool = False
    changing: list[Memory] = field(default_factory=list)
    constant_bytes: int = 0
    looks: int = 0
    looked_s: float = 0.0  # how long the part was that counts
    refused: str = ""  # why memory could not be read
    windows: list[WindowKind] = field(default_factory=list)
    again: list[Written] = field(default_factory=list)
    growing: list[Written] = field(default_factory=list)

    @property
    def changing_bytes(self) -> int:
        """Private memory of a rank that a version must have, at most."""
        return sum(each.saved_bytes for each in self.changing)

    @property
    def largest_bytes(self) -> int:
        """The largest single block of that: if any of it is carried, a version has as much."""
        return max((each.saved_bytes // each.count for each in self.changing), default=0)

    @property
    def window_bytes(self) -> int:
        return sum(each.bytes for each in self.windows)

    @property
    def has_looked(self) -> bool:
        """Whether it was looked at often enough to say what changes."""
        return not self.refused and self.looks >= _LOOKS_MIN


def program_of(recording: Recording) -> Program:
    """Everything that the looks and the record say."""
    ranks = recording.ranks
    made = Program(ranks_seen=len(ranks), windows=_windows_of(recording.mpi.windows))
    made.is_mpi = any(each.is_rank for each in ranks) or bool(recording.mpi.files or made.windows)
    made.ranks = max([each.ranks for each in ranks if each.is_rank], default=1)
    made.is_python = any(_PYTHON.search(each.memory.program) for each in ranks)
    made.uses_perdure = any(_is_user(each) for each in ranks)
    made.refused = next((each.memory.refused for each in ranks if each.memory.refused), "")
    found = [_memory_of(each) for each in ranks]
    if found:
        most = max(found, key=lambda one: sum(each.saved_bytes for each in one.changing))
        made.changing, made.constant_bytes = most.changing, most.constant_bytes
        made.looks, made.looked_s = most.looks, most.looked_s
    cached = {use.path for use in recording.mpi.files}
    plain = [each for each in recording.files if not each.paths & cached]
    made.again = [each for each in plain if each.again]
    made.growing = [each for each in plain if not each.again and each.grew >= 2]
    return made


def _is_user(seen: Seen) -> bool:
    """Whether it has a pool open, whose rank file it maps."""
    return any(_OF_POOL.search(watched.block.name) for watched in seen.memory.watched.values()
               if watched.block.kind == "shared")


def _memory_of(seen: Seen) -> Program:
    watched = list(seen.memory.watched.values())
    times = sorted({when for each in watched for when, _ in each.seen})
    made = Program(looks=len(times))
    if not times:
        return made
    settled = times[2 * len(times) // 3]
    made.looked_s = times[-1] - settled
    alive_from = times[-min(max(len(times) // 4, 1), len(times))]
    groups: dict[tuple[str, str, int], list[float]] = {}
    for each in watched:
        share = each.share(settled) if each.last_s >= alive_from else None
        if share is None or is_of_mpi(each.block) or each.block.name.startswith("/SYSV"):
            continue
        if share * each.block.bytes < LEAST_BYTES:
            made.constant_bytes += each.block.bytes
        else:
            groups.setdefault(_group_of(each), []).append(share)
    made.changing = [
        Memory(kind, name, size, len(shares), sum(shares) / len(shares))
        for (kind, name, size), shares in groups.items()
    ]
    made.changing.sort(key=lambda one: -one.saved_bytes)
    return made


def _group_of(watched: Watched) -> tuple[str, str, int]:
    block: Block = watched.block
    return block.kind, block.name, block.bytes


def _windows_of(uses: list[WindowUse]) -> list[WindowKind]:
    by_rank: dict[int, list[WindowUse]] = {}
    for use in uses:
        by_rank.setdefault(use.rank, []).append(use)
    if not by_rank:
        return []
    most = max(by_rank.values(), key=lambda of_rank: sum(use.bytes for use in of_rank))
    kinds: dict[str, list[WindowUse]] = {}
    for use in most:
        kinds.setdefault(use.kind, []).append(use)
    return [
        WindowKind(kind, len(some), sum(use.bytes for use in some),
                   *(sum(getattr(use, name) for use in some)
                     for name in ("fences", "unlocks", "completes")))
        for kind, some in kinds.items()
    ]  # fmt: skip
