#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws docs/pictures/parts.svg: what uses a pool, and what its versions survive.

    docs/pictures/draw_parts.py            writes the picture
    docs/pictures/draw_parts.py --check    compares it with the file; exits with 1 if they differ

Plain SVG, whose colours follow the reader's light or dark theme; its ground too, because the page
around it may follow another.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

PICTURE = Path(__file__).resolve().parent / "parts.svg"
WIDTH, HEIGHT = 860, 520
STYLE = """
  text { font: 14px system-ui, "DejaVu Sans", sans-serif; fill: #1f2328; }
  .page { fill: #ffffff; }
  .strong { font-weight: 600; }
  .small { font-size: 12px; }
  .code { font: 11px ui-monospace, "DejaVu Sans Mono", monospace; }
  .middle { text-anchor: middle; }
  .soft { fill: #59636e; }
  .box { fill: #f6f8fa; stroke: #8c959f; }
  .pool { fill: #ddf4ff; stroke: #0969da; }
  .head { fill: #0969da; stroke: #0969da; }
  .on-head { fill: #ffffff; }
  .open { fill: none; stroke: #0969da; stroke-dasharray: 4 3; }
  .line { stroke: #59636e; fill: none; }
  .maybe { stroke-dasharray: 3 3; }
  .tip { fill: #59636e; }
  .yes { fill: #1a7f37; font-weight: 600; }
  .no { fill: #cf222e; font-weight: 600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .page { fill: #0d1117; }
    .soft, .tip { fill: #9198a1; }
    .box { fill: #151b23; stroke: #656c76; }
    .pool { fill: #121d2f; stroke: #4493f8; }
    .head { fill: #4493f8; stroke: #4493f8; }
    .on-head { fill: #0d1117; }
    .open { stroke: #4493f8; }
    .line { stroke: #9198a1; }
    .yes { fill: #3fb950; }
    .no { fill: #f85149; }
  }
"""

# What a program has, and the one thing that it says: in the order from left to right.
USES = (
    ("arrays, scalars", "perdure_commit"),
    ("MPI windows", "MPI_Win_fence"),
    ("loops", "perdure-clang --ipv"),
    ("MPI-IO files", "perdure run --cache"),  # with a pool only if a hint names it
)
# Where the newest version is: what it survives, as P1 and P3 of docs/promise.md say.
FAILURES = ("processes die", "the node loses power", "the node is lost")
PLACES = (
    ("tmpfs", (True, False, False)),
    ("persistent memory (DAX)", (True, True, False)),
    ("disk file", (True, True, False)),
    ("a level: copies of every n-th version", (True, True, True)),
)


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str) -> str:
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect x="{x:g}" y="{y:g}" {size} rx="6" class="{kind}"/>'


def arrow(x: float, y: float, to_x: float, to_y: float, kind: str = "line") -> str:
    """Straight, down or to the left, with a tip at its end."""
    tip = "-5,-8 5,-8" if to_x == x else "8,-5 8,5"
    return (
        f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" class="{kind}"/>'
        f'<polygon points="0,0 {tip}" transform="translate({to_x:g} {to_y:g})" class="tip"/>'
    )


def draw_uses() -> list[str]:
    """The program's side: a box for each use, with an arrow to the pool."""
    parts = [text(20, 24, "a program's", "soft small")]
    for number, (what, code) in enumerate(USES):
        left = 20 + number * 152
        line = "line maybe" if what == "MPI-IO files" else "line"
        parts += [
            box(left, 34, 140, 58, "box"),
            text(left + 70, 58, what, "strong middle"),
            text(left + 70, 80, code, "code middle"),
            arrow(left + 70, 94, left + 70, 118, line),
        ]
    return [*parts, text(556, 110, "if asked", "soft small")]


def draw_pool() -> list[str]:
    """The pool, its versions, and the two ranks whose files hold them."""
    parts = [
        box(20, 120, 596, 150, "pool"),
        text(36, 146, "the pool", "strong"),
        text(108, 146, "a directory, one file a rank; a commit makes one version of all ranks, or "
             "none", "small"),
    ]
    versions = (
        ("version 41", "can be restored", "pool", ""),
        ("version 42", "the newest: complete on all ranks", "head", "on-head "),
        ("version 43", "a crash may lose it", "open", ""),
    )
    for number, (name, state, kind, ink) in enumerate(versions):
        left, width = (36, 188, 422)[number], (140, 222, 178)[number]
        parts += [
            box(left, 164, width, 88, kind),
            text(left + width / 2, 202, name, f"{ink}strong middle"),
            text(left + width / 2, 224, state, f"{ink}small middle"),
        ]
    return parts


def draw_tools() -> list[str]:
    """Beside the pool: what says when to commit, and which memory to have."""
    return [
        text(652, 24, "beside it", "soft small"),
        box(652, 120, 188, 66, "box"),
        text(664, 144, "perdure energy", "code strong"),
        text(664, 162, "when to commit, at which", "small"),
        text(664, 178, "clock, how many writers", "small"),
        arrow(650, 153, 618, 153),
        box(652, 204, 188, 66, "box"),
        text(664, 228, "perdure sim", "code strong"),
        text(664, 246, "time and joules of memory", "small"),
        text(664, 262, "that you might buy", "small"),
        box(652, 34, 188, 58, "box"),
        text(664, 58, "perdure run", "code strong"),
        text(664, 80, "starts a job again", "small"),
    ]


def draw_survival() -> list[str]:
    """A table: for each place of a version, which failures it survives."""
    columns = (440, 610, 780)
    parts = [
        text(20, 318, "What a version survives, by where it is", "strong"),
        '<line x1="20" y1="352" x2="840" y2="352" class="line"/>',
    ]
    for column, failure in zip(columns, FAILURES, strict=True):
        parts.append(text(column, 342, failure, "middle small"))
    for row, (place, survives) in enumerate(PLACES):
        y = 382 + row * 32
        parts.append(text(20, y, place))
        for column, yes in zip(columns, survives, strict=True):
            word = "yes" if yes else "no"
            parts.append(text(column, y, word, f"{word} middle"))
    parts.append(text(20, HEIGHT - 12, "A disk file: as far as its file system and disk keep their "
                      "promises. A level: a directory that is not on the node.", "soft small"))
    return parts


def picture() -> str:
    label = "Arrays, windows, loops and files become versions of a pool, which survive failures."
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"',
        f'     width="{WIDTH}" height="{HEIGHT}" aria-label="{label}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" class="page"/>',
        *draw_uses(), *draw_pool(), *draw_tools(), *draw_survival(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        if PICTURE.read_text(encoding="utf-8") == picture():
            return 0
        print(f"{PICTURE.name} is not what {Path(__file__).name} draws: run it")
        return 1
    PICTURE.write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
