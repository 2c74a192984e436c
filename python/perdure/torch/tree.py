# SPDX-License-Identifier: BSD-3-Clause
"""A state dict as text and tensors: nested dicts, lists and tuples of tensors and plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from perdure.api.errors import Damaged

_PLAIN = (type(None), bool, int, float, str)


def encode(value: Any, keep: Callable[[torch.Tensor], int], where: str = "state") -> Any:
    """What JSON can hold of `value`; each tensor is given to `keep`, whose number stands for it.

    Raises TypeError for what is none of these, with its place; nothing is pickled.
    """
    if isinstance(value, torch.Tensor):
        return {"tensor": keep(_checked(value, where))}
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        pairs = []
        for key, item in value.items():
            if not isinstance(key, (str, int)):
                raise TypeError(f"{where} has the key {key!r}; keys are str or int")
            pairs.append([key, encode(item, keep, f"{where}[{key!r}]")])
        return {"dict": pairs}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [encode(item, keep, f"{where}[{i}]") for i, item in enumerate(value)]}
    if isinstance(value, np.generic):
        return encode(value.item(), keep, where)
    raise TypeError(
        f"{where} is {type(value).__name__}; a state dict holds tensors, numbers, str, bool, None,"
        " and dicts, lists and tuples of them"
    )


def decode(value: Any, tensor: Callable[[int], torch.Tensor]) -> Any:
    """What encode() was given; raises Damaged."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, dict) and len(value) == 1:
        [(kind, contents)] = value.items()
        if kind == "tensor" and isinstance(contents, int):
            return tensor(contents)
        if kind == "dict":
            return {key: decode(item, tensor) for key, item in contents}
        if kind == "list":
            return [decode(item, tensor) for item in contents]
        if kind == "tuple":
            return tuple(decode(item, tensor) for item in contents)
    raise Damaged("the text of a checkpoint is not what perdure.torch writes")


def _checked(tensor: torch.Tensor, where: str) -> torch.Tensor:
    if hasattr(tensor, "to_local"):
        raise TypeError(
            f"{where} is distributed over processes; use perdure.torch.PoolWriter with"
            " torch.distributed.checkpoint"
        )
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise TypeError(f"{where} is sparse or quantized; keep what it is made of")
    if tensor.device.type == "meta":
        raise TypeError(f"{where} is on device meta and has no contents")
    return tensor
