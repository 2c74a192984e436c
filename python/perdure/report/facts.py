# SPDX-License-Identifier: BSD-3-Clause
"""Figures of benchmarks, a JSON object a line, from `perdure bench --json`. Not trusted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from perdure.energy.documents import Section
from perdure.failures import Wrong

NOISY = 0.1  # quartiles that are further apart, over the value, say nothing about a small change
_OF_EVERY_LINE = ("bench", "case", "metric", "value", "unit", "low", "high", "n", "target", "holds")
_OF_THE_RUN = ("machine", "commit", "date", "command", "taken_from")


@dataclass(frozen=True)
class Figure:
    """One value, a median; `low` and `high` are its quartiles where there are any."""

    bench: str
    case: str
    metric: str
    value: float
    unit: str
    low: float | None
    high: float | None
    n: int | None
    target: str
    holds: bool | None  # None: no target
    more: str  # what else is known of the case, and not of all of the file: "ranks 2, mpi mpich"

    @property
    def is_ratio(self) -> bool:
        return self.unit in ("", "ratio") and self.value > 0

    @property
    def spread(self) -> float | None:
        """The distance of the quartiles over the value."""
        if self.low is None or self.high is None or self.value == 0:
            return None
        return (self.high - self.low) / abs(self.value)

    @property
    def noisy(self) -> bool:
        return (self.spread or 0.0) > NOISY

    @property
    def name(self) -> str:
        return f"{self.case} ({self.more})" if self.more else self.case


@dataclass(frozen=True)
class Facts:
    """The figures of a file, and what their runs say of themselves."""

    source: str
    figures: list[Figure]
    runs: list[str]  # "Xeon, 2 cores; fc0bb938; 2026-11-26; perdure bench hpccg"
    common: str  # what is known of all figures


def read_facts(source: Path, text: str) -> Facts:
    """The figures of a file's lines. Raises Wrong with file, line and remedy."""
    sections, runs = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            section = Section(f"{source}: line {number}: ", json.loads(line))
        except (ValueError, RecursionError):
            raise Wrong(f"{source}: line {number} is no JSON; it takes what `perdure run --json` "
                        "or `perdure bench --json` wrote") from None  # fmt: skip
        if section.has("bench"):
            sections.append(section)
        elif section.has("figures"):
            runs.append("; ".join(section.text(key) for key in _OF_THE_RUN if section.has(key)))
        else:
            raise Wrong(f"{source}: line {number} is no figure: it has no bench")
    if not sections:
        raise Wrong(f"{source}: it has no figure")
    known = [_more(each) for each in sections]
    common = {key: value for key, value in known[0].items()
              if all(each.get(key) == value for each in known)}  # fmt: skip
    figures = [
        _figure(section, {key: value for key, value in more.items() if key not in common})
        for section, more in zip(sections, known)
    ]
    return Facts(source.name, figures, runs, _listed(common))


def _more(section: Section) -> dict[str, str]:
    """What only the benchmark knows of a case, as words."""
    return {
        key: f"{value:.4g}" if isinstance(value, float) else str(value)
        for key, value in section.values.items()
        if key not in _OF_EVERY_LINE and value is not None
    }


def _listed(more: dict[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in more.items())


def _figure(section: Section, more: dict[str, str]) -> Figure:
    holds = section.values.get("holds")
    target = section.values.get("target")
    return Figure(
        bench=section.text("bench"),
        case=section.text("case"),
        metric=section.text("metric"),
        value=section.number("value", float("-inf")),
        unit=section.text("unit") if section.values.get("unit") else "",
        low=section.maybe("low", float("-inf")),
        high=section.maybe("high", float("-inf")),
        n=section.whole("n", 0) if section.has("n") else None,
        target="" if target is None else str(target),
        holds=holds if isinstance(holds, bool) else None,
        more=_listed(more),
    )
