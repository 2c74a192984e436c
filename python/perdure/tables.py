# SPDX-License-Identifier: BSD-3-Clause
"""The tables that commands print. They fit the terminal, and programs can read them.

On a terminal columns are aligned. Where they need more than its width, the last column is broken
into lines if it holds words and has room for some. If a few cells are much longer than the others
of the first or the last column, these get lines of their own, and all rows stay aligned. Or else
each row becomes lines of "name  value". Where nobody looks, in a pipe or a file, cells are
separated by one tab, without blanks to fill them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Set
from unicodedata import east_asian_width

from perdure.screen import one_line

_GAP = 2
_LEAST_WORDS = 24  # columns of a column that is broken
_Place = tuple[int, int]  # number of a row, and of a column


class Table:
    """Rows of cells below the names of their columns."""

    def __init__(self, names: tuple[str, ...], left: tuple[str, ...], title: str | None) -> None:
        self.names = names
        self.title = title
        self.rows: list[tuple[str, ...]] = []
        self._is_left = [name in left for name in names]

    def add_row(self, *cells: object) -> None:
        """One cell for each column; a newline in a cell begins a line of it."""
        assert len(cells) == len(self.names)
        self.rows.append(tuple("\n".join(map(one_line, str(c).split("\n"))) for c in cells))

    def lines(self, columns: int | None) -> Iterator[tuple[str, str]]:
        """(style, text) of each line, for a terminal of so many columns or for a file."""
        if self.title is not None:
            yield "bold", one_line(self.title)
        if columns is None:
            for row in [self.names, *self.rows]:
                yield "", "\t".join(cell.replace("\n", "; ") for cell in row)
            return
        widths = self._widths()
        last, room = widths[-1], columns - sum(widths[:-1]) - _GAP * (len(widths) - 1)
        apart: set[_Place] = set()
        if last > room >= min(_LEAST_WORDS, last) and self._is_left[-1]:
            widths[-1] = room
        elif last > room:
            apart = self._apart(columns)
            widths = self._widths(apart)
        if self._needed(widths) > columns:
            yield from self._records(columns)
            return
        yield "bold", self._line(self.names, widths)
        for number, row in enumerate(self.rows):
            yield from (("", line) for line in self._laid_out(number, row, widths, apart, columns))

    def _needed(self, widths: list[int]) -> int:
        return sum(widths) + _GAP * (len(widths) - 1)

    def _apart(self, columns: int) -> set[_Place]:
        """The cells without which all others fit; none if most rows would have one.

        Of the first and the last column if they hold words, the longest first.
        """
        apart: set[_Place] = set()
        ends = [column for column in {0, len(self.names) - 1} if self._is_left[column]]
        while self._needed(self._widths(apart)) > columns:
            left = [(_width(row[column]), (number, column)) for number, row in enumerate(self.rows)
                    for column in ends if (number, column) not in apart]
            length, place = max(left, default=(0, (0, 0)))
            if length <= max(_width(self.names[column]) for column in ends or [0]):
                return set()
            apart.add(place)
        rows = {number for number, _ in apart}
        return apart if len(rows) <= max(1, len(self.rows) // 2) else set()

    def _widths(self, apart: Set[_Place] = frozenset()) -> list[int]:
        return [
            max(_width(line) for number, cell in enumerate(cells, -1)
                if (number, column) not in apart for line in cell.split("\n"))
            for column, cells in enumerate(zip(self.names, *self.rows))
        ]  # fmt: skip

    def _laid_out(
        self, number: int, row: tuple[str, ...], widths: list[int], apart: set[_Place], columns: int
    ) -> Iterator[str]:
        """The lines of a row: the first cell above it and the last below it if they are apart."""
        last = len(row) - 1
        if (number, 0) in apart:
            yield from _broken_text(row[0], columns)
        kept = tuple("" if (number, column) in apart else cell for column, cell in enumerate(row))
        yield from self._broken(kept, widths)
        if last and (number, last) in apart:
            inset = " " * _GAP
            yield from (inset + line for line in _broken_text(row[last], columns - _GAP))

    def _broken(self, row: tuple[str, ...], widths: list[int]) -> Iterator[str]:
        """The lines of a row."""
        cells = [cell.split("\n") for cell in row]
        cells[-1] = _broken_text(row[-1], max(widths[-1], 1))
        for number in range(max(map(len, cells))):
            line = tuple(each[number] if number < len(each) else "" for each in cells)
            yield self._line(line, widths)

    def _line(self, cells: tuple[str, ...], widths: list[int]) -> str:
        padded = [
            cell + " " * (width - _width(cell)) if left else " " * (width - _width(cell)) + cell
            for cell, width, left in zip(cells, widths, self._is_left)
        ]
        return (" " * _GAP).join(padded).rstrip()

    def _records(self, columns: int) -> Iterator[tuple[str, str]]:
        width = max(map(_width, self.names)) + _GAP
        for number, row in enumerate(self.rows):
            if number:
                yield "", ""
            for name, cell in zip(self.names, row):
                for line in _broken_text(cell, max(columns - width, _LEAST_WORDS)):
                    yield "", f"{name:<{width}}{line}".rstrip()
                    name = ""


def _broken_text(text: str, columns: int) -> list[str]:
    return [part for line in text.split("\n") for part in textwrap.wrap(line, columns) or [""]]


def _width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def table(*columns: str, left: tuple[str, ...] = (), title: str | None = None) -> Table:
    """A table without lines; columns named in `left` are words, the others numbers."""
    return Table(columns, left, title)
