# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of a pool as numpy arrays on its memory."""

from __future__ import annotations

import itertools
import math
import operator
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from perdure.api.device import device_memory, memory_at, memory_of_gpu
from perdure.api.errors import InvalidArgument, NotFound, Unsupported, WrongShape, WrongState
from perdure.api.functions import Device
from perdure.api.kinds import Kinds
from perdure.api.native import _api
from perdure.api.texts import checked_text

Shape = int | Sequence[int]
Mode = Literal["copy", "twin", "log", "flush"]
Ranks = Literal["rows", "same", "by hand"]
_RULES = {"rows": 1, "same": 2, "by hand": 3}
MODES = {"copy": 1, "twin": 2, "log": 3, "flush": 4}
_BUFFERED = ("copy", "log")
# Codes of perdure.h, by the dtype that they have here.
PLAIN = {
    "|u1": 1, "<i4": 2, "<i8": 3, "<f4": 4, "<f8": 5, "<c16": 6, "<u4": 7, "<u8": 8, "|b1": 9,
    "|i1": 11, "<i2": 12, "<u2": 13, "<c8": 14,
}  # fmt: skip
_DTYPES = {code: text for text, code in PLAIN.items()}
_MODE_NAMES = {code: text for text, code in MODES.items()}
_BYTE = 1
_BYTES_MAX = 2**48
_CHECKSUM, _NO_CHECKSUM, _MARKS, _COMPARE = 1, 2, 4, 8
_OWN_REFERENCES = 3  # to an array's root: Array's, that of its view `working`, and the question's


@dataclass(frozen=True)
class ArrayInfo:
    """An array of a version, as the pool has it: Pool.arrays()."""

    name: str
    shape: tuple[int, ...]
    """Extents in elements of `dtype`."""
    dtype: np.dtype[Any]
    """uint8, with one extent more, where the pool knows nothing of a dtype of the program's."""
    mode: str
    size_bytes: int
    checksums: bool
    open: bool
    """In this process."""


