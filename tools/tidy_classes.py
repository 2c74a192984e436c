#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How many fields the classes of src have, and how long a header is with its source.

    tools/tidy_classes.py        prints the ten largest of both

A function of ten lines in a class of forty fields is not small. What has an invariant of its own
becomes a class of its own. A class may have FIELDS fields, those of LARGE what they have today; so
nothing grows that is too large. Fields are members whose names end in an underscore.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

FIELDS = 15
LARGE = {
    "Pool": 16,
    "DeviceBuffer": 17,
    "StreamObject": 17,
    "Checker": 16,
}
CLASS = re.compile(
    r"\b(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?([\w:]+)\s*(?:final\s*)?(?::[^;{()]*)?\{"
)
FIELD = re.compile(r"\b[a-z]\w*_\s*(?:\[[^\]]*\]\s*)*(?:=(?!=).*)?$", re.DOTALL)
ACCESS = re.compile(r"\b(?:public|private|protected)\s*:")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def is_measured(path: str) -> bool:
    product = path.startswith("src/") and path.endswith((".hpp", ".cpp"))
    return product and not path.endswith("_test.cpp") and "/testing/" not in path


def statements(code: str, begin: int) -> Iterator[str]:
    """Those of a class whose body begins there, without what braces in them hold."""
    depth, text = 1, ""
    for letter in code[begin:]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth == 0:
            return
        if depth > 1:
            continue
        if letter in ";}":
            yield ACCESS.sub("", text).strip()
            text = ""
        else:
            text += letter


def is_field(statement: str) -> bool:
    found = FIELD.search(statement)
    if found is None or statement.startswith(("return", "using", "static", "friend")):
        return False
    before = statement[: found.start()]
    while (shorter := re.sub(r"<[^<>]*>", "", before)) != before:  # std::function<void(int)>
        before = shorter
    return "(" not in before and bool(before.strip())


def classes(code: str) -> Iterator[tuple[int, str, int]]:
    """Where each class begins, its name and how many fields it has; comments are blanked."""
    for found in CLASS.finditer(code):
        fields = sum(map(is_field, statements(code, found.end())))
        yield found.start(), found[1].split("::")[-1], fields


def check_classes(code: str) -> Iterator[tuple[int, str]]:
    """Position and message of each class that is larger than it may be."""
    for position, name, fields in classes(code):
        limit = LARGE.get(name, FIELDS)
        if fields > limit:
            yield position, (f"{name} has {fields} fields, and may have {limit}: what of them has "
                             "an invariant of its own is a class of its own")


def pairs(lengths: Iterable[tuple[str, int]]) -> list[tuple[int, str]]:
    """Lines of a header with its source, the longest first."""
    together: dict[str, int] = {}
    for path, lines in lengths:
        stem = path.rsplit(".", 1)[0]
        together[stem] = together.get(stem, 0) + lines
    return sorted(((lines, stem) for stem, lines in together.items()), reverse=True)


def main() -> None:
    """Prints the largest."""
    root = Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "ls-files", "src"], cwd=root, check=True, capture_output=True,
                            text=True).stdout  # fmt: skip
    texts = {path: (root / path).read_text("utf-8") for path in listed.split() if is_measured(path)}
    found = [(fields, name, path) for path, text in texts.items()
             for _, name, fields in classes(COMMENT.sub("", text))]  # fmt: skip
    for fields, name, path in sorted(found, reverse=True)[:10]:
        print(f"{fields:4} fields  {name}  ({path})")
    for lines, stem in pairs((path, text.count("\n")) for path, text in texts.items())[:10]:
        print(f"{lines:4} lines   {stem}")


if __name__ == "__main__":
    main()
