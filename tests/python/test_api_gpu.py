# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of a pool in memory of a GPU, on a driver that needs none; each in a process of its own,
as a process that has a driver once has it for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from conftest import BUILD, ROOT, in_this_process

CUDA, HIP = "libcuda.so.1", "libamdhip64.so.6"

# A device array as CuPy or Numba would show it.
PRELUDE = f"""
import ctypes, sys
import numpy as np
import perdure

driver = ctypes.CDLL({str(BUILD)!r} + "/tests/gpu/fake/" + sys.argv[2], ctypes.RTLD_GLOBAL)
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
        self.more = {{}}
        assert driver.cuMemAlloc_v2(ctypes.byref(self.address), ctypes.c_size_t(self.size)) == 0
        self.set(contents)

    @property
    def __cuda_array_interface__(self):
        return {{"shape": self.shape, "typestr": self.dtype.str, "version": 3,
                 "data": (self.address.value, not self.writable), "strides": self.strides,
                 **self.more}}

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


def run(program: str, path: object, driver: str = CUDA) -> None:
    environment = dict(os.environ, FAKE_CUDA_QUIET="1")
    paths = [str(ROOT / "python"), str(BUILD / "python"), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    ran = subprocess.run(
        [sys.executable, "-c", PRELUDE + dedent(program), str(path), driver],
        capture_output=True, text=True, timeout=120, env=environment, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("mode", ["copy", "log"])
@pytest.mark.parametrize(
    "dtype, driver", [("f8", CUDA), ("f2", CUDA), ("M8[us]", CUDA), ("f8", HIP)]
)
def test_what_a_gpu_has_comes_back(tmp_path, mode, dtype, driver):
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
        driver,
    )


def _shown(pool: Path) -> tuple[dict, list]:
    """What the command says of a pool that was made at another time, and its arrays' elements."""
    shown = in_this_process("pool", "show", "--json", pool)
    assert shown.code == 0, shown.err
    document = json.loads(shown.out.decode().replace(str(pool), "POOL"))
    for known_by, of in [("job_id", document), ("created_ns", document)]:
        assert of.pop(known_by)
    for file in document["rank_files"]:
        assert file.pop("committed_ns")
    dumped = [in_this_process("pool", "dump", pool, name, "-o", "-") for name in ("u", "v")]
    assert all(each.code == 0 for each in dumped), dumped
    return document, [each.out for each in dumped]


@pytest.mark.parametrize("driver", [CUDA, HIP])
def test_a_pool_says_nothing_of_where_its_arrays_were(tmp_path, driver):
    pools = [tmp_path / "on GPU" / "pool", tmp_path / "on processor" / "pool"]
    for pool in pools:
        pool.parent.mkdir()
        run(
            """
            class OnHost:
                def __init__(self, contents):
                    self.buffer = contents
                def set(self, contents):
                    self.buffer[:] = contents

            def contents(step):
                return (np.arange(90 * 300) // 7 * (step + 1.0)).reshape(90, 300)

            on_gpu = "on GPU" in path
            kind = OnDevice if on_gpu else OnHost
            with perdure.open(path, job="a") as pool:
                kept = []
                for name, mode in (("u", "copy"), ("v", "log")):
                    memory = kind(contents(0))
                    buffer = memory if on_gpu else memory.buffer
                    pool.array(name, (90, 300), mode=mode, buffer=buffer)
                    kept.append(memory)
                pool.restart()
                for step in range(1, 6):
                    for number, memory in enumerate(kept):
                        memory.set(contents(step + 10 * number))
                    pool.commit()
            """,
            pool,
            driver,
        )
    (on_gpu, elements), (on_processor, same_elements) = (_shown(pool) for pool in pools)
    assert on_gpu == on_processor
    assert elements == same_elements and all(len(each) >= 90 * 300 * 8 for each in elements)


@pytest.mark.parametrize("driver", [CUDA, HIP])
def test_a_twin_array_takes_elements_from_a_gpu(tmp_path, driver):
    run(
        """
        one, other = OnDevice(np.zeros(5000)), OnDevice(np.zeros((7, 100)))
        with perdure.open(path) as pool:
            u = pool.array("u", 5702, mode="twin", checksums=True)
            copied = pool.array("v", 3)
            pool.restart()
            pool.stream(Stream())
            for step in range(1, 5):
                one.set(np.arange(5000.0) * step)
                other.set(np.full((7, 100), float(step)))
                u.write(1, one)
                u.write(5001, other)
                u.write(0, [float(step)])
                u.working[-1] = step
                pool.commit()
                assert (u.consistent[1:5001] == np.arange(5000.0) * step).all()
                assert (u.consistent[5001:] == step).all() and u.consistent[0] == step
            refused(perdure.InvalidArgument, lambda: u.write(703, one), "beyond")
            refused(perdure.InvalidArgument, lambda: u.write(0, OnDevice(np.zeros(3, "f4"))), "f")
            refused(perdure.WrongState, lambda: copied.write(0, OnDevice(np.zeros(3))), "twin")
        assert (perdure.read(path).arrays["u"][5001:] == 4).all()
        """,
        tmp_path / "pool",
        driver,
    )