class Array:
    """A named array of a pool, made by Pool.array().

    `working` and `consistent` are numpy arrays of `shape` and `dtype`, row-major, on the memory
    itself: nothing is copied. In the modes copy, log and flush they stay where they are; in mode
    twin they swap places with every commit and restore, so that a program takes them anew in each
    step. What was `working` before the commit is read-only from then on, and an assignment to it is
    a ValueError. A slice of it would stay writable, into a committed version: the commit is refused
    while there are any (perdure.open(older_slices=…)).

    numpy arrays keep their memory alive. After the pool is closed those that are still referenced
    keep the contents that they had, as ordinary memory that is in no pool; `working` and
    `consistent` themselves raise WrongState then.

    Calls are for one thread at a time, as all of the pool's; the memory is for any.
    """

    def __init__(
        self,
        native: _api.Array,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        mode: str,
        device: object = None,
        functions: Device | None = None,
    ):
        self._native = native
        self._device = device  # its buffer, if it is in memory of a GPU
        self._functions = functions  # or of another device
        self._name, self._shape, self._dtype, self._mode = name, shape, dtype, mode
        # Slices of `working` have the root as their base, however they were made.
        self._root: NDArray[Any] | None = None
        self._working: NDArray[Any] | None = None
        self._consistent: NDArray[Any] | None = None
        self._saving = False  # by a commit in the background
        self._refuses_slices = True
        self._shape_of_pool = False  # and not what the program says
        # Of the pool: a stream of its GPU is the named one for a while; None: it stays.
        self._following: Callable[[int | None], AbstractContextManager[None]] | None = None
        self._elements: list[object] = []  # in memory of a GPU, which a transfer may still read

    @property
    def name(self) -> str:
        """Its name in the pool."""
        return self._name

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return self._dtype

    @property
    def mode(self) -> str:
        """copy, twin, log or flush."""
        return self._mode

    @property
    def saving(self) -> bool:
        """Whether a commit in the background may still read it."""
        return self._saving

    @property
    def working(self) -> NDArray[Any]:
        """Where the program writes: the buffer (copy, log), the working copy (twin), or the only
        one (flush). Local.

        In mode twin all of it has to be written before the next commit: it holds an older version.
        Raises WrongState before Pool.restart() in modes twin and flush, and after Pool.close().
        Before the restart, copy and log have their buffer, whose contents stay if the pool is new.
        That of a GPU is the object that was given as `buffer`, and so it is as `consistent`.
        """
        if self._device is not None:
            return cast(NDArray[Any], self._device)
        if self._working is None:
            self._root = self._on(self._native.working())
            self._root.flags.writeable = not self._saving
            self._working = self._root[...]
        return self._working

    @property
    def consistent(self) -> NDArray[Any]:
        """What the program reads, read-only: the last committed copy (twin), else as `working`.

        Local. Raises WrongState as `working`.
        """
        if self._device is not None:
            return cast(NDArray[Any], self._device)
        if self._consistent is None:
            self._consistent = self._on(self._native.consistent())
        return self._consistent

    def before_write(self) -> None:
        """After Pool.commit_begin(): waits until the array may be written to again. Local.

        In mode flush that is only after Pool.commit_wait(), and so it is in mode twin, where an
        array is committed in place: WrongState.
        """
        self._native.before_write()
        if self._mode in _BUFFERED:
            self._protect(False)

    def resize(self, shape: Shape, buffer: object = None) -> None:
        """Gives the array other extents, as many as it has, from the next version on.

        Elements stay in row-major order as far as there is room, and new ones are zero. Take
        `working` and `consistent` anew: what was taken before is read-only, and no longer the
        array. `buffer` (copy and log): an array of this shape to use as `working`, whose contents
        the array has then. Older versions keep their extents. The box is forgotten. Local, after
        restart().

        Raises WrongState while slices of `working` are alive, and in mode twin while a commit is
        under way; NoSpace, WrongShape (another number of extents), Unsupported (mode flush). All is
        as before then.
        """
        extents = _extents(shape)
        if len(extents) != len(self._shape):
            raise WrongShape(
                f"array '{self._name}' has {len(self._shape)} extents, and keeps as many; not"
                f" {len(extents)}"
            )
        bare, device = _bare(self._name, buffer, extents, self._dtype, self._functions)
        if (self._device is None) != (device is None):
            has = "the host's memory" if self._device is None else "memory of a GPU"
            raise Unsupported(
                f"array '{self._name}' is in {has} and stays there: give a buffer in it"
            )
        size_bytes = _size_bytes(self._name, extents, self._dtype)
        self._check_old_slices()
        self._native.resize(_stored(extents, self._dtype), size_bytes, bare)
        self._device = device
        self._take_shape(extents)

    def mark(self, first: int, count: int) -> None:
        """Mode log with marks: elements [first, first + count), in row-major order, were or will be
        changed before the next commit. Local. Raises InvalidArgument beyond the end.
        """
        self._native.mark(*self._range(first, operator.index(count)))

    def write(self, first: int, elements: ArrayLike) -> None:
        """Mode twin: stores `elements` at element `first`, in row-major order, of the working copy,
        past the cache, so that the commit need not flush them. Local.

        After Pool.stream() they may be in memory of its GPU: what that stream leaves there, or the
        one that their `__cuda_array_interface__` names, is transferred while the host goes on. The
        stream goes on after that, and commits wait for it. The object is kept until then, as other
        streams may be given its memory when it goes.

        Raises InvalidArgument beyond the end, WrongState in other modes, or if they are in memory
        of a GPU and no stream was named.
        """
        memory = memory_of_gpu(self._name, elements)
        if memory is not None:
            if memory.dtype != self._dtype:
                raise InvalidArgument(
                    f"elements of array '{self._name}' are {self._dtype}, not {memory.dtype}"
                )
            if self._following is None:
                raise WrongState(f"array '{self._name}' takes no elements from a GPU")
            count = math.prod(memory.shape)
            self._range(first, count)
            with self._following(memory.stream):
                if count != 0:  # else it may be at no address
                    self._elements.append(memory.owner)
                    self._write_from(first, memory.address, count, memory.owner)
            return
        source = np.ascontiguousarray(elements, dtype=self._dtype).reshape(-1)
        bare = source.view(np.uint8)
        self._native.write(*self._range(first, source.size), bare)

    def box(self, global_shape: Shape, first: Shape) -> None:
        """Says where this rank's array lies in one that all ranks have together.

        Its element 0 is element `first` of an array of `global_shape`; both have as many extents as
        the array, and ranks' parts may overlap. Versions note it, so that another number of ranks
        can go on with them: say it at every start, before restart(). Local. Raises InvalidArgument
        if the array reaches beyond.
        """
        whole, begin = _extents(global_shape), _extents(first)
        if not len(whole) == len(begin) == len(self._shape):
            raise InvalidArgument(
                f"array '{self._name}' has {len(self._shape)} extents, not {len(whole)} and"
                f" {len(begin)}"
            )
        if any(extent > _BYTES_MAX for extent in (*whole, *begin)):
            raise InvalidArgument(f"array '{self._name}': no array has 2^48 elements: {whole}")
        if self._dtype.str not in PLAIN:
            whole, begin = (*whole, self._dtype.itemsize), (*begin, 0)
        self._native.box(whole or (1,), begin or (0,))

    def __repr__(self) -> str:
        return f"Array('{self._name}', {self._shape}, {self._dtype.str}, mode='{self._mode}')"

    def _lent(self) -> NDArray[Any]:
        """`working`, for Perdure's own modules: slices of it may be alive in commits, which do not
        look for them, and nothing is stored through them any more then."""
        return self._on(self._native.working())

    def _write_from(self, first: int, address: int, count: int, owner: object) -> None:
        """write(), of elements in memory of a GPU. None of them: what `_consistent_address` has is
        registered with the driver, for transfers of the program's own from there."""
        self._native.write(*self._range(first, count), (address, owner))

    def _consistent_address(self) -> int:
        """Of the mapping that is registered; `consistent` is another one of the same pages. Until
        the next commit or the close."""
        return self._native.consistent_address()

    def _on(self, memory: memoryview) -> NDArray[Any]:
        if 0 in self._shape:
            return np.empty(self._shape, self._dtype)
        return np.ndarray(self._shape, self._dtype, buffer=memory)

    def _range(self, first: int, count: int) -> tuple[int, int]:
        """First element and count, as the pool counts. Raises InvalidArgument beyond the end."""
        begin, size = operator.index(first), math.prod(self._shape)
        if not (0 <= begin <= size and 0 <= count <= size - begin):
            raise InvalidArgument(
                f"elements {begin} to {begin + count} reach beyond the {size} of array"
                f" '{self._name}'"
            )
        scale = 1 if self._dtype.str in PLAIN else self._dtype.itemsize
        return begin * scale, count * scale

    def _living_slices(self) -> str:
        """Those of `working`, in words; "": there are none."""
        count = 0 if self._root is None else sys.getrefcount(self._root) - _OWN_REFERENCES
        if count <= 0:
            return ""
        slices = "a slice" if count == 1 else f"{count} slices"
        return f"{slices} of array '{self._name}' {'is' if count == 1 else 'are'} alive"

    def _check_old_slices(self) -> None:
        """Before the array has other memory."""
        living = self._living_slices()
        if not living:
            return
        sentence = (
            f"{living}, which would not be of the array any more when it has another size: "
            "del those of before"
        )
        if self._refuses_slices:
            raise WrongState(sentence)
        warnings.warn(sentence, RuntimeWarning, stacklevel=4)

    def _is_resized(self, info: _api.ArrayInfo) -> bool:
        """Whether a version has it with other extents, and with all else as it is."""
        mine, other = _stored(self._shape, self._dtype), tuple(info.shape)
        bytes_alike = self._dtype.str in PLAIN or mine[-1:] == other[-1:]
        return (
            mine != other
            and len(mine) == len(other)
            and bytes_alike
            and info.type == PLAIN.get(self._dtype.str, _BYTE)
            and info.mode == MODES[self._mode]
        )

    def _settle_shape(self, kinds: Kinds) -> None:
        """After a restart, when the kinds are known."""
        if self._shape != (1,) or not kinds.has_no_extents(self._name):
            return
        if self._shape_of_pool:
            self._take_shape(())
        else:
            kinds.drop_shape(self._name)

    def _take_shape(self, extents: tuple[int, ...]) -> None:
        """The pool has given it other memory."""
        saving = self._saving
        self._protect(True)
        self._root = self._working = self._consistent = None
        self._shape, self._saving = extents, saving

    def _check_slices(self, begins: bool, refuse: bool) -> None:
        """Before a commit or restore: slices of `working` that are alive could be stored to when
        that is no longer the program's turn; `begins` a commit in the background."""
        living = self._living_slices() if begins or self._mode == "twin" else ""
        if not living:
            return
        when = (
            "a store through them would reach a committed version, as the copies swap places"
            if self._mode == "twin"
            else "a store through them while the commit saves would make a version half old, half"
            " new"
        )
        remedy = "make slices anew after before_write()" if begins else "make slices in each step"
        sentence = (
            f"{living}: {when}; "
            f"{remedy}, and del those of before; or open the pool with older_slices='warn'"
        )
        if refuse:
            raise WrongState(sentence)
        warnings.warn(sentence, RuntimeWarning, stacklevel=4)

    def _turn(self) -> None:
        """After working and consistent copy may have swapped places."""
        if self._mode == "twin":
            self._protect(True)
            self._root = self._working = self._consistent = None
            self._saving = False

    def _arrived(self) -> None:
        """All that was written from a GPU is in the pool, or nothing transfers it any more."""
        self._elements = []

    def _protect(self, saving: bool) -> None:
        """Whether a commit saves what the program must not write to meanwhile."""
        self._saving = saving
        if self._root is not None and self._working is not None:
            self._root.flags.writeable = not saving
            self._working.flags.writeable = not saving

    def _let_go(self) -> None:
        """Before the pool is closed: only what the program holds is needed further on."""
        self._root = self._working = self._consistent = None
        self._device = None


