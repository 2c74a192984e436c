# SPDX-License-Identifier: BSD-3-Clause
"""A stored state as JSON that people can read. Nothing is written twice, so it ends."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perdure.api.errors import Damaged
from perdure.api.state import tree
from perdure.api.state.stored import KINDS, parts

_ELEMENTS_MAX = 1000
_LEAVES = ("int", "float", "complex", "bytes", "numpy", "numpy.dtype", "ndarray")
_SEQUENCES = ("list", "tuple", "set", "frozenset")
_MAPPINGS = ("dict", "OrderedDict", "Counter")


def state_json(raw: NDArray[np.uint8], source: str) -> str:
    """Of the bytes of a state. Raises Damaged."""
    text, blocks = parts(raw, source)
    try:
        found = _whole(json.loads(text), tree.Decoder(KINDS, blocks.__getitem__))
        return json.dumps(found, indent=2)
    except tree.UNFIT:
        raise Damaged(f"{source}: its text is not what perdure writes; it was damaged") from None


def _whole(text: Any, decoder: tree.Decoder) -> Any:
    """C++'s texts and engines are bytes."""
    found = decoder.value(text) if isinstance(text, dict) and "bytes" in text else None
    if isinstance(found, bytes):
        with suppress(UnicodeDecodeError):
            return found.decode()
    return _value(text, decoder)


def plain_json(value: Any) -> Any:
    """A value as JSON has it: what it lacks as text."""
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, int) and value.bit_length() > 1000:
        return hex(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [plain_json(item) for item in value]
    return value if isinstance(value, (int, float, str, type(None))) else str(value)


def _value(text: Any, decoder: tree.Decoder) -> Any:
    if isinstance(text, list):
        return [_value(item, decoder) for item in text]
    if not isinstance(text, dict):
        return text
    [(name, contents)] = text.items()
    if name in _LEAVES:
        return _leaf(decoder.value(text))
    if name in _SEQUENCES:
        return [_value(item, decoder) for item in contents]
    if name == "deque":
        return [_value(item, decoder) for item in contents[1]]
    if name in _MAPPINGS:
        return _pairs(contents[0], decoder)
    if name == "defaultdict":
        return _pairs(contents[1], decoder)
    return {name: _value(contents, decoder)}


def _pairs(pairs: Any, decoder: tree.Decoder) -> Any:
    read = [(_value(key, decoder), _value(item, decoder)) for key, item in pairs]
    if all(isinstance(key, str) for key, _ in read):
        return dict(read)
    return {"pairs": [list(pair) for pair in read]}


def _leaf(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.size > _ELEMENTS_MAX:
            return f"{value.dtype}{list(value.shape)}"
        return plain_json(value.tolist())
    return plain_json(value.item() if isinstance(value, np.generic) else value)
