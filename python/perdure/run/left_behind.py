# SPDX-License-Identifier: BSD-3-Clause
"""What a job left of cached files on its nodes: it is saved here, or named with what saves it.

Processes note in the run directory which parts they make and join (src/cache/part_run_note.hpp).
A note goes with its part; so what is noted when the job has ended was left behind: by processes
that were killed, that ended by _exit() or abort(), or that could not write back.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.cache.left import recover_group, together
from perdure.core import load_core
from perdure.failures import Failed
from perdure.files import read_beginning
from perdure.units import bytes_text

if TYPE_CHECKING:
    from types import ModuleType

    from perdure import _core

_NOTE_BYTES_MAX = 3 * 4096


@dataclass(frozen=True)
class Note:
    """A part that processes of the job had."""

    node: str
    part: str
    file: str


@dataclass(frozen=True)
class LeftPart:
    """What became of a part. `error`: it is still there, why, and what is to be done."""

    file: str
    part: str
    node: str
    written_bytes: int = 0
    error: str | None = None

    @property
    def sentence(self) -> str:
        if self.error is not None:
            return f"{self.file}: {self.error}"
        return (f"{self.file}: {bytes_text(self.written_bytes)} that the job had left in the cache "
                "of this node are saved now")

    def as_json(self) -> dict:
        return asdict(self)


def parse_note(content: bytes) -> Note | None:
    """The note in `content`; None if there is not one."""
    words = content.split(b"\0")
    if len(words) != 4 or words[3] or not all(words[:3]):
        return None
    return Note(*(os.fsdecode(word) for word in words[:3]))


def read_notes(folders: list[Path]) -> list[Note]:
    """The notes in these folders, each once."""
    notes = {}
    for folder in folders:
        for path in sorted(folder.glob("part-*")):
            try:
                note = parse_note(read_beginning(path, _NOTE_BYTES_MAX))
            except OSError:
                continue
            if note is not None:
                notes[note.node, note.part] = note
    return list(notes.values())


def settle(folders: list[Path], node: str | None = None) -> list[LeftPart]:
    """Saves what the job of these run folders has left, as far as it can be from this node."""
    node = node or os.uname().nodename
    notes = read_notes(folders)
    left = [_elsewhere(note) for note in notes if note.node != node]
    here = [note for note in notes if note.node == node]
    if not here:
        return left
    try:
        core = load_core()
    except Failed as missing:
        return left + [LeftPart(note.file, note.part, node, error=str(missing)) for note in here]
    found = [item for note in here for item in _find(core, note)]
    for group in together(found):
        left += _settle_group(core, group, node)
    return left


def _elsewhere(note: Note) -> LeftPart:
    return LeftPart(
        note.file, note.part, note.node,
        error=f"a part of it was left on node {note.node}; save it there: `perdure cache recover "
        f"{os.path.dirname(note.part)}`",
    )  # fmt: skip


def _find(core: ModuleType, note: Note) -> list[tuple[Path, _core.FoundPart]]:
    """The part of a note, if it is still there."""
    place = Path(note.part).parent
    try:
        parts = core.list_parts(str(place))
    except core.Error:
        return []
    return [(place, part) for part in parts if part.file == note.part]


def _settle_group(
    core: ModuleType, group: list[tuple[Path, _core.FoundPart]], node: str
) -> list[LeftPart]:
    if why := next(filter(None, map(_obstacle, group)), None):
        return [LeftPart(part.path or part.file, part.file, node, error=why) for _, part in group]
    outcomes = recover_group(core, group, version_wanted=False, overwrite=False, to="")
    return [LeftPart(**outcome, node=node) for outcome in outcomes]


def _obstacle(found: tuple[Path, _core.FoundPart]) -> str | None:
    """Why a part is left as it is."""
    place, part = found
    if part.fault:
        return part.fault
    if part.in_use:
        return (f"its part {part.file} is in use by processes that still run; when they have "
                f"ended: `perdure cache recover {place}`")
    if part.pool:
        return (f"it is committed with the pool {part.pool}, to whose newest version the next "
                f"start brings it back from {part.file}; to use it without: `perdure cache recover "
                f"{place} --file {part.path}`")
    return None
