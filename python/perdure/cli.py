"""The command `perdure`: one verb per module, put together here."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import typer


class Verb(NamedTuple):
    """A verb's module, and the group of commands or the one command in it."""

    module: str
    name: str = "app"
    settings: Mapping[str, Any] = MappingProxyType({})  # of the one command


# Everything from the first word of the job on belongs to the job.
_JOB = {"context_settings": {"allow_interspersed_args": False}, "no_args_is_help": True}
VERBS = {
    "run": Verb("perdure.run.command", "run", _JOB),
    "pool": Verb("perdure.pool.command"),
    "cache": Verb("perdure.cache.command"),
    "ipv": Verb("perdure.ipv.command"),
    "sim": Verb("perdure.sim.app"),
    "trace": Verb("perdure.trace.command"),
    "energy": Verb("perdure.energy.app"),
    "devices": Verb("perdure.devices", "devices"),
}


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            number = version("perdure")
        except PackageNotFoundError:  # of a clone, or of a prefix
            number = str(import_module("perdure._api").library_version)
        print(f"perdure {number}")
        raise typer.Exit


def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it and end."),
    ] = False,
) -> None:
    """Persistence for HPC applications on non-volatile memory."""


def _add(app: typer.Typer, word: str, verb: Verb) -> None:
    found = getattr(import_module(verb.module), verb.name)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=word)
    else:
        app.command(word, **verb.settings)(found)


def command_line(first_word: str = "", verbs: Mapping[str, Verb] = VERBS) -> typer.Typer:
    """The command. If the first word is a verb it has that one only: all take twice the time."""
    app = typer.Typer(
        help="Persistence for HPC applications on non-volatile memory.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(_options)
    for word in [first_word] if first_word in verbs else verbs:
        _add(app, word, verbs[word])
    return app


def main(verbs: Mapping[str, Verb] = VERBS) -> None:
    """Entry point of the console script."""
    command_line("".join(sys.argv[1:2]), verbs)(prog_name="perdure")
