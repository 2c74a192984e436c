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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import perdure
from perdure import _core
from perdure.torch import gpu

_ALIGN = 64
LENGTH_BYTES = 8
FORMAT = 2
_NAME = re.compile(r"layout-([0-9]{5})")
_SLAB_BYTES = 1 << 20


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
        return aligned(wanted)

    def entry(self) -> dict[str, Any]:
        """Its entry in the index of a new pool, without a place."""
        room = self.room_bytes()
        return {
            "key": self.key, "kind": self.kind, "shape": self.shape, "room": room, "offset": 0,
            "size": room,
        }  # fmt: skip

    def fits(self, entry: Mapping[str, Any]) -> bool:
        """Whether it can have the place of an entry."""
        return (
            self.kind == entry["kind"]
            and self.shape == entry["shape"]
            and self.size_bytes <= int(entry["room"])
        )


@dataclass(frozen=True)
class Place:
    """A checkpoint of one process: the number of its pool, and the version there."""

    layout: int
    version: int


class InMemory:
    """Contents of an array that are memory of this process."""

    def __init__(self, memory: Any):
        self._bytes = np.frombuffer(memory, np.uint8)
        self.size_bytes = self._bytes.size

    def fill(self, first: int, target: NDArray[np.uint8]) -> None:
        """Copies what begins at byte `first`."""
        target[:] = self._bytes[first : first + target.size]


class InOpenPool(InMemory):
    """What is committed of an array of a pool that is open in this process."""

    def __init__(self, pool: perdure.Pool, array: perdure.Array):
        super().__init__(array.consistent)
        self._pool, self._array = pool, array

    def tensor_on(self, first: int, size: int, device: torch.device) -> torch.Tensor:
        """Bytes on a GPU, straight from the pool. Raises NoSpace."""
        made = gpu.torch_gpu.memory(size, device)
        if made is None:
            raise perdure.NoSpace(f"{device} has no room for {size} bytes: load to the CPU")
        gpu.fill_from(self._pool, self._array, first, made)
        return made


class InPool:
    """Those of a version of a pool that others may go on with. Only what is asked for is read, and
    compared with its checksums."""

    def __init__(self, folder: Path, version: int):
        self._folder, self._version = folder, version
        try:
            opened = _core.open_array(str(folder), 0, "blocks", version)
        except _core.Error as error:
            raise perdure.Error(str(error)) from None
        if opened is None:
            raise self._overtaken()
        self._reader = opened
        self.size_bytes: int = opened.size_bytes

    def fill(self, first: int, target: NDArray[np.uint8]) -> None:
        """Copies what begins at byte `first`. Raises Damaged, Busy."""
        try:
            is_there = target.size == 0 or self._reader.read_into(first, target)
        except _core.Error as error:
            raise perdure.Damaged(str(error)) from None
        if not is_there:
            raise self._overtaken()

    def _overtaken(self) -> perdure.Error:
        return perdure.Busy(
            f"{self._folder}: version {self._version} is no longer there, as later saves have"
            " stored over it; load again"
        )


