"""What the commands show: text of files and of other users is shown as it is, never obeyed.

Names of jobs, arrays, hosts and paths come from whoever wrote them. Control characters in them
would reach the terminal (move the cursor, change the window's title, answer in the user's name),
and brackets would be taken for markup of the tables. So everything a command prints goes through
here: no markup, and control and direction-changing characters stand as escapes.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from typing import Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

_KEPT = "\n\t"
# Categories of Unicode: controls, formats (direction marks among them), surrogates, line and
# paragraph separators.
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


class Screen(Console):
    """A console without markup, whose text is plain(); its own control codes stay."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The segments of `renderable`, made plain."""
        for segment in super().render(renderable, options):
            if segment.control is None:
                yield Segment(plain(segment.text), segment.style)
            else:
                yield segment


def console(columns: int = 1000, stderr: bool = False) -> Screen:
    """For results; `columns` wide where the stream is no terminal, so that nothing is cut."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else columns
    return Screen(width=width, stderr=stderr, highlight=False, markup=False, emoji=False)


def bold(text: object, rest: object = "") -> Text:
    """A line that begins with `text` in bold."""
    return Text.assemble((plain(text), "bold"), plain(rest))


def drawn(text: object) -> str:
    """As one_line(), for a figure: a dollar is no mathematics."""
    return one_line(text).replace("$", r"\$")


def say(text: object = "", err: bool = False) -> None:
    """Writes a line to stdout, or to stderr."""
    typer.echo(plain(text), err=err)


def bad_parameter(reason: object, **options: Any) -> typer.BadParameter:
    """A typer.BadParameter whose reason may hold what a file holds."""
    return typer.BadParameter(plain(reason), **options)
