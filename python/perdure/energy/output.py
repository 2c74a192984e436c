"""What the commands of `perdure energy` say, and how they end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from perdure.energy.quantities import Wrong
from perdure.screen import say

INTERRUPTED = 130


def warn(message: str) -> None:
    """Something to know that stops nothing."""
    say(f"perdure: note: {message}", err=True)


@contextmanager
def refusing() -> Iterator[None]:
    """Ends with 1 and the reason where what a user gave can't be used; 130 after Ctrl-C."""
    try:
        yield
    except Wrong as wrong:
        say(f"perdure: {wrong}", err=True)
        raise typer.Exit(1) from None
    except (ImportError, OSError) as failure:
        say(f"perdure: {failure}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        say("perdure: stopped", err=True)
        raise typer.Exit(INTERRUPTED) from None


def watts_text(watts: float | None) -> str:
    """A power, or that it is not known."""
    return "not known" if watts is None else f"{watts:.5g} W"
