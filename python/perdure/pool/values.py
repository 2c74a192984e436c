# SPDX-License-Identifier: BSD-3-Clause
"""How arrays and scalars of a pool are shown, by what they mean (perdure.api.meanings)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from perdure.api.meanings import OF_PYTHON, Typed, dtype_of, extents_of, scalar_value
from perdure.pool.names import is_state
from perdure.screen import one_line

if TYPE_CHECKING:
    from perdure import _core

_TEXT_MAX = 60


def scalar_text(scalar: _core.ScalarEntry, kinds: dict[str, str]) -> str:
    """ "float64 scalar, 0.6"; where no type is known, what it would be as integer and as float."""
    if scalar.name == OF_PYTHON:
        return "types of Python's names"
    found = scalar_value(scalar, kinds)
    if found.type:
        return f"{found.type} scalar, {_shown(found)}"
    if len(scalar.bytes) in (4, 8):
        number = int.from_bytes(scalar.bytes, "little", signed=True)
        return f"scalar, {number} as an integer, {_float_text(scalar.bytes)} as a float"
    return "scalar"


def scalar_json(scalar: _core.ScalarEntry, kinds: dict[str, str]) -> dict:
    """Name, bytes in hexadecimal digits, type or null, and the value if there is a type."""
    found = scalar_value(scalar, kinds)
    made = {"name": scalar.name, "bytes": scalar.bytes.hex(), "type": found.type or None}
    if found.type:
        from perdure.api.state.readable import plain_json

        made["value"] = plain_json(found.value)
    return made


def array_text(entry: _core.ArrayEntry, kinds: dict[str, str]) -> str:
    """ "float64[100, 20] twin", with Python's dtype where there is one."""
    if is_state(entry.name):
        return f"state, {entry.mode}"
    dtype = dtype_of(entry, kinds)
    kind = entry.type if dtype is None else one_line(str(dtype))
    return f"{kind}{extents_of(entry, kinds, dtype)} {entry.mode}"


def _shown(found: Typed) -> str:
    value = found.value
    if found.type == "float32" and isinstance(value, float):
        return f"{value:.9g}"
    text = value if isinstance(value, str) else str(value)
    return one_line(text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + " …")


def _float_text(stored: bytes) -> str:
    (value,) = struct.unpack("<f" if len(stored) == 4 else "<d", stored)
    return f"{value:.9g}" if len(stored) == 4 else repr(value)
