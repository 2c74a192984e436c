# SPDX-License-Identifier: BSD-3-Clause
"""Tensors, parameters, dtypes, devices and sizes of torch in a state.

A block is a storage, from the first byte that a tensor of the state has to the last. Tensors that
share a storage refer to one block, and share a storage again when they come back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from perdure.api.state import tree
from perdure.api.state.stored import KINDS
from perdure.api.state.tree import Decoder, Encoder, Kind, whole, wholes
from perdure.torch.blocks import Blocks

_ALIGN = 64  # a multiple of every element's size, so that first bytes stay whole elements
_BYTES_MAX = 2**63

Where = Callable[[Sequence[Any]], torch.device | None]
"""The device of the tensor at a place of a state, by the keys that lead there; None: the CPU."""


def encode_state(state: Any) -> tuple[bytes, list[Any]]:
    """Text and blocks: tensors of bytes, arrays of bytes, bytes. Raises TypeError for what can't be
    kept, with its place."""
    storages = _StoredStorages()
    encoder = Encoder(tree.by_type((*KINDS, *_kinds(storages, None))))
    found = encoder.value(state, "state")
    storages.finish(encoder)
    return tree.dumps(found), encoder.blocks


def decode_state(
    text: bytes, found: Blocks, source: str, where: Where = lambda _: None
) -> Any:
    """What encode_state() was given; tensors are where that says. Raises Damaged, NotFound,
    NoSpace."""

    def block(number: int) -> NDArray[np.uint8]:
        return found.raw(str(number))

    kinds = _kinds(None, _ReadStorages(found, where))
    return Decoder((*KINDS, *kinds), block).state(text, source)


@dataclass
class _Stored:
    """A storage, of which bytes [begin, end) are kept."""

    block: int
    of: torch.Tensor
    begin: int
    end: int
    texts: list[dict[str, Any]] = field(default_factory=list)


class _StoredStorages:
    def __init__(self) -> None:
        self._stored: dict[tuple[Any, ...], _Stored] = {}

    def encode(self, encoder: Encoder, given: torch.Tensor, where: str) -> dict[str, Any]:
        """The text of a tensor."""
        tensor = _checked(given, where)
        text: dict[str, Any] = {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "strides": list(tensor.stride()),
            "grad": given.requires_grad,
        }
        if tensor.numel() != 0:
            self._add(encoder, tensor, text)
        attributes = encoder.attributes(given, where)
        if attributes:
            text["attributes"] = attributes
        return text

    def finish(self, encoder: Encoder) -> None:
        """When all tensors are known: their storages become blocks."""
        for stored in self._stored.values():
            begin = stored.begin // _ALIGN * _ALIGN
            storage = stored.of.untyped_storage()
            bare = torch.empty(0, dtype=torch.uint8, device=stored.of.device)
            bare.set_(storage, begin, (stored.end - begin,), (1,))
            encoder.blocks[stored.block] = bare
            for text in stored.texts:
                text["first"] -= begin

    def _add(self, encoder: Encoder, tensor: torch.Tensor, text: dict[str, Any]) -> None:
        storage = tensor.untyped_storage()
        size = tensor.element_size()
        begin = tensor.storage_offset() * size
        reach = sum((count - 1) * step for count, step in zip(tensor.shape, tensor.stride()))
        end = begin + (reach + 1) * size
        key = (tensor.device, storage.data_ptr(), storage.nbytes())
        stored = self._stored.get(key)
        if stored is None:
            stored = _Stored(encoder.add_block(None), tensor, begin, end)
            self._stored[key] = stored
        stored.begin, stored.end = min(stored.begin, begin), max(stored.end, end)
        stored.texts.append(text)
        text |= {"storage": stored.block, "first": begin}


class _ReadStorages:
    def __init__(self, found: Blocks, where: Where):
        self._found, self._where = found, where
        self._read: dict[tuple[int, torch.device | None], torch.UntypedStorage] = {}

    def decode(self, decoder: Decoder, text: Any) -> torch.Tensor:
        """The tensor of a text; raises ValueError and others."""
        shape, strides = wholes(text["shape"]), wholes(text["strides"])
        if len(shape) != len(strides):
            raise ValueError("no strides")
        dtype = _dtype(text["dtype"])
        if str(dtype).startswith("torch.q"):
            raise ValueError("quantized")
        device = self._where(decoder.place)
        made = torch.empty(0, dtype=dtype, device=device)
        numel = 1
        for extent in shape:
            numel *= extent
        if numel * made.element_size() >= _BYTES_MAX or max(strides, default=0) >= _BYTES_MAX:
            raise ValueError("too large")
        if numel == 0:
            made = made.as_strided(shape, strides)
        else:
            self._place(made, text, shape, strides, device)
        return made.requires_grad_() if text["grad"] is True else made

    def _place(
        self, made: torch.Tensor, text: Any, shape: list[int], strides: list[int],
        device: torch.device | None,
    ) -> None:  # fmt: skip
        storage = self._storage(whole(text["storage"]), device)
        first, size = whole(text["first"]), made.element_size()
        reach = sum((count - 1) * step for count, step in zip(shape, strides))
        if first % size != 0 or first + (reach + 1) * size > storage.nbytes():
            raise ValueError("it would reach beyond its storage")
        made.set_(storage, first // size, shape, strides)

    def _storage(self, number: int, device: torch.device | None) -> torch.UntypedStorage:
        key = number, device
        if key not in self._read:
            self._read[key] = self._found.tensor(str(number), device).untyped_storage()
        return self._read[key]


def _kinds(stored: _StoredStorages | None, read: _ReadStorages | None) -> tuple[Kind, ...]:
    """For writing or for reading."""

    def encode(encoder: Encoder, tensor: torch.Tensor, where: str) -> Any:
        assert stored is not None
        return stored.encode(encoder, tensor, where)

    def decode(decoder: Decoder, text: Any) -> torch.Tensor:
        assert read is not None
        made = read.decode(decoder, text)
        decoder.set_attributes(made, text.get("attributes", []))
        return made

    def decode_parameter(decoder: Decoder, text: Any) -> torch.Tensor:
        assert read is not None
        made = torch.nn.Parameter(read.decode(decoder, text).detach(), text["grad"] is True)
        decoder.set_attributes(made, text.get("attributes", []))
        return made

    return (
        Kind("tensor", (torch.Tensor,), encode, decode, True),
        Kind("Parameter", (torch.nn.Parameter,), encode, decode_parameter, True),
        Kind("dtype", (torch.dtype,), lambda _, value, where: str(value)[6:], _decode_dtype),
        Kind("device", (torch.device,), lambda _, value, where: str(value), _decode_device),
        Kind(
            "Size",
            (torch.Size,),
            lambda _, value, where: list(value),
            lambda _, text: torch.Size(wholes(text)),
        ),
    )


def _dtype(name: Any) -> torch.dtype:
    found = getattr(torch, name, None) if isinstance(name, str) else None
    if not isinstance(found, torch.dtype):
        raise ValueError("no dtype")
    return found


def _decode_dtype(decoder: Decoder, text: Any) -> torch.dtype:
    return _dtype(text)


def _decode_device(decoder: Decoder, text: Any) -> torch.device:
    if not isinstance(text, str):
        raise ValueError("no device")
    return torch.device(text)


def _checked(tensor: torch.Tensor, where: str) -> torch.Tensor:
    """The tensor, with what is done lazily done. Raises TypeError for one that can't be kept."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
        raise TypeError(f"{where} is sparse, nested or quantized; keep what it is made of")
    if tensor.device.type == "meta":
        raise TypeError(f"{where} is on device meta and has no contents")
    if any(getattr(tensor, "names", ())):
        raise TypeError(f"{where} has named dimensions; keep rename(None) of it, and the names")
    resolved = tensor.detach().resolve_conj().resolve_neg()
    try:
        resolved.untyped_storage().data_ptr()
    except RuntimeError:  # of a transform of torch.func, for example
        raise TypeError(f"{where} has no storage; keep what it is made of") from None
    return resolved
