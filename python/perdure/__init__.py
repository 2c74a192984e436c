# SPDX-License-Identifier: BSD-3-Clause
"""Persistence for HPC applications on non-volatile memory.

Programs open pools of numpy arrays and scalars, which survive a crash (docs/python.md):

    import perdure

    with perdure.open("/mnt/pmem/heat") as pool:
        u = pool.array("u", (1000, 1000), mode="twin")
        state = pool.scalars(iteration=0)
        pool.restart()
        while state.iteration < 500:
            step(u.consistent, u.working)
            state.iteration += 1
            pool.commit()

The command `perdure` is in the modules below. Nothing is imported before it is used.
"""

import sys
from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING

# In a build tree the compiled modules are in another folder named perdure.
__path__ = extend_path(__path__, __name__)

if TYPE_CHECKING:
    from perdure.api.array import Array as Array
    from perdure.api.array import ArrayInfo as ArrayInfo
    from perdure.api.errors import Busy as Busy
    from perdure.api.errors import Damaged as Damaged
    from perdure.api.errors import Error as Error
    from perdure.api.errors import Foreign as Foreign
    from perdure.api.errors import InvalidArgument as InvalidArgument
    from perdure.api.errors import IOFailed as IOFailed
    from perdure.api.errors import NewerFormat as NewerFormat
    from perdure.api.errors import NoSpace as NoSpace
    from perdure.api.errors import NotFound as NotFound
    from perdure.api.errors import PeerFailed as PeerFailed
    from perdure.api.errors import Unsupported as Unsupported
    from perdure.api.errors import WrongRanks as WrongRanks
    from perdure.api.errors import WrongShape as WrongShape
    from perdure.api.errors import WrongState as WrongState
    from perdure.api.functions import Device as Device
    from perdure.api.functions import Direction as Direction
    from perdure.api.pool import Due as Due
    from perdure.api.pool import Pool as Pool
    from perdure.api.pool import Status as Status
    from perdure.api.pool import open as open
    from perdure.api.read import Contents as Contents
    from perdure.api.read import read as read
    from perdure.api.scalars import Scalars as Scalars
    from perdure.api.scalars import blob as blob
    from perdure.api.scalars import text as text
    from perdure.api.versions import Version as Version

_PUBLIC = {
    "perdure.api.array": ("Array", "ArrayInfo"),
    "perdure.api.errors": (
        "Busy", "Damaged", "Error", "Foreign", "IOFailed", "InvalidArgument", "NewerFormat",
        "NoSpace", "NotFound", "PeerFailed", "Unsupported", "WrongRanks", "WrongShape",
        "WrongState",
    ),
    "perdure.api.functions": ("Device", "Direction"),
    "perdure.api.pool": ("Due", "Pool", "Status", "open"),
    "perdure.api.read": ("Contents", "read"),
    "perdure.api.scalars": ("Scalars", "blob", "text"),
    "perdure.api.versions": ("Version",),
}  # fmt: skip
_MODULES = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    """Imports what is asked for, so that the command does not wait for numpy."""
    if name == "__version__":
        return str(import_module("perdure.api.native")._api.version)
    if name not in _MODULES:
        raise AttributeError(f"module 'perdure' has no attribute '{name}'")
    try:
        found = getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as missing:
        if missing.name != "numpy":
            raise
        raise ModuleNotFoundError(
            f"perdure needs numpy, which {sys.executable} does not have: install it (pip install "
            "numpy, or apt install python3-numpy), or run another Python", name="numpy"
        ) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
