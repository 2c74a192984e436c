# SPDX-License-Identifier: BSD-3-Clause
"""Words and turns that native speakers would not write, and what they would.

Where: all Markdown, all text below TEXT_ROOTS, and the sentences (literals with a blank) of the C
and C++ code below MESSAGE_ROOTS. Widen the two when more of the tree has been read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

TEXT_ROOTS = ("docs/", "include/", "examples/", "tests/docs/")
MESSAGE_ROOTS = ("src/", "apps/", "bench/", "pass/")
TEXT_SUFFIXES = (".h", ".hpp", ".c", ".cpp", ".py")

WORDS = (
    (r"can not(?! only)", "cannot"),
    (r"but for", "except for"),
    (r"(?<!left )(?<!leave )(?<!leaves )behind", "after, beyond, or in the background"),
    (r"told", "reported, recognised or distinguished"),
    (r"(?<!there )(?-i:is none)(?! of\b)", "is not one"),
    (r"none any more", "no longer exists"),
    (r"who ever", "whoever"),
    (r"shall", "should, or must"),
    (r"mend(?:s|ed|ing)?", "fix, or repair"),
    (r"com(?:e|es|ing) on", "progress"),
    (r"keys? behind commas", "separated by commas"),
    (r"stands? (?:in(?! for)|at|on|before|after|beside|up to)", "is"),
    (r"chang(?:e|es|ing) (?:its|their) roles?", "swap roles"),
    (r"has it that", "says that"),
)
_WORD = re.compile("|".join(rf"(?P<w{n}>\b{word}\b)" for n, (word, _) in enumerate(WORDS)), re.I)
# "Still" is meant where nothing is denied: "who has it open yet".
_YET = re.compile(r"\byet\b")
_DENIED = re.compile(r"\b(?:not|no|nothing|nobody|never|none|cannot)\b|n't\b", re.I)
# A subject, not a question: "Who waits longer goes ahead".
_WHO = re.compile(r"(?:^|[.:;] |\| )Who (?!is\b|may\b)\w+[^?\n]*$")


def findings_in(text: str) -> Iterator[tuple[int, str]]:
    """Number of the line, from 1, and what to write instead."""
    for number, line in enumerate(text.splitlines(), 1):
        for match in _WORD.finditer(line):
            better = WORDS[int((match.lastgroup or "w0")[1:])][1]
            yield number, f"'{match.group()}': say {better}"
        if _YET.search(line) and not _DENIED.search(line):
            yield number, "'yet' where nothing is denied: say still"
        if _WHO.search(line):
            yield number, "'Who' as a subject: say a rank that, a process that, anyone who"


def is_text(path: str) -> bool:
    return path.endswith(".md") or path.startswith(TEXT_ROOTS) and path.endswith(TEXT_SUFFIXES)


def holds_messages(path: str) -> bool:
    return path.startswith(MESSAGE_ROOTS) and not path.endswith(("_test.cpp", ".py", ".md"))
