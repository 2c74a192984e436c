# SPDX-License-Identifier: BSD-3-Clause
"""An array, scalar or state of a pool: to be printed, or for a file."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perdure.api.meanings import NUMPY_TYPES, dtype_of, extents_of, kinds_of, scalar_value
from perdure.core import load_core
from perdure.failures import Failed
from perdure.pool.names import state_name
from perdure.screen import one_line

if TYPE_CHECKING:
    from perdure import _core



@dataclass(frozen=True)
class Dumped:
    """What it is, how it is printed, its bytes, and as numpy has it: None if that can't."""

    title: str
    text: str
    raw: bytes
    array: Any

    def file(self) -> bytes:
        """The bytes of an .npy file, or those that there are."""
        import numpy

        if self.array is None:
            return self.raw
        saved = io.BytesIO()
        numpy.save(saved, self.array)
        return saved.getvalue()


def dumped(pool: str, rank: int, name: str) -> Dumped:
    """Of the version that a restart would give. Raises Failed, and core's Error without a pool."""
    core = load_core()
    report = core.inspect_pool(pool)  # without a pool this is a mistake, with one a finding
    held = next((each for each in report.ranks if each.rank == rank), None)
    catalogue = held.catalogue if held else None
    if held and catalogue and held.newest == report.version:
        arrays = {each.name: each for each in catalogue.arrays}
        if name not in arrays and state_name(name) in arrays:
            return _state(pool, rank, name)
        scalars = {each.name: each for each in catalogue.scalars}
        if name not in arrays and name in scalars:
            return _scalar(scalars[name], kinds_of(catalogue), rank)
    return _array(pool, rank, name, catalogue)


def _content(pool: str, rank: int, name: str) -> tuple[str, list[int], bytes]:
    core = load_core()
    try:
        return core.dump_array(pool, rank, name)
    except core.Error as failure:
        raise Failed(str(failure)) from None


def _array(pool: str, rank: int, name: str, catalogue: _core.Catalogue | None) -> Dumped:
    import numpy

    kind, extents, content = _content(pool, rank, name)
    dtype, shape = numpy.dtype(NUMPY_TYPES[kind]), list(extents)
    kinds = kinds_of(catalogue)
    for entry in catalogue.arrays if catalogue else ():
        if entry.name != name or list(entry.extents) != shape:
            continue
        own = dtype_of(entry, kinds)
        shape = extents_of(entry, kinds, own)
        if own is not None:
            kind, dtype = one_line(str(own)), own
        break
    array = numpy.frombuffer(content, dtype).reshape(shape)
    return Dumped(f"{one_line(name)}: {kind}{shape} of rank {rank}", str(array), content, array)


def _scalar(scalar: _core.ScalarEntry, kinds: dict[str, str], rank: int) -> Dumped:
    import numpy

    found, raw = scalar_value(scalar, kinds), scalar.bytes
    title = f"{one_line(scalar.name)}: {found.type or 'bytes'}, a scalar of rank {rank}"
    if not found.type:
        return Dumped(title, raw.hex(" "), raw, numpy.frombuffer(raw, "u1"))
    value = found.value
    text = one_line(value) if isinstance(value, str) else str(value)
    if isinstance(value, (str, bytes)):
        return Dumped(title, text, value.encode() if isinstance(value, str) else value, None)
    is_number = isinstance(value, (int, float, complex, list))
    return Dumped(title, text, raw, numpy.array(value) if is_number else None)


def _state(pool: str, rank: int, name: str) -> Dumped:
    import numpy

    from perdure.api.errors import Damaged
    from perdure.api.state.readable import state_json

    _, _, content = _content(pool, rank, state_name(name))
    try:
        text = state_json(numpy.frombuffer(content, "u1"), f"state '{name}' of rank {rank}")
    except Damaged as damaged:
        raise Failed(str(damaged)) from None
    return Dumped(f"{one_line(name)}: state of rank {rank}", text, text.encode() + b"\n", None)
