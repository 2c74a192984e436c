"""The command `perdure`: one verb per module, put together here."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

_VERBS = {  # verb: its module, and the group of commands or the one command in it
    "run": ("perdure.run.command", "run"),
    "pool": ("perdure.pool.command", "app"),
    "cache": ("perdure.cache.command", "app"),
    "ipv": ("perdure.ipv.command", "app"),
    "sim": ("perdure.sim.app", "app"),
    "trace": ("perdure.trace.command", "app"),
    "energy": ("perdure.energy.app", "app"),
    "demo": ("perdure.demo.command", "demo"),
    "devices": ("perdure.devices", "devices"),
    "bench": ("perdure.bench.command", "bench"),
}
_SETTINGS: dict[str, dict] = {
    # Everything from the first word of the job on belongs to the job.
    "run": {"context_settings": {"allow_interspersed_args": False}, "no_args_is_help": True},
    "bench": {"no_args_is_help": True},
}


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            print(f"perdure {version('perdure')}")
        except PackageNotFoundError:
            print("perdure (not installed)")
        raise typer.Exit


def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it and end."),
    ] = False,
) -> None:
    """Persistence for HPC applications on non-volatile memory."""


def _add(app: typer.Typer, verb: str) -> None:
    module, name = _VERBS[verb]
    found = getattr(import_module(module), name)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=verb)
    else:
        app.command(verb, **_SETTINGS.get(verb, {}))(found)


def command_line(first_word: str = "") -> typer.Typer:
    """The command. If the first word is a verb it has that one only: all take twice the time."""
    app = typer.Typer(
        help="Persistence for HPC applications on non-volatile memory.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(_options)
    for verb in [first_word] if first_word in _VERBS else _VERBS:
        _add(app, verb)
    return app


def main() -> None:
    """Entry point of the console script."""
    command_line(*sys.argv[1:2])(prog_name="perdure")
