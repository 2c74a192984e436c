# SPDX-License-Identifier: BSD-3-Clause
"""The state dict of one process in a pool."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from perdure.torch.block_writer import BlockWriter
from perdure.torch.blocks import Block
from perdure.torch.tensors import Where, decode_state, encode_state

_TREE = "tree"


class Checkpoint:
    """The newest state dict of one process, in a directory.

        kept = perdure.torch.Checkpoint("/mnt/pmem/run")
        state = kept.load()                      # None the first time
        if state is not None:
            model.load_state_dict(state["model"])
        for epoch in range(state["epoch"] + 1 if state else 0, 90):
            train(model)
            kept.save({"model": model.state_dict(), "epoch": epoch})

    A state holds tensors, arrays, plain values and the standard containers (docs/torch.md lists
    them), and comes back equal: types, shared storages, strides. Nothing is pickled. A crash at any
    time leaves the newest state whose save() or wait() has returned, or the one that was under way.
    Options are those of perdure.open().

    One thread at a time. With several processes, or for sharded tensors, use PoolWriter. Raises
    Busy if another process has the directory, and what perdure.open() raises.
    """

    def __init__(self, path: str | os.PathLike[str], **options: Any):
        self._path = Path(path)
        self._writer = BlockWriter(self._path, options)
        self._number = 0
        self._resumed = False

    def save(self, state: Any, *, wait: bool = True) -> int:
        """Keeps `state`, and returns its number: 1, 2, …

        The tensors are copied before it returns, and may be changed then. Of those on a GPU what
        its current stream leaves is kept, and that stream may change them. `wait` False: it becomes
        durable in the background; wait(), or the next call, waits for that. Raises TypeError for
        what can't be kept, NoSpace; what was kept before is still there then.
        """
        text, contents = encode_state(state)
        blocks = [Block(_TREE, text)]
        blocks += [Block(str(number), of_one) for number, of_one in enumerate(contents)]
        self._resume()
        self._writer.begin(blocks, {"number": self._number + 1})
        self._number += 1
        if wait:
            self.wait()
        return self._number

    def wait(self) -> int:
        """Until what was saved last is durable; its number, or 0 if there is none."""
        if self._writer.wait() is not None:
            self._writer.remove_others()
        return self._number

    def load(self, device: torch.device | str | None = None) -> Any:
        """The newest state, or None. Its tensors are copies on the CPU, or on `device`, to which
        they come without another copy in the host's memory: all of them, so that states of random
        numbers go back to the CPU before they are set.

        Raises Damaged, NewerFormat; NoSpace if a GPU has no room.
        """
        where = None if device is None else torch.device(device)
        return self._load_to(lambda _: where)

    def _load_to(self, where: Where) -> Any:
        """The newest state, with each tensor where that says, or None."""
        self._resume()
        found = self._writer.newest()
        if found is None:
            return None
        return decode_state(found.data(_TREE), found, str(self._path), where)

    @property
    def number(self) -> int:
        """Of the state that was saved last, also by an earlier run; 0: there is none."""
        self._resume()
        return self._number

    def close(self) -> None:
        """Waits, and lets other processes have the directory. save() and load() open it again."""
        self._writer.close()
        self._resumed = False

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _resume(self) -> None:
        if self._resumed:
            return
        self._writer.resume()
        found = self._writer.newest()
        self._number = 0 if found is None else found.index.get("number", 0)
        self._resumed = True
