# SPDX-License-Identifier: BSD-3-Clause
"""What arrays and scalars of a pool mean: by the types that C knows, or Python's own.

A pool may come from elsewhere: a type that can't be is as if there were none.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perdure.screen import one_line

if TYPE_CHECKING:
    import numpy as np

    from perdure import _core

_OF_PYTHON = "perdure.python"
_STATE_PREFIX = "perdure.state."
_FORMATS = {
    "int32": "i", "int64": "q", "uint32": "I", "uint64": "Q", "float32": "f", "float64": "d",
    "complex128": "dd", "bool": "?",
}  # fmt: skip
_TEXT_MAX = 60
# What reading a type that nobody wrote may raise.
_UNFIT = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, SyntaxError,
    TypeError, ValueError, struct.error,
)  # fmt: skip


@dataclass(frozen=True)
class Typed:
    """A value with the name of its type; "": none is known, and the value is None."""

    type: str
    value: Any


def kinds_of(catalogue: _core.Catalogue | None) -> dict[str, str]:
    """What Python noted of its names."""
    for scalar in catalogue.scalars if catalogue else ():
        if scalar.name == _OF_PYTHON:
            from perdure.api.kinds import kinds_of_bytes

            try:
                kinds = kinds_of_bytes(scalar.bytes)
            except _UNFIT:
                return {}
            return {name: kind for name, kind in kinds.items() if isinstance(kind, str)}
    return {}


def scalar_value(scalar: _core.ScalarEntry, kinds: dict[str, str]) -> Typed:
    """By Python's type if there is one, or by that of perdure_scalar_typed()."""
    stored = scalar.bytes
    if scalar.name in kinds:
        from perdure.api.scalars import stored_value

        try:
            return Typed(kinds[scalar.name], stored_value(kinds[scalar.name], stored))
        except _UNFIT:
            return Typed("", None)
    if scalar.type == "text":
        return Typed("text", stored.split(b"\0")[0].decode(errors="replace"))
    if scalar.type not in _FORMATS:
        return Typed("", None)
    each = struct.iter_unpack("<" + _FORMATS[scalar.type], stored)
    values = [complex(*item) if len(item) == 2 else item[0] for item in each]
    return Typed(scalar.type, values[0] if len(values) == 1 else values)


def scalar_text(scalar: _core.ScalarEntry, kinds: dict[str, str]) -> str:
    """ "float64 scalar, 0.6"; where no type is known, what it would be as integer and as float."""
    if scalar.name == _OF_PYTHON:
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


def dtype_of(entry: _core.ArrayEntry, kinds: dict[str, str]) -> np.dtype | None:
    """Python's, of an array that is stored as bytes; None: it has none."""
    if not kinds.get(entry.name, "").startswith("dtype "):
        return None
    from perdure.api.kinds import dtype_of_kind

    try:
        found = dtype_of_kind(kinds[entry.name])
    except _UNFIT:
        return None
    if found is None or found.hasobject or entry.type != "byte":
        return None
    return found if list(entry.extents)[-1:] == [found.itemsize] else None


def array_text(entry: _core.ArrayEntry, kinds: dict[str, str]) -> str:
    """ "float64[100, 20] twin", with Python's dtype where there is one."""
    if entry.name.startswith(_STATE_PREFIX):
        return f"state, {entry.mode}"
    dtype = dtype_of(entry, kinds)
    if dtype is None:
        return f"{entry.type}{list(entry.extents)} {entry.mode}"
    return f"{one_line(str(dtype))}{list(entry.extents)[:-1]} {entry.mode}"


def shown_name(name: str) -> str:
    """Of a state without what it is stored under."""
    return name.removeprefix(_STATE_PREFIX)


def state_name(name: str) -> str:
    """The array of a state."""
    return _STATE_PREFIX + name


def _shown(found: Typed) -> str:
    value = found.value
    if found.type == "float32" and isinstance(value, float):
        return f"{value:.9g}"
    text = value if isinstance(value, str) else str(value)
    return one_line(text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + " …")


def _float_text(stored: bytes) -> str:
    (value,) = struct.unpack("<f" if len(stored) == 4 else "<d", stored)
    return f"{value:.9g}" if len(stored) == 4 else repr(value)
