# SPDX-License-Identifier: BSD-3-Clause
"""Darshan logs as records: the counters of the MPI-IO module of a log, by PyPI's darshan.

Darshan has histograms of sizes where a record has classes: a bucket's calls are taken to have the
geometric mean of its bounds, scaled so that the bytes are those counted; the time of a direction is
spread over its calls. It does not say which blocks were touched: of each direction as many bytes as
were moved, at most up to the file's highest byte that the POSIX module saw. Whether the file was
there before is not known either: what was read and not written counts as fetched.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perdure.cache.record import AccessClass, FileUse, NoRecord, Run
from perdure.files import read_beginning

_BUCKETS = {
    "0_100": (1, 100),
    "100_1K": (100, 1e3),
    "1K_10K": (1e3, 1e4),
    "10K_100K": (1e4, 1e5),
    "100K_1M": (1e5, 1e6),
    "1M_4M": (1e6, 4e6),
    "4M_10M": (4e6, 1e7),
    "10M_100M": (1e7, 1e8),
    "100M_1G": (1e8, 1e9),
    "1G_PLUS": (1e9, 1e9),
}


def read_log(path: Path) -> Run:
    """The run of a log. Raises NoRecord if it can't be read, or has no MPI-IO module."""
    try:
        read_beginning(path, 1)
    except OSError as wrong:
        raise NoRecord(f"{path}: {wrong.strerror or wrong}") from None
    try:
        import darshan
    except ImportError:
        raise NoRecord(
            f"{path}: reading Darshan logs takes the package darshan (pip install '.[darshan]' in "
            "the clone)"
        ) from None
    try:
        with _quiet_stderr():
            report = darshan.DarshanReport(str(path), read_all=False)
    except RuntimeError:
        raise NoRecord(f"{path} can't be read as a Darshan log; is it whole?") from None
    if "MPI-IO" not in report.modules:
        raise NoRecord(f"{path}: the job used no MPI-IO, or its log has not the module MPI-IO")
    for module in {"MPI-IO", "POSIX"} & set(report.modules):
        report.mod_read_all_records(module, dtype="dict")
    job = report.metadata["job"]
    highest = _highest_bytes(report)
    files = []
    for record in report.records["MPI-IO"]:
        name = report.name_records.get(record["id"], str(record["id"]))
        both = {**record["counters"], **record["fcounters"]}
        counters = {name: float(value) for name, value in both.items()}
        ranks = job["nprocs"] if record["rank"] < 0 else 1
        files.append(use_of(name, counters, ranks, highest.get(record["id"])))
    return Run(files, job.get("run_time"))


@contextmanager
def _quiet_stderr() -> Iterator[None]:
    """Without what Darshan's C library prints beside what it raises."""
    sys.stderr.flush()
    kept = os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(nothing)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _highest_bytes(report: Any) -> dict[int, float]:
    highest: dict[int, float] = {}
    for record in report.records["POSIX"] if "POSIX" in report.modules else ():
        counters = record["counters"]
        ends = counters["POSIX_MAX_BYTE_READ"], counters["POSIX_MAX_BYTE_WRITTEN"]
        highest[record["id"]] = max(highest.get(record["id"], 0.0), float(max(ends)) + 1)
    return highest


def classes_of(counters: dict, write: bool) -> list[AccessClass]:
    """The accesses of one direction; `counters` are those of the MPI-IO module, by name."""
    verb = "WRITE" if write else "READ"
    calls = {b: counters[f"MPIIO_SIZE_{verb}_AGG_{b}"] for b in _BUCKETS}
    moved = counters["MPIIO_BYTES_WRITTEN" if write else "MPIIO_BYTES_READ"]
    seconds = counters[f"MPIIO_F_{verb}_TIME"]
    guessed = {b: n * math.sqrt(math.prod(_BUCKETS[b])) for b, n in calls.items() if n > 0}
    scale = moved / sum(guessed.values()) if guessed else 0
    total = sum(calls.values())
    return [
        AccessClass(
            write,
            int(calls[bucket]),
            size * scale,
            seconds * calls[bucket] / total,
            size_log2=int(math.log2(max(size * scale / calls[bucket], 1))),
        )
        for bucket, size in guessed.items()
    ]


def use_of(path: str, counters: dict, ranks: int, highest_bytes: float | None) -> FileUse:
    """One file of a log, of which `highest_bytes` is the end, if it is known."""
    read, written = counters["MPIIO_BYTES_READ"], counters["MPIIO_BYTES_WRITTEN"]
    end = highest_bytes or read + written
    use = FileUse(path, ranks)
    use.accesses = classes_of(counters, False) + classes_of(counters, True)
    use.open_close_s = counters["MPIIO_F_META_TIME"] / ranks
    use.touched_bytes = min(read + written, end)
    use.dirty_bytes = min(written, end)
    use.fetched_bytes = max(min(read, end) - use.dirty_bytes, 0)
    use.read_only = written == 0
    return use
