# SPDX-License-Identifier: BSD-3-Clause
"""Options that belong together, declared once as a frozen dataclass and shared by commands.

A field is an option: its type is Annotated with a typer.Option, its default is the option's. A
command takes the dataclass as one parameter; on the command line its fields take that place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from perdure.files import PICTURES, check_output, check_picture

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def output_file(*names: str, help: str, check: Callable[[Path], None] = check_output) -> Any:
    """An option that names a file to write, or - for stdout; it is checked before the work."""

    def checked(given: Path | None) -> Path | None:
        if given is not None and str(given) != "-":
            check(given)
        return given

    return typer.Option(*names, metavar="FILE", help=help, show_default=False, callback=checked)


def picture_file(*names: str, help: str) -> Any:
    """As output_file(), for a picture."""
    return output_file(*names, help=f"{help} ({', '.join(PICTURES)})", check=check_picture)


def by_default(word: str, alone: bool = False) -> type[TyperGroup]:
    """A group of commands in which a word that is no command belongs to the command `word`.

    `alone`: so does a command line without words.
    """

    class Group(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            known = {*self.commands, *ctx.help_option_names}
            if (alone and not args) or (args and args[0] not in known):
                args = [word, *args]
            return super().parse_args(ctx, args)

    return Group


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """`command` as typer expects it: each dataclass among its parameters replaced by its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type] = {}
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command).parameters.values():
        kind = hints[each.name]
        if is_dataclass(kind) and isinstance(kind, type):
            groups[each.name] = kind
            parameters += _options_of(kind)
        else:
            parameters.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=kind))

    def called(**words: Any) -> None:
        made = {
            name: kind(**{field.name: words.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        command(**words, **made)

    called.__doc__ = command.__doc__
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(called)["__signature__"] = inspect.Signature(parameters)
    return called


def _options_of(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, annotation=hints[field.name],
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
        )
        for field in fields(group)
    ]
