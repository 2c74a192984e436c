# SPDX-License-Identifier: BSD-3-Clause
"""What a DLPack capsule says of memory, as dlpack.h 1.0 has it: where it is, and what its elements
are. The capsule is only looked at, and keeps the memory alive while it is held."""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

CPU, _CUDA, _CUDA_HOST, _ROCM, _ROCM_HOST, _CUDA_MANAGED = 1, 2, 3, 10, 11, 13
_REACHED = (CPU, _CUDA, _CUDA_HOST, _ROCM, _ROCM_HOST, _CUDA_MANAGED)
_READ_ONLY, _COPIED = 1, 2
_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_number", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _VersionedTensor(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype = ctypes.c_void_p
_pointer_in.argtypes = (ctypes.py_object, ctypes.c_char_p)
_name_of = ctypes.pythonapi.PyCapsule_GetName
_name_of.restype = ctypes.c_char_p
_name_of.argtypes = (ctypes.py_object,)


@dataclass(frozen=True)
class Packed:
    """Elements at an address; `strides` in bytes, None: row-major."""

    address: int
    device: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...] | None
    writable: bool
    capsule: object


def is_on_gpu(buffer: Any) -> bool:
    """Whether it shows memory of an NVIDIA or AMD GPU."""
    if not hasattr(buffer, "__dlpack__") or not hasattr(buffer, "__dlpack_device__"):
        return False
    return int(buffer.__dlpack_device__()[0]) in (_CUDA, _ROCM, _CUDA_MANAGED)


def unpack(buffer: Any, any_device: bool = False) -> Packed | None:
    """None if `buffer` has no `__dlpack__`. Raises TypeError for what no array can have."""
    if not hasattr(buffer, "__dlpack__") or not hasattr(buffer, "__dlpack_device__"):
        return None
    device = int(buffer.__dlpack_device__()[0])
    if device not in _REACHED and not any_device:
        raise TypeError(
            f"{type(buffer).__name__} is in memory of a device of kind {device} of DLPack, which is"
            " neither the host's nor an NVIDIA or AMD GPU's: give functions that reach it, device=…"
            " (docs/devices.md)"
        )
    # Nothing is read now: the producer needs to order no stream.
    given: dict[str, object] = {} if device == CPU else {"stream": -1}
    try:
        capsule = buffer.__dlpack__(max_version=(1, 0), **given)
    except TypeError:  # of before DLPack 1.0
        capsule = buffer.__dlpack__(**given)
    writable = True
    if _name_of(capsule) == b"dltensor_versioned":
        versioned = _VersionedTensor.from_address(_pointer_in(capsule, b"dltensor_versioned"))
        if versioned.major != 1:
            raise TypeError(f"{type(buffer).__name__} shows DLPack {versioned.major}, and not 1")
        if versioned.flags & _COPIED:
            raise TypeError(
                f"{type(buffer).__name__} shows a copy of its memory by DLPack, which would not"
                " change when it does"
            )
        writable = not versioned.flags & _READ_ONLY
        tensor = versioned.tensor
    else:
        tensor = _Tensor.from_address(_pointer_in(capsule, b"dltensor"))
    if tensor.code not in _KINDS or tensor.lanes != 1 or tensor.bits % 8:
        raise TypeError(
            f"elements of DLPack kind {tensor.code} with {tensor.bits} bits are no dtype of numpy"
        )
    dtype = np.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}")
    count = tensor.dimensions
    return Packed(
        (tensor.data or 0) + tensor.byte_offset,
        device,
        tuple(tensor.shape[:count]) if count else (),
        dtype,
        tuple(dtype.itemsize * step for step in tensor.strides[:count]) if tensor.strides else None,
        writable,
        capsule,
    )
