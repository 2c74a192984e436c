# SPDX-License-Identifier: BSD-3-Clause
"""Scalars of a pool as attributes: int, float, bool, str, bytes and datetime, in fixed room.

What is in the pool: an int as int64 and a float as binary64, as C programs store them, so that
`perdure run` shows the scalar `iteration`; a bool in one byte; str (UTF-8) and bytes as a length of
four bytes and their room; a datetime as microseconds since 1970 and its offset from UTC. Nothing is
pickled.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from perdure.api.errors import InvalidArgument
from perdure.api.texts import checked_text

if TYPE_CHECKING:
    from perdure.api.kinds import Kinds
    from perdure.api.native import _api

ROOM_BYTES = 255
"""Room of a str or bytes that was given without any, in bytes (of UTF-8)."""
ROOM_BYTES_MAX = 16380

_NAIVE = -(2**63)  # in place of the offset
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class _Room:
    """An initial value with the bytes that later ones may take."""

    value: str | bytes
    bytes_max: int


def text(bytes_max: int, value: str = "") -> Any:
    """A str scalar with room for `bytes_max` bytes of UTF-8, 1 to 16380, for Pool.scalars()."""
    return _room(bytes_max, value, str)


def blob(bytes_max: int, value: bytes = b"") -> Any:
    """A bytes scalar with room for `bytes_max` bytes, 1 to 16380, for Pool.scalars()."""
    return _room(bytes_max, value, bytes)


def _room(bytes_max: int, value: str | bytes, kind: type) -> _Room:
    if not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} is wanted, not {type(value).__name__}")
    if not 1 <= bytes_max <= ROOM_BYTES_MAX:
        raise InvalidArgument(f"a scalar has room for 1 to {ROOM_BYTES_MAX} bytes, not {bytes_max}")
    return _Room(value, bytes_max)


class _Codec:
    """How values of one type are stored; `kind` is its name in the pool."""

    kind = ""
    size_bytes = 8
    type = 0  # perdure_type of perdure.h

    def pack(self, value: Any) -> bytes:
        """The stored bytes; raises TypeError, or ValueError if there is no room."""
        raise NotImplementedError

    def unpack(self, stored: bytes) -> Any:
        """The value."""
        raise NotImplementedError


class _Int(_Codec):
    kind = "int"
    type = 3

    def pack(self, value: Any) -> bytes:
        number = operator.index(value)
        if not -(2**63) <= number < 2**63:
            raise InvalidArgument(f"{number} does not fit into 64 bits")
        return struct.pack("<q", number)

    def unpack(self, stored: bytes) -> int:
        return int(struct.unpack("<q", stored)[0])


class _Float(_Codec):
    kind = "float"
    type = 5

    def pack(self, value: Any) -> bytes:
        if isinstance(value, (str, bytes)):
            raise TypeError(f"a number is wanted, not {type(value).__name__}")
        return struct.pack("<d", float(value))

    def unpack(self, stored: bytes) -> float:
        return float(struct.unpack("<d", stored)[0])


class _Bool(_Codec):
    kind = "bool"
    size_bytes = 1
    type = 9

    def pack(self, value: Any) -> bytes:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"bool is wanted, not {type(value).__name__}")
        return b"\1" if value else b"\0"

    def unpack(self, stored: bytes) -> bool:
        return stored != b"\0"


class _Bytes(_Codec):
    kind = "bytes"

    def __init__(self, room: int):
        self.size_bytes = 4 + room

    def pack(self, value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise TypeError(f"bytes are wanted, not {type(value).__name__}")
        return self._with_length(bytes(value), "blob")

    def _with_length(self, stored: bytes, maker: str) -> bytes:
        if len(stored) > self.size_bytes - 4:
            raise InvalidArgument(
                f"{len(stored)} bytes do not fit into the {self.size_bytes - 4} that there is room"
                f" for; give more with perdure.{maker}(bytes_max)"
            )
        return struct.pack("<I", len(stored)) + stored.ljust(self.size_bytes - 4, b"\0")

    def unpack(self, stored: bytes) -> Any:
        length = min(int(struct.unpack_from("<I", stored)[0]), self.size_bytes - 4)
        return stored[4 : 4 + length]


class _Text(_Bytes):
    kind = "str"

    def pack(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"str is wanted, not {type(value).__name__}")
        try:
            stored = value.encode()
        except UnicodeEncodeError:
            raise InvalidArgument(
                f"{value!r} has half a character, which UTF-8 can't hold"
            ) from None
        return self._with_length(stored, "text")

    def unpack(self, stored: bytes) -> str:
        return str(super().unpack(stored).decode(errors="replace"))


class _Datetime(_Codec):
    kind = "datetime"
    size_bytes = 16

    def pack(self, value: Any) -> bytes:
        if not isinstance(value, datetime):
            raise TypeError(f"datetime is wanted, not {type(value).__name__}")
        offset = value.utcoffset()
        since = (value.replace(tzinfo=None) - _EPOCH) // _MICROSECOND
        return struct.pack("<qq", since, _NAIVE if offset is None else offset // _MICROSECOND)

    def unpack(self, stored: bytes) -> datetime:
        since, offset = struct.unpack("<qq", stored)
        moment: datetime = _EPOCH + since * _MICROSECOND
        if offset == _NAIVE:
            return moment
        return moment.replace(tzinfo=timezone(offset * _MICROSECOND))


def _codec_of(name: str, value: Any) -> tuple[_Codec, Any]:
    """How `value` and its successors are stored, and the initial value."""
    if isinstance(value, _Room):
        return _codec_with_room(value.value, value.bytes_max), value.value
    if isinstance(value, (str, bytes)):
        return _codec_with_room(value, ROOM_BYTES), value
    if isinstance(value, (bool, np.bool_)):
        return _Bool(), value
    if isinstance(value, datetime):
        return _Datetime(), value
    if hasattr(value, "__index__"):
        return _Int(), value
    if isinstance(value, float) or hasattr(value, "__float__"):
        return _Float(), value
    raise TypeError(
        f"scalar '{name}' is {type(value).__name__}; it can be int, float, bool, str, bytes or"
        " datetime"
    )


def _codec_with_room(value: str | bytes, room: int) -> _Codec:
    return _Text(room) if isinstance(value, str) else _Bytes(room)


def stored_value(kind: str, stored: bytes) -> Any:
    """Of a scalar of a kind. Raises LookupError for no kind, ValueError and others for no value."""
    codecs = {codec.kind: codec for codec in (_Int(), _Float(), _Bool(), _Datetime())}
    if kind in ("str", "bytes"):
        return (_Text if kind == "str" else _Bytes)(len(stored) - 4).unpack(stored)
    return codecs[kind].unpack(stored)


class Scalars:
    """Scalars of a pool as attributes, saved by every commit and written by restart and restore.

    Each keeps the type that it was made with. Local, and no call of the library: reading or setting
    one takes about a microsecond. Setting one while another thread commits may be in that version
    or in the next one. After the pool is closed they keep their values and are in no pool.

    Raises AttributeError for a name that Pool.scalars() was not given, TypeError for a value of
    another type, InvalidArgument (a ValueError) for one that does not fit.
    """

    __slots__ = ("_places",)
    _places: dict[str, tuple[_Codec, memoryview]]

    def __init__(self, pool: _api.Pool, kinds: Kinds, values: Mapping[str, Any]):
        places: dict[str, tuple[_Codec, memoryview]] = {}
        object.__setattr__(self, "_places", places)
        packed = {}
        for name, value in values.items():  # all are looked at before the pool knows of any
            checked_text("the name of a scalar", name)
            codec, first = _codec_of(name, value)
            packed[name] = codec, _packed(codec, name, first)
        for name, (codec, stored) in packed.items():
            kinds.check(name, codec.kind)
            places[name] = codec, pool.scalar(name, stored, codec.type)
            kinds.add(name, codec.kind)

    def __getattr__(self, name: str) -> Any:
        codec, room = self._place(name)
        return codec.unpack(bytes(room))

    def __setattr__(self, name: str, value: Any) -> None:
        codec, room = self._place(name)
        room[:] = _packed(codec, name, value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("scalars are memory of a pool and can't be copied; copy their values")

    def __dir__(self) -> list[str]:
        return list(self._places)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._places)
        return f"Scalars({values})"

    def _place(self, name: str) -> tuple[_Codec, memoryview]:
        found = self._places.get(name)
        if found is None:
            known = ", ".join(self._places)
            raise AttributeError(f"there is no scalar '{name}'; Pool.scalars() was given {known}")
        return found


def _packed(codec: _Codec, name: str, value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        raise TypeError(
            f"scalar '{name}' is an ndarray of shape {value.shape}; keep it with Pool.array(), or"
            " one element of it"
        )
    try:
        return codec.pack(value)
    except (TypeError, InvalidArgument) as wrong:
        raise type(wrong)(f"scalar '{name}': {wrong}") from None
