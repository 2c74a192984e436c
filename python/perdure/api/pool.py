# SPDX-License-Identifier: BSD-3-Clause
"""Pools: named arrays and scalars of one job, and their versions."""

from __future__ import annotations

import atexit
import math
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from perdure.api.array import (
    PLAIN,
    Array,
    ArrayInfo,
    Mode,
    Ranks,
    Shape,
    array_flags,
    array_info,
    array_infos,
    open_array,
    stored_array,
)
from perdure.api.device import stream_address
from perdure.api.errors import Error, InvalidArgument, NotFound, Unsupported, WrongState
from perdure.api.functions import Device
from perdure.api.kinds import Kinds
from perdure.api.native import _api
from perdure.api.scalars import Scalars
from perdure.api.state.stored import NAME_PREFIX
from perdure.api.states import States
from perdure.api.texts import checked_path, checked_text
from perdure.api.versions import Version, version_number, versions_of

T = TypeVar("T")
F = TypeVar("F")
_getpid = os.getpid  # at the end of the interpreter `os` may be gone
_STREAM_NONE, _STREAM_CUDA, _STREAM_HIP = 0, 1, 2
_DELAYS = {"virtual": 0, "wait": 1, "drain": 2}
_MUST_EXIST, _DISCARD, _ALLOW_OLDER, _ANY_JOB, _ANY_OWNER, _ANY_RANKS = 2, 4, 8, 16, 32, 64


class Due(IntEnum):
    """Pool.due(): false if no version is due. After LAST: commit, close the pool, end with 0."""

    NOT_DUE = 0
    DUE = 1
    LAST = 2


@dataclass(frozen=True)
class Status:
    """What a pool has done since it was opened; times in nanoseconds, sizes in bytes."""

    version: int
    """The newest committed version; 0: there is none."""
    commits: int
    commit_ns: int
    """How long all commits kept the program waiting."""
    commit_ns_last: int
    committed_bytes: int
    """Copied or flushed by all commits."""
    restart_ns: int
    model_ns: int
    """What an emulated device would have added (virtual clock)."""
    survives_power_failure: bool
    """False: the pool survives the death of processes only, as on tmpfs."""
    fell_back: bool
    """An older version was restored than the newest (allow_older)."""
    levels_under_way: bool
    """A version is on its way to other levels, as far as this rank knows."""
    old_ranks: int
    """That made the pool. If they are others than now, read() has what they had, until the first
    commit."""
    lacking_snapshots: int
    """Arrays on a GPU that had no room for a snapshot beside them: what stores to them waits for
    the transfer."""


def open(
    path: str | bytes | os.PathLike[str],
    comm: Any = None,
    *,
    must_exist: bool = False,
    discard: bool = False,
    allow_older: bool = False,
    any_job: bool = False,
    any_owner: bool = False,
    any_ranks: bool = False,
    job: str | None = None,
    emulate: str | None = None,
    delay: Literal["virtual", "wait", "drain"] = "virtual",
    copy_threads: int = 1,
    keep: int = 0,
    levels: str | Mapping[str, object] | None = None,
    older_slices: Literal["refuse", "warn"] = "refuse",
) -> Pool:
    """Opens the pool in directory `path`, or makes it.

    comm          an intracommunicator of mpi4py, of whose ranks each has a part of the pool. Then
                  this, and every call that says so, is collective over it; it is duplicated, and
                  may be freed. None: a pool of this process alone, without MPI
    must_exist    NotFound instead of making a pool
    discard       throw away what an existing pool of this job holds
    allow_older   if the newest version is damaged, restore the older one if that is whole
    any_job       accept a pool of another job, or one that was made in another directory
    any_owner     accept what another user owns or may write to
    any_ranks     accept a pool that another number of ranks made, all of whose files all ranks see:
                  restart() divides it anew, by `ranks` and `box` of array(); from the first commit
                  on it is a pool of this number of ranks
    job           name of the job that owns the pool; default: the name of the script
    emulate       one of `perdure devices`; default $PERDURE_EMULATE
    delay         how the time of emulated memory passes
    copy_threads  threads that copy and flush
    keep          versions that can be restored, 1 to 63; fixed when the pool is made. 0: what it
                  has, or 1
    levels        what is kept beyond the pool (docs/levels.md), as "key=value;key=value" or as a
                  mapping; default $PERDURE_LEVELS
    older_slices  what a commit does while slices of `working` are alive through which a store could
                  reach a version: refuse, with WrongState, or warn, with a RuntimeWarning

    Collective. Other threads run while it waits. Raises Busy, Foreign, WrongRanks, WrongShape (of
    another `keep`), Damaged, NewerFormat, NoSpace, IOFailed, NotFound, Unsupported (also where no
    library of Perdure serves mpi4py's MPI), InvalidArgument.
    """
    if delay not in _DELAYS:
        raise InvalidArgument(f"delay '{delay}' is not {', '.join(_DELAYS)}")
    if older_slices not in ("refuse", "warn"):
        raise InvalidArgument(f"older_slices='{older_slices}' is not refuse or warn")
    flags = (_MUST_EXIST, must_exist), (_DISCARD, discard), (_ALLOW_OLDER, allow_older)
    more_flags = (_ANY_JOB, any_job), (_ANY_OWNER, any_owner), (_ANY_RANKS, any_ranks)
    options = _api.Options(
        sum(flag for flag, wanted in (*flags, *more_flags) if wanted),
        checked_text("job", job or _script_name()),
        None if emulate is None else checked_text("emulate", emulate),
        _DELAYS[delay],
        _count("copy_threads", copy_threads),
        _count("keep", keep),
        _levels_text(levels),
    )
    place = checked_path(path)
    if comm is None:
        pool = Pool(_api.open(place, options), place)
    else:
        pool = Pool(_api.open_mpi(place, options, *_handle_of(comm)), place)
    pool._refuses_slices = older_slices == "refuse"
    return pool


