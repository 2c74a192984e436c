# SPDX-License-Identifier: BSD-3-Clause
"""Writes a version of a pool to a file of another kind: .npz, .h5 or .zarr.

Arrays go there whole, as perdure.read() gives them. Into .h5 and .zarr they go piece by piece, so
that no more than one rank's part is in memory; .npz has one whole array in memory at a time.
"""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from perdure.api.errors import Busy, Damaged, NotFound
from perdure.api.read import Overtaken, Plan, Whole, make_plan
from perdure.api.state.readable import state_json
from perdure.api.state.stored import NAME_PREFIX, is_empty
from perdure.failures import Failed, Wrong
from perdure.files import replaced
from perdure.progress import progress

_ATTEMPTS = 10
_PATIENCE_S = 2.0  # before a bar is shown
_ATTRIBUTE_MAX = 10_000  # characters: HDF5 has room for 64 KiB


@dataclass(frozen=True)
class Exported:
    """What was written."""

    version: int
    arrays: list[Whole]
    scalars: list[str]  # and states
    left_out: list[str]


class Writer(Protocol):
    """A file of one kind that is being written."""

    def add_array(self, plan: Plan, whole: Whole) -> None:
        """All of an array. Raises Overtaken."""

    def add_scalar(self, name: str, value: Any) -> None:
        """A value as perdure.read() gives it."""

    def close(self) -> None:
        """All is there."""


