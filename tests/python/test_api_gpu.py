# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of a pool in memory of a GPU, on a driver that needs none; each in a process of its own,
as a process that has a driver once has it for good."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

import pytest

from conftest import BUILD, ROOT

DRIVER = BUILD / "tests/gpu/fake/libcuda.so.1"

# A device array as CuPy or Numba would show it.
PRELUDE = f"""
import ctypes, sys
import numpy as np
import perdure

driver = ctypes.CDLL({str(DRIVER)!r}, ctypes.RTLD_GLOBAL)
context = ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0

class Stream:
    def __init__(self):
        self.cuda_stream = ctypes.c_void_p()
        assert driver.cuStreamCreateWithPriority(ctypes.byref(self.cuda_stream), 1, 0) == 0

class OnDevice:
    def __init__(self, contents):
        self.shape, self.dtype, self.size = contents.shape, contents.dtype, contents.nbytes
        self.address, self.writable, self.strides = ctypes.c_uint64(), True, None
        assert driver.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(self.size)) == 0
        self.set(contents)

    @property
    def __cuda_array_interface__(self):
        return {{"shape": self.shape, "typestr": self.dtype.str, "version": 3,
                 "data": (self.address.value, not self.writable), "strides": self.strides}}

    def set(self, contents):
        self.kept = np.ascontiguousarray(contents)
        assert driver.cuMemcpyHtoDAsync_v2(self.address, ctypes.c_void_p(self.kept.ctypes.data),
                                           ctypes.c_size_t(self.size), None) == 0
        assert driver.cuStreamSynchronize(None) == 0

    def get(self):
        found = np.empty(self.shape, self.dtype)
        assert driver.cuMemcpyDtoHAsync_v2(ctypes.c_void_p(found.ctypes.data), self.address,
                                           ctypes.c_size_t(self.size), None) == 0
        assert driver.cuStreamSynchronize(None) == 0
        return found

def refused(kind, call, *words):
    try:
        call()
    except kind as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("it was not refused")

path = sys.argv[1]
"""


def run(program: str, path: object) -> None:
    environment = dict(os.environ, FAKE_CUDA_QUIET="1")
    paths = [str(ROOT / "python"), str(BUILD / "python"), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    ran = subprocess.run(
        [sys.executable, "-c", PRELUDE + dedent(program), str(path)],
        capture_output=True, text=True, timeout=120, env=environment, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("mode", ["copy", "log"])
@pytest.mark.parametrize("dtype", ["f8", "f2", "M8[us]"])
def test_what_a_gpu_has_comes_back(tmp_path, mode, dtype):
    run(
        f"""
        def contents(step):
            return (np.arange(70 * 300) * (step + 1)).reshape(70, 300).astype({dtype!r})

        for start in range(2):
            device = OnDevice(contents(-1))
            with perdure.open(path) as pool:
                u = pool.array("u", (70, 300), {dtype!r}, mode={mode!r}, buffer=device)
                assert u.working is device and u.consistent is device
                assert pool.restart() == (3 if start else None)
                assert (device.get() == contents(3 if start else -1)).all()
                pool.stream(Stream())
                for step in range(1, 4):
                    device.set(contents(step + 3 * start))
                    pool.commit()
                pool.stream(None)
                assert pool.status().lacking_snapshots == 0
                other = OnDevice(contents(7)[:50])
                u.resize((50, 300), buffer=other)
                assert u.working is other
                u.resize((70, 300), buffer=device)
                assert u.shape == (70, 300)
        with perdure.open(path) as pool:
            u = pool.array("u", (70, 300), {dtype!r}, mode={mode!r})
            assert pool.restart() == 6
            assert (u.consistent == contents(6)).all()
        """,
        tmp_path / "pool",
    )


def test_what_a_gpu_can_not_have_is_refused(tmp_path):
    run(
        """
        device = OnDevice(np.zeros((4, 3)))
        with perdure.open(path) as pool:
            def array(**given):
                return pool.array("u", (4, 3), buffer=device, **given)
            refused(perdure.InvalidArgument, lambda: array(mode="twin"), "takes no buffer")
            refused(perdure.Unsupported, lambda: array(mode="log", compare=True), "PERDURE_COMPARE")
            refused(perdure.InvalidArgument, lambda: array(dtype="f4"), "float64 (4, 3)")
            device.strides = (8, 32)
            refused(perdure.InvalidArgument, array, "row-major")
            device.strides = (24, 8)
            device.writable = False
            refused(perdure.InvalidArgument, array, "not writable")
            device.writable = True
            refused(TypeError, lambda: pool.array("u", 3, buffer=[1, 2, 3]), "not an ndarray")
            refused(TypeError, lambda: pool.stream("stream"), "str is no stream")
            u = array()
            pool.restart()
            refused(perdure.Unsupported, lambda: u.resize((5, 3)), "memory of a GPU")
            refused(perdure.Unsupported, lambda: u.resize((5, 3), np.zeros((5, 3))), "of a GPU")
            device.set(np.ones((4, 3)))
            pool.commit_begin()
            u.before_write()
            device.set(np.zeros((4, 3)))
            pool.commit_wait()
        refused(perdure.WrongState, lambda: u.working)
        assert (perdure.read(path).arrays["u"] == 1).all()
        """,
        tmp_path / "pool",
    )


def test_streams_of_every_library_are_taken(tmp_path):
    run(
        """
        from types import SimpleNamespace as Of
        from perdure.api.device import stream_address

        assert stream_address(Of(cuda_stream=5)) == 5
        assert stream_address(Of(ptr=6)) == 6
        assert stream_address(Of(handle=ctypes.c_void_p(7))) == 7
        assert stream_address(Of(handle=ctypes.c_void_p())) == 0
        assert stream_address(Of(__cuda_stream__=lambda: (0, 8))) == 8
        assert stream_address(9) == 9
        """,
        tmp_path / "pool",
    )
