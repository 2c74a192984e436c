# SPDX-License-Identifier: BSD-3-Clause
"""Texts that C gets: UTF-8, and nothing after a NUL would count."""

from __future__ import annotations

import os

from perdure.api.errors import InvalidArgument


def checked_text(what: str, text: str) -> str:
    """`text`; raises TypeError, or InvalidArgument for what C would cut or can't have."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is {type(text).__name__}, not str")
    if "\0" in text:
        raise InvalidArgument(f"{what} {text!r} has a NUL, where C would cut it")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(
            f"{what} {text!r} has half a character, which is no UTF-8; rename it"
        ) from None
    return text


def checked_path(path: str | bytes | os.PathLike[str]) -> str:
    """A path as text; raises as checked_text()."""
    return checked_text("the path", os.fsdecode(path))
