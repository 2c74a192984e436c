"""The compiled module perdure._core, or one sentence that says how to get it."""

from __future__ import annotations

from types import ModuleType

import typer

from perdure.screen import say


def load_core() -> ModuleType:
    """perdure._core; ends the command with 1 if it was not built."""
    try:
        from perdure import _core
    except ImportError as missing:
        say(f"perdure: the compiled module is missing ({missing}); build it", err=True)
        raise typer.Exit(1) from None
    return _core
