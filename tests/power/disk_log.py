# SPDX-License-Identifier: BSD-3-Clause
"""What a logged disk was asked for, and what it may hold after its power is cut (logged_disk.c)."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HEAD = struct.Struct("<QQQ")
WRITE, FLUSH, MARK = 1, 2, 3
SECTOR = 512
WAYS = ("none", "some", "torn")  # of what was not flushed: nothing, half of it, half of its sectors


@dataclass(frozen=True)
class Write:
    """Bytes that came to the disk."""

    place: int
    data: bytes

    def sectors(self) -> Iterator[Write]:
        for start in range(0, len(self.data), SECTOR):
            yield Write(self.place + start, self.data[start:start + SECTOR])


@dataclass(frozen=True)
class Record:
    """A line of the log: a write, a flush, or a number that was marked."""

    kind: int
    write: Write
    marked: int


def read_log(path: Path) -> list[Record]:
    """All that is whole."""
    data = path.read_bytes()
    records, at = [], 0
    while at + HEAD.size <= len(data):
        kind, place, count = HEAD.unpack_from(data, at)
        at += HEAD.size
        found = data[at:at + count]
        at += count
        if len(found) == count:
            marked = int.from_bytes(found, "little") if kind == MARK else -1
            records.append(Record(kind, Write(place, found if kind == WRITE else b""), marked))
    return records


@dataclass(frozen=True)
class Cut:
    """A power cut after so many records."""

    records: int
    acknowledged: int  # -1: nothing was marked before it
    flushed: int  # how many writes are on the medium
    pending: tuple[Write, ...]  # may be there or not


def cuts_of(records: list[Record], flushes: bool = True) -> list[Cut]:
    """One after each record from the first mark on. Without `flushes`: as if none came since."""
    cuts: list[Cut] = []
    acknowledged, writes, flushed = -1, 0, 0
    pending: list[Write] = []
    for number, record in enumerate(records, 1):
        if record.kind == WRITE:
            writes += 1
            pending.append(record.write)
        elif record.kind == FLUSH:
            if flushes or acknowledged < 0:
                flushed, pending = writes, []
        else:
            acknowledged = record.marked
        if acknowledged >= 0:
            cuts.append(Cut(number, acknowledged, flushed, tuple(pending)))
    return cuts


def survivors(cut: Cut, way: str, chance: random.Random) -> list[Write]:
    """What of the pending writes is on the medium, in their order."""
    if way == "none":
        return []
    if way == "some":
        return [write for write in cut.pending if chance.random() < 0.5]
    sectors = [sector for write in cut.pending for sector in write.sectors()]
    return [sector for sector in sectors if chance.random() < 0.5]


class Medium:
    """A file with what is flushed; cuts must come in order."""

    def __init__(self, path: Path, size: int, records: list[Record]) -> None:
        self.path = path
        self._writes = [record.write for record in records if record.kind == WRITE]
        self._done = 0
        with path.open("wb") as file:
            file.truncate(size)

    def flush_up_to(self, writes: int) -> None:
        store(self.path, self._writes[self._done:writes])
        self._done = max(self._done, writes)


def store(path: Path, writes: list[Write]) -> None:
    with path.open("r+b") as file:
        for write in writes:
            file.seek(write.place)
            file.write(write.data)