class Blocks:
    """Blocks that were read; tensors are copies in ordinary memory, or on a GPU."""

    def __init__(self, contents: InMemory | InPool, source: str):
        self._contents, self._source = contents, source
        try:
            text = self._text()
            self.index: dict[str, Any] = dict(json.loads(text))
            is_ours = self.index["format"] == FORMAT
            self._entries = _entries_of(self.index, contents.size_bytes) if is_ours else {}
        except (LookupError, RecursionError, TypeError, ValueError):
            raise perdure.Damaged(f"{source}: its index can't be read") from None
        if not is_ours:
            raise perdure.NewerFormat(
                f"{source} was written by another version of perdure.torch; use that one"
            )

    def data(self, key: str) -> bytes:
        """The bytes of a block. Raises NotFound, Damaged."""
        if self._entry(key)["kind"] != "bytes":
            raise perdure.NotFound(f"{self._source}: {key} is a tensor")
        return self.raw(key).tobytes()

    def tensor(self, key: str, device: torch.device | None = None) -> torch.Tensor:
        """A copy of a tensor, on the CPU or a device. Raises NotFound, Damaged, NoSpace."""
        entry, dtype = self._tensor_entry(key)
        shape = entry["shape"]
        if device is not None and gpu.torch_gpu.is_gpu(device) and entry["size"] != 0:
            assert isinstance(self._contents, InOpenPool)
            made = self._contents.tensor_on(entry["offset"], entry["size"], device)
            return made.view(dtype).view(shape)
        tensor = torch.empty(shape, dtype=dtype, device=device)
        self._fill(entry["offset"], shape, [0] * tensor.dim(), shape, tensor, dtype)
        return tensor

    def fill(
        self, key: str, first: Sequence[int], extents: Sequence[int], target: torch.Tensor
    ) -> None:
        """Copies a part of a tensor to `target`, which has its extents, and may be of another dtype
        or device. Raises NotFound, Damaged, WrongShape."""
        entry, dtype = self._tensor_entry(key)
        shape = entry["shape"]
        is_within = len(first) == len(extents) == len(shape) and all(
            begin >= 0 and 0 <= count <= whole - begin
            for begin, count, whole in zip(first, extents, shape)
        )
        if not is_within or list(target.shape) != list(extents):
            raise perdure.WrongShape(
                f"{self._source}: {key} has shape {shape}; {list(extents)} from {list(first)} on"
                f" are asked for, for a tensor of {list(target.shape)}"
            )
        if target.numel() != 0:
            self._fill(entry["offset"], shape, list(first), list(extents), target.detach(), dtype)

    def raw(self, key: str) -> NDArray[np.uint8]:
        """A copy of the bytes of a block. Raises NotFound, Damaged."""
        entry = self._entry(key)
        copy = np.empty(entry["size"], np.uint8)
        self._contents.fill(entry["offset"], copy)
        return copy

    def _text(self) -> bytes:
        room = self._contents.size_bytes
        head = np.empty(min(LENGTH_BYTES, room), np.uint8)
        self._contents.fill(0, head)
        length = struct.unpack("<Q", head.tobytes())[0] if head.size == LENGTH_BYTES else 0
        text = np.empty(max(0, min(length, room - LENGTH_BYTES)), np.uint8)
        self._contents.fill(LENGTH_BYTES, text)
        return text.tobytes()

    def _fill(
        self, place: int, shape: list[int], first: list[int], extents: list[int],
        target: torch.Tensor, dtype: torch.dtype,
    ) -> None:  # fmt: skip
        """Of the tensor of `shape` and `dtype` at byte `place`: at once where the target can have
        the bytes as they are, else so many rows as one may hold a copy of."""
        row = math.prod(shape[1:]) * dtype.itemsize
        is_whole = extents[1:] == shape[1:]
        if shape:
            place += first[0] * row
        if is_whole and _has_bytes(target, dtype):
            self._contents.fill(place, _bytes_of(target))
        elif is_whole and target.dtype == dtype and gpu.passed(
            target, lambda begin, part: self._contents.fill(place + begin, part)
        ):
            return
        elif is_whole and (not shape or extents[0] * row <= _SLAB_BYTES):
            copy = torch.empty(extents, dtype=dtype)
            self._contents.fill(place, _bytes_of(copy))
            gpu.put(target, copy)
        elif row > _SLAB_BYTES:
            for number in range(extents[0]):
                at = place + number * row
                self._fill(at, shape[1:], first[1:], extents[1:], target[number], dtype)
        else:
            count = max(1, _SLAB_BYTES // row)
            for begin in range(0, extents[0], count):
                rows = torch.empty([min(count, extents[0] - begin), *shape[1:]], dtype=dtype)
                self._contents.fill(place + begin * row, _bytes_of(rows))
                wanted = rows
                for axis, (skipped, kept) in enumerate(zip(first[1:], extents[1:]), 1):
                    wanted = wanted.narrow(axis, skipped, kept)
                gpu.put(target[begin : begin + count], wanted)

    def _entry(self, key: str) -> dict[str, Any]:
        if key not in self._entries:
            raise perdure.NotFound(f"{self._source} has no {key}")
        return self._entries[key]

    def _tensor_entry(self, key: str) -> tuple[dict[str, Any], torch.dtype]:
        entry = self._entry(key)
        dtype = getattr(torch, str(entry["kind"]), None)
        if not isinstance(dtype, torch.dtype):
            raise perdure.NotFound(f"{self._source}: {key} is no tensor of a type known here")
        if math.prod(entry["shape"]) * dtype.itemsize != entry["size"]:
            raise perdure.Damaged(f"{self._source}: {key} has another size than its shape")
        return entry, dtype


def _has_bytes(tensor: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether its memory is the processor's, and that of row-major elements of `dtype`."""
    is_ours = tensor.device.type == "cpu" and tensor.dtype == dtype
    return is_ours and bool(tensor.is_contiguous()) and not gpu.torch_gpu.has(tensor)


def _bytes_of(tensor: torch.Tensor) -> NDArray[np.uint8]:
    """Of a contiguous tensor on the CPU: its memory."""
    if tensor.numel() == 0:
        return np.empty(0, np.uint8)
    found: NDArray[np.uint8] = tensor.detach().reshape(-1).view(torch.uint8).numpy()
    return found


def _entries_of(index: Mapping[str, Any], room_bytes: int) -> dict[str, dict[str, Any]]:
    """The entries by their keys; raises ValueError and others if they can't be."""
    numbers = [index["room"], index["head"], index.get("number", 0)]
    for entry in index["blocks"]:
        numbers += [entry["offset"], entry["size"], entry["room"], *entry["shape"]]
        within = entry["size"] <= entry["room"] and entry["offset"] + entry["room"] <= room_bytes
        if not within or not all(
            isinstance(text, str) for text in (entry["kind"], entry["key"], entry.get("at", ""))
        ):
            raise ValueError("no entry")
    if not all(type(number) is int and 0 <= number < 2**63 for number in numbers):
        raise ValueError("no number")
    if index["room"] > room_bytes:
        raise ValueError("no room")
    return {entry["key"]: entry for entry in index["blocks"]}


def read_blocks(directory: Path, place: Place | None = None) -> Blocks | None:
    """A checkpoint, by default the newest; None if there is none. Takes no lock."""
    for layout in layouts_in(directory):
        if place is not None and place.layout != layout:
            continue
        folder = folder_of(directory, layout)
        version = newest_version(folder) if place is None else place.version
        if version is not None:
            return Blocks(InPool(folder, version), str(folder))
    return None


def aligned(size_bytes: int) -> int:
    return (size_bytes + _ALIGN - 1) // _ALIGN * _ALIGN


def folder_of(directory: Path, layout: int) -> Path:
    return directory / f"layout-{layout:05d}"


def layouts_in(directory: Path) -> list[int]:
    """Numbers of the pools, the highest first."""
    try:
        names = [entry.name for entry in directory.iterdir()]
    except FileNotFoundError:
        return []
    found = [_NAME.fullmatch(name) for name in names]
    return sorted((int(match[1]) for match in found if match), reverse=True)


def newest_version(folder: Path) -> int | None:
    if not Path(_core.job_record_path(str(folder))).exists():
        return None  # its making was cut short
    try:
        return _core.inspect_pool(str(folder)).version or None  # 0: none was committed
    except _core.Error as error:
        raise perdure.Error(str(error)) from None