class _Npz:
    """An archive as numpy.savez makes it, with a member for each array and scalar."""

    def __init__(self, path: Path) -> None:
        self._archive = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)

    def add_array(self, plan: Plan, whole: Whole) -> None:
        self._add(whole.key, plan.array(whole))

    def add_scalar(self, name: str, value: Any) -> None:
        plain = _plain_value(value)
        if isinstance(plain, bytes):  # numpy's own lose zeros at their end
            plain = np.frombuffer(plain, "u1")
        self._add(name, np.asarray(plain))

    def _add(self, name: str, array: NDArray[Any]) -> None:
        with self._archive.open(f"{safe_name(name)}.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, array, allow_pickle=False)

    def close(self) -> None:
        self._archive.close()


class _Hdf5:
    """Data sets in the root group; scalars but long texts are its attributes."""

    def __init__(self, path: Path) -> None:
        import h5py

        self._file = h5py.File(path, "w-")

    def add_array(self, plan: Plan, whole: Whole) -> None:
        _fill(self._file.create_dataset, plan, whole)

    def add_scalar(self, name: str, value: Any) -> None:
        plain = _plain_value(value)
        if isinstance(plain, str) and len(plain) > _ATTRIBUTE_MAX:
            self._file[safe_name(name)] = plain
        else:
            opaque = isinstance(plain, bytes)
            self._file.attrs[safe_name(name)] = np.void(plain) if opaque else plain

    def close(self) -> None:
        self._file.close()


class _Zarr:
    """Arrays of a group; scalars are its attributes."""

    def __init__(self, path: Path) -> None:
        import zarr

        self._group = zarr.open_group(str(path), mode="w")

    def add_array(self, plan: Plan, whole: Whole) -> None:
        make = getattr(self._group, "create_array", None) or self._group.create_dataset
        _fill(make, plan, whole)

    def add_scalar(self, name: str, value: Any) -> None:
        plain = _plain_value(value)
        self._group.attrs[safe_name(name)] = plain.hex() if isinstance(plain, bytes) else plain

    def close(self) -> None:
        """Each array was closed when it was written."""


_KINDS: dict[str, Callable[[Path], Writer]] = {
    ".npz": _Npz, ".h5": _Hdf5, ".hdf5": _Hdf5, ".zarr": _Zarr,
}  # fmt: skip


def check_kind(path: Path) -> None:
    """Raises Wrong, or ModuleNotFoundError, before the work."""
    if path.suffix not in _KINDS:
        raise Wrong(f"{path}: a pool is exported to a name that ends with {', '.join(_KINDS)}")
    if _KINDS[path.suffix] is _Hdf5:
        import h5py  # noqa: F401
    if _KINDS[path.suffix] is _Zarr:
        import zarr  # noqa: F401

        if path.exists():
            raise Wrong(f"{path} is there already; remove it, or choose another name")


def export(place: str, version: int | None, to: Path) -> Exported:
    """Writes a version, by default the newest, under a new name which then becomes `to`.

    Raises Wrong, Failed, OSError; then there is no such file, or the one of before.
    """
    for _ in range(_ATTEMPTS):
        try:
            plan = make_plan(place, version)
            with replaced(to) as partial:
                _write(plan, _KINDS[to.suffix](partial))
            states = [each for each in plan.wholes if each.key.startswith(NAME_PREFIX)]
            arrays = [each for each in plan.wholes if each not in states]
            others = [*plan.scalars, *(each.key.removeprefix(NAME_PREFIX) for each in states)]
            return Exported(plan.version, arrays, others, plan.left_out)
        except Overtaken:
            if version is not None:
                break
        except NotFound as failure:
            raise Wrong(str(failure)) from None
        except (Damaged, Busy) as failure:
            raise Failed(str(failure)) from None
    raise Failed(
        f"{place}: a job goes on with the pool, and stores over its versions before all is read;"
        " export it after the job, or have the pool keep more versions"
    )


def _write(plan: Plan, writer: Writer) -> None:
    try:
        with ExitStack() as held:
            advance = _Late("exporting", len(plan.wholes), held)
            for name, value in plan.scalars.items():
                writer.add_scalar(name, value)
            for whole in plan.wholes:
                if whole.key.startswith(NAME_PREFIX):
                    _write_state(plan, whole, writer)
                else:
                    writer.add_array(plan, whole)
                advance()
    finally:
        writer.close()


def _write_state(plan: Plan, whole: Whole, writer: Writer) -> None:
    """As JSON, which is what another program can read of it."""
    stored = plan.array(whole)
    name = whole.key.removeprefix(NAME_PREFIX)
    if not is_empty(stored):
        writer.add_scalar(name, state_json(stored, f"{plan.path}: state '{name}'"))


class _Late:
    """A bar on the terminal that is shown only when the work takes its time."""

    def __init__(self, title: str, total: int, held: ExitStack) -> None:
        self._title, self._total, self._held = title, total, held
        self._began, self._done = time.monotonic(), 0
        self._advance: Callable[..., None] | None = None

    def __call__(self) -> None:
        self._done += 1
        if self._advance is not None:
            self._advance()
        elif time.monotonic() - self._began > _PATIENCE_S:
            self._advance = self._held.enter_context(progress(self._title, self._total))
            self._advance(self._done)


def _fill(make: Callable[..., Any], plan: Plan, whole: Whole) -> None:
    """Makes an array in a file and stores the pieces; the lowest rank's cells count."""
    name = safe_name(whole.key)
    bare = whole.dtype.kind not in "biufc"
    if not bare:
        made = make(name, shape=whole.shape, dtype=whole.dtype)
    else:  # of which not every reader knows: bytes, and what they are
        made = make(name, shape=(*whole.shape, whole.dtype.itemsize), dtype=np.dtype("u1"))
        fields = whole.dtype.fields
        made.attrs["dtype"] = whole.dtype.str if fields is None else str(whole.dtype.descr)
    for piece in reversed(whole.pieces):
        elements = plan.piece(whole, piece)
        if elements.size == 0:
            continue
        if bare:
            elements = elements.reshape(-1).view("u1").reshape(*piece.extents, -1)
        made[(*piece.place, *(slice(None),) * bare)] = elements


def _plain_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def safe_name(name: str) -> str:
    """A name that is none of a path: what could be one is written as %2F and the like."""
    first = "%2E" if name.startswith(".") else name[:1]
    return "".join(
        letter if letter.isprintable() and letter not in "/\\" else
        "".join(f"%{byte:02X}" for byte in letter.encode())
        for letter in first + name[1:]
    )
