# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program so that it leaves a memory trace, and gathers what its processes left."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from perdure.failures import Failed, Wrong
from perdure.files import remove
from perdure.programs import end_text, program_path, run_to_end, wait_for

if TYPE_CHECKING:
    from perdure._core import TraceImport

_ADDR_NO_RANDOMIZE = 0x0040000
_NOW = 0xFFFFFFFF
_PROGRESS_S = 1.0
_RECORDING = ".recording."


class NoTrace(Failed):
    """There is no trace; the sentence says why and what to do."""


NOT_BUILT_FOR_IT = (
    "{program} left no trace: it was not built for tracing. Either build it with perdure-clang, "
    "perdure-gcc or perdure-gfortran and --trace (compiling and linking), or record it as it is "
    "with perdure trace --valgrind, which is about a thousand times slower"
)


def fixed_addresses() -> None:
    """From here on this process and its children start programs at the same addresses."""
    libc = ctypes.CDLL(None)
    libc.personality.argtypes = [ctypes.c_ulong]
    before = libc.personality(_NOW)
    if before >= 0:
        libc.personality(before | _ADDR_NO_RANDOMIZE)


def recorder_text(file: str, options: dict[str, str | None]) -> str:
    """PERDURE_TRACE: FILE[,key=value…]. Raises Wrong if FILE can't be written so."""
    if "," in file:
        raise Wrong(f"{file}: a trace's name can't have a comma")
    return ",".join([file, *(f"{key}={value}" for key, value in options.items() if value)])


def run_recorded(
    command: list[str], output: Path, options: dict[str, str | None]
) -> tuple[int, list[Path]]:
    """Runs `command`, and names what its processes recorded: its exit code, the traces.

    One process: `output`. Ranks of an MPI job: `output`.RANK. Others: `output`.1, .2 and so on.
    A pipe is written by the program itself, and can't be looked at: no traces.
    Raises NoTrace if the program does not exist or left no trace.
    """
    is_stream = output.exists() and not output.is_file()
    target = str(output.absolute())
    if not is_stream:
        for stale in left_behind(output):
            remove(stale)
        target = target.replace("%", "%%") + _RECORDING + "%p"
    more = {"PERDURE_TRACE": recorder_text(target, options)}
    code = run_to_end(command, more, preexec_fn=fixed_addresses)
    if is_stream:
        return code, []
    found = left_behind(output)
    if not found:
        raise NoTrace(NOT_BUILT_FOR_IT.format(program=command[0]) + end_text(code))
    return code, found


def left_behind(output: Path) -> list[Path]:
    """What processes recorded for `output`, in the order of their numbers."""
    prefix = output.name + _RECORDING
    parent = output.absolute().parent
    found = [path for path in parent.iterdir() if path.name.startswith(prefix)]
    return sorted(found, key=lambda path: int(path.name[len(prefix) :]))


def final_name(output: Path, number: int, count: int, rank: int | None) -> Path:
    """The name of trace `number` of `count`, of which it is rank `rank` or none."""
    if count == 1:
        return output
    return output.with_name(f"{output.name}.{number + 1 if rank is None else rank}")


def run_in_valgrind(
    core: ModuleType, command: list[str], output: Path, options: dict[str, str | None],
    progress: Callable[[int, float], None],
) -> int:
    """Runs `command` in Valgrind's lackey, and imports what it prints. Returns the exit code.

    `progress(bytes, seconds)` is called every second. Raises NoTrace, or core.Error.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise NoTrace("valgrind is not installed (Debian: valgrind)")
    program_path(command[0])
    out, into = os.pipe()
    lackey = [valgrind, "--tool=lackey", "--trace-mem=yes", f"--log-fd={into}", *command]
    source = f"/dev/fd/{out}"
    request = recorder_text(str(output.absolute()), options)
    try:
        importing = core.TraceImport("lackey", source, request, " ".join(command))
        running = subprocess.Popen(lackey, pass_fds=[into], preexec_fn=fixed_addresses)
    finally:
        os.close(into)
    failure = _import_beside(importing, out, running, progress)
    code = wait_for(running)
    if failure is not None:
        remove(output)  # what there is of it is no trace
        raise failure
    return code


def _import_beside(
    importing: TraceImport, out: int, running: subprocess.Popen,
    progress: Callable[[int, float], None],
) -> BaseException | None:
    began = time.monotonic()
    reading = ThreadPoolExecutor(1).submit(importing.run)
    while not reading.done():  # not in a `with`: after Ctrl-C the caller ends what is read
        wait([reading], _PROGRESS_S)
        progress(importing.bytes, time.monotonic() - began)
    if reading.exception() is not None:
        running.kill()
    os.close(out)
    return reading.exception()
