# SPDX-License-Identifier: BSD-3-Clause
"""Parts of cached files that were left behind: which belong together, and how they are saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from perdure import _core

    Found = tuple[Path, _core.FoundPart]  # with the directory that it is in


def together(chosen: list[Found]) -> list[list[Found]]:
    """The parts, those of one file and one job's nodes together."""
    groups: dict[tuple, list[Found]] = {}
    for place, part in chosen:
        key = (part.path, part.instance) if part.path and not part.fault else (part.file,)
        groups.setdefault(key, []).append((place, part))
    return list(groups.values())


def recover_group(
    core: ModuleType, group: list[Found], version_wanted: bool, overwrite: bool, to: str
) -> list[dict]:
    """What became of parts that belong together; the first has the bytes that were written.

    `version_wanted`: a file that is committed with a pool goes back to its newest version.
    """
    outcomes = [
        {"file": part.path, "part": part.file, "written_bytes": 0, "error": None}
        for _, part in group
    ]
    try:
        version = _version_of(core, group[0][1]) if version_wanted else None
        places = [(str(place), part.file) for place, part in group]
        outcomes[0]["written_bytes"] = core.recover_parts(places, version, overwrite, to)
    except core.Error as failure:
        for outcome in outcomes:
            outcome["error"] = str(failure)
    return outcomes


def _version_of(core: ModuleType, part: _core.FoundPart) -> int | None:
    """The newest version of the pool with which the file was committed; None: with none.

    Raises core.Error if the pool can't be read or has no version.
    """
    if not part.pool:
        return None
    version = core.inspect_pool(part.pool).version
    if version is None:
        raise core.Error(
            f"the pool {part.pool}, with which it was committed, is damaged; --as-it-is keeps "
            "what the part holds"
        )
    return version