def open_array(
    pool: _api.Pool,
    kinds: Kinds,
    name: str,
    shape: Shape,
    dtype: DTypeLike,
    mode: str,
    flags: int,
    buffer: object,
    ranks: Ranks | None = None,
    functions: Device | None = None,
) -> Array:
    """Pool.array(), whose arguments are looked at here."""
    checked_text("the name of an array", name)
    extents = _extents(shape)
    element = _element(name, dtype)
    size_bytes = _size_bytes(name, extents, element)
    if mode not in MODES:
        raise InvalidArgument(f"mode '{mode}' of array '{name}' is not {', '.join(MODES)}")
    bare, device = _bare(name, buffer, extents, element, functions)
    code = PLAIN.get(element.str, _BYTE)
    stored = _stored(extents, element)
    is_plain = element.str in PLAIN
    if not is_plain:
        kinds.check(name, _kind(element))
    elif not extents or (extents == (1,) and _is_held(pool, name)):
        kinds.load_at_restart()  # which has a shape (), or perhaps had
    rule = rank_rule(name, ranks)
    by = 0 if functions is None else functions.address
    native = pool.array(name, code, stored, MODES[mode], flags, rule, size_bytes, bare, by)
    if not is_plain:
        kinds.add(name, _kind(element))
    elif extents:
        kinds.drop_shape(name)
    else:
        kinds.add_shape(name)
    return Array(native, name, extents, element, mode, device, functions)


