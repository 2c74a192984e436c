# SPDX-License-Identifier: BSD-3-Clause
"""Arrays and scalars of numpy, of any dtype without Python objects.

The bytes of an array are a block, in the order of the array, row-major or column-major; those of a
scalar are in the text. Views that are neither come back row-major.
"""

from __future__ import annotations

import base64
import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perdure.api.state.tree import Decoder, Encoder, Kind, listed, whole, wholes

_BARE = re.compile(
    r"[<>|]("
    r"b1|[iu][1248]|f(2|4|8|12|16)|c(8|16|24|32)|[SUV][0-9]{1,10}|[mM]8(\[[0-9A-Za-z/]{1,30}\])?"
    r")"
)
_DTYPE_DEPTH_MAX = 16
_SCALARS = tuple(sorted(set(np.sctypeDict.values()) - {np.object_}, key=lambda kind: kind.__name__))


def _encode_array(encoder: Encoder, value: NDArray[Any], where: str) -> list[Any]:
    dtype = encode_dtype(value.dtype, where)
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    return [dtype, list(value.shape), order, encoder.add_block(_bytes_of(value, order))]


def _bytes_of(value: NDArray[Any], order: Any) -> NDArray[np.uint8]:
    if value.dtype.itemsize == 0 or value.size == 0:
        return np.empty(0, np.uint8)
    return np.ascontiguousarray(value.reshape(-1, order=order)).view(np.uint8)


def _decode_array(decoder: Decoder, contents: Any) -> NDArray[Any]:
    dtype_text, extents, order, number = listed(contents)
    dtype, shape = decode_dtype(dtype_text), tuple(wholes(extents))
    if order not in ("C", "F") or len(shape) > 64:
        raise ValueError("no array")
    stored = decoder.block(whole(number))
    if stored.size != math.prod(shape) * dtype.itemsize:
        raise ValueError("no array of this size")
    made = np.empty(shape, dtype, order)
    if stored.size != 0:
        made.reshape(-1, order=order).view(np.uint8)[:] = stored
    return made


def _encode_scalar(encoder: Encoder, value: np.generic, where: str) -> list[Any]:
    bare = np.asarray(value)
    if isinstance(value, (str, bytes)) and bare[()] != value:
        raise TypeError(f"{where} ends with NUL, which numpy's texts lose; keep str or bytes of it")
    stored = base64.b64encode(bare.tobytes()).decode("ascii")
    return [encode_dtype(bare.dtype, where), stored]


def _decode_scalar(decoder: Decoder, contents: Any) -> Any:
    dtype_text, stored = listed(contents)
    dtype, raw = decode_dtype(dtype_text), base64.b64decode(stored, validate=True)
    if len(raw) != dtype.itemsize:
        raise ValueError("no scalar of this size")
    made = np.zeros((), dtype)
    if raw:
        made.reshape(-1).view(np.uint8)[:] = np.frombuffer(raw, np.uint8)
    return made[()]


def encode_dtype(dtype: np.dtype[Any], where: str) -> Any:
    kept: np.dtype[Any] | None = None
    text: Any = None
    try:
        text = _describe(dtype)
        kept = decode_dtype(text)
    except (KeyError, TypeError, ValueError):
        pass  # no such text can be written
    if kept is None or kept != dtype or kept.isalignedstruct != dtype.isalignedstruct:
        raise TypeError(
            f"{where} is of dtype {dtype}, which could not come back as it is; use numbers, dates,"
            " texts of a fixed length, and structures of them"
        )
    return text


def _describe(dtype: np.dtype[Any]) -> Any:
    if dtype.metadata is not None:
        raise ValueError("metadata")
    if dtype.subdtype is not None:
        element, shape = dtype.subdtype
        return {"of": _describe(element), "shape": list(shape)}
    if dtype.names is None:
        return dtype.str
    by_name: Any = dtype.fields
    fields = [by_name[name] for name in dtype.names]
    return {
        "names": list(dtype.names),
        "formats": [_describe(field[0]) for field in fields],
        "offsets": [field[1] for field in fields],
        "titles": [field[2] if len(field) > 2 else None for field in fields],
        "itemsize": dtype.itemsize,
        "aligned": dtype.isalignedstruct,
    }


def decode_dtype(text: Any, depth: int = 0) -> np.dtype[Any]:
    """Raises ValueError and others for all but what _describe() returns. No objects, so that no
    stored byte is ever taken for a pointer."""
    if depth > _DTYPE_DEPTH_MAX:
        raise ValueError("nested too deep")
    if isinstance(text, str):
        if not _BARE.fullmatch(text):
            raise ValueError("no dtype")
        return np.dtype(text)
    if "of" in text:
        return np.dtype((decode_dtype(text["of"], depth + 1), tuple(wholes(text["shape"]))))
    if not all(isinstance(name, (str, type(None))) for name in text["names"] + text["titles"]):
        raise ValueError("no names")
    layout = {
        "names": listed(text["names"]),
        "formats": [decode_dtype(field, depth + 1) for field in listed(text["formats"])],
        "offsets": wholes(text["offsets"]),
        "itemsize": whole(text["itemsize"]),
    }
    if any(title is not None for title in text["titles"]):
        layout["titles"] = text["titles"]
    make: Any = np.dtype
    made: np.dtype[Any] = make(layout, align=text["aligned"] is True)
    return made


KINDS = (
    Kind("ndarray", (np.ndarray,), _encode_array, _decode_array, True),
    Kind("numpy", _SCALARS, _encode_scalar, _decode_scalar),
)
"""Of numpy."""
