# SPDX-License-Identifier: BSD-3-Clause
"""The micro-benchmark of a profile: reads and writes by several processes, one sample at a time.

A sample is one operation with one number of processes at one clock: seconds from the first start to
the last end, CPU seconds of all processes, joules if a meter is alive. Samples are taken in random
order and kept in a file as they come, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perdure.core import load_core
from perdure.energy.quantities import Wrong
from perdure.files import append_text, read_text, remove

PAGE = 4096
SETTLE_S = 0.06  # of the clock, before a sample
IDLE_SAMPLES, IDLE_S = 5, 0.4


@dataclass(frozen=True)
class Case:
    """What is set for a sample; a clock of None leaves it alone."""

    op: str
    freq_kHz: int | None
    writers: int


@dataclass(frozen=True)
class Sample:
    """One measurement of a case. MB are 10^6 bytes."""

    case: Case
    repeat: int
    bytes: int
    seconds: float
    cpu_s: float
    joules: float | None
    metered_s: float | None  # that they were counted in: from before the start to after the end
    load_1min: float

    @property
    def bandwidth_MBps(self) -> float:
        return self.bytes / 1e6 / self.seconds

    @property
    def power_W(self) -> float | None:
        if self.joules is None or self.metered_s is None:
            return None
        return self.joules / self.metered_s

    @property
    def energy_J_per_MB(self) -> float | None:
        return None if self.joules is None else self.joules / (self.bytes / 1e6)

    @property
    def cpu_s_per_GB(self) -> float:
        return self.cpu_s / (self.bytes / 1e9)


class Target:
    """Where samples read and write: a folder of its own below a directory, or a block device."""

    def __init__(self, path: Path, sample_bytes: int, buffered: bool, destroy: bool):
        self.core = load_core()
        self.path = path
        self.sample_bytes = sample_bytes
        self.is_device = path.exists() and stat.S_ISBLK(path.stat().st_mode)
        self._own_folder: Path | None = None
        if self.is_device:
            check_device(path, destroy)
        elif not path.is_dir():
            raise Wrong(f"{path} is neither a directory nor a block device; name a directory on "
                        "the device, for example the one of your pools")
        try:
            self.storage = self.core.energy_storage(str(path))
        except self.core.Error as failure:
            raise Wrong(str(failure)) from None
        self.io_mode = self._mode(buffered)
        self.written = 0

    def _mode(self, buffered: bool) -> str:
        if self.storage["is_memory"]:
            return "memory"
        if buffered:
            return "fsync"
        if self.is_device:
            return "direct"
        try:
            with tempfile.NamedTemporaryFile(dir=self.path, prefix=".perdure-energy-") as file:
                os.close(os.open(file.name, os.O_WRONLY | os.O_DIRECT))
        except PermissionError:
            raise Wrong(f"{self.path} can't be written to; choose another directory") from None
        except OSError:
            return "fsync"
        return "direct"

    def __enter__(self) -> Target:
        if not self.is_device:
            try:
                self._own_folder = Path(tempfile.mkdtemp(dir=self.path, prefix=".perdure-energy-"))
            except OSError as failed:
                raise Wrong(f"{self.path}: {failed.strerror}; choose another directory") from None
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._own_folder is not None:
            shutil.rmtree(self._own_folder, ignore_errors=True)

    @property
    def folder(self) -> Path:
        """Where its files are, between enter and exit; not of a block device."""
        assert self._own_folder is not None
        return self._own_folder

    def free_bytes(self) -> int | None:
        """Of the file system; None for a block device."""
        if self.is_device:
            return None
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def capacity_bytes(self) -> int:
        """Of the file system or the device."""
        if self.is_device:
            fd = os.open(self.path, os.O_RDONLY)
            try:
                return os.lseek(fd, 0, os.SEEK_END)
            finally:
                os.close(fd)
        found = os.statvfs(self.path)
        return found.f_blocks * found.f_frsize

    def _shares(self, op: str, writers: int) -> list[tuple[str, int, int]]:
        """(path, offset, bytes) of each process: a file each to write, a range each to read."""
        share = self.sample_bytes // writers // PAGE * PAGE
        if self.is_device:
            return [(str(self.path), i * share, share) for i in range(writers)]
        if op == "read":
            return [(str(self.folder / "read"), i * share, share) for i in range(writers)]
        return [(str(self.folder / f"write-{i}"), 0, share) for i in range(writers)]

    def transfer(self, op: str, writers: int, seed: int, total: Any) -> Any:
        """Start, end and CPU time of each process; (joules, seconds) or None. Raises Wrong."""
        shares = self._shares(op, writers)
        measured = self._io(op, shares, seed, create=not self.is_device, total=total)
        if op == "write":
            self.written += sum(share[2] for share in shares)
            if not self.is_device:
                for path, _offset, _bytes in shares:
                    os.unlink(path)
        return measured

    def fill(self) -> None:
        """What is read is written first, once."""
        whole = self.sample_bytes // PAGE * PAGE
        if self.is_device:
            return  # reads what is there
        file = self.folder / "read"
        if not file.exists():
            self._io("write", [(str(file), 0, whole)], seed=1, create=True)
            self.written += whole

    def _io(self, op: str, shares: list, seed: int, create: bool, total: Any = None) -> Any:
        try:
            return self.core.energy_io(op, shares, direct=self.io_mode == "direct",
                                       sync=self.io_mode != "memory", create=create, seed=seed,
                                       sum=total)
        except self.core.Error as failure:
            raise Wrong(str(failure)) from None


def check_device(path: Path, destroy: bool) -> None:
    """Raises Wrong unless a block device may be written over."""
    if not destroy:
        raise Wrong(f"{path} is a block device, and measuring writes over what is on it; name a "
                    "directory on it instead, or say --destroy if nothing on it is needed")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_EXCL))
    except OSError as failed:
        raise Wrong(f"{path} can't be had alone ({failed.strerror}): it is mounted, or part of a "
                    "volume; it is not written to, --destroy or not") from None


def idle_watts(total: Any) -> list[float]:
    """Watts while nothing is done; empty without a meter."""
    watts = []
    for _ in range(IDLE_SAMPLES if total is not None else 0):
        began, before = time.monotonic(), total.sample()
        time.sleep(IDLE_S)
        after = total.sample()
        if before is not None and after is not None:
            watts.append((after - before) / (time.monotonic() - began))
    return watts


def take_sample(target: Target, total: Any, case: Case, repeat: int) -> Sample:
    """Sets the clock, lets the processes go, restores the clock. Raises Wrong."""
    session = target.core.energy_session(str(target.path), case.freq_kHz, 0, 0)
    if case.op == "read":
        target.fill()
    session.acquire(case.op)
    try:
        if case.freq_kHz is not None:
            time.sleep(SETTLE_S)
        times, used = target.transfer(case.op, case.writers, random.getrandbits(31), total)
    finally:
        session.release()
    seconds = max(end for _start, end, _cpu in times) - min(start for start, _end, _cpu in times)
    moved = target.sample_bytes // case.writers // PAGE * PAGE * case.writers
    if case.freq_kHz is not None and (reason := session.facts()["not_applied"]):
        raise Wrong(f"the clock could not be set to {case.freq_kHz} kHz: {reason}")
    joules, metered_s = used or (None, None)
    return Sample(case, repeat, moved, max(seconds, 1e-9), sum(cpu for _s, _e, cpu in times),
                  joules, metered_s, os.getloadavg()[0])


class SampleStore:
    """The samples so far, in a file of JSON lines; the first line says what they belong to."""

    def __init__(self, file: Path, parameters: dict):
        self.file = file
        self.samples: dict[tuple[Case, int], Sample] = {}
        if file.exists():
            self._read(parameters)
        else:
            self._append({"parameters": parameters})

    def _read(self, parameters: dict) -> None:
        lines = read_text(self.file).splitlines()
        try:
            known = json.loads(lines[0])["parameters"]
        except (json.JSONDecodeError, KeyError, IndexError, TypeError):
            raise Wrong(f"{self.file} holds no samples of a profile; remove it") from None
        if known != parameters:
            different = [key for key in parameters if known.get(key) != parameters[key]]
            raise Wrong(f"{self.file} holds samples of another run (other {', '.join(different)}); "
                        "give the same options to go on with it, or remove it")
        for line in lines[1:]:
            try:
                values = json.loads(line)
            except json.JSONDecodeError:
                continue  # the last line of a run that was killed
            case = Case(**values.pop("case"))
            sample = Sample(case=case, **values)
            self.samples[case, sample.repeat] = sample

    def _append(self, values: dict) -> None:
        append_text(self.file, json.dumps(values) + "\n")

    def add(self, sample: Sample) -> None:
        self._append(asdict(sample))
        self.samples[sample.case, sample.repeat] = sample

    def of(self, case: Case) -> list[Sample]:
        """The samples of a case, in the order of their repeats."""
        return [each for (known, _repeat), each in sorted(
            self.samples.items(), key=lambda item: item[0][1]) if known == case]

    def remove(self) -> None:
        remove(self.file)


def measure_cases(
    target: Target, total: Any, cases: Iterable[Case], repeats: int, store: SampleStore,
    advance: Callable[[], None],
) -> None:
    """Takes what the store lacks, in random order."""
    wanted = [(case, repeat) for case in cases for repeat in range(repeats)]
    random.shuffle(wanted)
    for case, repeat in wanted:
        if (case, repeat) not in store.samples:
            store.add(take_sample(target, total, case, repeat))
        advance()