class Pool:
    """Named arrays and scalars that survive a crash; perdure.open() makes it.

    A context manager: leaving it closes the pool and commits nothing, with an exception or without.
    (If an exception comes between commit_begin() and commit_wait(), a pool of several ranks is left
    as after a crash, because the others may never come to wait.)
    One thread at a time may call into a pool (WrongState for a second one); while a call waits,
    others run. A process that was forked off gets WrongState for the pools of its parent.

    Collective calls raise on all ranks or on none, except that each rank looks at its own arguments
    first; where a rank alone raises, end the job (MPI.COMM_WORLD.Abort(), or python -m mpi4py).
    Collective calls that do not match raise InvalidArgument on all ranks, naming two of them.
    """

    def __init__(self, native: _api.Pool, path: str):
        self._native = native
        self._path = path
        self._arrays: list[Array] = []
        self._stream: object = None  # kept as long as the pool has its address
        self._kinds = Kinds(native)
        self._files: list[Any] = []  # open ones, which commits flush
        self._states = States(native, self._kinds, path)
        self._restarted = native.is_of_windows
        self._begun = False  # a commit is under way
        self._refuses_slices = True
        self._process = os.getpid()

    @property
    def native(self) -> _api.Pool:
        """The pool as perdure._api has it. For Perdure's own modules."""
        return self._native

    @property
    def path(self) -> str:
        """The directory that it was opened in."""
        return self._path

    @property
    def closed(self) -> bool:
        """Whether close() was called. Local."""
        return not self._native.is_open

    def array(
        self,
        name: str,
        shape: Shape | None = None,
        dtype: DTypeLike | None = None,
        mode: Mode | None = None,
        *,
        checksums: bool | None = None,
        marks: bool = False,
        compare: bool = False,
        buffer: object = None,
        device: Device | None = None,
        ranks: Ranks | None = None,
        box: tuple[Shape, Shape] | None = None,
    ) -> Array:
        """Finds or makes the array `name` (1 to 255 bytes of UTF-8) of this rank.

        shape      extents in elements, row-major: an int or up to 8 of them (7 for a dtype that is
                   not among those of perdure.h); an extent may be 0, and () is one element.
                   Default: those that the pool has, and dtype, mode and checksums as well
        dtype      any but object; default float, or what the pool has. In the pool bool, integers,
                   float32, float64 and complex numbers of them are elements; all others, structures
                   and other byte orders too, are bytes
        mode       default copy. copy: a commit copies `working`; twin: `consistent` is read and all
                   of `working` written, and a commit swaps them; log: a commit copies pages that
                   changed; flush: one copy without versions
        checksums  of every block; default: in copy and log
        marks      log: the program names what changed, with mark()
        compare    log: changed pages are found by comparing, as they are in arrays of up to 16 KiB.
                   By default the kernel says which of larger ones were written, or before Linux
                   6.7 page protection: then read() into it fails (EFAULT)
        buffer     copy and log: an array of this shape and dtype to use as `working`, contiguous
                   and row-major, of numpy or in memory of a GPU (docs/gpu.md). In log mode one of
                   numpy is compared, if it does not begin at a page
        device     the functions that reach `buffer`, which is then an address, or what shows one
                   (DLPack, __cuda_array_interface__). The pool is closed at the end of the program
        ranks      what it is to the ranks together, for open(any_ranks=True). rows: one list over
                   all ranks, in rank order, whose first extent is divided anew; each rank gets as
                   many rows as its shape asks for, evenly without a shape. same: equal on all
                   ranks, which is checked. by hand: it begins as a new one, and read() has the old
                   contents. Default: its box counts
        box        the global shape and the place of its element 0 there: as Array.box()

        All space is allocated here. The contents are defined after restart(), or at once if that
        has been; a new array is zero, except that `buffer` stays. It is part of the pool from the
        next commit on. Local: ranks may have other arrays, or of other shapes. Raises WrongShape if
        this rank's part of the pool holds the name with another shape, dtype or mode, NoSpace,
        InvalidArgument, TypeError for a dtype that can't be stored; NotFound without a shape if the
        pool lacks the array. Without a shape, a dtype that is not among those of perdure.h has to
        be given before restart().
        """
        of_pool = shape is None
        if shape is None:
            held = stored_array(self._native, self._kinds, name, dtype, ranks)
            shape, dtype = held.shape, held.dtype
            mode = mode or held.mode  # type: ignore[assignment]
            checksums = held.checksums if checksums is None else checksums
        made = open_array(
            self._native, self._kinds, name, shape, float if dtype is None else dtype,
            mode or "copy", array_flags(checksums, marks, compare), buffer, ranks, device,
        )  # fmt: skip
        if device is not None and self._native.is_of_one_process:
            atexit.register(_close_if_alive, weakref.ref(self))  # while its functions can be called
        made._refuses_slices, made._shape_of_pool = self._refuses_slices, of_pool
        made._following = partial(_following, weakref.ref(self))
        self._arrays.append(made)
        if box is not None:
            made.box(*box)
        return made

    def old_arrays(self, old_rank: int) -> list[ArrayInfo]:
        """The arrays that an old rank has in the version that is gone on from.

        If another number of ranks made the pool (status().old_ranks), until the first commit:
        WrongState else. Dtypes that are not among those of perdure.h are shown as bytes. Local.
        Raises NotFound.
        """
        held = self._native.old_arrays(_count("old_rank", old_rank))
        infos = [array_info(each, None) for each in held]
        return [each for each in infos if not each.name.startswith(NAME_PREFIX)]

    def read(
        self,
        name: str,
        old_rank: int,
        first: int = 0,
        count: int | None = None,
        dtype: DTypeLike | None = None,
    ) -> NDArray[Any]:
        """Elements [first, first + count) of an array of an old rank, as a new numpy array.

        They are in row-major order; all of them in the array's shape, if neither `first` nor
        `count` is given. As old_arrays(), from open() until the first commit. `dtype`: of elements
        that are not among those of perdure.h. Local. Raises NotFound, InvalidArgument, WrongShape,
        Damaged; WrongState where there are no old ranks.
        """
        for each in self._native.old_arrays(_count("old_rank", old_rank)):
            if each.name == name:
                held = array_info(each, None if dtype is None else np.dtype(dtype))
                break
        else:
            raise NotFound(f"old rank {old_rank} has no array '{name}'")
        size = math.prod(held.shape)
        number = size - first if count is None else count
        if not 0 <= first <= size or not 0 <= number <= size - first:
            raise InvalidArgument(
                f"{number} elements from {first} on reach beyond the {size} of array '{name}'"
            )
        elements = np.empty(number, held.dtype)
        if number:
            scale = 1 if held.dtype.str in PLAIN else held.dtype.itemsize
            bare = elements.view(np.uint8)
            self._native.read(name, old_rank, first * scale, number * scale, bare)
        return elements.reshape(held.shape) if first == 0 and count is None else elements

    def arrays(self, version: int = 0) -> list[ArrayInfo]:
        """The arrays that this rank has in one of versions(), without those of states.

        0: in the next version; before restart(), those that it will bring back. Local. Raises
        NotFound.
        """
        held = array_infos(self._native, self._kinds, version)
        return [each for each in held if not each.name.startswith(NAME_PREFIX)]

    def remove(self, array: Array) -> None:
        """Closes the array and drops it from the next version on.

        numpy arrays that were taken of it keep their contents. Local; waits until a commit that is
        under way has read it.
        """
        array._native.remove()
        array._let_go()
        array._arrived()
        self._arrays = [each for each in self._arrays if each is not array]
        self._kinds.drop_array(array.name)

    def scalars(self, **values: Any) -> Scalars:
        """Ties scalars to the pool: attributes of what is returned, with these initial values.

            state = pool.scalars(iteration=0, t=0.0, converged=False, name=perdure.text(64),
                                 began=datetime.now(timezone.utc))

        Types: int (64 bits), float, bool, datetime (microseconds; of its time zone the offset), str
        and bytes with room for 255 bytes, or for as many as perdure.text() and perdure.blob() say,
        at most 16380. numpy's scalars are taken as int, float and bool.

        restart() and restore() set those that the version has; the others keep their values. The
        name `iteration` is shown by `perdure run`. May be called again with other names; after
        restart() the values are those of the pool at once. Local. Raises WrongShape if the pool
        holds a name with another type or room, NoSpace, TypeError, InvalidArgument (a name twice).
        """
        return Scalars(self._native, self._kinds, values)

    def file(self, file: F) -> F:
        """Names a text file, or another that only grows, which this rank writes; returns `file`.

            log = pool.file(log)  # opened with mode "a"

        Each version notes how long it is, and restart() and restore() cut it back to that, so that
        no line stands twice and none is missing. `file` is an open file, which commits flush, or a
        path, and then the program flushes. Call it before the restart, or right after it, in every
        run, and open the file to append, or after the restart. A version of before the first call
        has the length that the file had then. Local; each rank has files of its own.

        Raises, as restart() and restore() then do, NotFound (it is gone), Damaged (it is shorter,
        or another one), WrongState (a file that was not opened to append is beyond its new end),
        Foreign (a link, or another user's), Busy (another rank or process has it), InvalidArgument.
        """
        opened: Any = None if isinstance(file, (str, bytes, os.PathLike)) else file
        path = file if opened is None else getattr(opened, "name", None)
        if not isinstance(path, (str, bytes, os.PathLike)) or not os.fspath(path):
            raise InvalidArgument(f"{file!r} has no path; open the file by its name")
        if opened is not None:
            opened.flush()
        self._native.file(os.fsencode(path))
        if opened is not None:
            self._files.append(opened)
        return file

    def state(
        self, values: dict[str, T], name: str = "state", *, ranks: Ranks | None = None
    ) -> dict[str, T]:
        """Ties a dict to the pool, and returns it: every commit saves what is in it then.

            run = pool.state({"step": 0, "losses": [], "rng": np.random.default_rng(1)})

        It may hold numbers, texts, bytes, None, numpy arrays, scalars and dtypes, random generators
        and the standard containers of these, of any length (docs/python.md lists them). They come
        back equal, by type and value, and what was one object at two places is one again. All
        else is refused by its place: TypeError, also from a commit, before which nothing happened.

        restart() and restore() put what the version has into the same dict: entries that it lacks
        go. Lists, dicts, sets, arrays of one shape and generators in it stay the objects that they
        were. If the pool is new, or the version lacks the state, the dict stays as it is. After
        restart() the dict is filled at once. Each rank has its own; `ranks` says what happens to it
        on another number of them, "same" or "by hand" (as a new one), as of array().

        A commit encodes all of it, and stores what changed. Local. Raises InvalidArgument (a name
        or dict twice), NoSpace, Damaged, WrongShape (a dict of another type than the pool has),
        WrongState for the pool of windows, whose commits do not pass here.
        """
        if self._native.is_of_windows:
            raise WrongState(
                "commits of windows would not save a state; open a pool of its own for it, or use"
                " scalars()"
            )
        array = self._states.add(name, values, self._restarted, ranks)
        array._refuses_slices = self._refuses_slices
        self._arrays.append(array)
        return values

    def restart(self) -> int | None:
        """Gives arrays and scalars the contents of the newest version that all ranks hold.

        Returns its number, or None if the pool is new: then arrays are zero, and buffers and
        scalars stay as they were. Collective; once, after the arrays and scalars were made and
        before the first commit. Raises Damaged, and WrongShape if a scalar or dtype was another.

        If another number of ranks made the pool (any_ranks), all of its arrays must be open on some
        rank, and scalars be the same on all old ranks: WrongRanks says which are not. The pool
        stays that of the old ranks until the first commit has returned.
        """
        self._flush_files()
        version = self._native.restart()
        self._restarted = True
        self._take_kinds()
        self._states.load()
        return version or None

    def _take_kinds(self) -> None:
        self._kinds.restored()
        for array in self._arrays:
            array._settle_shape(self._kinds)

    def commit(self) -> int:
        """Makes all arrays and scalars durable as one new version of all ranks; its number.

        When it has returned on any rank, no crash loses that version. On failure the version before
        stays the newest, arrays keep their contents, and the caller may commit again. Collective.
        Other threads run meanwhile, and must not write to the arrays. Raises WrongState while
        slices of `working` of an array in mode twin are alive (open(older_slices=…)).
        """
        self._check_slices(False)
        self._states.save()
        self._flush_files()
        return self._committed(self._native.commit)

    def commit_begin(self) -> None:
        """Begins a commit, which another thread goes on with while the program computes.

        Until Array.before_write() or commit_wait() the arrays must not be written to: `working` is
        read-only. Scalars are saved here. Collective, as perdure_commit_begin(). Raises WrongState
        while slices of `working` of any array are alive (open(older_slices=…)).
        """
        self._check_slices(True)
        self._states.save()
        self._flush_files()
        self._native.commit_begin()
        self._begun = True
        for array in self._arrays:
            array._protect(True)

    def commit_wait(self) -> int:
        """Makes the version durable that commit_begin() began, and returns its number.

        Collective. Raises WrongState if none was begun.
        """
        return self._committed(self._native.commit_wait)

    def stream(self, stream: object) -> None:
        """Names the stream that works on arrays in memory of a GPU: a commit takes what it had been
        asked for when it was called, and the stream goes on when the commit has it. None: commits
        wait for all that the program has asked of the GPU.

        stream     of PyTorch, CuPy or Numba, what has __cuda_stream__, or the address of a CUstream
                   or hipStream_t

        Local; the stream is kept. Raises Unsupported if the process uses no such driver.
        """
        if stream is None:
            self._native.stream(_STREAM_NONE, 0)
        else:
            self._name_stream(stream_address(stream))
        self._stream = stream

    def _name_stream(self, address: int) -> None:
        try:
            self._native.stream(_STREAM_CUDA, address)
        except Unsupported as unsupported:
            try:
                self._native.stream(_STREAM_HIP, address)
            except Unsupported:
                raise unsupported from None

    def due(self) -> Due:
        """Whether a version is due by the plan $PERDURE_ENERGY_PLAN; DUE always if there is none.

        LAST, from then on, if `perdure run` was asked to end the job. Rank 0's clock decides.
        Collective.
        """
        return Due(self._native.due())

    def levels_wait(self) -> int:
        """Waits until what is on its way to other levels has arrived (docs/levels.md).

        Returns the newest version that has come to all of them since the pool was opened; 0: none
        has, or there are no levels. Raises Busy if something is not there within their patience (it
        goes on), or what a level failed with. Collective.
        """
        return self._native.levels_wait()

    def versions(self) -> list[Version]:
        """The versions that can be restored, newest first. Before restart() or later. Local."""
        return versions_of(self._native)

    def restore(self, version: int) -> None:
        """As restart(), of `version`, in its place or at any time after it.

        The next commit goes on from there under a new number; newer versions are abandoned, and can
        be restored as well until their space is needed. Arrays have the extents that they have in
        `version` (WrongShape for one with a `buffer` of another shape: resize() it first). Arrays
        that `version` lacks become zero, scalars stay. Collective. Raises NotFound, WrongShape,
        Damaged, and leaves all as it was.
        """
        self._check_slices(False)
        self._flush_files()
        number = version_number(version)
        resized = self._other_shapes_of(number)
        for array, _ in resized:
            array._check_old_slices()
        given = [(array._native, list(info.shape)) for array, info in resized]
        bytes_of = [info.bytes for _, info in resized]
        try:
            self._ending(partial(self._native.restore, number, given, bytes_of))
        finally:
            self._turn()
        for array, info in resized:
            stored = tuple(info.shape)
            array._take_shape(stored if array.dtype.str in PLAIN else stored[:-1])
        self._restarted = True
        self._take_kinds()
        self._states.load()

    def delete_version(self, version: int) -> None:
        """Frees the space of `version`, which can't be the newest (WrongState). Collective."""
        self._native.delete_version(version_number(version))

    def status(self) -> Status:
        """What the pool has done. Local."""
        found = self._native.status()
        return Status(**{name: getattr(found, name) for name in Status.__dataclass_fields__})

    def close(self) -> None:
        """Waits for a commit that was begun, then releases the pool; again is no error.

        What was not committed is not kept. numpy arrays that are still referenced keep their
        contents, and need memory of their own for that from here on in modes twin and flush
        (NoSpace if there is none, and the pool stays open). Collective.
        """
        for array in self._arrays:
            array._let_go()
        self._native.close()
        for array in self._arrays:
            array._arrived()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._process != _getpid():
            return  # a forked child that ends, as by sys.exit()
        # The others may never wait for the commit that this rank has left.
        if error is None or not self._begun or self._native.is_of_one_process:
            self.close()

    def __del__(self) -> None:
        native = getattr(self, "_native", None)
        if native is None or not native.is_open or native.is_of_windows:
            return
        if self._process != _getpid():
            return  # a forked child, which has nothing to close
        warnings.warn(f"pool {self._path} was not closed", ResourceWarning, stacklevel=2)
        if native.is_of_one_process:
            with suppress(WrongState):  # a thread that is still in a call
                self.close()

    def __repr__(self) -> str:
        return f"<perdure.Pool {self._path}{', closed' if self.closed else ''}>"

    def _other_shapes_of(self, version: int) -> list[tuple[Array, _api.ArrayInfo]]:
        """Open arrays that only have other extents in a version; [] if it is not there."""
        if not any(each.version == version for each in self.versions()):
            return []
        held = {each.name: each for each in self._native.arrays(version)}
        return [
            (array, held[array.name])
            for array in self._arrays
            if array.name in held and array._is_resized(held[array.name])
        ]

    def _committed(self, call: Callable[[], int]) -> int:
        """The version that the call has made."""
        version = self._ending(call)
        self._turn()
        for array in self._arrays:
            array._arrived()
        return version

    def _ending(self, call: Callable[[], T]) -> T:
        """Runs a call that ends a commit under way, unless it is refused."""
        try:
            result = call()
        except WrongState:
            raise
        except Error:
            self._end_commit()
            raise
        self._end_commit()
        return result

    def _end_commit(self) -> None:
        if self._begun:
            for array in self._arrays:
                array._protect(False)
        self._begun = False

    def _flush_files(self) -> None:
        """What is in their buffers is neither in a file nor noted."""
        for file in self._files:
            if not file.closed:
                file.flush()

    def _check_slices(self, begins: bool) -> None:
        for array in self._arrays:
            array._check_slices(begins, self._refuses_slices)

    def _turn(self) -> None:
        for array in self._arrays:
            array._turn()


