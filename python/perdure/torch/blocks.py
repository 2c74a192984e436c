# SPDX-License-Identifier: BSD-3-Clause
"""Blocks: the tensors and bytes of one checkpoint, packed into one array of a pool.

    DIRECTORY/layout-N/     a pool with one array in mode twin, `blocks`
    array                   length of the index, 8 bytes; the index, as JSON; the blocks

Each block has its place and room. If a later checkpoint has other blocks, or larger ones, it gets a
pool of its own, with the next number; the one before goes when nothing refers to it any more. So a
commit is all that a checkpoint is made of, and what was committed last is whole at any time.
"""

from __future__ import annotations

import json
import math
import re
import struct
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import perdure
from perdure import _core

_ALIGN = 64
_LENGTH_BYTES = 8
_FORMAT = 2
_NAME = re.compile(r"layout-([0-9]{5})")
# The version that others may refer to, and the one after it.
_KEEP = 2


@dataclass(frozen=True)
class Block:
    """What is to be kept under a key: a tensor of any device, bytes, or an array of them."""

    key: str
    contents: torch.Tensor | NDArray[np.uint8] | bytes

    @property
    def size_bytes(self) -> int:
        """Without padding."""
        if isinstance(self.contents, bytes):
            return len(self.contents)
        return int(self.contents.nbytes)

    @property
    def kind(self) -> str:
        """dtype of a tensor or array, or bytes."""
        if isinstance(self.contents, bytes):
            return "bytes"
        return str(self.contents.dtype).removeprefix("torch.")

    @property
    def shape(self) -> list[int]:
        """Extents of a tensor or array."""
        return [] if isinstance(self.contents, bytes) else list(self.contents.shape)

    def room_bytes(self) -> int:
        """What it gets in a new pool; bytes may grow, tensors do not."""
        wanted = 2 * self.size_bytes if isinstance(self.contents, bytes) else self.size_bytes
        return _aligned(wanted)


@dataclass(frozen=True)
class Place:
    """A checkpoint of one process: the number of its pool, and the version there."""

    layout: int
    version: int


class Blocks:
    """Blocks that were read; tensors are copies in ordinary memory."""

    def __init__(self, memory: Any, source: str):
        self._memory, self._source = memory, source
        length = struct.unpack_from("<Q", memory)[0] if len(memory) >= _LENGTH_BYTES else 0
        text = bytes(memory[_LENGTH_BYTES : _LENGTH_BYTES + length])
        try:
            self.index: dict[str, Any] = dict(json.loads(text))
            is_ours = self.index["format"] == _FORMAT
            self._entries = _entries_of(self.index, len(memory)) if is_ours else {}
        except (LookupError, RecursionError, TypeError, ValueError):
            raise perdure.Damaged(f"{source}: its index can't be read") from None
        if not is_ours:
            raise perdure.NewerFormat(
                f"{source} was written by another version of perdure.torch; use that one"
            )

    def data(self, key: str) -> bytes:
        """The bytes of a block. Raises NotFound, Damaged."""
        entry, begin, end = self._range(key)
        if entry["kind"] != "bytes":
            raise perdure.NotFound(f"{self._source}: {key} is a tensor")
        return bytes(self._memory[begin:end])

    def tensor(self, key: str) -> torch.Tensor:
        """A copy of a tensor, on the CPU. Raises NotFound, Damaged."""
        entry, begin, end = self._range(key)
        dtype = getattr(torch, str(entry["kind"]), None)
        if not isinstance(dtype, torch.dtype):
            raise perdure.NotFound(f"{self._source}: {key} is no tensor of a type known here")
        if math.prod(entry["shape"]) * dtype.itemsize != end - begin:
            raise perdure.Damaged(f"{self._source}: {key} has another size than its shape")
        tensor = torch.empty(entry["shape"], dtype=dtype)
        if tensor.numel() != 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the memory is read-only, and it is only read
                source = torch.frombuffer(
                    self._memory, dtype=dtype, count=tensor.numel(), offset=begin
                )
            tensor.copy_(source.view(tensor.shape))
        return tensor

    def raw(self, key: str) -> NDArray[np.uint8]:
        """The bytes of a block, where they are: to be copied. Raises NotFound."""
        _, begin, end = self._range(key)
        return np.frombuffer(self._memory, np.uint8, end - begin, begin)

    def _range(self, key: str) -> tuple[dict[str, Any], int, int]:
        if key not in self._entries:
            raise perdure.NotFound(f"{self._source} has no {key}")
        entry = self._entries[key]
        return entry, entry["offset"], entry["offset"] + entry["size"]