def test_what_a_gpu_can_not_have_is_refused(tmp_path):
    run(
        """
        device = OnDevice(np.zeros((4, 3)))
        with perdure.open(path) as pool:
            def array(**given):
                return pool.array("u", (4, 3), buffer=device, **given)
            refused(perdure.InvalidArgument, lambda: array(mode="twin"), "no buffer", "copy mode")
            refused(perdure.Unsupported, lambda: array(mode="log", compare=True), "PERDURE_COMPARE")
            refused(perdure.InvalidArgument, lambda: array(dtype="f4"), "float64 (4, 3)")
            device.strides = (8, 32)
            refused(perdure.InvalidArgument, array, "row-major")
            device.strides = (24, 8)
            device.writable = False
            refused(perdure.InvalidArgument, array, "not writable")
            device.writable = True
            device.more = {"mask": OnDevice(np.ones((4, 3), "?"))}
            refused(perdure.InvalidArgument, array, "has a mask")
            device.more = {"stream": 0}
            refused(perdure.InvalidArgument, array, "stream 0")
            device.more = {"mask": None, "stream": None, "descr": [("", "<f8")]}
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


@pytest.mark.parametrize("stream", ["None", "1", "2", "of another one"])
def test_what_the_stream_of_an_interface_leaves_is_written(memory_path, monkeypatch, stream):
    monkeypatch.setenv("FAKE_CUDA_DELAY_US", "300")
    run(
        f"stream = {stream!r}\n"
        + dedent("""
        named, made = Stream(), Stream()
        names = {"None": None, "1": 1, "2": 2, "of another one": made.cuda_stream.value}
        works_on = ctypes.c_void_p(names[stream] or named.cuda_stream.value)
        rows = [OnDevice(np.full(200_000, float(step))) for step in range(9)]
        source = OnDevice(np.zeros(200_000))
        source.more = {"stream": names[stream]}
        with perdure.open(path) as pool:
            u = pool.array("u", 200_000, mode="twin")
            pool.restart()
            pool.stream(named)

            def store(row):
                assert driver.cuMemcpyDtoDAsync_v2(source.address, row.address,
                                                   ctypes.c_size_t(row.size), works_on) == 0

            for step in range(1, 9):
                store(rows[step])
                u.write(0, source)
                store(rows[0])  # which that stream does after the transfer
                pool.commit()
                assert (u.consistent == step).all(), (step, u.consistent)
        """),
        memory_path / "pool",
    )


# Elements that nobody holds any more, whose memory their library gives to another stream, as JAX
# does: what that stores there is not the program's.
REUSED = """
import gc, weakref
later = Stream()

class Reused(OnDevice):
    def __del__(self):
        assert driver.cuMemsetD8Async(self.address, 0x7f, ctypes.c_size_t(self.size),
                                      later.cuda_stream) == 0
        assert driver.cuStreamSynchronize(later.cuda_stream) == 0

held = []
def fresh(step):
    made = Reused(np.full(200_000, float(step)))
    held.append(weakref.ref(made))
    return made
"""


@pytest.mark.parametrize("end", ["commit", "commit_wait", "failure"])
def test_elements_of_a_gpu_are_kept_until_the_commit_has_them(memory_path, monkeypatch, end):
    monkeypatch.setenv("FAKE_CUDA_DELAY_US", "3000")
    run(
        f"end = {end!r}\n"
        + REUSED
        + dedent("""
        with perdure.open(path) as pool:
            u = pool.array("u", 200_000, mode="twin")
            pool.restart()
            pool.stream(Stream())
            for step in range(1, 5):
                u.write(0, fresh(step))
                if end == "failure":
                    view = u.working[:]
                    refused(perdure.WrongState, pool.commit, "alive")
                    del view
                if end == "commit_wait":
                    pool.commit_begin()
                    gc.collect()
                    pool.commit_wait()
                else:
                    pool.commit()
                assert (u.consistent == step).all(), (step, u.consistent)
                assert not any(owner() for owner in held), "kept after the commit"
            u.write(0, fresh(5))
        assert held[-1]() is None
        """),
        memory_path / "pool",
    )


def test_elements_of_a_gpu_are_refused_where_no_stream_was_named(tmp_path):
    run(
        """
        with perdure.open(path) as pool:
            u = pool.array("u", 3, mode="twin")
            pool.restart()
            source = OnDevice(np.ones(3))
            refused(perdure.WrongState, lambda: u.write(0, source), "Pool.stream()")
            pool.stream(Stream())
            source.more = {"stream": 0}
            refused(perdure.InvalidArgument, lambda: u.write(0, source), "stream 0")
            source.more = {"mask": source}
            refused(perdure.InvalidArgument, lambda: u.write(0, source), "mask")
            source.more = {}
            source.strides = (16,)
            refused(perdure.InvalidArgument, lambda: u.write(0, source), "row-major")
            source.strides = (8,)
            source.writable = False  # it is only read
            u.write(0, source)
            pool.stream(None)
            refused(perdure.WrongState, lambda: u.write(0, source), "Pool.stream()")
            pool.commit()
        assert (perdure.read(path).arrays["u"] == 1).all()
        """,
        tmp_path / "pool",
    )


def test_arrays_without_elements_are_at_no_address(tmp_path):
    run(
        """
        nothing = OnDevice(np.zeros((4, 1)))
        nothing.shape, nothing.strides = (0, 3), (8, 32)  # of which none is a step
        nothing.address = ctypes.c_uint64(0)
        with perdure.open(path) as pool:
            u = pool.array("u", (0, 3), buffer=nothing)
            t = pool.array("t", (0, 3), mode="twin")
            pool.restart()
            pool.stream(Stream())
            t.write(0, nothing)
            assert u.working is nothing
            assert pool.commit() == 1
        assert perdure.read(path).arrays["u"].shape == (0, 3)
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


# What PyTorch, JAX and others show without numpy: DLPack, of before version 1 and since.
DLPACK = """
class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("number", ctypes.c_int32),
                ("dimensions", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]

class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]

make_capsule = ctypes.pythonapi.PyCapsule_New
make_capsule.restype = ctypes.py_object
make_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

class Packed:
    def __init__(self, address, like, kind, version=None, flags=0, strides=None, code=2):
        self.version, self.kind, self.flags, self.offset = version, kind, flags, 16
        self.shape = (ctypes.c_int64 * like.ndim)(*like.shape)
        self.strides = None if strides is None else (ctypes.c_int64 * like.ndim)(*strides)
        self.made = Versioned(version, 0) if version else Managed()
        steps = ctypes.addressof(self.strides) if strides else None
        self.made.tensor = Tensor(address - 16, kind, 0, like.ndim, code, 8 * like.itemsize, 1,
                                  ctypes.addressof(self.shape), steps, 16)
        if version:
            self.made.flags = flags

    def __dlpack_device__(self):
        return self.kind, 0

    def __dlpack__(self, stream=None, **given):
        assert stream == (-1 if self.kind != 1 else None)
        if self.version is None and given:
            raise TypeError("max_version")
        name = b"dltensor_versioned" if self.version else b"dltensor"
        return make_capsule(ctypes.addressof(self.made), name, None)
"""


@pytest.mark.parametrize("driver, kind", [(CUDA, 2), (HIP, 10)])
def test_what_dlpack_shows_comes_back(tmp_path, driver, kind):
    run(
        f"kind = {kind}\n"
        + DLPACK
        + dedent("""
        contents = np.arange(3.0 * 40).reshape(3, 40)
        for version in (None, 1):
            device = OnDevice(contents)
            shown = Packed(device.address.value, contents, kind, version, strides=(40, 1))
            place = f"{path}-{version}"
            with perdure.open(place) as pool:
                u = pool.array("u", (3, 40), buffer=shown)
                pool.restart()
                assert u.working is shown
                pool.commit()
                device.set(np.zeros((3, 40)))
                pool.restore(1)
                assert (device.get() == contents).all()
            assert (perdure.read(place).arrays["u"] == contents).all()
        """),
        tmp_path / "pool",
        driver,
    )


def test_memory_of_the_host_that_dlpack_shows_is_an_ndarray(tmp_path):
    run(
        DLPACK
        + dedent("""
        contents = np.arange(3.0 * 40).reshape(3, 40)
        shown = Packed(contents.ctypes.data, contents, 1, 1)
        with perdure.open(path) as pool:
            u = pool.array("u", (3, 40), buffer=shown)
            pool.restart()
            assert type(u.working) is np.ndarray and np.shares_memory(u.working, contents)
            pool.commit()
            u.working[1] = 7
            pool.commit()
            assert (contents[1] == 7).all()
        assert (perdure.read(path).arrays["u"] == contents).all()
        """),
        tmp_path / "pool",
    )


def test_what_dlpack_can_not_show_is_refused(tmp_path):
    run(
        DLPACK
        + dedent("""
        contents = np.zeros((4, 3))
        at = contents.ctypes.data
        with perdure.open(path) as pool:
            def array(*given, **more):
                return lambda: pool.array("u", (4, 3), buffer=Packed(at, contents, *given, **more))
            refused(TypeError, array(14), "kind 14", "device=", "docs/devices.md")
            refused(TypeError, array(1, 2), "DLPack 2")
            refused(TypeError, array(1, 1, 2), "a copy of its memory")
            refused(TypeError, array(1, code=4), "kind 4", "64 bits")
            refused(perdure.InvalidArgument, array(1, 1, 1), "not writable")
            refused(perdure.InvalidArgument, array(1, strides=(1, 4)), "row-major")
            refused(perdure.InvalidArgument, array(1, code=0), "int64")
        """),
        tmp_path / "pool",
    )


# Memory at addresses that the processor can't follow, with a queue that does nothing until it is
# waited for, and then all in order.
FAR = """
AWAY = 1 << 62

class Far:
    def __init__(self):
        self.queue, self.held, self.called, self.failing = [], {}, [], None
        self.device = perdure.Device(self.copy, follow=self.follow, hold=self.hold,
                                     wait=self.wait, allocate=self.allocate)

    def count(self, name):
        self.called.append(name)
        if name == self.failing:
            raise OSError("the device is gone")

    def copy(self, to, start, size, direction):
        self.count("copy")
        to -= 0 if direction is perdure.Direction.TO_HOST else AWAY
        start -= 0 if direction is perdure.Direction.TO_DEVICE else AWAY
        self.queue.append(lambda: ctypes.memmove(to, start, size))

    def follow(self):
        self.count("follow")

    def hold(self):
        self.count("hold")
        self.run()

    def wait(self):
        self.count("wait")
        self.run()

    def run(self):
        for task in self.queue:
            task()
        self.queue.clear()

    def allocate(self, memory, size):
        self.count("allocate")
        if size == 0:
            del self.held[memory]
            return None
        made = ctypes.create_string_buffer(size)
        self.held[ctypes.addressof(made) + AWAY] = made
        return ctypes.addressof(made) + AWAY
"""


@pytest.mark.parametrize("mode", ["copy", "log"])
def test_functions_of_the_program_reach_its_memory(tmp_path, mode):
    run(
        FAR
        + DLPACK
        + dedent(f"""
        far, contents = Far(), np.zeros((70, 300))
        shown = Packed(contents.ctypes.data + AWAY, contents, 14)
        for buffer in (contents.ctypes.data + AWAY, shown):
            with perdure.open(path) as pool:
                u = pool.array("u", (70, 300), mode={mode!r}, buffer=buffer, device=far.device)
                assert u.working is buffer
                began = pool.restart() or 0
                assert (contents == began).all()
                for step in (began + 1, began + 2):
                    contents[:] = step
                    pool.commit_begin()
                    contents[:] = -1
                    pool.commit_wait()
                pool.restore(began + 2)
                assert (contents == began + 2).all()
                other = np.full((7, 300), 9.0)
                u.resize((7, 300), other.ctypes.data + AWAY)
            assert set(far.called) == {{"copy", "follow", "hold", "wait", "allocate"}}
            assert far.held == {{}} and far.queue == []
            contents[:] = 0
        assert (perdure.read(path).arrays["u"] == 4).all()
        """),
        tmp_path / "pool",
    )


def test_a_function_that_raises_fails_the_commit(tmp_path):
    run(
        FAR
        + dedent("""
        far, contents = Far(), np.zeros(5000)
        at = contents.ctypes.data + AWAY
        pool = perdure.open(path)
        refused(TypeError, lambda: pool.array("u", 5000, device=far.device), "no address")
        refused(perdure.InvalidArgument, lambda: pool.array("u", 5000, mode="twin", buffer=at,
                                                            device=far.device), "copy has two")
        u = pool.array("u", 5000, buffer=at, device=far.device)
        pool.restart()
        contents[:] = 1
        pool.commit()
        for name in ("copy", "follow", "hold", "wait"):
            contents[:] = 2
            far.failing = name
            refused(perdure.IOFailed, pool.commit, f"`{name}`", "the last version is whole")
            far.failing = None
        assert (perdure.read(path).arrays["u"] == 1).all()
        pool.commit_begin()  # and the program ends
        """),
        tmp_path / "pool",
    )


def test_functions_of_c_are_called_as_they_are(tmp_path):
    run(
        """
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
                                ctypes.c_size_t, ctypes.c_int)
        contexts = set()

        @kind
        def copy(context, to, start, size, direction):
            contexts.add(context)
            ctypes.memmove(to, start, size)
            return 0

        contents = np.full(5000, 3.0)
        with perdure.open(path) as pool:
            device = perdure.Device(copy, context=77)
            u = pool.array("u", 5000, buffer=contents.ctypes.data, device=device)
            pool.restart()
            assert pool.status().lacking_snapshots == 1
            pool.commit()
        assert contexts == {77}
        assert (perdure.read(path).arrays["u"] == 3).all()
        """,
        tmp_path / "pool",
    )
