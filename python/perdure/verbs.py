# SPDX-License-Identifier: BSD-3-Clause
"""The command's verbs: each is imported when it is used; how their help looks; how they end.

Help is plain text of at most 80 columns: brackets are shown as they are written, and examples are
on lines of their own, as they are typed.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import typer
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from perdure.ending import ended

_COLUMNS = 78
_EXAMPLE = re.compile(r"Examples?\b([^:]*):\s+(.*)", re.S)


class HelpText(Context.formatter_class):  # type: ignore[misc,valid-type]
    """Help without the names of types and the braces that typer puts around words."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The line "Usage:"."""
        args = args.replace("COMMAND [ARGS]...", "COMMAND …")
        super().write_usage(prog, re.sub(r"\{([^}]*)\}", r"\1", args), prefix)

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
        """Options, arguments or commands, each with its sentence."""
        said = [(re.sub(r" <[^>]*>", "", name), _bounds_in_words(text)) for name, text in rows]
        super().write_dl(said, col_max, col_spacing)


class HelpContext(Context):
    """Of every command."""

    formatter_class = HelpText


def _bounds_in_words(text: str) -> str:
    """A range "1<=x<=9" as "1 to 9", "x>=0" as "at least 0"; "default: (words)" as they are."""
    text = re.sub(r"\[default: \((.*?)\)(?=[];])", r"[default: \1", text)
    text = re.sub(r"\b(-?[0-9.]+)<=x<=(-?[0-9.]+)(?=[];])", r"\1 to \2", text)
    return re.sub(r"\bx>=(-?[0-9.]+)(?=[];])", r"at least \1", text)


class Verb(NamedTuple):
    """A verb's module, and the group of commands or the one command in it."""

    module: str
    name: str  # of the group or the function in the module
    part: str  # of the first screen
    summary: str
    example: str
    settings: Mapping[str, Any] = MappingProxyType({})  # of the one command


class Group(NamedTuple):
    """A verb that is a group of others, each imported when it is used."""

    about: str
    verbs: Mapping[str, Verb]


class LazyVerbs(MutableMapping[str, Any]):
    """The commands of a group by name; a verb's module is imported when its command is asked for.

    All of them together take ten times as long as one.
    """

    def __init__(self, verbs: Mapping[str, Verb]) -> None:
        self._verbs = verbs
        self._made: dict[str, Any] = {}

    def __getitem__(self, word: str) -> Any:
        if word not in self._made:
            self._made[word] = _command_of(word, self._verbs[word])
        return self._made[word]

    def __setitem__(self, word: str, command: Any) -> None:
        self._made[word] = command

    def __delitem__(self, word: str) -> None:
        del self._made[word]

    def __iter__(self) -> Iterator[str]:
        return iter(self._verbs)

    def __len__(self) -> int:
        return len(self._verbs)


class Verbs(TyperGroup):
    """The whole command, or a group in it."""

    table: Mapping[str, Verb] = MappingProxyType({})
    before: Callable[[list[str]], None] | None = None  # what every command line begins with

    def main(self, *args: Any, **settings: Any) -> Any:
        """Runs one command line; ends the process."""
        settings = {**settings, "standalone_mode": False}
        run = super().main

        def work() -> Any:
            if self.before is not None:
                self.before(list(args[0]) if args else sys.argv[1:])
            return run(*args, **settings)

        sys.exit(ended(work))

    def invoke(self, ctx: Any) -> Any:
        """Keeps Ctrl-C from typer, which says nothing of it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(ended(_interrupted)) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Verbs by what they are for, each with an example."""
        width = max(map(len, self.table)) + 2
        for part in dict.fromkeys(verb.part for verb in self.table.values()):
            with formatter.section(part):
                for word, verb in self.table.items():
                    if verb.part == part:
                        formatter.write(f"  {word:<{width}}{verb.summary}\n")
                        formatter.write(f"  {'':<{width}}  {verb.example}\n")


def _interrupted() -> None:
    raise KeyboardInterrupt


def verbs_command(verbs: Mapping[str, Verb], options: Any, about: str) -> Verbs:
    """The command with these verbs; `options` is the function that has its own options."""
    app = typer.Typer(
        cls=Verbs, help=about, no_args_is_help=True, pretty_exceptions_enable=False,
        add_completion=False, rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    app.callback()(options)
    made = get_command(app)
    assert isinstance(made, Verbs)
    made.table = verbs
    made.context_class = HelpContext
    made.commands = LazyVerbs(verbs)
    return made


def _command_of(word: str, verb: Verb) -> Any:
    found = getattr(import_module(verb.module), verb.name)
    if isinstance(found, Group):
        group = verbs_command(found.verbs, lambda: None, found.about)
        group.name = word
        return group
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.callback()(lambda: None)  # or a single command would be the whole
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=word)
    else:
        app.command(word, **verb.settings)(found)
    made = get_command(app).commands[word]  # type: ignore[attr-defined]
    _make_readable(made)
    return made


def _make_readable(command: Any) -> None:
    """Puts examples on lines of their own, and keeps what a command does in one sentence whole."""
    command.context_class = HelpContext
    if command.help:
        command.help = "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", command.help)))
        command.short_help = command.short_help or _first_sentence(command.help)
    for inner in getattr(command, "commands", {}).values():
        _make_readable(inner)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(text.partition("\n\n")[0].split()))[0]


def _paragraph(text: str) -> str:
    match = _EXAMPLE.fullmatch(text.strip())
    if match is None:
        return text
    lines = [line for each in " ".join(match[2].split()).split("; ") for line in _typed(each)]
    title = "Examples" if len(lines) > 1 else "Example"
    return "\n".join(["\b", f"{title}{match[1]}:", *lines])


def _typed(command: str) -> list[str]:
    """A command in lines that a shell takes as one."""
    lines = textwrap.wrap(command, _COLUMNS - 6, initial_indent="  ", subsequent_indent="      ",
                          break_long_words=False, break_on_hyphens=False)
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]
