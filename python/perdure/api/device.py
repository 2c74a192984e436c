# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is no ndarray's, and streams of a GPU, as the libraries that have them show them:
PyTorch, CuPy, Numba, JAX and others by __cuda_array_interface__ or DLPack, streams by
__cuda_stream__ or as a number."""

import ctypes
import math
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perdure.api import dlpack
from perdure.api.errors import InvalidArgument
from perdure.api.functions import Device


@dataclass(frozen=True)
class DeviceMemory:
    """Contiguous and row-major elements in memory of a GPU, or of the host."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    writable: bool
    on_host: bool
    owner: object
    stream: int | None = None  # that leaves its contents there, if its library says so

    def host_array(self) -> NDArray[Any]:
        """Of memory of the host: its elements, which keep the owner alive."""
        held = (ctypes.c_char * (math.prod(self.shape) * self.dtype.itemsize)).from_address(
            self.address
        )
        held.owner = self.owner  # type: ignore[attr-defined]
        array = np.ndarray(self.shape, self.dtype, memoryview(held))
        array.flags.writeable = self.writable
        return array


def memory_at(
    address: int, shape: tuple[int, ...], dtype: np.dtype[Any], functions: Device
) -> DeviceMemory:
    """What is at an address of the program's, which only these functions reach."""
    return DeviceMemory(address, shape, dtype, True, False, functions)


def device_memory(
    name: str, buffer: object, functions: Device | None = None
) -> DeviceMemory | None:
    """What `buffer` has there; None if it shows no memory. Raises InvalidArgument, TypeError.

    With `functions` it may be in memory of any device, which these reach.
    """
    interface = getattr(buffer, "__cuda_array_interface__", None)
    if interface is not None:
        shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
        address, read_only = interface["data"]
        _check_row_major(name, shape, interface.get("strides"), dtype)
        if interface.get("mask") is not None:
            raise InvalidArgument(
                f"the buffer of array '{name}' has a mask, which no array can keep: give its"
                " elements, and keep the mask in an array of its own"
            )
        stream = interface.get("stream")
        if stream == 0:
            raise InvalidArgument(
                f"the buffer of array '{name}' names stream 0, which could be either default"
                " stream; 1 is the one of all threads, 2 that of a thread"
            )
        return DeviceMemory(
            operator.index(address or 0), shape, dtype, not read_only, False, (buffer, functions),
            stream,
        )  # fmt: skip
    packed = dlpack.unpack(buffer, any_device=functions is not None)
    if packed is None:
        return None
    _check_row_major(name, packed.shape, packed.strides, packed.dtype)
    on_host = packed.device == dlpack.CPU and functions is None
    return DeviceMemory(
        packed.address,
        packed.shape,
        packed.dtype,
        packed.writable and not (on_host and _is_read_only(buffer)),
        on_host,
        (packed.capsule, buffer, functions),
    )


def _is_read_only(buffer: object) -> bool:
    """Whether numpy may only read it. JAX's arrays, which never change, say so there alone."""
    if not hasattr(buffer, "__array__"):
        return False
    try:
        return not np.asarray(buffer).flags.writeable
    except (TypeError, ValueError, RuntimeError):
        return False


def memory_of_gpu(name: str, elements: object) -> DeviceMemory | None:
    """What `elements` has in memory of a GPU; None: they are the host's, or no memory."""
    if isinstance(elements, np.ndarray):
        return None
    if not hasattr(elements, "__cuda_array_interface__") and not dlpack.is_on_gpu(elements):
        return None
    return device_memory(name, elements)


def _check_row_major(
    name: str, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype[Any]
) -> None:
    if strides is None or 0 in shape:
        return
    expected = dtype.itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != expected:
            raise InvalidArgument(
                f"the buffer of array '{name}' is not row-major and contiguous; copy it first"
            )
        expected *= extent


def stream_address(stream: object) -> int:
    """The CUstream of a stream, as its library shows it. Raises TypeError."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        found = protocol() if callable(protocol) else protocol
        return operator.index(found[1])
    for attribute in ("cuda_stream", "ptr", "handle"):
        address = getattr(stream, attribute, None)
        if address is not None:
            return int(getattr(address, "value", address) or 0)
    try:
        return operator.index(stream)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"{type(stream).__name__} is no stream of a GPU: give one of PyTorch, CuPy or Numba, or"
            " its address"
        ) from None
