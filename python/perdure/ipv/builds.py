# SPDX-License-Identifier: BSD-3-Clause
"""Records in a program or library that `perdure ipv check` found its source right.

The compiler leaves a note in each module that announces boxes (perdure_ipv_abi.h): a mark, what the
module was made of, whether that was checked, and the source file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from perdure.failures import Failed, Wrong
from perdure.files import read_bytes, replaced, write_bytes

_MARK = b"PERDURE-IPV-BUILD-1 "
_WORDS = (b" not-checked ", b" checked     ")
_NOTE = re.compile(re.escape(_MARK) + rb"([0-9a-f]{32})(" + b"|".join(_WORDS) + rb")([^\0]*)\0")
_FILE_BYTES_MAX = 2 << 30


class Note(NamedTuple):
    """One module's note, and where in the file its word is."""

    hash: str
    checked: bool
    source: str
    word_at: int


def notes_of(content: bytes) -> list[Note]:
    return [
        Note(found[1].decode(), found[2] == _WORDS[1], os.fsdecode(found[3]), found.start(2))
        for found in _NOTE.finditer(content)
    ]


def record_checked(path: Path, hashes: set[str]) -> list[Note]:
    """Stores into the file at `path` that each of its modules was checked; returns their notes.

    `hashes`: of the modules that a run without a fault had. Raises Wrong for a file without a note,
    Failed where a module of it was in no such run; then the file stays as it is.
    """
    content = read_bytes(path, _FILE_BYTES_MAX)
    notes = notes_of(content)
    if not notes:
        raise Wrong(f"{path} announces no box: it was not compiled by perdure-clang with --ipv, or "
                    "no nest of it could be a box (--ipv-explain=FILE says why), so there is "
                    "nothing to record")
    lacking = sorted({note.source for note in notes if note.hash not in hashes})
    if lacking:
        raise Failed(f"{path} is not what was checked: no module of the run was made of the same "
                     f"as its {', '.join(lacking)}. Compile both of the same source, with the same "
                     "options but --ipv-check, -O as well")
    marked = bytearray(content)
    for note in notes:
        marked[note.word_at : note.word_at + len(_WORDS[1])] = _WORDS[1]
    with replaced(path) as partial:
        write_bytes(partial, bytes(marked))
        partial.chmod(path.stat().st_mode & 0o777)
    return notes