@contextmanager
def _following(pool: weakref.ref[Pool], stream: int | None) -> Iterator[None]:
    """Elements that are written come as this stream leaves them; None: as the named one does."""
    of = pool()
    if of is None or of._stream is None:
        raise WrongState(
            "the elements are in memory of a GPU, and no stream was named: Pool.stream() names the"
            " one whose work they are"
        )
    if stream is not None:
        of._name_stream(stream)
    try:
        yield
    finally:
        if stream is not None:
            of.stream(of._stream)


def _close_if_alive(of: weakref.ref[Pool]) -> None:
    pool = of()
    if pool is not None and pool._process == _getpid():
        with suppress(Error):
            pool.close()


def _count(name: str, value: int) -> int:
    if not 0 <= value < 2**32:
        raise InvalidArgument(f"{name}={value} is not 0 to {2**32 - 1}")
    return value


def _script_name() -> str:
    """Of a Python program the process is python, whichever program it is."""
    script = Path(sys.argv[0]).name if sys.argv else ""
    return "python" if script in ("", "-", "-c", "-m") else script


def _levels_text(levels: str | Mapping[str, object] | None) -> str | None:
    if isinstance(levels, Mapping):
        levels = ";".join(f"{key}={value}" for key, value in levels.items())
    return None if levels is None else checked_text("levels", levels)


def _handle_of(comm: Any) -> tuple[int, int]:
    """Address and size of the MPI_Comm in a communicator of mpi4py, which is not imported here."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not isinstance(comm, mpi.Comm):
        raise TypeError(f"comm is {type(comm).__name__}, not a communicator of mpi4py")
    if isinstance(comm, mpi.Intercomm):
        raise InvalidArgument("comm is an intercommunicator; merge it into an intracommunicator")
    if mpi.Is_finalized():
        raise WrongState("MPI was finalized; a pool of several ranks is opened before that")
    return mpi._addressof(comm), mpi._sizeof(comm)
