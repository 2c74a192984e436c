# SPDX-License-Identifier: BSD-3-Clause
"""What the commands of `perdure energy` say."""

from __future__ import annotations

from perdure.screen import say


def warn(message: str) -> None:
    """Something to know that stops nothing."""
    say(f"perdure: note: {message}", err=True)


def watts_text(watts: float | None) -> str:
    """A power, or that it is not known."""
    return "not known" if watts is None else f"{watts:.5g} W"
