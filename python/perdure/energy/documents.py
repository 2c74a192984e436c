# SPDX-License-Identifier: BSD-3-Clause
"""Plans and profiles as JSON: whole files, and sections of them that are not trusted.

Whatever is wrong raises Wrong, with file, place and remedy. Unknown keys are ignored, newer schemas
refused.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perdure.energy.quantities import Wrong, is_number
from perdure.files import read_text, write_text


def read_words(file: Path, what: str, encoding: str = "utf-8") -> str:
    """A file's text. Raises Wrong if it can't be read, or is not text."""
    try:
        return read_text(file, encoding)
    except OSError as failure:
        raise Wrong(f"{file}: {failure.strerror or failure}") from None
    except UnicodeDecodeError:
        raise Wrong(f"{file}: no {what}: it is not text") from None


def read_document(file: Path, what: str) -> dict[str, Any]:
    """A JSON object from a file. Raises Wrong if it can't be read, is cut short or is no object."""
    text = read_words(file, what)
    if not text.strip():
        raise Wrong(f"{file}: the {what} is empty")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as wrong:  # JSONDecodeError, or a number of 5000 digits
        at = f" at line {wrong.lineno}" if isinstance(wrong, json.JSONDecodeError) else ""
        raise Wrong(
            f"{file}: damaged or cut short: no valid JSON{at}; write it anew or take a copy"
        ) from None
    if not isinstance(document, dict):
        raise Wrong(f"{file}: no {what}: the outermost value must be an object")
    return document


def write_document(document: dict[str, Any], file: Path) -> None:
    """Writes a document whole or not at all. Raises OSError."""
    write_text(file, json.dumps(document, indent=1, allow_nan=False) + "\n")


class Section:
    """A JSON object in a document. What is asked of it is there and right, or Wrong names it.

    `place` comes before the key in what Wrong says: "plan.json: " or "profile.json: point 3.".
    """

    def __init__(self, place: str, value: object) -> None:
        if not isinstance(value, dict):
            raise Wrong(f"{place.rstrip('.: ')} is {value!r}; it must be an object")
        self.place = place
        self.values: dict[str, Any] = value

    def has(self, key: str) -> bool:
        """Whether there is something, and not null."""
        return self.values.get(key) is not None

    def section(self, key: str) -> Section:
        """An object in this one."""
        return Section(f"{self.place}{key}.", self.values.get(key))

    def sections(self, key: str) -> list[Section]:
        """A list of objects in this one."""
        value = self.values.get(key)
        if not isinstance(value, list):
            raise Wrong(f"{self.place}{key} is {value!r}; it must be a list")
        return [Section(f"{self.place}{key} {i}.", each) for i, each in enumerate(value)]

    def number(self, key: str, least: float = 0.0, above: bool = False) -> float:
        """A finite number, at least `least` or `above` it."""
        value = self.values.get(key)
        if not is_number(value) or value < least or (above and value == least):
            bound = "more than" if above else "at least"
            raise Wrong(f"{self.place}{key} is {value!r}; it must be a number, {bound} {least:g}")
        return float(value)

    def maybe(self, key: str, least: float = 0.0) -> float | None:
        """A number, or None where there is none."""
        return self.number(key, least) if self.has(key) else None

    def whole(self, key: str, least: int = 1) -> int:
        """A whole number, at least `least`."""
        value = self.values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise Wrong(
                f"{self.place}{key} is {value!r}; it must be a whole number, at least {least}"
            )
        return value

    def text(self, key: str) -> str:
        """Words."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise Wrong(f"{self.place}{key} is {value!r}; it must be text")
        return value

    def word(self, key: str, known: tuple[str, ...]) -> str:
        """One of several words."""
        value = self.values.get(key)
        if value not in known:
            raise Wrong(f"{self.place}{key} is {value!r}, none of {', '.join(known)}")
        return str(value)

    def check_kind(self, kind: str, schema: int) -> None:
        """Raises Wrong where the document is of another kind or of a newer schema."""
        self.word("kind", (kind,))
        found = self.whole("schema")
        if found > schema:
            raise Wrong(
                f"{self.place}schema {found} is newer than {schema}, the newest that this perdure "
                "reads; update perdure, or write the file with an older one"
            )
