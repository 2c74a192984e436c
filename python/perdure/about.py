# SPDX-License-Identifier: BSD-3-Clause
"""The verbs `perdure help` and `perdure version`: what --help and --version say."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer


def version_text() -> str:
    """ "perdure 0.1.0"."""
    try:
        number = version("perdure")
    except PackageNotFoundError:  # of a clone, or of a prefix
        # Not perdure.__version__, which imports perdure.api.
        number = str(import_module("perdure._api").version)
    return f"perdure {number}"


def show_version() -> None:
    """Print the version and end, as --version does.

    Example: perdure version
    """
    print(version_text())


def show_help(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VERB…", help="The words of a verb, such as: pool ls.  [default: all verbs]"
        ),
    ] = None,
) -> None:
    """Show what a verb does and its options, as its --help does.

    Examples: perdure help; perdure help pool ls
    """
    command = context.find_root().command
    command.main([*(words or ()), "--help"], prog_name="perdure")
