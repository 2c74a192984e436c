# SPDX-License-Identifier: BSD-3-Clause
"""What `--json` prints: an object that names its kind and the version of its form.

Each kind has a JSON Schema, docs/schemas/KIND.schema.json. A key may come without a new version;
one that goes, or means something else, raises it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

VERSION = 1


def json_text(kind: str, values: Mapping[str, Any], indent: int | None = 2) -> str:
    """The document as text. An infinite number, which JSON does not know, is null."""
    document = {"kind": kind, "schema": VERSION, **values}
    try:
        return json.dumps(document, indent=indent, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(document), indent=indent)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    is_finite = not isinstance(value, float) or abs(value) < float("inf")
    return value if is_finite else None


def fields(of: object, names: Iterable[str]) -> dict[str, Any]:
    """What a document says of an object: those of its attributes."""
    return {name: getattr(of, name) for name in names}


def print_json(kind: str, values: Mapping[str, Any]) -> None:
    """Prints the document."""
    print(json_text(kind, values))
