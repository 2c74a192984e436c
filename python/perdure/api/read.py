# SPDX-License-Identifier: BSD-3-Clause
"""What a pool holds, as numpy arrays and values: without opening or locking it, or changing it.

A job may go on with the pool meanwhile. What is read is one version, whole: after each array it is
looked whether anything of that version may have been stored over, and then all is read anew.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from perdure.api.errors import Busy, Damaged, NotFound
from perdure.api.meanings import (
    NUMPY_TYPES,
    OF_PYTHON,
    dtype_of,
    extents_of,
    kinds_of,
    scalar_value,
)
from perdure.api.state.stored import NAME_PREFIX, is_empty, unpack
from perdure.api.texts import checked_path
from perdure.core import load_core

if TYPE_CHECKING:
    from perdure import _core

_ATTEMPTS = 50
_PAUSE_S = 0.002


class Overtaken(Exception):
    """The version that was read is no longer there: a job goes on with the pool."""


@dataclass(frozen=True)
class Piece:
    """A rank's part of an array, and where it lies in the whole."""

    rank: int
    name: str
    part: int
    first: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def place(self) -> tuple[slice, ...]:
        """Of it in the whole array."""
        return tuple(
            slice(begin, begin + extent) for begin, extent in zip(self.first, self.extents)
        )


@dataclass(frozen=True)
class Whole:
    """An array as a reader sees it: of all ranks that have a box of it, or of one."""

    key: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: list[Piece] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Plan:
    """What there is to read of a version."""

    path: str
    version: int
    ranks: int
    wholes: list[Whole]
    scalars: dict[str, Any]
    left_out: list[str]

    def piece(self, whole: Whole, piece: Piece, mmap: bool = False) -> NDArray[Any]:
        """The elements of a piece, read-only. Raises Overtaken, and Damaged as read()."""
        core = load_core()
        try:
            found = core.read_array(self.path, piece.rank, piece.name, piece.part, self.version)
        except core.Error as failure:
            raise Damaged(str(failure)) from None
        if found is None:
            raise Overtaken
        if mmap and whole.size_bytes and found.file:
            return np.memmap(found.file, whole.dtype, "r", found.offset, piece.extents)
        return np.frombuffer(found.bytes, whole.dtype).reshape(piece.extents)

    def array(self, whole: Whole, mmap: bool = False) -> NDArray[Any]:
        """All of it, read-only. Where boxes overlap, the lowest rank's cells count."""
        only = whole.pieces[0]
        if len(whole.pieces) == 1 and only.extents == whole.shape:
            return self.piece(whole, only, mmap)
        assembled = np.zeros(whole.shape, whole.dtype)
        for piece in reversed(whole.pieces):
            assembled[piece.place] = self.piece(whole, piece)
        assembled.flags.writeable = False
        return assembled


class Contents(Mapping[str, Any]):
    """A version of a pool: read["u"] is an array, read["t"] a scalar. perdure.read() makes it.

    version    its number
    ranks      of the pool
    arrays     by name, read-only. One of which ranks have boxes is whole; of others there is one
               for each rank, "u.rank3", if there are several ranks. Pieces of windows: "w.part1"
    scalars    by name, with the type that the program said, or else bytes. One that differs
               between ranks is there for each: "seed.rank3"
    states     by name: the objects of Pool.state(), made anew; of C++'s texts and engines bytes
    left_out   names of arrays in mode flush, which have no versions, if a job uses the pool
    """

    def __init__(self, plan: Plan, arrays: dict[str, NDArray[Any]]) -> None:
        self.version, self.ranks = plan.version, plan.ranks
        self.scalars, self.left_out = plan.scalars, plan.left_out
        self.arrays, self.states = {}, {}
        for name, array in arrays.items():
            if not name.startswith(NAME_PREFIX):
                self.arrays[name] = array
            elif not is_empty(array):
                self.states[name.removeprefix(NAME_PREFIX)] = unpack(array, f"{plan.path}: {name}")

    def __getitem__(self, name: str) -> Any:
        for named in (self.arrays, self.states, self.scalars):
            if name in named:
                return named[name]
        if name in self.left_out:
            raise KeyError(f"{name} is in mode flush, without versions, and a job uses the pool")
        raise KeyError(f"{name}; there are {', '.join(self) or 'none'}")

    def __iter__(self) -> Iterator[str]:
        yield from self.arrays
        yield from self.states
        yield from self.scalars

    def __len__(self) -> int:
        return len(self.arrays) + len(self.states) + len(self.scalars)

    def __repr__(self) -> str:
        return f"<perdure.Contents of version {self.version}: {', '.join(self)}>"


def read(
    path: str | bytes | os.PathLike[str],
    version: int | None = None,
    *,
    names: Sequence[str] | None = None,
    mmap: bool = False,
) -> Contents:
    """The arrays and scalars of a version; default: the one that a restart would give.

        state = perdure.read("/mnt/pmem/heat")
        plot(state["u"], title=f"step {state['iteration']}")

    names   arrays to read; default all
    mmap    arrays of which one rank has all are maps of its file, and not copies of it. Refused
            (Busy) while a job uses the pool; a job that starts later changes what they show. What
            was drained is copied

    `path` is a pool's directory, or what a drain has of a pool: LEVEL/NAME, with the name of its
    directory. The pool is neither opened nor locked, and may be another user's. A job may go on
    with it: what is returned is of one version, whole, or Busy is raised, as where it commits
    faster than this reads; have it keep more versions then. Raises NotFound, Damaged. Any process;
    local.
    """
    place = checked_path(path)
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_S * attempt)
        try:
            return _read_once(place, version, names, mmap)
        except Overtaken:
            if version is not None:
                break
    raise Busy(
        f"{place}: a job goes on with the pool, and stored over"
        f" {'its newest version' if version is None else f'version {version}'} before all was read;"
        " read it again later, fewer `names` at a time, or have the pool keep more versions"
    )


