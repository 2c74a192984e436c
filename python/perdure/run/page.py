# SPDX-License-Identifier: BSD-3-Clause
"""Reads the run pages in which the ranks of a job tell their state (src/pool/run_page.hpp)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path

from perdure.files import read_beginning
from perdure.screen import some_of

MAGIC = 0x314E555244524550  # "PERDRUN1"
NO_ITERATION = 2**64 - 1
_RANKS_NAMED = 8
_FORMAT = struct.Struct("<QIIIIQQQQQQQQQQ1024s")


class Phase(IntEnum):
    """What a rank is doing; numbers of RunPhase."""

    opening = 0
    restarting = 1
    computing = 2
    committing = 3
    closed = 4
    refused = 5


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
    refusal: str = ""  # of the pool, in a sentence, if the phase is `refused`

    @property
    def has_restarted(self) -> bool:
        """Whether perdure_restart() has returned in this rank."""
        return Phase.computing <= self.phase <= Phase.closed


def parse_page(content: bytes) -> RunPage | None:
    """The page in `content`, or None while its rank has not filled it in yet."""
    if len(content) < _FORMAT.size:
        return None
    magic, *fields, refusal = _FORMAT.unpack_from(content)
    if magic != MAGIC:
        return None
    text = refusal.split(b"\0", 1)[0].decode(errors="replace")
    page = replace(RunPage(*fields), refusal=text)
    return page if page.rank < page.ranks and page.phase <= Phase.refused else None


def read_pages(directory: Path) -> list[RunPage]:
    """The pages of all ranks that have written one, in the order of ranks."""
    pages = []
    for path in sorted(directory.glob("page-*")):
        try:
            page = parse_page(read_beginning(path, _FORMAT.size))
        except OSError:
            continue
        if page is not None:
            pages.append(page)
    return pages


@dataclass(frozen=True)
class RunPages:
    """Where the ranks of an attempt put their pages, and when it was made (seconds, as ctime).

    In `shared`, a directory that all nodes see, they leave them when they close their pools.
    """

    path: Path
    made_s: float
    shared: Path | None = None

    @classmethod
    def make(cls, path: Path, shared: Path | None = None) -> RunPages:
        path.mkdir()
        if shared is not None:
            shared.mkdir()
        return cls(path, path.stat().st_ctime, shared)

    def read(self) -> list[RunPage]:
        """Those of this node's ranks, as they are now."""
        return read_pages(self.path)

    def read_all(self) -> list[RunPage]:
        """Also those that ranks of other nodes have left, which are newer if they are closed."""
        pages = {page.rank: page for page in read_pages(self.shared)} if self.shared else {}
        for page in self.read():
            left = pages.get(page.rank)
            if left is None or left.phase != Phase.closed:
                pages[page.rank] = page
        return [pages[rank] for rank in sorted(pages)]

    def unclosed(self) -> str | None:
        """Which ranks have not closed their pools, in a sentence. None where there is no pool."""
        assert self.shared is not None
        pages = read_pages(self.shared)
        closed = {page.rank for page in pages if page.phase == Phase.closed}
        missing = [rank for rank in range(pages[0].ranks if pages else 0) if rank not in closed]
        if not missing:
            return None
        return (
            f"the launcher ended with exit code 0, but of {pages[0].ranks} ranks these have not "
            f"closed their pool: {some_of(missing, _RANKS_NAMED)}. If no node is lost, "
            f"{self.shared.parent.parent} is no directory that all nodes see: name one "
            "with --run-dir"
        )

    def ask_to_end(self) -> None:
        """Rank 0 looks for this file on its node; see src/pool/run_page.hpp."""
        for directory in (self.path, self.shared):
            if directory is not None:
                (directory / "stop").touch(mode=0o600)

    def is_ending(self) -> bool:
        """Whether rank 0 has seen that."""
        places = (self.path, self.shared)
        return any((place / "stopping").exists() for place in places if place is not None)
