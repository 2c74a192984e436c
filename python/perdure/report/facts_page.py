# SPDX-License-Identifier: BSD-3-Clause
"""The page of a benchmark's figures: which targets hold, what is too noisy, and all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from perdure.figures import BLUE, ORANGE, SILVER, figure_of, finish
from perdure.pages.page import svg, write_page
from perdure.report.facts import NOISY, Figure, read_facts
from perdure.screen import drawn

_RATIOS_MAX = 48  # in the picture
_NAME_MAX = 60
_ROW_INCHES = 0.2


def write_facts_page(text: str, source: Path, file: Path) -> None:
    """Writes the page of a file's lines; what was there before stays until it is whole.

    Raises Wrong for lines that are wrong, and OSError.
    """
    facts = read_facts(source, text)
    shown = _with_targets(facts.figures) or [each for each in facts.figures if each.is_ratio]
    groups: dict[tuple[str, str], list[Figure]] = {}
    for each in facts.figures:
        groups.setdefault((each.bench, each.metric), []).append(each)
    write_page(file, __file__, {
        "facts": facts,
        "groups": groups,
        "missed": [each for each in facts.figures if each.holds is False],
        "held": sum(each.holds is True for each in facts.figures),
        "noisy": sum(each.noisy for each in facts.figures),
        "noisy_percent": 100 * NOISY,
        "picture": svg(_draw_ratios(shown[:_RATIOS_MAX])) if shown else None,
        "drawn": min(len(shown), _RATIOS_MAX),
        "all": len(shown),
    }, {"figure": _text})  # fmt: skip


def _with_targets(figures: list[Figure]) -> list[Figure]:
    """Ratios that a target is claimed of, those that miss it first."""
    found = [each for each in figures if each.is_ratio and each.holds is not None]
    return sorted(found, key=lambda each: bool(each.holds))


def _text(value: float) -> str:
    """Three digits; whole numbers as they are."""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}".replace(",", "\u202f")
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}".replace(",", "\u202f")


def _draw_ratios(figures: list[Figure]) -> Callable[[BinaryIO], None]:
    """A row each: the value, its quartiles, grey where they are too far apart."""

    def draw(file: BinaryIO) -> None:
        figure = figure_of(10, 1.3 + _ROW_INCHES * len(figures), "Ratios, with their quartiles")
        axis = figure.subplots()
        for row, each in enumerate(reversed(figures)):
            colour = SILVER if each.noisy else ORANGE if each.holds is False else BLUE
            if each.low is not None and each.high is not None:
                axis.plot([each.low, each.high], [row, row], color=colour, linewidth=2, alpha=0.6)
            axis.plot([each.value], [row], "o", color=colour, markersize=4)
        axis.axvline(1, color="#555555", linewidth=0.8)
        values = [each.value for each in figures]
        if max(values) > 4 * min(values):
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_minor_formatter("")
        names = [drawn(f"{each.name}, {each.metric}")[:_NAME_MAX] for each in reversed(figures)]
        axis.set_yticks(range(len(figures)), names)
        axis.set_ylim(-0.6, len(figures) - 0.4)
        finish(axis, "ratio; orange misses its target, grey is too noisy to say", None, "x")
        figure.savefig(file, format="svg")

    return draw