def _entries_of(index: Mapping[str, Any], room_bytes: int) -> dict[str, dict[str, Any]]:
    """The entries by their keys; raises ValueError and others if they can't be."""
    numbers = [index["room"], index["head"], index.get("number", 0)]
    for entry in index["blocks"]:
        numbers += [entry["offset"], entry["size"], entry["room"], *entry["shape"]]
        within = entry["size"] <= entry["room"] and entry["offset"] + entry["room"] <= room_bytes
        if not (within and isinstance(entry["kind"], str) and isinstance(entry["key"], str)):
            raise ValueError("no entry")
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        raise ValueError("no number")
    if index["room"] > room_bytes:
        raise ValueError("no room")
    return {entry["key"]: entry for entry in index["blocks"]}


def read_blocks(directory: Path, place: Place | None = None) -> Blocks | None:
    """A checkpoint, by default the newest; None if there is none. Takes no lock."""
    for layout in _layouts(directory):
        if place is not None and place.layout != layout:
            continue
        folder = _folder(directory, layout)
        if place is None and _newest_version(folder) is None:
            continue
        try:
            version = None if place is None else place.version
            _, _, memory = _core.dump_array(str(folder), 0, "blocks", version)
        except _core.Error as error:
            raise perdure.Error(str(error)) from None
        return Blocks(memory, str(folder))
    return None


