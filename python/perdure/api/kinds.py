# SPDX-License-Identifier: BSD-3-Clause
"""What Python stored under a name: the types that perdure.h has no word for.

The pool's own catalogue has the numbers of perdure.h and counts the bytes of scalars. So that bytes
are never taken for what they are not, pools of Python programs have one more scalar, with the type
of each scalar, of each array whose dtype is not among those numbers, and which arrays have the
shape (), as JSON. The latter is noted as far as there is room, and under keys that no name can be,
as a scalar may have the name of such an array.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from perdure.api.errors import NoSpace, WrongShape

if TYPE_CHECKING:
    from perdure.api.native import _api

NAME = "perdure.python"
BYTES_MAX = 8192
_NO_EXTENTS = "shape ()"


def has_no_extents(kinds: Mapping[str, str], name: str) -> bool:
    """Whether an array of one element, to which perdure.h gives one extent, is of shape ()."""
    return kinds.get(_shape_key(name)) == _NO_EXTENTS


def _shape_key(name: str) -> str:
    return "\0" + name


class Kinds:
    """The kinds of names, of which the pool saves a copy with every version."""

    def __init__(self, pool: _api.Pool):
        self._pool = pool
        self._memory: memoryview | None = None
        self._kinds: dict[str, str] = {}
        self._stored: dict[str, str] = {}  # by the version that was restored

    def check(self, name: str, kind: str) -> None:
        """Raises WrongShape if the restored version has `name` of another kind."""
        self._open()
        _compare(self._stored, {name: kind})

    def add(self, name: str, kind: str) -> None:
        """Notes the kind of `name`, after check(); raises NoSpace if there are too many names."""
        self._store({**self._kinds, name: kind})

    def add_shape(self, name: str) -> None:
        """After load_at_restart(); notes that the array is of shape (), if there is room for it."""
        self._store({**self._kinds, _shape_key(name): _NO_EXTENTS})

    def drop_shape(self, name: str) -> None:
        """The program says now that `name` has an extent."""
        if self.has_no_extents(name):
            self._drop({_shape_key(name)})

    def drop_array(self, name: str) -> None:
        """It is in no later version, where one of another type may have its name."""
        if self._memory is not None:
            is_of_array = self.dtype_of(name) is not None
            self._drop({_shape_key(name), name} if is_of_array else {_shape_key(name)})

    def load_at_restart(self) -> None:
        """Kinds are needed though the program has said none."""
        self._open()

    def has_no_extents(self, name: str) -> bool:
        """Whether an array of one element is of shape (), as far as that is known."""
        return has_no_extents(self._kinds, name) or has_no_extents(self._stored, name)

    def dtype_of(self, name: str) -> np.dtype[Any] | None:
        """Of an array that is stored as bytes; None: it is not, or that is not known yet."""
        return dtype_of_kind(self._kinds.get(name, self._stored.get(name, "")))

    def restored(self) -> None:
        """Compares with the version that was restored; raises WrongShape if a kind differs."""
        if self._memory is None:
            return
        self._stored = self._load()
        # Names that this program did not open stay in the pool, and so do their kinds.
        self._store({**self._stored, **self._kinds})
        _compare(self._stored, self._kinds)

    def _open(self) -> None:
        if self._memory is None:
            self._memory = self._pool.scalar(NAME, bytes(BYTES_MAX))
            self._stored = self._load()  # of a pool that was restarted before
            self._kinds = dict(self._stored)

    def _load(self) -> dict[str, str]:
        assert self._memory is not None
        return kinds_of_bytes(bytes(self._memory))

    def _drop(self, keys: Collection[str]) -> None:
        self._stored = {each: kind for each, kind in self._stored.items() if each not in keys}
        self._store({each: kind for each, kind in self._kinds.items() if each not in keys})

    def _store(self, kinds: dict[str, str]) -> None:
        assert self._memory is not None
        text = _bytes_of(kinds)
        shapes = [key for key, kind in kinds.items() if kind == _NO_EXTENTS]
        while len(text) > BYTES_MAX and shapes:
            kinds = {each: kind for each, kind in kinds.items() if each != shapes[-1]}
            text = _bytes_of(kinds)
            shapes.pop()
        if len(text) > BYTES_MAX:
            raise NoSpace(
                f"the types of {len(kinds)} names take {len(text)} bytes, and there is room for"
                f" {BYTES_MAX}; use shorter names, fewer scalars, or dtypes of perdure.h"
            )
        self._memory[:] = text.ljust(BYTES_MAX, b"\0")
        self._kinds = kinds


def _bytes_of(kinds: Mapping[str, str]) -> bytes:
    return json.dumps(kinds, separators=(",", ":"), sort_keys=True).encode()


def kinds_of_bytes(stored: bytes) -> dict[str, str]:
    """Of the scalar NAME. Raises ValueError and others if that holds no kinds."""
    text = stored.rstrip(b"\0")
    return dict(json.loads(text)) if text else {}


def dtype_of_kind(kind: str) -> np.dtype[Any] | None:
    """None: it is no dtype."""
    if not kind.startswith("dtype "):
        return None
    text = kind.removeprefix("dtype ")
    return np.dtype(ast.literal_eval(text) if text.startswith("[") else text)


def _compare(stored: Mapping[str, str], asked: Mapping[str, str]) -> None:
    for name, kind in asked.items():
        if stored.get(name, kind) != kind:
            raise WrongShape(f"'{name}' is {stored[name]} in the pool, not {kind}")
