#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Labels of invariants: MODULE.LABEL, as pool.I1, defined once, in a comment of their module.

    tools/tidy_labels.py --write     writes docs/invariants.md, which lists them all

A definition is a line of a comment that begins with the label and goes on after two blanks (one
after two digits). Its module is the folder below src, or `pass`, or `abi` for the hooks' header.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = "docs/invariants.md"
ABI = "include/perdure/perdure_ipv_abi.h"
LABEL = r"[A-Z]{1,2}(?:\d\b|\d\d)"
GAP = r"(?:(?<=[A-Z]\d) {2,3}(?=\S)|(?<=\d\d) {1,2}(?=[A-Z`\"]))"
DEFINITION = re.compile(rf"^\s*(?://|\*)\s+(?:([a-z_]+)\.)?({LABEL}){GAP}(.*)$")
COMMENT = re.compile(r"^\s*(?://|\*)\s?(\s*)(.*)$")
INTRODUCTION = """# Invariants

What the argument of each module rests on, as its sources say it; the rest of the argument is
there. A label is `module.label`. The promise's P1 to P6 are in [promise](promise.md).
`tools/tidy_labels.py --write` makes this page, and `make tidy` refuses a label that is defined
twice, or nowhere.
"""


@dataclass(frozen=True)
class Definition:
    """Where a label is defined, and the first sentence of what it says."""

    label: str
    path: str
    line: int
    says: str


def module_of(path: str) -> str | None:
    """Whose labels a file may define."""
    parts = path.split("/")
    if path == ABI:
        return "abi"
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return "pass" if parts[0] == "pass" else None


def may_mention(path: str) -> bool:
    """Files whose mentions of labels are looked at."""
    return path.endswith((".hpp", ".cpp", ".h", ".c", ".md", ".pml")) and path != "CHANGELOG.md"


def first_sentence(lines: list[str], at: int, begun: str) -> str:
    """Of the text that begins at line `at` with `begun`."""
    text = begun.strip()
    for line in lines[at + 1 :]:
        comment = COMMENT.match(line)
        if comment is None or not comment[2] or DEFINITION.match(line):
            break
        if re.search(r"[.:](?: |$)", text):
            break
        text += " " + comment[2]
    return re.split(r"(?<=[a-z0-9)`'])[.:](?: |$)", text, maxsplit=1)[0] + "."


def definitions(texts: Iterable[tuple[str, list[str]]]) -> Iterator[tuple[Definition, str]]:
    """All of them, each with what is wrong with it or an empty text."""
    places: dict[str, str] = {}
    for path, lines in texts:
        module = module_of(path)
        if module is None:
            continue
        for at, line in enumerate(lines):
            found = DEFINITION.match(line)
            if found is None:
                continue
            label = f"{module}.{found[2]}"
            fault = ""
            if found[1] != module:
                fault = f"a label has its module's prefix: {label}"
            elif label in places:
                fault = f"{label} is defined in {places[label]}, too"
            places.setdefault(label, f"{path}:{at + 1}")
            says = first_sentence(lines, at, found[3])
            yield Definition(label, path, at + 1, says), fault


def references(
    texts: Iterable[tuple[str, list[str]]], modules: set[str]
) -> Iterator[tuple[str, int, str]]:
    """Each mention of a label with a module's prefix: path, line, label."""
    mention = re.compile(rf"(?<![\w./-])({'|'.join(sorted(modules))})\.({LABEL})(?!\w)")
    for path, lines in texts:
        for at, line in enumerate(lines, 1):
            for found in mention.finditer(line):
                yield path, at, found[0]


def page(defined: Iterable[Definition]) -> str:
    """The list, by module and file."""
    text, module, path = INTRODUCTION, "", ""
    for each in sorted(defined, key=lambda d: (d.label.split(".")[0], d.path, d.line)):
        if (now := each.label.split(".")[0]) != module:
            module = now
            text += f"\n## {module}\n"
        if each.path != path:
            path = each.path
            text += f"\n[`{path}`](../{path})\n\n| | |\n|---|---|\n"
        text += f"| {each.label} | {each.says.replace('|', chr(92) + '|')} |\n"
    return text


def check_labels(texts: list[tuple[str, list[str]]]) -> Iterator[tuple[str, int, str]]:
    """Path, line and message of each broken rule; `texts` are all files that may have labels."""
    found = list(definitions(texts))
    yield from ((each.path, each.line, fault) for each, fault in found if fault)
    known = {each.label for each, _ in found}
    modules = {label.split(".")[0] for label in known}
    for path, line, label in references(texts, modules):
        if path != PAGE and label not in known:
            yield path, line, f"{label} is defined nowhere"
    written = next(("\n".join(lines) + "\n" for path, lines in texts if path == PAGE), "")
    if written != page(each for each, _ in found):
        yield PAGE, 0, "is not what the sources say: run tools/tidy_labels.py --write"


def main() -> int:
    """Writes the page."""
    root = Path(__file__).resolve().parent.parent
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
    texts = [(name, (root / name).read_text("utf-8").splitlines())
             for name in listed.stdout.split() if may_mention(name)]
    if sys.argv[1:] != ["--write"]:
        print(__doc__)
        return 2
    (root / PAGE).write_text(page(each for each, _ in definitions(texts)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
