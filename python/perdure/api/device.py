# SPDX-License-Identifier: BSD-3-Clause
"""Memory and streams of a GPU, as the libraries that have them show them: PyTorch, CuPy, Numba, JAX
and others by __cuda_array_interface__, streams by __cuda_stream__ or as a number."""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from perdure.api.errors import InvalidArgument


@dataclass(frozen=True)
class DeviceMemory:
    """Contiguous and row-major elements in memory of a GPU, or that it can reach."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    writable: bool
    owner: object


def device_memory(name: str, buffer: object) -> DeviceMemory | None:
    """What `buffer` has there; None if it is not such memory. Raises InvalidArgument."""
    interface = getattr(buffer, "__cuda_array_interface__", None)
    if interface is None:
        return None
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    address, read_only = interface["data"]
    strides = interface.get("strides")
    if strides is not None and 0 not in shape:
        expected = dtype.itemsize
        for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
            if extent != 1 and stride != expected:
                raise InvalidArgument(
                    f"the buffer of array '{name}' is not row-major and contiguous; copy it first"
                )
            expected *= extent
    return DeviceMemory(operator.index(address or 0), shape, dtype, not read_only, buffer)


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
