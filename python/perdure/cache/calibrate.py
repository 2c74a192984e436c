# SPDX-License-Identifier: BSD-3-Clause
"""What the cache costs on this machine: a short cached run of a known program, recorded.

bench_file_accesses writes a new file in pieces of 1 MiB, again in pieces of 2 MiB, reads and writes
8 bytes at random; another run does next to nothing, cached and not. From the records:

    read_s, write_s     seconds / calls of 8 bytes
    copy                bytes / seconds of the pieces of 2 MiB
    touch               bytes / (seconds of the pieces of 1 MiB - bytes / copy)
    open_close          of the small file, cached minus not
    write_back          bytes / (open and close of the large file - of the small one)
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from perdure.cache.predict import Machine, backing_of
from perdure.cache.preload import cache_environment, find_library, preloading
from perdure.cache.record import FileUse, NoRecord, Run, read_records
from perdure.failures import Failed
from perdure.files import read_text, write_text
from perdure.programs import OPEN_MPI, Program, ProgramFailed, find_programs, output_of

_REGION_BYTES = 32 << 20
_CALLS = 20000
_LIMIT_S = 60
_LARGE = ("write:sequential:1048576:32", "write:sequential:2097152:16")
_SMALL = (f"write:random:8:{_CALLS}", f"read:random:8:{_CALLS}")


class NotCalibrated(Failed):
    """There are no constants; the sentence says what is missing."""


def default_file() -> Path:
    """Where the constants are kept: $XDG_CACHE_HOME/perdure/predict.json, or ~/.cache's."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "perdure" / "predict.json"


def load(file: Path) -> Machine:
    """The constants in `file`. Raises NotCalibrated."""
    try:
        return Machine(**json.loads(read_text(file)))
    except FileNotFoundError:
        raise NotCalibrated(
            "the cache was not measured on this machine yet; add --calibrate DIR, a folder where"
            " cached files would be"
        ) from None
    except (OSError, ValueError, TypeError) as wrong:
        why = wrong.strerror if isinstance(wrong, OSError) and wrong.strerror else wrong
        raise NotCalibrated(
            f"{file}, the constants of this machine, can't be read ({why}); measure them again with"
            " --calibrate DIR"
        ) from None


def file_system_rate(given: float | None, machine: Machine, run: Run) -> tuple[float, str]:
    """The bandwidth of the run's file system, and where it is from. Raises NoRecord."""
    if given:
        return given, "as given"
    folders = {os.path.dirname(use.path) for use in run.files}
    devices = {os.stat(folder).st_dev for folder in folders if os.path.isdir(folder)}
    if machine.write_back_bytes_per_s and devices == {machine.device}:
        return machine.write_back_bytes_per_s, "calibrated on this file system"
    rate = backing_of(run.files)
    if rate is None:
        raise NoRecord("the record has no accesses of 64 KiB or more; say --backing BYTES/S")
    return rate, "from the record's accesses of 64 KiB and more"


def store(machine: Machine, file: Path) -> None:
    """Keeps the constants."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, json.dumps(asdict(machine), indent=2) + "\n")


def calibrate(
    directory: Path, rounds: int = 3, pool: Path | None = None, ranks: int = 1
) -> Machine:
    """Measures, with files in `directory`, the median of some rounds. Raises NotCalibrated.

    Ranks of one node share its memory: the constants are those of each of `ranks` ranks.
    """
    try:
        program = find_programs("bench_file_accesses", "bench")[0]
        with tempfile.TemporaryDirectory(prefix="perdure-calibrate-", dir=directory) as place:
            measured = [_measure(program, ranks, Path(place), pool) for _ in range(rounds)]
    except (ProgramFailed, NoRecord, OSError) as failed:
        raise NotCalibrated(f"the cache could not be measured: {failed}") from None
    middles = (statistics.median(column) for column in zip(*measured, strict=True))
    return replace(Machine(*middles), device=directory.stat().st_dev)


def recorded(program: Program, ranks: int, words: list, folder: Path, cache: str | None) -> dict:
    """Runs a job with a record at folder/record; `cache` is what PERDURE_CACHE says on top of it.

    Returns its last line of JSON. Raises ProgramFailed.
    """
    for old in folder.glob("record.*"):
        old.unlink()
    command = program.command(ranks, *words)
    surroundings = preloading(find_library())
    if cache is not None:
        # From the first byte: what is measured is the cache, not how long a file stands aside.
        surroundings = cache_environment(["*.bin"], ";".join(filter(None, ("from=0", cache))))
    surroundings["PERDURE_RECORD"] = str(folder / "record")
    environment = {key: value for key, value in os.environ.items() if key != "PERDURE_CACHE"}
    environment = {**environment, **OPEN_MPI, **surroundings}
    printed = output_of(command, program.program.name, environment, _LIMIT_S)
    facts = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    if not facts:
        raise ProgramFailed(f"{program.program.name} did not report; it printed: {printed[-300:]}")
    return {fact["metric"]: fact["value"] for fact in facts if "metric" in fact} or facts[-1]


def _measure(
    program: Program, ranks: int, place: Path, pool: Path | None
) -> tuple[float, ...]:
    options = f"directory={pool}" if pool else ""

    def use(steps: tuple[str, ...], cache: str | None) -> FileUse:
        file = place / "calibrate.bin"
        file.unlink(missing_ok=True)
        recorded(program, ranks, [file, _REGION_BYTES, *steps], place, cache)
        return read_records([place / "record"]).files[0]

    tiny = ("write:sequential:8:1",)
    small, stock = use(tiny, options), use(tiny, None)
    return constants_of(use(_LARGE + _SMALL, options), small, stock)


def constants_of(large: FileUse, small: FileUse, stock: FileUse) -> tuple[float, ...]:
    """The constants, in the order of Machine, from the records of the three runs."""

    def kinds(log2: int, write: bool) -> tuple[float, float, float]:
        found = [kind for kind in large.accesses if (kind.size_log2, kind.write) == (log2, write)]
        sums = [sum(getattr(k, name) for k in found) for name in ("calls", "bytes", "seconds")]
        return sums[0], sums[1], max(sums[2], 1e-12)

    _, again_bytes, again_s = kinds(21, True)
    copy = again_bytes / again_s
    _, new_bytes, new_s = kinds(20, True)
    touch_s = max(new_s - new_bytes / copy, 1e-9)
    writes, _, write_s = kinds(3, True)
    reads, _, read_s = kinds(3, False)
    handing_s = max(large.open_close_s - small.open_close_s, 1e-9)
    return (
        read_s / max(reads, 1),
        write_s / max(writes, 1),
        copy,
        new_bytes / touch_s,
        max(small.open_close_s - stock.open_close_s, 0.0),
        large.dirty_bytes / handing_s,
    )
