# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is neither the host's nor of a GPU whose driver is known, by functions of the
program: perdure_device of perdure.h."""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable
from enum import IntEnum
from typing import Any, cast

_ADDRESS, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_STEP = ctypes.CFUNCTYPE(_INT, _ADDRESS)
_FunctionOfC: type = _STEP.__mro__[1]  # of all that ctypes makes
_KINDS: dict[str, Any] = {
    "copy": ctypes.CFUNCTYPE(_INT, _ADDRESS, _ADDRESS, _ADDRESS, _SIZE, _INT),
    "follow": _STEP,
    "hold": _STEP,
    "wait": _STEP,
    "allocate": ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, _ADDRESS, _SIZE),
}


class Direction(IntEnum):
    """Of Device's function copy."""

    TO_HOST = 1
    TO_DEVICE = 2
    WITHIN_DEVICE = 3


class _Functions(ctypes.Structure):
    _fields_ = (("context", _ADDRESS), *((name, _ADDRESS) for name in _KINDS))


class Device:
    """How the memory of a device is reached (docs/devices.md); for Pool.array(device=…).

    copy      copy(to, from, bytes, direction) asks for a copy of bytes at these addresses, after
              those that were asked for before; `direction` is a perdure.Direction
    follow    follow(): copies asked for from now on begin after what the device was asked for
    hold      hold(): what the device is asked for next begins after the copies so far
    wait      wait() returns when all copies are done
    allocate  allocate(memory, bytes) gives the address of memory of the device, or None; with 0
              bytes it takes `memory` back
    context   of functions of C

    Each is a function of Python, which raises to fail; or all are functions of C by ctypes, as in
    perdure.h, whose first argument is `context`. Any thread calls them, one at a time, until the
    pool is closed.
    """

    def __init__(
        self,
        copy: Callable[..., object],
        *,
        follow: Callable[..., object] | None = None,
        hold: Callable[..., object] | None = None,
        wait: Callable[..., object] | None = None,
        allocate: Callable[..., object] | None = None,
        context: int = 0,
    ):
        given = {
            "copy": copy, "follow": follow, "hold": hold, "wait": wait, "allocate": allocate,
        }  # fmt: skip
        self._kept = {
            name: function if isinstance(function, _FunctionOfC) else _callable(name, function)
            for name, function in given.items()
            if function is not None
        }
        self._of_c = _Functions(context)
        for name, function in self._kept.items():
            setattr(self._of_c, name, ctypes.cast(cast(Any, function), _ADDRESS).value)
        if not context:  # which tells devices apart
            self._of_c.context = ctypes.addressof(self._of_c)

    @property
    def address(self) -> int:
        """Of a perdure_device, while this object is alive."""
        return ctypes.addressof(self._of_c)


def _callable(name: str, function: Callable[..., object]) -> Any:
    """What C calls: an exception is printed, as nobody is there to whom it could go, and fails."""

    def step(_context: object, *arguments: Any) -> int:
        try:
            function(*arguments)
        except BaseException:
            traceback.print_exc()
            return 1
        return 0

    def copy(context: object, to: int, start: int, size: int, direction: int) -> int:
        return step(context, to, start, size, Direction(direction))

    def allocate(_context: object, memory: int | None, size: int) -> Any:
        try:
            return function(memory, size)
        except BaseException:
            traceback.print_exc()
            return None

    return _KINDS[name]({"copy": copy, "allocate": allocate}.get(name, step))
