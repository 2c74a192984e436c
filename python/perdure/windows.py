# SPDX-License-Identifier: BSD-3-Clause
"""Persistent MPI windows for programs of mpi4py: what perdure_mpi.h adds, on mpi4py's windows.

The library must be loaded before the MPI library, with LD_PRELOAD:

    LD_PRELOAD=libperdure_preload.so mpiexec -n 2 python solver.py

    from mpi4py import MPI
    from perdure import windows

    info = MPI.Info.Create({"perdure_name": "grid", "perdure_pool": "/mnt/pmem/solver"})
    win = MPI.Win.Allocate(8 * cells, 8, info, MPI.COMM_WORLD)
    windows.restart(win)  # the version that it was filled from; 0: none was there
    win.Fence()
    ...
    win.Fence()
    version = windows.commit(win)

Every function takes an mpi4py.MPI.Win, and raises perdure.Error with the library's sentence if the
library refuses (Unsupported if it is not loaded). mpi4py itself is not imported here: a window
brings its own. As in C, one thread at a time calls into a pool; while a call waits, others run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perdure.api.errors import Error as WindowError
from perdure.api.native import _api
from perdure.api.versions import Version, version_number, versions_of

if TYPE_CHECKING:
    from perdure.api.pool import Pool

__all__ = [
    "MODE_COMMIT", "Version", "WindowError", "commit", "delete_version", "halves", "pool",
    "restart", "restore", "versions",
]  # fmt: skip

MODE_COMMIT = 1 << 28
"""An assertion of Win.Fence: this fence commits."""


def commit(win: Any) -> int:
    """Makes everything in the window's pool durable as one version, and returns its number.

    Collective over the ranks of the pool. In a passive-target epoch it completes the caller's
    operations and waits for the other ranks'.
    """
    return _api.win_commit(_handle(win))


def restart(win: Any) -> int:
    """The version that the window was filled from when it was made; 0: the pool was new. Local."""
    return _api.win_restart(_handle(win))


def halves(win: Any) -> tuple[Any, Any]:
    """Windows on the last committed half and on the working half of a window of mode twin.

    They swap roles with every commit, and are freed with `win`. Local.
    """
    consistent, working = _api.win_halves(_handle(win))
    return type(win).f2py(consistent), type(win).f2py(working)


def pool(win: Any) -> Pool:
    """The window's pool, for arrays, scalars and versions beside the windows. Local.

    It was restarted when it was opened, and is closed with its last window, not by Pool.close();
    it must not be used after that. Until numpy arrays on it in modes twin and flush are gone, too,
    the pool stays locked. It can be given to the functions below in place of a window.
    """
    from perdure.api.pool import Pool

    return Pool(_api.win_pool(_handle(win)), "of windows")


def versions(win: Any) -> list[Version]:
    """The versions that can be restored, newest first. Local."""
    return versions_of(_pool_of(win))


def restore(win: Any, version: int) -> None:
    """Gives all windows, arrays and scalars of the pool the contents of `version`. Collective.

    The next commit goes on from there under a new number. No epoch may have operations under way.
    """
    _pool_of(win).restore(version_number(version), [], [])


def delete_version(win: Any, version: int) -> None:
    """Gives up a version that is not the newest. Collective."""
    _pool_of(win).delete_version(version_number(version))


def _pool_of(win: Any) -> _api.Pool:
    return win.native if hasattr(win, "native") else _api.win_pool(_handle(win))


def _handle(win: Any) -> int:
    """The window as Fortran's integer, which is the same in every MPI."""
    if not hasattr(win, "py2f"):
        raise TypeError(f"a window of mpi4py is needed, not {type(win).__name__}")
    return int(win.py2f())
