# SPDX-License-Identifier: BSD-3-Clause
"""What a run did with its MPI files and windows: the lines that PERDURE_RECORD=PREFIX leaves in
PREFIX.RANK."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from perdure.cache.record_line import WrongLine, blocks_of, parse_line
from perdure.failures import Wrong
from perdure.files import read_bytes

_GRAIN_BYTES = 4096  # of what the cache knows to be dirty


class NoRecord(Wrong):
    """There is no record, or a line of it is wrong; the sentence says where."""


@dataclass(frozen=True)
class AccessClass:
    """Accesses of one kind and size, of all ranks; `seconds` is their sum."""

    write: bool
    calls: int
    bytes: float
    seconds: float
    sequential: bool = False
    size_log2: int = 0


@dataclass
class FileUse:
    """One file from its opening to its close. Times are means of the ranks, in seconds."""

    path: str
    ranks: int = 1
    nodes: int = 1
    cached: bool = False
    accesses: list[AccessClass] = field(default_factory=list)
    open_close_s: float = 0.0
    other_s: float = 0.0  # sync, set_size, preallocate, set_view
    touched_bytes: float = 0.0
    fetched_bytes: float = 0.0
    dirty_bytes: float = 0.0
    size_at_open: float = 0.0
    read_only: bool = False
    delete_on_close: bool = False
    nonblocking: int = 0  # calls, whose waits the record has not
    unplaced_bytes: float = 0.0

    @property
    def calls(self) -> int:
        return sum(kind.calls for kind in self.accesses)

    @property
    def access_s(self) -> float:
        """The mean time that a rank spent in accesses."""
        return sum(kind.seconds for kind in self.accesses) / self.ranks

    @property
    def measured_s(self) -> float:
        """The mean time that a rank spent in all calls on the file."""
        return self.access_s + self.open_close_s + self.other_s


@dataclass(frozen=True)
class WindowUse:
    """One window of one rank, and how many of its epochs ended by which call."""

    kind: str  # "create", "allocate", "shared", "dynamic"
    rank: int
    ranks: int
    bytes: int
    fences: int
    unlocks: int  # and flushes, of passive epochs
    completes: int
    open_s: float


@dataclass
class Run:
    """A recorded run; `run_s` is None where nothing says."""

    files: list[FileUse]
    run_s: float | None = None
    windows: list[WindowUse] = field(default_factory=list)


def read_records(prefixes: Iterable[Path]) -> Run:
    """The run whose ranks wrote PREFIX.0, PREFIX.1, …; a file's own name is taken too.

    Raises NoRecord.
    """
    lines = [line for prefix in prefixes for path in _files_of(prefix) for line in _lines(path)]
    if not lines:
        raise NoRecord("the record has no lines; did the program do MPI-IO, or make windows?")
    uses: dict[tuple[str, int], list[dict]] = defaultdict(list)
    opened: dict[tuple[str, int], int] = defaultdict(int)
    for line in (line for line in lines if "file" in line):
        key = (line["file"], line["rank"])
        uses[line["file"], opened[key]].append(line)
        opened[key] += 1
    run_s = [line["run_s"] for line in lines if "run_s" in line]
    windows = [_window_of(line) for line in lines if "window" in line]
    return Run([use_of(ranks) for ranks in uses.values()], max(run_s, default=None), windows)


def _window_of(line: dict) -> WindowUse:
    counts = {name: line[name] for name in ("rank", "ranks", "bytes", "fences", "unlocks",
                                            "completes", "open_s")}  # fmt: skip
    return WindowUse(line["window"], **counts)


def _files_of(prefix: Path) -> list[Path]:
    if prefix.is_file():
        return [prefix]
    found = [path for path in prefix.parent.glob(f"{prefix.name}.*") if path.suffix[1:].isdigit()]
    if not found:
        raise NoRecord(f"there is no {prefix}.0; run the job with PERDURE_RECORD={prefix}")
    return sorted(found)


def _lines(path: Path) -> list[dict]:
    lines = []
    content = read_bytes(path).decode("utf-8", "backslashreplace")
    for number, text in enumerate(content.splitlines(), 1):
        try:
            lines.append(parse_line(text))
        except WrongLine as wrong:
            raise NoRecord(f"{path}: line {number} {wrong}") from None
    return lines


def _blocks(lines: list[dict], name: str) -> int:
    """How many blocks any of the ranks has in a set."""
    return blocks_of([run for line in lines for run in line[name]])


def use_of(lines: list[dict]) -> FileUse:
    """One use of a file, from the lines of its ranks."""
    ranks = len(lines)
    block = lines[0]["block_bytes"]
    use = FileUse(lines[0]["file"], ranks, len({line["node"] for line in lines}))
    use.cached = any(line["cached"] for line in lines)
    use.read_only = all(line["read_only"] for line in lines)
    use.delete_on_close = any(line["delete_on_close"] for line in lines)
    use.size_at_open = min(line["size_at_open"] for line in lines)
    for line in lines:
        for kind in line["accesses"]:
            use.accesses.append(
                AccessClass(
                    kind["direction"] == "write",
                    kind["calls"],
                    kind["bytes"],
                    kind["seconds"],
                    kind["sequential"],
                    kind["size_log2"],
                )
            )
            use.nonblocking += kind["calls"] if kind["nonblocking"] else 0
        for name, call in line["calls"].items():
            if name in ("open", "close"):
                use.open_close_s += call["seconds"] / ranks
            else:
                use.other_s += call["seconds"] / ranks
        use.unplaced_bytes += line["unplaced_bytes"]
    use.touched_bytes = _blocks(lines, "touched_blocks") * block + use.unplaced_bytes
    use.fetched_bytes = min(_blocks(lines, "fetched_blocks") * block, use.size_at_open)
    room = _blocks(lines, "written_blocks") * block + use.unplaced_bytes
    size = max(line["size_at_close"] for line in lines)
    use.touched_bytes = min(use.touched_bytes, max(size, use.size_at_open))
    use.dirty_bytes = dirty_bytes(use.accesses, min(room, size) if size else room)
    return use


def dirty_bytes(accesses: Iterable[AccessClass], room_bytes: float) -> float:
    """Distinct bytes that writes leave to be written back, of `room_bytes` that they fall into.

    Those that follow each other dirty what they write. k others of s bytes dirty g = 1 + (s - 1) /
    4096 grains each, which fall anywhere: of G = room / 4096 grains, G (1 - exp(-k g / G)).
    """
    if room_bytes <= 0:
        return 0.0
    following = sum(kind.bytes for kind in accesses if kind.write and kind.sequential)
    grains = sum(
        kind.calls + max(kind.bytes - kind.calls, 0) / _GRAIN_BYTES
        for kind in accesses
        if kind.write and not kind.sequential
    )
    all_grains = room_bytes / _GRAIN_BYTES
    scattered = room_bytes * -math.expm1(-grains / all_grains)
    return min(room_bytes, following + scattered)
