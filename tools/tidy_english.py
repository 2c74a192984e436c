# SPDX-License-Identifier: BSD-3-Clause
"""Words and turns that native speakers would not write, and what they would.

Where: the whole text of every file, names in code included; of C and C++ below NAMES_LEFT, comments
and sentences (literals with a blank) only. A turn is found across the ends of lines as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# What may be said, by the path or where it begins; the first two hold the list itself.
ALLOWED = (
    ("tools/tidy_english.py", r".*"),
    ("tests/python/test_tidy.py", r".*"),
    ("LICENSE", r"SHALL"),
    ("python/perdure/sim/report.html.jinja", r"is none"),  # a test of its language
    ("python/perdure/report/job_page.html.jinja", r"is none"),
    ("python/perdure/report/facts_page.html.jinja", r"is none"),
    ("tests/pass/random_nests.py", r"told"),  # a variable
)
# Where variables of C and C++ are still named `told` or `behind`.
NAMES_LEFT = ("pass/", "src/cache/", "src/levels/", "src/pool/", "tests/pass/")

WORDS = (
    (r"can not(?! only)", "cannot"),
    (r"but for", "except for"),
    (
        r"(?<!left )(?<!leave )(?<!leaves )(?<!far )(?<!fall )(?<!falls )behind",
        "after, beyond, or in the background",
    ),
    (r"told", "reported, recognised or distinguished"),
    (r"(?<!there )(?-i:is none)(?! of\b)", "is not one"),
    (r"none any more", "no longer exists"),
    (r"who ever", "whoever"),
    (r"(?:by|from|of|to) who", "by whoever, or of the process that"),
    (r"shall", "should, or must"),
    (r"mend(?:s|ed|ing)?", "fix, or repair"),
    (r"com(?:e|es|ing) on", "progress"),
    (r"keys? behind commas", "separated by commas"),
    (
        r"stands? (?:in(?! for)|at|on|before|after|beside|up to|above|below|under|there|elsewhere)",
        "is",
    ),
    (r"what stands(?! for)", "what is there"),
    (r"chang(?:e|es|ing) (?:its|their) roles?", "swap roles"),
    (r"has it that", "says that"),
    (r"(?:an|no|have|has|had|with) own", "of its own"),
    (r"(?:would|could|might|must) else", "otherwise"),
    (r"(?:MPI|library|runtime|compiler) wants", "requires, expects, or needs"),
)
_WORD = re.compile("|".join(rf"(?P<w{n}>\b{word}\b)" for n, (word, _) in enumerate(WORDS)), re.I)
# Each of them has one of these in it, and they are found a hundred times as fast.
SIGNS = (
    "can not", "but for", "behind", "told", "is none", "none any more", "who ever", "by who",
    "from who", "of who", "to who", "shall", "mend", "come on", "comes on", "coming on", "stand",
    "its role", "their role", "has it that", "an own", "no own", "have own", "has own", "had own",
    "with own", "would else", "could else", "might else", "must else", "wants",
)  # fmt: skip
# "Still" is meant where nothing is denied: "who has it open yet".
_YET = re.compile(r"\byet\b")
_DENIED = re.compile(r"\b(?:not|no|nothing|nobody|nowhere|never|none|cannot)\b|n't\b", re.I)
# A subject, not a question: "Who waits longer goes ahead".
_WHO = re.compile(r"(?:^|[.:;] |[|\"(] ?)Who (?!is\b|may\b)\w+(?: [^\s,;:?]+){3}[^?]*$")
_SENTENCE_END = re.compile(r"(?<=[.;?!]) ")
_MARKS = re.compile(r"[/*#!;](?<!\S.)[/*#!;<]*(?!\S)")  # of comments, and not within a word
_BLANK_LINES = re.compile(r"\n\s*\n")


class _Paragraph:
    """Lines up to a blank one, and where in them each begins."""

    def __init__(self, number: int, lines: str) -> None:
        self.text = ""
        self._begins: list[tuple[int, int]] = []
        for at, line in enumerate(lines.split("\n"), number):
            words = line.split()
            self.text += " " if self.text and words else ""
            self._begins.append((len(self.text), at))
            self.text += " ".join(words)

    def line_at(self, place: int) -> int:
        return max(number for begin, number in self._begins if begin <= place)

    def findings(self) -> Iterator[tuple[int, str]]:
        if _signs_in(SIGNS, self.text):
            for match in _WORD.finditer(self.text):
                better = WORDS[int((match.lastgroup or "w0")[1:])][1]
                yield self.line_at(match.start()), f"'{match.group()}': say {better}"
        yield from self._findings_in_sentences()

    def _findings_in_sentences(self) -> Iterator[tuple[int, str]]:
        begin = 0
        for sentence in _SENTENCE_END.split(self.text):
            yet = _YET.search(sentence)
            if yet and not _DENIED.search(sentence):
                place = begin + yet.start()
                yield self.line_at(place), "'yet' where nothing is denied: say still"
            if who := _WHO.search(sentence):
                place = begin + who.start()
                yield self.line_at(place), "'Who' as a subject: say a process that, anyone who"
            begin += len(sentence) + 1


def findings_in(text: str) -> Iterator[tuple[int, str]]:
    """Number of the line, from 1, and what to write instead."""
    bare = _MARKS.sub("", text)
    signs = _signs_in((*SIGNS, "yet", "who "), bare)
    begin = 0
    for gap in (*_BLANK_LINES.finditer(bare), None) if signs else ():
        lines = bare[begin : gap.start() if gap else None]
        if _signs_in(signs, lines):
            yield from _Paragraph(bare.count("\n", 0, begin) + 1, lines).findings()
        begin = gap.end() if gap else begin


def _signs_in(signs: Iterable[str], text: str) -> list[str]:
    lower = " ".join(text.split()).lower()
    return [sign for sign in signs if sign in lower]


def is_allowed(path: str, message: str) -> bool:
    return any(
        path.startswith(where) and re.match(f"'{words}'", message) for where, words in ALLOWED
    )


def leaves_names(path: str) -> bool:
    return path.startswith(NAMES_LEFT)
