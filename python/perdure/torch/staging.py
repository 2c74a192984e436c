# SPDX-License-Identifier: BSD-3-Clause
"""Staging: what async_save() of torch.distributed.checkpoint does before it returns.

The tensors of a state are copied, and all else in it, so that the program can go on; a thread of
torch's saves the copies. Of one writer there is one such save at a time: torch would let two go on
at once, whose messages between processes could be taken for each other's.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist

from perdure.api.errors import Busy
from perdure.torch import gpu
from perdure.torch.block_writer import Leaf

try:
    from torch.distributed.tensor import DTensor
except ImportError:  # before torch 2.5
    from torch.distributed._tensor import DTensor

_BEGINS_S = 60.0


def leaves_of(state: Mapping[str, Any]) -> list[Leaf]:
    """The tensors of a state, of a DTensor this process's part, in their order. Raises TypeError
    for kinds that can't be staged."""
    alone = not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1
    return [
        Leaf(at, local(tensor), alone or _is_divided(tensor))
        for at, tensor in _tensors(state, "state")
    ]


def with_leaves(state: Mapping[str, Any], copies: Sequence[torch.Tensor]) -> dict[str, Any]:
    """The state, with the copies in place of its tensors, and copies of all else."""
    left = iter(copies)
    return {key: _replaced(value, left) for key, value in state.items()}


class SavesUnderWay:
    """The asynchronous save of a writer, from stage() until torch's thread of it has ended."""

    def __init__(self) -> None:
        self._stager: threading.Thread | None = None  # that called stage(); None: nothing is staged
        self._saver: threading.Thread | None = None
        self._entered = threading.Event()

    @property
    def is_staged(self) -> bool:
        """Whether the caller's thread saves what was staged."""
        return self._saver is threading.current_thread()

    def begin(self, state: dict[str, Any]) -> dict[str, Any]:
        """What was staged. Where torch drops it unsaved, nobody waits for that."""
        staged = _Staged(state)
        self._stager, self._saver = threading.current_thread(), None
        self._entered = threading.Event()
        weakref.finalize(staged, self._entered.set)
        return staged

    def enter(self) -> None:
        """A save begins, or goes on: that of the last staging, if another thread than that one's
        asks; else one that has to wait for it."""
        if self._stager is None or self.is_staged:
            return
        if self._saver is None and threading.current_thread() is not self._stager:
            self._saver = threading.current_thread()
            self._entered.set()
        else:
            self.wait()

    def wait(self) -> None:
        """Until the asynchronous save is over. Raises Busy if it does not begin."""
        if self._stager is None:
            return
        begun = self._entered.wait(_BEGINS_S)
        saver, self._stager, self._saver = self._saver, None, None
        if not begun:
            raise Busy("the asynchronous save before did not begin; its future may say why")
        if saver is not None and saver is not threading.current_thread():
            saver.join()


class _Staged(dict[str, Any]):
    """One that can be referred to weakly."""


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The part that this process has."""
    found = tensor.to_local() if isinstance(tensor, DTensor) else tensor
    waited = found.wait() if hasattr(found, "wait") else found  # for what is still gathered
    own: torch.Tensor = waited.detach()
    return own


def _is_divided(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, DTensor) and not any(
        place.is_replicate() or place.is_partial() for place in tensor.placements
    )


def _tensors(value: Any, at: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        is_plain = type(value) in (torch.Tensor, torch.nn.Parameter)
        if not is_plain and not isinstance(value, DTensor):
            raise TypeError(
                f"{at} is a {type(value).__name__}, which PoolWriter can't stage: give async_save"
                " a stager, as async_stager=DefaultStager(), or use save()"
            )
        if value.layout != torch.strided or value.is_quantized or value.device.type == "meta":
            raise TypeError(f"{at} is sparse, quantized or on device meta, and can't be staged")
        yield at, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors(item, f"{at}[{key!r}]")
    elif type(value) in (list, tuple):
        for number, item in enumerate(value):
            yield from _tensors(item, f"{at}[{number}]")


def _replaced(value: Any, left: Iterator[torch.Tensor]) -> Any:
    """In the order of _tensors()."""
    if isinstance(value, torch.Tensor):
        return _like(value, next(left))
    if isinstance(value, Mapping):
        return {key: _replaced(item, left) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(item, left) for item in value)
    return _copied(value)


def _copied(value: Any) -> Any:
    """Also of an object of the program's, whose tensors the thread that saves reads by a stream of
    its own."""
    made: dict[int, Any] = {}
    found = copy.deepcopy(value, made)
    for each in made.values():
        if isinstance(each, torch.Tensor) and each.numel() != 0 and gpu.torch_gpu.has(each):
            gpu.wait_for(each.device)
    return found


def _like(tensor: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """`own` as the tensor is: of a DTensor as the part of this process. What it has may not have
    arrived yet, so that it stays where it is, which from_local() would not have of it."""
    if isinstance(tensor, DTensor):
        names, of_whole = tensor.__tensor_flatten__()
        parts = {name: getattr(tensor, name) for name in names} | {"_local_tensor": own}
        shape, stride = tensor.shape, tensor.stride()
        own = DTensor.__tensor_unflatten__(parts, of_whole, shape, stride)
    return own.requires_grad_(tensor.requires_grad)
