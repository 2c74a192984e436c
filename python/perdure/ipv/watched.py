# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program that was built with --ipv-record or --ipv-check, and reads what it left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from perdure.failures import Failed, NoProgram
from perdure.files import read_text

_NOT_BUILT_FOR_IT = (
    "{program} left no report: build it with perdure-clang or perdure-clang++ and {option}, "
    "compiling and linking, and let it end by itself"
)


class NoReport(Failed):
    """There is nothing to tell; the sentence says why and what to do."""


def run_watched(command: list[str], mode: str, **options: str | int | None) -> tuple[int, list]:
    """Runs `command` with the checker in `mode`: its exit code, the reports by rank.

    Raises NoReport if it left none, NoProgram if there is no such program.
    """
    program = shutil.which(command[0])
    if program is None:
        raise NoProgram(f"{command[0]}: there is no such program")
    with tempfile.TemporaryDirectory(prefix="perdure-ipv-") as folder:
        words = [f"mode={mode}", f"report={folder}/%p.json"]
        words += [f"{key}={value}" for key, value in options.items() if value is not None]
        code = _run(command, program, {"PERDURE_IPV_CHECK": ",".join(words)})
        reports = [_read(path) for path in sorted(Path(folder).iterdir())]
    if not reports:
        option = f"--ipv-{mode}"
        raise NoReport(_NOT_BUILT_FOR_IT.format(program=command[0], option=option) + _end(code))
    return shell_code(code), sorted(reports, key=lambda report: report["rank"])


def _run(command: list[str], program: str, more: dict[str, str]) -> int:
    try:
        with subprocess.Popen(command, executable=program, env={**os.environ, **more}) as running:
            while True:
                try:
                    return running.wait()
                except KeyboardInterrupt:  # reaches the program as well, which ends as it likes
                    continue
    except OSError as failure:
        raise NoProgram(f"{command[0]}: {failure.strerror}") from None


def _read(path: Path) -> dict:
    try:
        return json.loads(read_text(path))
    except ValueError:
        raise NoReport("a report is not whole: the program was killed while it wrote it") from None


def _end(code: int) -> str:
    if code == 0:
        return ""
    return f" (it ended with {code})" if code > 0 else f" (signal {-code} ended it)"


def shell_code(code: int) -> int:
    """The exit code of a program as a shell reports it."""
    return code if code >= 0 else 128 - code


def place_text(site: dict | None) -> str:
    """heat.c:41, or what is known of a place."""
    if site is None:
        return "-"
    file = Path(site["file"]).name
    return f"{file}:{site['line']}" if site["line"] else f"{site['function']}() in {file}"
