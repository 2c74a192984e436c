# SPDX-License-Identifier: BSD-3-Clause
"""What the commands show: text of files and of other users is shown as it is, never obeyed.

Names of jobs, arrays, hosts and paths come from whoever wrote them. Control characters in them
would reach the terminal (move the cursor, change the window's title, answer in the user's name).
So everything a command prints goes through here: there is no markup, and control and
direction-changing characters become escapes.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO

import typer

_KEPT = "\n\t"
# Categories of Unicode: controls, formats (direction marks among them), surrogates, line and
# paragraph separators.
_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33"}
_ESCAPED = ("Cc", "Cf", "Cs", "Zl", "Zp")


def plain(text: object) -> str:
    """`text` with every character that a terminal would obey written as an escape."""
    shown = str(text)
    if shown.isascii() and (shown.isprintable() or not _has_controls(shown)):
        return shown
    return "".join(map(_shown, shown))


def one_line(text: object) -> str:
    """As plain(), in one line: for names."""
    return plain(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def _has_controls(text: str) -> bool:
    return any(not character.isprintable() and character not in _KEPT for character in text)


def _shown(character: str) -> str:
    if character in _KEPT or unicodedata.category(character) not in _ESCAPED:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class Bold(NamedTuple):
    """A line that begins with a few words in bold, or in a colour."""

    text: str
    rest: str = ""
    style: str = "bold"


class Screen:
    """A stream for results. Text is plain(); bold and colours only where a terminal shows them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        is_terminal = stream.isatty()
        self.columns = shutil.get_terminal_size().columns if is_terminal else None
        self._styled = is_terminal and os.environ.get("TERM") != "dumb"
        self._coloured = self._styled and not os.environ.get("NO_COLOR")

    def print(self, what: object = "", style: str = "", end: str = "\n") -> None:
        """A line: text, a Bold, or a table of perdure.tables, which is laid out to fit."""
        if isinstance(what, Bold):
            self._stream.write(self._in_style(what.text, what.style) + plain(what.rest) + end)
        elif hasattr(what, "lines"):
            for styled, text in what.lines(self.columns):
                self.print(text, styled)
        else:
            self._stream.write(self._in_style(what, style) + end)

    def _in_style(self, text: object, style: str) -> str:
        codes = [_CODES[word] for word in style.split() if self._coloured or word == "bold"]
        if not codes or not self._styled:
            return plain(text)
        return f"\x1b[{';'.join(codes)}m{plain(text)}\x1b[0m"


def console(stderr: bool = False) -> Screen:
    """For results, or for what a verb says of its own work."""
    return Screen(sys.stderr if stderr else sys.stdout)


def bold(text: object, rest: object = "") -> Bold:
    """A line that begins with `text` in bold."""
    return Bold(str(text), str(rest))


def marked(text: object, style: str, rest: object) -> Bold:
    """A line that begins with `text` in that style: red, green or yellow."""
    return Bold(str(text), str(rest), style)


def drawn(text: object) -> str:
    """As one_line(), for a figure: a dollar is no mathematics."""
    return one_line(text).replace("$", r"\$")


def say(text: object = "", err: bool = False) -> None:
    """Writes a line to stdout, or to stderr."""
    typer.echo(plain(text), err=err)


def some_of(names: Sequence[object], most: int) -> str:
    """ "n0, n1 and 7 more": the first `most` of them."""
    named = ", ".join(map(str, names[:most]))
    return named + (f" and {len(names) - most} more" if len(names) > most else "")


def bad_parameter(reason: object, **options: Any) -> typer.BadParameter:
    """A typer.BadParameter whose reason may hold what a file holds."""
    return typer.BadParameter(plain(reason), **options)
