# SPDX-License-Identifier: BSD-3-Clause
"""The tables that commands print. They fit the terminal, and programs can read them.

On a terminal columns are aligned. Where they need more than its width, the last column is broken
into lines if it holds words, or else each row becomes lines of "name  value". Where nobody looks,
in a pipe or a file, cells are separated by one tab, without blanks to fill them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from unicodedata import east_asian_width

from perdure.screen import one_line

_GAP = 2
_LEAST_WORDS = 24  # columns of a column that is broken


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
        needed = sum(widths) + _GAP * (len(widths) - 1)
        if needed > columns and self._is_left[-1]:
            widths[-1] -= needed - columns
        if widths[-1] >= min(_LEAST_WORDS, self._widths()[-1]) and (
            needed <= columns or self._is_left[-1]
        ):
            yield "bold", self._line(self.names, widths)
            for row in self.rows:
                yield from (("", line) for line in self._broken(row, widths))
        else:
            yield from self._records(columns)

    def _widths(self) -> list[int]:
        return [
            max(_width(line) for cell in cells for line in cell.split("\n"))
            for cells in zip(self.names, *self.rows)
        ]

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