def _read_once(
    place: str, version: int | None, names: Sequence[str] | None, mmap: bool
) -> Contents:
    plan = make_plan(place, version)
    if mmap and pool_in_use(place):
        raise Busy(f"{place} is in use: a map would show what is being stored; leave out mmap")
    known = [whole.key for whole in plan.wholes]
    unknown = [name for name in names or () if name not in known]
    if unknown:
        there = ", ".join(known) or "none"
        raise NotFound(f"version {plan.version} has no array '{unknown[0]}'; it has {there}")
    wanted = [whole for whole in plan.wholes if names is None or whole.key in names]
    return Contents(plan, {whole.key: plan.array(whole, mmap) for whole in wanted})


def make_plan(place: str, version: int | None = None) -> Plan:
    """What there is to read. Raises NotFound, Damaged; Overtaken if a job was in the way."""
    report = _inspected(place)
    if report.version is None:
        if pool_in_use(place):
            raise Overtaken
        raise Damaged(f"{place} holds no version of all ranks; see `perdure pool check {place}`")
    chosen = report.version if version is None else version
    if chosen not in {report.version, *(held.version for held in report.versions)}:
        there = ", ".join(str(held.version) for held in report.versions) or "none"
        raise NotFound(f"{place} holds no version {chosen}; it holds {there}")
    held = [(rank.rank, rank.held(chosen)) for rank in report.ranks]
    ranks = [(number, catalogue) for number, catalogue in held if catalogue is not None]
    if len(ranks) < report.rank_count:
        raise Overtaken
    in_use = pool_in_use(place)
    wholes, left_out = _wholes(ranks, report.rank_count, in_use)
    scalars = _scalars(ranks)
    return Plan(place, chosen, report.rank_count, wholes, scalars, left_out)


def _inspected(place: str) -> _core.PoolReport:
    core = load_core()
    if not Path(core.job_record_path(place)).exists() and not core.is_drained_pool(place):
        raise NotFound(f"{place} holds no pool; `perdure pool ls` lists those of a directory")
    try:
        return core.inspect_pool(place)  # type: ignore[no-any-return]
    except core.Error as failure:
        raise Damaged(str(failure)) from None


def pool_in_use(place: str) -> bool:
    """Whether a process of this machine has a rank's file open, as the kernel lists its locks."""
    inodes = {_lock_name(os.stat(file)) for file in Path(place).glob("rank-*")}
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return True
    return any(word in inodes for line in lines for word in line.split() if ":" in word)


def _lock_name(file: os.stat_result) -> str:
    return f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"


def _wholes(
    ranks: list[tuple[int, _core.Catalogue]], of_all: int, in_use: bool
) -> tuple[list[Whole], list[str]]:
    found: dict[tuple[str, Any], Whole] = {}
    left_out: list[str] = []
    for rank, catalogue in ranks:
        kinds = kinds_of(catalogue)
        boxes = {(box.name, box.part): box for box in catalogue.boxes}
        for entry in catalogue.arrays:
            label = f"{entry.name}.part{entry.part}" if entry.part else entry.name
            if entry.mode == "flush" and in_use:
                left_out += [label] if label not in left_out else []
                continue
            own = dtype_of(entry, kinds)
            dtype = np.dtype(NUMPY_TYPES[entry.type]) if own is None else own
            cut = slice(None) if own is None else slice(None, -1)
            box = boxes.get((entry.name, entry.part))
            extents = tuple(entry.extents[cut] if box else extents_of(entry, kinds, own))
            shape = tuple(box.global_shape[cut]) if box else extents
            first = tuple(box.first[cut]) if box else (0,) * len(extents)
            key = label if box or of_all == 1 else f"{label}.rank{rank}"
            whole = found.setdefault((key, (dtype.str, shape)), Whole(key, dtype, shape))
            whole.pieces.append(Piece(rank, entry.name, entry.part, first, extents))
    return _distinct(list(found.values())), left_out


def _distinct(wholes: list[Whole]) -> list[Whole]:
    """Ranks that have a name with other types or global shapes have it each for itself."""
    named: dict[str, list[Whole]] = {}
    for whole in wholes:
        named.setdefault(whole.key, []).append(whole)
    result = []
    for alike in named.values():
        for whole in alike:
            key = whole.key if len(alike) == 1 else f"{whole.key}.rank{whole.pieces[0].rank}"
            result.append(Whole(key, whole.dtype, whole.shape, whole.pieces))
    keys = [whole.key for whole in result]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise Damaged(f"two arrays would have the name '{twice}'; rename one in the program")
    return result


def _scalars(ranks: list[tuple[int, _core.Catalogue]]) -> dict[str, Any]:
    """Those that all ranks have alike under their name, others with their rank's."""
    of_names: dict[str, dict[int, tuple[str, bytes, Any]]] = {}
    for rank, catalogue in ranks:
        kinds = kinds_of(catalogue)
        for scalar in catalogue.scalars:
            if scalar.name == OF_PYTHON:
                continue
            found = scalar_value(scalar, kinds)
            value = found.value if found.type else scalar.bytes
            of_names.setdefault(scalar.name, {})[rank] = found.type, scalar.bytes, value
    values: dict[str, Any] = {}
    for name, stored in of_names.items():
        alike = len(stored) == len(ranks) and len({each[:2] for each in stored.values()}) == 1
        for rank, (_, _, value) in stored.items():
            values[name if alike else f"{name}.rank{rank}"] = value
    return values
