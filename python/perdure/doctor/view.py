# SPDX-License-Identifier: BSD-3-Clause
"""How the checks are shown: a screen for people, a line of tabs for each in a pipe, JSON."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from perdure.doctor.check import MARKS, NOTE, OK, PROBLEM, Check
from perdure.screen import Bold, marked, one_line

_STYLES = {OK: "green", NOTE: "yellow", PROBLEM: "red"}
_MARK, _NAME = 11, 11  # columns
_COLUMNS_MAX = 100
_LEAST_WORDS = 30
Parts = Mapping[str, Sequence[Check]]


class Report:
    """What Screen.print() shows."""

    def __init__(self, place: Path, parts: Parts) -> None:
        self._place = place
        self._parts = parts

    def lines(self, columns: int | None) -> Iterator[tuple[str, str | Bold]]:
        """(style, text) of each line, for a terminal of so many columns or for a file."""
        if columns is None:
            for check in (each for checks in self._parts.values() for each in checks):
                cells = (check.mark, check.name, check.found, check.does, check.improve,
                         check.command)  # fmt: skip
                yield "", "\t".join(map(one_line, cells))
            return
        room = max(min(columns, _COLUMNS_MAX) - _MARK - _NAME, _LEAST_WORDS)
        for title, checks in self._parts.items():
            yield "bold", title if title != "The directory" else f"{title} {self._shown_place()}"
            for check in checks:
                yield from _lines_of(check, room)
        yield "", ""
        yield "", _sum(self._parts)

    def _shown_place(self) -> str:
        return one_line(os.path.abspath(self._place))


def _lines_of(check: Check, room: int) -> Iterator[tuple[str, str | Bold]]:
    said = _wrapped(f"{check.found}: {check.does}", room)
    name = f"{one_line(check.name):<{_NAME}}"
    yield "", marked(f"  {check.mark:<{_MARK - 2}}", _STYLES[check.mark], name + said[0])
    inset = " " * (_MARK + _NAME)
    for line in said[1:]:
        yield "", inset + line
    if check.improve:
        for line in _wrapped(f"better: {check.improve}", room - 2):
            yield "", inset + line
    if check.command:
        yield "bold", f"{inset}$ {one_line(check.command)}"


def _wrapped(text: str, room: int) -> list[str]:
    return textwrap.wrap(one_line(text), room, break_on_hyphens=False) or [""]


def _sum(parts: Parts) -> str:
    count = Counter(check.mark for checks in parts.values() for check in checks)
    notes = f"{count[NOTE]} note{'' if count[NOTE] == 1 else 's'}"
    if count[PROBLEM]:
        return f"{count[PROBLEM]} problem{'' if count[PROBLEM] == 1 else 's'}, {notes}"
    return f"no problem, {notes}"


def report_json(place: Path, parts: Parts) -> dict[str, Any]:
    """The same for programs, with the facts of each check."""
    rows = [
        {"part": part, "name": check.name, "mark": check.mark, "found": check.found,
         "does": check.does, "improve": check.improve, "command": check.command,
         "facts": check.facts}
        for part, checks in parts.items() for check in checks
    ]  # fmt: skip
    counts = {f"{mark}s": sum(row["mark"] == mark for row in rows) for mark in MARKS if mark != OK}
    return {"path": os.path.abspath(place), **counts, "checks": rows}
