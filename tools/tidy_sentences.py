# SPDX-License-Identifier: BSD-3-Clause
"""How many sentences of a page are long; a page has few.

    tidy_sentences.py [-v] [FILE…]      a row for each page; with -v the long sentences too

Code, tables and headings are not counted, items of lists are. A link counts as its words, and code
within a sentence as the words that it has.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

WORDS_MAX = 35
SHARE_MAX = 0.02
# The changelog is a list of what changed; all other pages are held to it by tidy.py.
FREE = ("CHANGELOG.md", "data/")

_NOT_PROSE = re.compile(r"^```.*?^```$|<!--.*?-->|<[^>\n]+>", re.M | re.S)
_END = re.compile(r"(?<=[.?!])[\"')]*\s+(?=[\"'(*`\[]*[A-Z0-9`])")
_ABBREVIATED = re.compile(r"\b(e\.g|i\.e|etc|vs)\.")


def paragraphs(markdown: str) -> list[str]:
    """Each paragraph and each item of a list, as one line."""
    found: list[str] = []
    open_ = False
    for line in _NOT_PROSE.sub("\n", markdown).splitlines():
        item = re.match(r"\s*(?:[-*]|\d+\.) ", line)
        if not line.strip() or re.match(r" *\||#|    ", line):
            open_ = open_ and line.startswith("    ") and bool(line.strip())
            if open_:
                found[-1] += " " + line.strip()
        elif item or not open_:
            found.append(line[item.end() :] if item else line)
            open_ = True
        else:
            found[-1] += " " + line.strip()
    return found


def sentences(markdown: str) -> list[str]:
    """Without the addresses of links."""
    plain = re.sub(r"\]\([^)]*\)", "]", markdown)
    texts = (_ABBREVIATED.sub(r"\1", each) for each in paragraphs(plain))
    found = (sentence for text in texts for sentence in _END.split(text))
    return [sentence for sentence in found if re.search(r"\w", sentence)]


def long_ones(markdown: str) -> list[str]:
    return [each for each in sentences(markdown) if len(each.split()) > WORDS_MAX]


def is_held(path: str) -> bool:
    """Whether few sentences of this page may be long."""
    return path.endswith(".md") and not path.startswith(FREE)


def finding(markdown: str) -> str | None:
    """What is wrong with a page, or nothing."""
    long, of = long_ones(markdown), len(sentences(markdown))
    if len(long) <= SHARE_MAX * of:
        return None
    words, begin = len(long[0].split()), " ".join(long[0].split()[:6])
    return f"{len(long)} of {of} sentences have over {WORDS_MAX} words: {words} in '{begin} …'"


def main() -> None:
    root = Path(__file__).resolve().parent.parent
    named = [name for name in sys.argv[1:] if name != "-v"]
    every = [*sorted(root.glob("*.md")), *sorted(root.glob("docs/*.md"))]
    every += sorted(root.glob("apps/*/README.md"))
    pages = [Path(name) for name in named] or every
    for page in pages:
        text = page.read_text(encoding="utf-8")
        long, of = long_ones(text), len(sentences(text))
        name = page.relative_to(root) if page.is_relative_to(root) else page
        print(f"{len(long):4} of {of:4}, {100 * len(long) / max(of, 1):5.1f} %  {name}")
        for each in long if "-v" in sys.argv else []:
            print(f"    {len(each.split())}: {each}")


if __name__ == "__main__":
    main()
