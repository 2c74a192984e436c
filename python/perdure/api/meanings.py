# SPDX-License-Identifier: BSD-3-Clause
"""What stored scalars and arrays mean: by the types that C knows, or Python's own.

A pool may come from elsewhere: a type that can't be is as if there were none.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from perdure import _core

OF_PYTHON = "perdure.python"
NUMPY_TYPES = {
    "byte": "|u1", "int32": "<i4", "int64": "<i8", "float32": "<f4", "float64": "<f8",
    "complex128": "<c16", "uint32": "<u4", "uint64": "<u8", "bool": "|b1", "int8": "|i1",
    "int16": "<i2", "uint16": "<u2", "complex64": "<c8",
}  # fmt: skip
"""The elements of arrays, as perdure.h has them."""
_FORMATS = {
    "int32": "i", "int64": "q", "uint32": "I", "uint64": "Q", "float32": "f", "float64": "d",
    "complex128": "dd", "bool": "?", "int8": "b", "int16": "h", "uint16": "H", "complex64": "ff",
}  # fmt: skip
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
        if scalar.name == OF_PYTHON:
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
        return _text(stored)
    if scalar.type not in _FORMATS:
        return Typed("", None)
    each = struct.iter_unpack("<" + _FORMATS[scalar.type], stored)
    values = [complex(*item) if len(item) == 2 else item[0] for item in each]
    return Typed(scalar.type, values[0] if len(values) == 1 else values)


def _text(stored: bytes) -> Typed:
    """What a program has in chars may be no text: nothing of it is left out then."""
    text, _, rest = stored.partition(b"\0")
    if rest.strip(b"\0"):
        return Typed("", None)
    try:
        return Typed("text", text.decode())
    except UnicodeDecodeError:
        return Typed("", None)


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


def extents_of(
    entry: _core.ArrayEntry, kinds: dict[str, str], own: np.dtype | None
) -> list[int]:
    """As Python has them; `own`: dtype_of()."""
    extents = list(entry.extents)
    if own is not None:
        return extents[:-1]
    if extents != [1] or not kinds:
        return extents
    from perdure.api.kinds import has_no_extents

    return [] if has_no_extents(kinds, entry.name) else extents
