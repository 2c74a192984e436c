"""Reads the run pages in which the ranks of a job tell their state (src/pool/run_page.hpp)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from perdure.files import read_beginning

MAGIC = 0x314E555244524550  # "PERDRUN1"
NO_ITERATION = 2**64 - 1
_FORMAT = struct.Struct("<QIIIIQQQQQQQQQQ")


class Phase(IntEnum):
    """What a rank is doing; numbers of RunPhase."""

    opening = 0
    restarting = 1
    computing = 2
    committing = 3
    closed = 4


@dataclass(frozen=True)
class RunPage:
    """One rank's page; times in nanoseconds, sizes in bytes, totals of this process."""

    pid: int
    rank: int
    ranks: int
    phase: int
    version: int
    iteration: int
    commits: int
    commit_ns_last: int
    commit_ns_total: int
    commit_bytes_last: int
    commit_bytes_total: int
    model_ns_total: int
    restored_version: int
    restart_ns: int

    @property
    def has_restarted(self) -> bool:
        """Whether perdure_restart() has returned in this rank."""
        return self.phase >= Phase.computing


def parse_page(content: bytes) -> RunPage | None:
    """The page in `content`, or None while its rank has not filled it in yet."""
    if len(content) < _FORMAT.size:
        return None
    magic, *fields = _FORMAT.unpack_from(content)
    if magic != MAGIC:
        return None
    page = RunPage(*fields)
    return page if page.rank < page.ranks and page.phase <= Phase.closed else None


def read_pages(directory: Path) -> list[RunPage]:
    """The pages of all ranks that have written one, in the order of ranks."""
    pages = []
    for path in sorted(directory.glob("rank-*")):
        try:
            page = parse_page(read_beginning(path, _FORMAT.size))
        except OSError:
            continue
        if page is not None:
            pages.append(page)
    return pages
