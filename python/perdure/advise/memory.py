# SPDX-License-Identifier: BSD-3-Clause
"""Which of a process's memory changes, seen from outside by reading pages now and then.

A look reads some pages of each block by /proc/PID/mem, and compares them with what they held at the
look before. Nothing is put into the process, no page is protected, and a page that the process has
not touched is not read. It needs the rights of a debugger, which a parent has unless the system
forbids them.
"""

from __future__ import annotations

import os
import random
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field

from perdure.advise.mappings import PAGE, Block, Mapping, blocks_of, name_statics, parse_maps
from perdure.advise.symbols import static_variables
from perdure.run.process_table import proc_text

_PAGES = 320  # of a process: a share of a half of all of it is known to 0.06 with 95 %
_PAGES_MIN = 12  # of a block
_BLOCKS_MAX = 64  # of a process, the largest
_PRESENT = 0b11 << 62  # in memory, or swapped out
_ENTRY = struct.Struct("<Q")


@dataclass
class Watched:
    """A block, the pages of it that are read, and what was seen to change in them."""

    block: Block
    pages: list[int]
    held: dict[int, int] = field(default_factory=dict)  # of each page that was there
    seen: list[tuple[float, frozenset[int]]] = field(default_factory=list)  # when; what changed
    last_s: float = 0.0  # when it was read; 0: never

    def share(self, since_s: float) -> float | None:
        """The share of its pages that changed at least once since then; None: nobody looked."""
        looks = [changed for when, changed in self.seen if when >= since_s]
        if not looks:
            return None
        return len(frozenset[int]().union(*looks)) / max(len(self.pages), 1)


class ProcessMemory:
    """The memory of one process while it runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.program = ""
        self.refused = ""  # why nothing can be read
        self.libraries: set[str] = set()
        self.watched: dict[tuple[int, int, str], Watched] = {}
        self._statics: list[tuple[int, int, str]] = []
        self._mappings: list[Mapping] = []
        self._blocks: list[Block] = []  # walking through a heap costs more than a look at it
        self._looks = 0
        self._descriptors: dict[str, int] = {}

    def look(self) -> int:
        """Reads once; how many pages."""
        program = _link(f"/proc/{self.pid}/exe")
        mappings = parse_maps(proc_text(f"{self.pid}/maps"))
        if not program or not mappings or not self._open():
            return 0
        self.libraries |= {each.path for each in mappings if ".so" in each.path}
        if program != self.program:  # exec()
            self.program = program
            self._statics = static_variables(program, mappings)
        self._looks += 1
        if mappings != self._mappings or self._looks & (self._looks - 1) == 0:
            self._mappings = mappings
            blocks = name_statics(blocks_of(mappings, program, self._read), self._statics)
            self._blocks = sorted(blocks, key=lambda block: -block.bytes)[:_BLOCKS_MAX]
        whole = sum(block.bytes for block in self._blocks)
        now = time.monotonic()
        return sum(self._look_at(block, whole, now) for block in self._blocks)

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _open(self) -> bool:
        if self._descriptors:
            return True
        try:
            for name in ("mem", "pagemap"):
                path = f"/proc/{self.pid}/{name}"
                self._descriptors[name] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, ProcessLookupError):
            self.close()
            return False
        except OSError as failure:
            self.refused = failure.strerror or str(failure)
            self.close()
            return False
        return True

    def _read(self, address: int, count: int) -> bytes:
        try:
            return os.pread(self._descriptors["mem"], count, address)
        except (OSError, OverflowError):
            return b""

    def _is_present(self, address: int) -> bool:
        with suppress(OSError):
            entry = os.pread(self._descriptors["pagemap"], 8, address // PAGE * 8)
            return len(entry) == 8 and bool(_ENTRY.unpack(entry)[0] & _PRESENT)
        return False

    def _look_at(self, block: Block, of_bytes: int, now: float) -> int:
        key = (block.start, block.bytes, block.name)
        known = self.watched.get(key)
        if known is None:
            known = self.watched[key] = Watched(block, _pages_of(block, of_bytes))
        held = {page: hash(self._read(page, PAGE)) for page in known.pages
                if self._is_present(page)}  # fmt: skip
        if known.last_s:
            # A page that came is one that changed; of pages that never came nothing is known.
            changed = (page for page, value in held.items() if known.held.get(page) != value)
            known.seen.append((now, frozenset(changed)))
        known.held, known.last_s = held, now
        return len(held)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _pages_of(block: Block, of_bytes: int) -> list[int]:
    """Pages all over the block, the same at each look, more of a larger one."""
    first = -(-block.start // PAGE)
    count = max((block.start + block.bytes) // PAGE - first, 1)
    wanted = min(count, max(_PAGES * block.bytes // max(of_bytes, 1), _PAGES_MIN))
    draw = random.Random(block.start ^ block.bytes)  # not at a distance that a loop may have too
    return [
        (first + number * count // wanted + draw.randrange(max(count // wanted, 1))) * PAGE
        for number in range(wanted)
    ]
