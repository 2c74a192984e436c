# SPDX-License-Identifier: BSD-3-Clause
"""What a process has in its memory: mappings, and the blocks of malloc in them. Pure.

Blocks of glibc are found by their headers: 16 bytes before each, the size and three flags. A large
one has a mapping of its own, which the kernel may have joined with the next one; the others follow
each other in the heap. Where no header is found, as with other allocators, a mapping is one block.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

PAGE = 4096
LEAST_BYTES = 64 << 10  # of a block that is looked at
_STEPS_MAX = 20_000
_HEADER = struct.Struct("<QQ")
_FLAGS = 7
_PREVIOUS_IN_USE, _MAPPED = 1, 2
_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (....) ([0-9a-f]+) (\S+) (\d+)\s*(.*)")
_OF_MPI = re.compile(r"/dev/shm/.*|.*(vader_segment|sm_segment|osc_|mpich|psm|ucx|pmix).*",
                     re.IGNORECASE)  # fmt: skip

Read = Callable[[int, int], bytes]  # (address, count); what can't be read is left out


@dataclass(frozen=True)
class Mapping:
    """A line of /proc/PID/maps."""

    start: int
    end: int
    access: str
    offset: int
    inode: int
    path: str

    @property
    def bytes(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Block:
    """Memory of one purpose; `kind` is "heap", "static", "mapped" or "shared"."""

    kind: str
    start: int
    bytes: int
    name: str = ""


def parse_maps(text: str) -> list[Mapping]:
    """The mappings; lines of another form are left out."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    return [
        Mapping(int(m[1], 16), int(m[2], 16), m[3], int(m[4], 16), int(m[6]), m[7])
        for m in found if m
    ]  # fmt: skip


def blocks_of(mappings: list[Mapping], program: str, read: Read) -> list[Block]:
    """The blocks of at least LEAST_BYTES that the process may store to."""
    found: list[Block] = []
    statics_end = -1
    for each in mappings:
        if "w" not in each.access or each.path.startswith(("[stack", "[vv", "[vd", "/dev/dri")):
            continue
        if each.path == program or (each.start == statics_end and not each.path):
            statics_end = each.end
            found.append(Block("static", each.start, each.bytes))
        elif each.access[3] == "s":
            kind = "shared" if each.inode else "mapped"
            found.append(Block(kind, each.start, each.bytes, each.path))
        elif each.path == "[heap]":
            found += _heap_blocks(each, read)
        elif not each.inode:
            found += _mapped_blocks(each, read)
    return [block for block in found if block.bytes >= LEAST_BYTES]


def is_of_mpi(block: Block) -> bool:
    """Whether it is shared memory of the MPI library: its messages, and windows too."""
    return block.kind == "shared" and _OF_MPI.fullmatch(block.name) is not None


def _heap_blocks(heap: Mapping, read: Read) -> Iterator[Block]:
    at, small = heap.start, 0
    header = read(at, 16)
    for _ in range(_STEPS_MAX):
        size = _HEADER.unpack(header)[1] & ~_FLAGS if len(header) == 16 else 0
        if size < 32 or size % 16 or at + size > heap.end:
            break
        header = read(at + size, 16)
        in_use = len(header) == 16 and _HEADER.unpack(header)[1] & _PREVIOUS_IN_USE
        if size >= LEAST_BYTES and in_use:
            yield Block("heap", at, size)
        elif in_use:
            small += size
        at += size
    if at == heap.start:  # of another allocator
        small = heap.bytes
    if small >= LEAST_BYTES:
        yield Block("heap", heap.start, small, "small blocks")


def _mapped_blocks(mapping: Mapping, read: Read) -> Iterator[Block]:
    at = mapping.start
    while at < mapping.end:
        header = read(at, 16)
        before, size = _HEADER.unpack(header) if len(header) == 16 else (0, 0)
        whole = size & ~_FLAGS
        fits = before == 0 and whole % PAGE == 0 and 0 < whole <= mapping.end - at
        if not (size & _MAPPED and fits):
            yield Block("mapped", at, mapping.end - at)
            return
        yield Block("heap", at, whole)
        at += whole


def name_statics(blocks: list[Block], symbols: list[tuple[int, int, str]]) -> list[Block]:
    """Static memory as its variables, (address, bytes, name) of those that are large."""
    named: list[Block] = []
    for block in blocks:
        inside = [] if block.kind != "static" else [
            Block("static", address, size, name) for address, size, name in symbols
            if block.start <= address and address + size <= block.start + block.bytes
        ]  # fmt: skip
        rest = block.bytes - sum(each.bytes for each in inside)
        named += inside
        if not inside:
            named.append(block)
        elif rest >= LEAST_BYTES:
            named.append(replace(block, bytes=rest, name="small variables"))
    return named