def array_info(
    native: _api.ArrayInfo, dtype: np.dtype[Any] | None, no_extents: bool = False
) -> ArrayInfo:
    """What the pool says, with what the program says of the elements; `no_extents`: their shape is
    (), if it is one."""
    stored = tuple(native.shape)
    plain = np.dtype(_DTYPES[native.type])
    element = plain if dtype is None else dtype
    extents = stored
    if element.str not in PLAIN:
        if native.type != _BYTE or stored[-1] != element.itemsize:
            raise WrongShape(
                f"array '{native.name}' is {plain} {stored} in the pool, which are no elements of"
                f" {element}"
            )
        extents = stored[:-1]
    elif element != plain:
        raise WrongShape(f"array '{native.name}' is {plain} {stored} in the pool, not {element}")
    elif no_extents and stored == (1,):
        extents = ()
    mode = _MODE_NAMES[native.mode]
    return ArrayInfo(
        native.name, extents, element, mode, native.bytes, native.checksums, native.open
    )


def array_infos(pool: _api.Pool, kinds: Kinds, version: int) -> list[ArrayInfo]:
    """Pool.arrays(); 0: the next version."""
    return [
        array_info(each, kinds.dtype_of(each.name), kinds.has_no_extents(each.name))
        for each in pool.arrays(version)
    ]


def rank_rule(name: str, ranks: Ranks | None) -> int:
    """enum perdure_ranks of perdure.h."""
    if ranks is not None and ranks not in _RULES:
        raise InvalidArgument(f"ranks '{ranks}' of array '{name}' is not {', '.join(_RULES)}")
    return 0 if ranks is None else _RULES[ranks]


def stored_array(
    pool: _api.Pool, kinds: Kinds, name: str, dtype: DTypeLike | None, ranks: Ranks | None = None
) -> ArrayInfo:
    """The array that Pool.array() opens without a shape."""
    checked_text("the name of an array", name)
    stored = pool.stored_shape(name, rank_rule(name, ranks))
    known = kinds.dtype_of(name) if dtype is None else _element(name, dtype)
    found = array_info(_held(pool, name), known)
    if found.dtype.str not in PLAIN:
        return replace(found, shape=tuple(stored[:-1]))
    if list(stored) == [1]:
        kinds.load_at_restart()
        stored = [] if kinds.has_no_extents(name) else stored
    return replace(found, shape=tuple(stored))


def _is_held(pool: _api.Pool, name: str) -> bool:
    with suppress(NotFound):
        return _held(pool, name).name == name
    return False


