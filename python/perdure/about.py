# SPDX-License-Identifier: BSD-3-Clause
"""The verbs `perdure help` and `perdure version`: what --help and --version say."""

from __future__ import annotations

import shlex
from enum import Enum
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from perdure.failures import Failed
from perdure.manual import write_pages


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


def completion_script(shell: str) -> str:
    """What completes the command's words in bash, zsh or fish, which ask the command itself."""
    from typer._completion_shared import get_completion_script

    return get_completion_script(
        prog_name="perdure", complete_var="_PERDURE_COMPLETE", shell=shell
    )


class Shell(str, Enum):
    """Those that can complete."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def show_help(
    context: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VERB…", help="The words of a verb, such as: pool ls.  [default: all verbs]"
        ),
    ] = None,
    completion: Annotated[
        Shell | None,
        typer.Option(metavar="SHELL", help="Print what completes words in bash, zsh or fish.",
                     show_default=False),
    ] = None,
    man: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the man pages to DIR/man1.", show_default=False),
    ] = None,
) -> None:
    """Show what a verb does and its options, as its --help does.

    Installations by CMake complete by themselves and have man pages. From a wheel or a clone, read
    the script at the start of your shell: eval "$(perdure help --completion bash)". And have the
    pages written to where man looks: perdure help --man ~/.local/share/man, or another folder of
    MANPATH.

    Examples: perdure help; perdure help pool ls; perdure help --completion bash;
    perdure help --man ~/.local/share/man
    """
    command = context.find_root().command
    if completion is not None:
        print(completion_script(completion.value))
        return
    if man is not None:
        _write_manual(command, man)
        return
    command.main([*(words or ()), "--help"], prog_name="perdure")


def _write_manual(command: Any, folder: Path) -> None:
    try:
        pages = write_pages(folder, command, version_text().capitalize())
    except OSError as failure:
        raise Failed(f"{folder}: {failure.strerror}") from None
    print(f"{len(pages)} pages are in {folder / 'man1'}; read them with: "
          f"man -M {shlex.quote(str(folder))} perdure")
