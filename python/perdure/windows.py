"""Persistent MPI windows for programs of mpi4py: what perdure_mpi.h adds, on mpi4py's windows.

The library must be loaded before the MPI library, with LD_PRELOAD:

    LD_PRELOAD=libperdure_preload.so mpiexec -n 2 python solver.py

    from mpi4py import MPI
    from perdure import windows

    info = MPI.Info.Create({"perdure_name": "grid", "perdure_pool": "/mnt/pmem/solver"})
    win = MPI.Win.Allocate(8 * cells, 8, info, MPI.COMM_WORLD)
    windows.restart(win: Any)  # the version that it was filled from; 0: none was there
    win.Fence()
    ...
    win.Fence()
    version = windows.commit(win: Any)

Every function takes an mpi4py.MPI.Win, and raises WindowError with the library's sentence if the
library refuses, or RuntimeError if it is not loaded. mpi4py itself is not imported here: a window
brings its own. As in C, one thread at a time calls into a pool.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

MODE_COMMIT = 1 << 28
"""An assertion of Win.Fence: this fence commits."""


class WindowError(RuntimeError):
    """The library refused; `code` is a PERDURE_E code of perdure.h."""

    def __init__(self, code: int, sentence: str):
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True)
class Version:
    """A version that a pool keeps; `parent` is the version that it was made from.

    `committed_ns` counts nanoseconds since 1970. An abandoned version is one before which an older
    one was restored, and the newest was not made from it.
    """

    version: int
    parent: int
    committed_ns: int
    abandoned: bool


class _VersionInfo(ctypes.Structure):
    """perdure_version_info of perdure.h."""

    _fields_ = [
        ("version", ctypes.c_uint64),
        ("parent", ctypes.c_uint64),
        ("committed_ns", ctypes.c_uint64),
        ("abandoned", ctypes.c_int),
    ]


def commit(win: Any) -> int:
    """Makes everything in the window's pool durable as one version, and returns its number.

    Collective over the ranks of the pool. In a passive-target epoch it completes the caller's
    operations and waits for the other ranks'.
    """
    version = ctypes.c_uint64()
    _call("perdure_win_commit_f", _handle(win), ctypes.byref(version))
    return version.value


def restart(win: Any) -> int:
    """The version that the window was filled from when it was made; 0: the pool was new. Local."""
    version = ctypes.c_uint64()
    _call("perdure_win_restart_f", _handle(win), ctypes.byref(version))
    return version.value


def halves(win: Any) -> tuple[Any, Any]:
    """Windows on the last committed half and on the working half of a window of mode twin.

    They change roles with every commit, and are freed with `win`. Local.
    """
    consistent, working = ctypes.c_int(), ctypes.c_int()
    _call("perdure_win_halves_f", _handle(win), ctypes.byref(consistent), ctypes.byref(working))
    return type(win).f2py(consistent.value), type(win).f2py(working.value)


def pool(win: Any) -> ctypes.c_void_p:
    """The window's pool, for calls of perdure.h through ctypes. Closed with its last window. Local.

    It can be given to the functions below in place of a window.
    """
    found = ctypes.c_void_p()
    _call("perdure_win_pool_f", _handle(win), ctypes.byref(found))
    return found


def versions(win: Any) -> list[Version]:
    """The versions that can be restored, newest first. Local."""
    where = _pool_of(win)
    count = ctypes.c_size_t()
    _call("perdure_versions", where, None, ctypes.c_size_t(0), ctypes.byref(count))
    kept = (_VersionInfo * max(1, count.value))()
    _call("perdure_versions", where, kept, ctypes.c_size_t(count.value), ctypes.byref(count))
    return [
        Version(info.version, info.parent, info.committed_ns, bool(info.abandoned))
        for info in kept[: count.value]
    ]


def restore(win: Any, version: int) -> None:
    """Gives all windows, arrays and scalars of the pool the contents of `version`. Collective.

    The next commit goes on from there under a new number. No epoch may have operations under way.
    """
    _call("perdure_restore", _pool_of(win), ctypes.c_uint64(_number(version)))


def delete_version(win: Any, version: int) -> None:
    """Gives up a version that is not the newest. Collective."""
    _call("perdure_delete_version", _pool_of(win), ctypes.c_uint64(_number(version)))


def _pool_of(win: Any) -> ctypes.c_void_p:
    return win if isinstance(win, ctypes.c_void_p) else pool(win)


def _number(version: int) -> int:
    if not 0 <= version < 2**64:
        raise ValueError(f"{version} is no number of a version; versions(win) lists them")
    return version


def _handle(win: Any) -> Any:
    """The window as Fortran's integer, which is the same in every MPI."""
    if not hasattr(win, "py2f"):
        raise TypeError(f"a window of mpi4py is needed, not {type(win).__name__}")
    return ctypes.byref(ctypes.c_int(win.py2f()))


def _call(name: str, *arguments: Any) -> None:
    library = ctypes.CDLL(None)
    try:
        function = getattr(library, name)
    except AttributeError:
        raise RuntimeError(
            f"{name} is in no library that is loaded; start the program with"
            " LD_PRELOAD=libperdure_preload.so"
        ) from None
    code = function(*arguments)
    if code == 0:
        return
    library.perdure_last_error.restype = ctypes.c_char_p
    raise WindowError(code, library.perdure_last_error().decode(errors="replace"))