class BlockWriter:
    """Writes checkpoints of one process to a directory. One thread at a time."""

    def __init__(self, directory: Path, options: Mapping[str, Any]):
        self._directory, self._options = directory, dict(options)
        self._pool: perdure.Pool | None = None
        self._array: perdure.Array | None = None
        self._layout = 0
        self._begun = False
        self._newest: Place | None = None
        self._entries: list[dict[str, Any]] = []  # of the blocks of the open pool
        self._index_bytes = 0

    @property
    def is_open(self) -> bool:
        """Whether a pool is open."""
        return self._pool is not None

    def resume(self) -> bool:
        """Opens the newest pool that has a version. False: there is none."""
        for layout in _layouts(self._directory):
            version = _newest_version(_folder(self._directory, layout))
            if version is None:
                continue
            place = Place(layout, version)
            found = read_blocks(self._directory, place)
            if found is None:
                return False
            self._open(layout, found.index["room"], found.index["blocks"], found.index["head"])
            self._newest = place
            return True
        return False

    def go_on_from(self, place: Place | None) -> None:
        """Of the processes of one checkpoint: `place` is what the last one that counts refers to.

        It stays as it is. What is newer here was not finished by all, and is of no use.
        """
        self.wait()
        if self._newest != place:
            self.close()
            self._entries = []
        self.remove_others(place)

    def begin(self, blocks: Sequence[Block], more: Mapping[str, Any]) -> None:
        """Copies the blocks and begins the commit; `more` is noted in the index."""
        self.wait()
        if not self._fits(blocks):
            self._make(blocks)
        assert self._pool is not None and self._array is not None
        memory = self._array.working
        index: dict[str, Any] = {"format": _FORMAT, **more}
        index |= {"room": memory.size, "head": self._index_bytes, "blocks": self._entries}
        for entry, block in zip(self._entries, blocks):
            entry["size"] = block.size_bytes
            _store(memory, int(entry["offset"]), block.contents)
        text = json.dumps(index).encode()
        memory[:_LENGTH_BYTES] = np.frombuffer(struct.pack("<Q", len(text)), np.uint8)
        memory[_LENGTH_BYTES : _LENGTH_BYTES + len(text)] = np.frombuffer(text, np.uint8)
        self._pool.commit_begin()
        self._begun = True

    def wait(self) -> Place | None:
        """Until what was begun is durable; the newest that is, or None."""
        if self._pool is not None and self._begun:
            self._begun = False
            self._newest = Place(self._layout, self._pool.commit_wait())
        return self._newest

    def newest(self) -> Blocks | None:
        """What was committed last; of use until the next begin()."""
        if self.wait() is None or self._array is None:
            return None
        return Blocks(self._array.consistent, str(_folder(self._directory, self._layout)))

    def remove_others(self, needed: Place | None = None) -> None:
        """Removes pools that are neither open nor needed."""
        for layout in _layouts(self._directory):
            of_use = self.is_open and layout == self._layout
            if of_use or (needed is not None and layout == needed.layout):
                continue
            folder = _folder(self._directory, layout)
            try:
                if any(folder.iterdir()):
                    _core.remove_pool(str(folder))
                else:
                    folder.rmdir()
            except (_core.Error, OSError) as error:
                warnings.warn(f"a checkpoint of no use stays: {error}", stacklevel=2)

    def close(self) -> None:
        """Waits, and closes the pool."""
        if self._pool is not None:
            pool, self._pool, self._array = self._pool, None, None
            pool.close()

    def _fits(self, blocks: Sequence[Block]) -> bool:
        return (
            self._pool is not None
            and len(blocks) == len(self._entries)
            and all(
                block.key == entry["key"]
                and block.kind == entry["kind"]
                and block.shape == entry["shape"]
                and block.size_bytes <= entry["room"]
                for block, entry in zip(blocks, self._entries)
            )
        )

    def _make(self, blocks: Sequence[Block]) -> None:
        """A pool with room for these blocks, beside the one that is open."""
        entries = [
            {
                "key": block.key,
                "kind": block.kind,
                "shape": block.shape,
                "room": block.room_bytes(),
                "offset": 0,
                "size": block.room_bytes(),
            }
            for block in blocks
        ]
        # Numbers may get longer: of each entry its offset and size, of the rest what callers note.
        head = _aligned(_LENGTH_BYTES + len(json.dumps(entries)) + 40 * len(entries) + 4096)
        offset = head
        for entry in entries:
            entry["offset"] = offset
            offset += int(str(entry["room"]))
        self.close()
        newest = next(iter(_layouts(self._directory)), 0)
        self._open(newest + 1, offset, entries, head)

    def _open(self, layout: int, room: int, entries: list[dict[str, Any]], head: int) -> None:
        self.close()
        folder = _folder(self._directory, layout)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._pool = perdure.open(folder, **{"keep": _KEEP, "job": "torch", **self._options})
        self._array = self._pool.array("blocks", room, np.uint8, "twin", checksums=True)
        self._pool.restart()
        self._layout, self._entries, self._index_bytes = layout, [dict(s) for s in entries], head


def _store(memory: Any, offset: int, contents: torch.Tensor | NDArray[np.uint8] | bytes) -> None:
    if isinstance(contents, (bytes, np.ndarray)):
        memory[offset : offset + len(contents)] = np.frombuffer(contents, np.uint8)
    elif contents.numel() != 0:
        tensor = contents.detach()
        target = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(), offset=offset)
        target.view(tensor.shape).copy_(tensor)


def _aligned(size_bytes: int) -> int:
    return (size_bytes + _ALIGN - 1) // _ALIGN * _ALIGN


def _folder(directory: Path, layout: int) -> Path:
    return directory / f"layout-{layout:05d}"


def _layouts(directory: Path) -> list[int]:
    """Numbers of the pools, the highest first."""
    try:
        names = [entry.name for entry in directory.iterdir()]
    except FileNotFoundError:
        return []
    found = [_NAME.fullmatch(name) for name in names]
    return sorted((int(match[1]) for match in found if match), reverse=True)


def _newest_version(folder: Path) -> int | None:
    if not Path(_core.job_record_path(str(folder))).exists():
        return None  # its making was cut short
    try:
        return _core.inspect_pool(str(folder)).version or None  # 0: none was committed
    except _core.Error as error:
        raise perdure.Error(str(error)) from None
