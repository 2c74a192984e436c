# SPDX-License-Identifier: BSD-3-Clause
"""Writes blocks (blocks.py): places in the array of a pool, and the pools of a directory.

Tensors can be staged: copied before it is known which of them are to be kept, and under which keys.
Their places are those of the staging before, if it had tensors of the same names and shapes; in a
new pool, those that only this process has. After them there is room for what else comes to be kept.
"""

from __future__ import annotations

import json
import struct
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import perdure
from perdure import _core
from perdure.torch import gpu
from perdure.torch.blocks import (
    FORMAT,
    LENGTH_BYTES,
    Block,
    Blocks,
    InOpenPool,
    Place,
    aligned,
    folder_of,
    layouts_in,
    newest_version,
    read_blocks,
)

# Tensors that any process may have to keep are staged in the pool up to this size.
_SMALL_BYTES = 64 << 10
_TAIL_BYTES = 256 << 10  # for what is not staged


class _Places:
    """Where blocks are in the array of a pool: entries of its index, after the room of that."""

    def __init__(self, entries: Sequence[Mapping[str, Any]], head: int, room: int):
        self.entries = [dict(entry) for entry in entries]
        self.head, self.room = head, room
        self._end = max((each["offset"] + each["room"] for each in self.entries), default=head)

    @classmethod
    def of(
        cls, blocks: Sequence[Block], more: Mapping[str, Any], at: Sequence[str | None] = ()
    ) -> _Places:
        """New ones; `at`: where those that are staged are in the state. Then more may come."""
        entries = [block.entry() for block in blocks]
        for entry, where in zip(entries, at):
            if where is not None:
                entry["at"] = where
        # Numbers may get longer: of each entry its offset and size, of the rest what callers note.
        text = json.dumps([entries, more])
        head = aligned(LENGTH_BYTES + len(text) + 40 * len(entries) + 4096)
        offset = head = 2 * head if at else head
        for entry in entries:
            entry["offset"] = offset
            offset += int(entry["room"])
        return cls(entries, head, offset + (aligned(offset // 32) + _TAIL_BYTES if at else 0))

    def staged(self) -> dict[str, dict[str, Any]]:
        """Those of the last staging, by where they are in the state."""
        return {entry["at"]: entry for entry in self.entries if "at" in entry}

    def find(self, blocks: Sequence[tuple[Block, str | None]]) -> list[dict[str, Any]] | None:
        """An entry for each block, of which some are staged. None: they need another pool."""
        staged, is_staged = self.staged(), any(at is not None for _, at in blocks)
        of_keys = {each["key"]: each for each in self.entries if not (is_staged and "at" in each)}
        found: list[dict[str, Any]] = []
        taken: set[int] = set()
        end, fresh = self._end, []
        for block, at in blocks:
            entry = staged.get(at) if at is not None else None
            if entry is None or id(entry) in taken or not block.fits(entry):
                entry = of_keys.get(block.key)
            if entry is None or id(entry) in taken or not block.fits(entry):
                entry = block.entry() | {"offset": end}
                if at is not None and at not in staged:
                    entry["at"] = at  # the next staging copies it there
                end += block.room_bytes()
                fresh.append(entry)
            taken.add(id(entry))
            found.append(entry)
        used = sum(int(each["room"]) for each in found)
        if end > self.room or 2 * used < end - self.head:
            return None
        for entry, (block, _) in zip(found, blocks):
            entry["key"], entry["size"] = block.key, block.size_bytes
        self.entries += fresh
        self._end = end
        return found


_NOWHERE = _Places([], 0, 0)


@dataclass(frozen=True)
class Leaf:
    """A tensor that is staged: where it is in the state, and whether no other process has it."""

    at: str
    tensor: torch.Tensor
    is_own: bool


class BlockWriter:
    """Writes checkpoints of one process to a directory. One thread at a time."""

    def __init__(self, directory: Path, options: Mapping[str, Any], keep: int = 0):
        self._directory, self._options = directory, {"keep": keep, "job": "torch", **options}
        self._pool: perdure.Pool | None = None
        self._array: perdure.Array | None = None
        self._layout = 0
        self._begun = False
        self._newest: Place | None = None
        self._places = _NOWHERE  # of the open pool
        self._staged: dict[int, str] = {}  # by their address: where copies are in the state
        self._in_pool: set[str] = set()  # those of them that are in the open pool
        self._was_staged = False  # what the open pool has is what was kept of the last staging
        self._transfers = gpu.Transfers()

    @property
    def is_open(self) -> bool:
        """Whether a pool is open."""
        return self._pool is not None

    def resume(self) -> bool:
        """Opens the newest pool that has a version. False: there is none."""
        for layout in layouts_in(self._directory):
            version = newest_version(folder_of(self._directory, layout))
            if version is None:
                continue
            place = Place(layout, version)
            found = read_blocks(self._directory, place)
            if found is None:
                return False
            index = found.index
            self._open(layout, _Places(index["blocks"], index["head"], index["room"]))
            self._was_staged = bool(self._places.staged())
            self._newest = place
            return True
        return False

    def go_on_from(self, place: Place | None) -> None:
        """Of the processes of one checkpoint: `place` is what the last one that counts refers to.

        It stays as it is. What is newer here was not finished by all, and is of no use.
        """
        self.wait()
        self._staged = {}
        if self._newest != place:
            self.close()
        self.remove_others(place)

    def stage(self, leaves: Sequence[Leaf]) -> list[torch.Tensor]:
        """Copies of the tensors, for the next begin(): in the pool those that this process is taken
        to keep, as it did at the last staging; until then others in ordinary memory, and of a GPU
        there, if it has room."""
        self.wait()
        self.settle()
        rooms = self._places.staged()
        of_state = {leaf.at: leaf.tensor for leaf in leaves}
        is_as_before = self._was_staged and all(
            at in of_state and Block(at, of_state[at]).fits(entry) for at, entry in rooms.items()
        )
        if self._array is None or not is_as_before:
            ours = [leaf for leaf in leaves if leaf.is_own or leaf.tensor.nbytes <= _SMALL_BYTES]
            tensors = [Block(leaf.at, leaf.tensor) for leaf in ours if leaf.tensor.numel()]
            self._close_pool()
            self._make(_Places.of(tensors, {}, [block.key for block in tensors] or [None]))
            rooms = self._places.staged()
        copies = self._copies(leaves, rooms)
        self._in_pool = set(rooms)
        self._staged = {
            copy.data_ptr(): leaf.at for copy, leaf in zip(copies, leaves) if copy.numel()
        }
        return copies

    def settle(self) -> None:
        """Until the copies of stage() have what the tensors had. Another thread's than stage()."""
        self._transfers.wait()

    def begin(self, blocks: Sequence[Block], more: Mapping[str, Any]) -> None:
        """Copies the blocks, except those that are staged in the pool, and begins the commit;
        `more` is noted in the index."""
        self.wait()
        self.settle()
        at = [self._staged_at(block) for block in blocks]
        entries = None
        if self._array is not None:
            entries = self._places.find(list(zip(blocks, at)))
        text = b"" if entries is None else self._index(entries, more)
        if entries is None or LENGTH_BYTES + len(text) > self._places.head:
            self._move(blocks, more, at)
        else:
            self._fill(entries, blocks, text)
        self._was_staged, self._staged = self._was_staged or bool(self._staged), {}
        assert self._pool is not None
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
        assert self._pool is not None
        contents = InOpenPool(self._pool, self._array)
        return Blocks(contents, str(folder_of(self._directory, self._layout)))

    def remove_others(self, needed: Place | None = None) -> None:
        """Removes pools that are neither open nor needed."""
        for layout in layouts_in(self._directory):
            of_use = self.is_open and layout == self._layout
            if of_use or (needed is not None and layout == needed.layout):
                continue
            _remove(folder_of(self._directory, layout))

    def close(self) -> None:
        """Waits, and closes the pool."""
        self._close_pool()
        self._transfers = gpu.Transfers()

    def _close_pool(self) -> None:
        if self._pool is not None:
            pool, self._pool, self._array = self._pool, None, None
            self._places, self._was_staged = _NOWHERE, False
            pool.close()

    def _copies(
        self, leaves: Sequence[Leaf], rooms: Mapping[str, Mapping[str, Any]]
    ) -> list[torch.Tensor]:
        assert self._pool is not None and self._array is not None
        memory = self._array._lent()
        pieces: list[gpu.Piece] = []
        copies: list[torch.Tensor | None] = []
        for leaf in leaves:
            tensor, entry = leaf.tensor.detach(), rooms.get(leaf.at)
            offset = None if entry is None else int(entry["offset"])
            on_gpu = tensor.numel() != 0 and gpu.torch_gpu.has(tensor)
            if on_gpu:
                pieces.append(gpu.Piece(tensor, offset))
            if offset is not None and tensor.numel() != 0:
                copy = _tensor_on(memory, offset, tensor)
                copies.append(copy if on_gpu else copy.copy_(tensor))
            elif on_gpu:
                copies.append(None)
            else:
                copies.append(torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor))
        made = self._transfers.begin(self._pool, self._array, pieces)
        elsewhere = iter([copy for copy in made if copy is not None])
        return [next(elsewhere) if copy is None else copy for copy in copies]

    def _staged_at(self, block: Block) -> str | None:
        tensor = block.contents
        if not isinstance(tensor, torch.Tensor) or tensor.numel() == 0 or not self._staged:
            return None
        return self._staged.get(tensor.data_ptr()) if tensor.is_contiguous() else None

    def _move(
        self, blocks: Sequence[Block], more: Mapping[str, Any], at: Sequence[str | None]
    ) -> None:
        """To a new pool, with what is staged in the old one; if that fails, all is as it was."""
        old = self._pool, self._array, self._layout, self._places
        self._pool = self._array = None
        self._in_pool, self._was_staged = set(), False
        try:
            self._make(_Places.of(blocks, more, at if self._staged else ()))
            entries = self._places.find(list(zip(blocks, at)))
            assert entries is not None
            self._fill(entries, blocks, self._index(entries, more))
        except BaseException:
            self._close_pool()
            self._pool, self._array, self._layout, self._places = old
            raise
        if old[0] is not None:
            old[0].close()

    def _index(self, entries: Sequence[Mapping[str, Any]], more: Mapping[str, Any]) -> bytes:
        places = {"room": self._places.room, "head": self._places.head, "blocks": list(entries)}
        return json.dumps({"format": FORMAT, **more, **places}).encode()

    def _fill(
        self, entries: Sequence[Mapping[str, Any]], blocks: Sequence[Block], text: bytes
    ) -> None:
        assert self._pool is not None and self._array is not None
        memory = self._array.working
        pieces: list[gpu.Piece] = []
        copies: list[gpu.Piece] = []  # of them, in a snapshot
        for entry, block in zip(entries, blocks):
            at = self._staged_at(block)
            if at is not None and at in self._in_pool and entry.get("at") == at:
                continue
            offset, contents = int(entry["offset"]), block.contents
            if not isinstance(contents, torch.Tensor):
                memory[offset : offset + len(contents)] = np.frombuffer(contents, np.uint8)
            elif gpu.torch_gpu.has(contents) and contents.numel() != 0:
                (pieces if at is None else copies).append(gpu.Piece(contents, offset))
            elif contents.numel() != 0:
                _tensor_on(memory, offset, contents).copy_(contents.detach())
        memory[:LENGTH_BYTES] = np.frombuffer(struct.pack("<Q", len(text)), np.uint8)
        memory[LENGTH_BYTES : LENGTH_BYTES + len(text)] = np.frombuffer(text, np.uint8)
        self._transfers.begin_copies(self._pool, self._array, copies)
        self._transfers.begin(self._pool, self._array, pieces, beside=not self._staged)

    def _make(self, places: _Places) -> None:
        """A pool with room for these, beside the others that are there."""
        newest = next(iter(layouts_in(self._directory)), 0)
        self._open(newest + 1, places)

    def _open(self, layout: int, places: _Places) -> None:
        folder = folder_of(self._directory, layout)
        folder.parent.mkdir(parents=True, exist_ok=True)
        pool = perdure.open(folder, **self._options)
        try:
            array = pool.array("blocks", places.room, np.uint8, "twin", checksums=True)
            pool.restart()
        except BaseException:
            pool.close()
            raise
        self._pool, self._array = pool, array
        self._layout, self._places = layout, places


def _tensor_on(memory: Any, offset: int, like: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor of this shape and dtype, on that memory."""
    flat = torch.frombuffer(memory, dtype=like.dtype, count=like.numel(), offset=offset)
    return flat.view(like.shape)


def remove_blocks(directory: Path) -> None:
    """All pools of a process that writes no more; if one can't go, a warning says so."""
    for layout in layouts_in(directory):
        _remove(folder_of(directory, layout))
    with suppress(OSError):  # something else is there, or it was removed already
        directory.rmdir()


def _remove(folder: Path) -> None:
    """A pool of no use; if it can't go, a warning says so."""
    try:
        if any(folder.iterdir()):
            _core.remove_pool(str(folder))
        else:
            folder.rmdir()
    except (_core.Error, OSError) as error:
        warnings.warn(f"a checkpoint of no use stays: {error}", stacklevel=3)