def _held(pool: _api.Pool, name: str) -> _api.ArrayInfo:
    """What this rank has of an array that there is, or the first of the old ranks that has it."""
    lists = [pool.arrays(0)]
    with suppress(WrongState):
        lists += [pool.old_arrays(rank) for rank in range(pool.status().old_ranks)]
    for each in itertools.chain.from_iterable(lists):
        if each.name == name:
            return each
    raise NotFound(f"the pool has no array '{name}', so a shape is needed to make it")


def array_flags(checksums: bool | None, marks: bool, compare: bool) -> int:
    """perdure_array_flags of perdure.h."""
    flags = _MARKS if marks else 0
    flags |= _COMPARE if compare else 0
    if checksums is not None:
        flags |= _CHECKSUM if checksums else _NO_CHECKSUM
    return flags


def _extents(shape: Shape) -> tuple[int, ...]:
    given = shape if isinstance(shape, Sequence) else (shape,)
    extents = tuple(operator.index(extent) for extent in given)
    if any(extent < 0 for extent in extents):
        raise InvalidArgument(f"a shape has no negative extents: {extents}")
    return extents


def _stored(extents: tuple[int, ...], element: np.dtype[Any]) -> tuple[int, ...]:
    """Extents as the pool counts them."""
    return (extents or (1,)) if element.str in PLAIN else (*extents, element.itemsize)


def _size_bytes(name: str, extents: tuple[int, ...], element: np.dtype[Any]) -> int:
    size_bytes = math.prod(extents) * element.itemsize
    if max(size_bytes, *extents, 0) > _BYTES_MAX:
        raise InvalidArgument(
            f"array '{name}' of shape {extents} would be larger than 2^48 bytes; make it smaller"
        )
    return size_bytes


def _element(name: str, dtype: DTypeLike) -> np.dtype[Any]:
    element = np.dtype(dtype)
    if element.hasobject:
        raise TypeError(
            f"array '{name}': elements of dtype {element} are references to Python objects, which"
            " mean nothing after a restart; use numbers, or perdure.text() and perdure.blob()"
        )
    if element.subdtype is not None:
        raise TypeError(f"array '{name}': dtype {element} has a shape; add that to the array's")
    if element.itemsize == 0:
        raise TypeError(f"array '{name}': dtype {element} has no size; 'S16' or 'U16' has one")
    return element


def _kind(element: np.dtype[Any]) -> str:
    return "dtype " + (element.str if element.fields is None else str(element.descr))


def _bare(
    name: str,
    buffer: object,
    shape: tuple[int, ...],
    element: np.dtype[Any],
    functions: Device | None,
) -> tuple[object, object]:
    """What the extension takes, and the buffer itself if it is in memory of a device."""
    if buffer is None and (functions is None or 0 in shape):
        return None, None
    if functions is not None and isinstance(buffer, int):
        memory = memory_at(buffer, shape, element, functions)
    elif isinstance(buffer, np.ndarray):
        memory = None
    else:
        memory = device_memory(name, buffer, functions)
    host = memory.host_array() if memory is not None and memory.on_host else buffer
    if isinstance(host, np.ndarray):
        _check_buffer(name, host, shape, element)
        return (host.reshape(-1).view(np.uint8) if host.size else None), None
    if memory is None:
        raise TypeError(
            f"the buffer of array '{name}' is {type(buffer).__name__}, not an ndarray, and shows no"
            " memory (DLPack, __cuda_array_interface__)"
            + (", and is no address of the device" if functions is not None else "")
        )
    if memory.shape != shape or memory.dtype != element:
        raise InvalidArgument(
            f"the buffer of array '{name}' is {memory.dtype} {memory.shape}, not {element} {shape}"
        )
    if not memory.writable:
        raise InvalidArgument(f"the buffer of array '{name}' is not writable; copy it first")
    return ((memory.address, memory.owner) if 0 not in shape else None), buffer


def _check_buffer(
    name: str, buffer: NDArray[Any], shape: tuple[int, ...], element: np.dtype[Any]
) -> None:
    if buffer.shape != shape or buffer.dtype != element:
        raise InvalidArgument(
            f"the buffer of array '{name}' is {buffer.dtype} {buffer.shape}, not {element} {shape}"
        )
    if not buffer.flags.c_contiguous or not buffer.flags.writeable:
        lacks = "row-major and contiguous" if buffer.flags.writeable else "writable"
        raise InvalidArgument(f"the buffer of array '{name}' is not {lacks}; copy it first")
