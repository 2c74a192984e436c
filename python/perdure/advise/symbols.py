# SPDX-License-Identifier: BSD-3-Clause
"""The large static variables of a program, by nm(1) where it is and the program has symbols."""

from __future__ import annotations

import shutil
import subprocess

from perdure.advise.mappings import LEAST_BYTES, Mapping
from perdure.files import read_beginning

_MOVABLE = b"\x03\x00"  # e_type ET_DYN
_LIMIT_S = 10
_DATA = "bBdD"


def static_variables(program: str, mappings: list[Mapping]) -> list[tuple[int, int, str]]:
    """(address, bytes, name) of each in the process that has these mappings; none without nm."""
    nm = shutil.which("nm")
    own = [each for each in mappings if each.path == program]
    if nm is None or not own:
        return []
    try:
        words = [nm, "-S", "--defined-only", program]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_LIMIT_S)
        movable = read_beginning(program, 18)[16:18] == _MOVABLE
    except (OSError, subprocess.TimeoutExpired):
        return []
    base = own[0].start - own[0].offset if movable else 0
    return parse_nm(done.stdout, base)


def parse_nm(text: str, base: int) -> list[tuple[int, int, str]]:
    """The variables of at least LEAST_BYTES in what `nm -S` prints."""
    rows = (line.split(maxsplit=3) for line in text.splitlines())
    found = [
        (base + int(row[0], 16), int(row[1], 16), row[3])
        for row in rows if len(row) == 4 and row[2] in _DATA
    ]  # fmt: skip
    return [each for each in found if each[1] >= LEAST_BYTES]
