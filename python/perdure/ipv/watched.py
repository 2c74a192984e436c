# SPDX-License-Identifier: BSD-3-Clause
"""Runs a program that was built with --ipv-record or --ipv-check, and reads what it left."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from perdure.failures import Failed
from perdure.files import read_text
from perdure.programs import end_text, run_to_end, shell_code

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
    with tempfile.TemporaryDirectory(prefix="perdure-ipv-") as folder:
        words = [f"mode={mode}", f"report={folder}/%p.json"]
        words += [f"{key}={value}" for key, value in options.items() if value is not None]
        code = run_to_end(command, {"PERDURE_IPV_CHECK": ",".join(words)})
        reports = [_read(path) for path in sorted(Path(folder).iterdir())]
    if not reports:
        option = f"--ipv-{mode}"
        raise NoReport(_NOT_BUILT_FOR_IT.format(program=command[0], option=option) + end_text(code))
    return shell_code(code), sorted(reports, key=lambda report: report["rank"])


def _read(path: Path) -> dict:
    try:
        return json.loads(read_text(path))
    except ValueError:
        raise NoReport("a report is not whole: the program was killed while it wrote it") from None


def place_text(site: dict | None) -> str:
    """heat.c:41, or what is known of a place."""
    if site is None:
        return "-"
    file = Path(site["file"]).name
    return f"{file}:{site['line']}" if site["line"] else f"{site['function']}() in {file}"
