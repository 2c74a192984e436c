# SPDX-License-Identifier: BSD-3-Clause
"""Facts: what benchmarks measure, one JSON line each, and how people read them.

A line is {"bench", "case", "metric", "value", "unit", "low", "high", "n", "target", "holds"} and
further fields of the benchmark's own. `value` is the median of n interleaved
repetitions, `low` and `high` the quartiles; `target` and `holds` are null where nothing is claimed.
"""

from __future__ import annotations

import json
import operator
import random
import statistics
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from perdure.programs import ProgramFailed, find_program, run_lines

_REQUIRED = ("bench", "case", "metric", "value", "unit")
_KNOWN = (*_REQUIRED, "low", "high", "n", "target", "holds")
_NOTES = ("emulated", "modelled")  # what was not measured is shown as such
_ORDER = random.Random(20)  # the same in each run of a benchmark
_Case = TypeVar("_Case")
_Sample = TypeVar("_Sample")


class NotAFact(ValueError):
    """A line that should be a fact is not one."""


@dataclass(frozen=True)
class Fact:
    """One measured fact in `unit`; `more` holds the fields that only its benchmark knows."""

    bench: str
    case: str
    metric: str
    value: float
    unit: str
    low: float | None = None
    high: float | None = None
    n: int = 1
    target: float | str | None = None
    holds: bool | None = None
    more: dict = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        bench: str,
        case: str,
        metric: str,
        samples: Sequence[float],
        unit: str = "",
        target: float | None = None,
        keeps: Callable[[float, float], bool] = operator.le,
        more: dict | None = None,
    ) -> Fact:
        """The median of `samples`, its quartiles, and whether it keeps to the target, if any.

        `keeps(median, target)`: operator.le where less is better, operator.ge where more is.
        """
        low, middle, high = quartiles(samples)
        holds = None if target is None else keeps(middle, target)
        spread = (middle, unit, low, high, len(samples))
        return cls(bench, case, metric, *spread, target, holds, more or {})

    @property
    def ends(self) -> tuple[float, float]:
        """The quartiles; where there are none, the value."""
        return (
            self.value if self.low is None else self.low,
            self.value if self.high is None else self.high,
        )

    def line(self) -> str:
        """The JSON line, without a newline."""
        known = {name: getattr(self, name) for name in _KNOWN}
        return json.dumps({**known, **self.more})


def in_turn(cases: Collection[_Case]) -> list[_Case]:
    """The cases in the order of a round, another one in each round."""
    return _ORDER.sample(list(cases), len(cases))


def take_turns(
    ways: Mapping[str, Callable[[], _Sample]],
    rounds: int,
    advance: Callable[[], None],
    warm: int = 1,
) -> dict[str, list[_Sample]]:
    """What each of `ways` gives, one sample a round; the first `warm` rounds do not count."""
    samples: dict[str, list[_Sample]] = {way: [] for way in ways}
    for number in range(-warm, rounds):
        for way in in_turn(ways):
            sample = ways[way]()
            if number >= 0:
                samples[way].append(sample)
            advance()
    return samples


def quartiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile of at least one sample, which are all there is.

    Of so few a quartile is one of them or between two, never beyond (Hyndman and Fan's type 7).
    """
    if len(samples) == 1:
        return samples[0], samples[0], samples[0]
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return low, middle, high


def parse_fact(line: str) -> Fact:
    """The fact in a JSON line; raises NotAFact with a sentence."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as wrong:
        raise NotAFact(f"not a JSON line ({wrong.msg}): {line[:80]}") from None
    if not isinstance(fields, dict):
        raise NotAFact(f"not a JSON object: {line[:80]}")
    missing = [name for name in _REQUIRED if name not in fields]
    if missing:
        raise NotAFact(f"no {', '.join(missing)} in: {line[:80]}")
    if isinstance(fields["value"], bool) or not isinstance(fields["value"], (int, float)):
        raise NotAFact(f"value is no number in: {line[:80]}")
    known = {name: fields[name] for name in _KNOWN if fields.get(name) is not None}
    return Fact(**known, more={name: fields[name] for name in fields if name not in _KNOWN})


def read_facts(lines: Iterable[str]) -> Generator[Fact, None, None]:
    """The facts of a program's output. Lines that do not begin with "{" are left out."""
    for line in lines:
        if line.lstrip().startswith("{"):
            yield parse_fact(line)


def reported(printed: str, program: str, metric: str) -> dict[str, Fact]:
    """What `program` printed, by metric; raises ProgramFailed if `metric` is not there."""
    facts = {fact.metric: fact for fact in read_facts(printed.splitlines())}
    if metric not in facts:
        raise ProgramFailed(f"{program} did not report; it printed: {printed[-300:].strip()}")
    return facts


def run_program(name: str, options: list[str]) -> Generator[Fact, None, None]:
    """The facts of the bench program `name`, each as it comes."""
    return read_facts(run_lines([str(find_program(name)), *options]))


def number_text(value: float) -> str:
    """Four digits, without an exponent between 0.001 and a million."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace(",", " ") if abs(value) >= 1e4 else str(int(value))
    return f"{value:.4g}"


def _spread_text(fact: Fact) -> str:
    if fact.low is None or fact.high is None:
        return ""
    return f"{number_text(fact.low)} to {number_text(fact.high)}"


def _target_text(fact: Fact) -> str:
    if fact.target is None:
        return ""
    return fact.target if isinstance(fact.target, str) else number_text(fact.target)


def _verdict(fact: Fact) -> str:
    return {None: "", True: "[green]holds[/]", False: "[bold red]MISSED[/]"}[fact.holds]


def facts_table(title: str, facts: list[Fact]) -> Table:
    """A table in the order of measurement; missed targets stand out, none is left out."""
    table = Table(title=title, box=None, title_justify="left", header_style="bold", pad_edge=False)
    for name in ("case", "metric"):
        table.add_column(name)
    for name in ("value", "unit", "quartiles", "n", "target", ""):
        table.add_column(name, justify="left" if name in ("unit", "") else "right", no_wrap=True)
    notes = sorted({name for fact in facts for name in fact.more if name in _NOTES})
    for name in notes:
        table.add_column(name)
    for fact in facts:
        table.add_row(
            fact.case,
            fact.metric,
            number_text(fact.value),
            fact.unit,
            _spread_text(fact),
            str(fact.n),
            _target_text(fact),
            _verdict(fact),
            *(str(fact.more.get(name, "")) for name in notes),
        )
    return table


def print_facts(title: str, facts: list[Fact], console: Console) -> None:
    """The table and one line that counts the targets."""
    console.print(facts_table(title, facts))
    judged = [fact for fact in facts if fact.holds is not None]
    if judged:
        missed = sum(not fact.holds for fact in judged)
        console.print(f"{len(judged) - missed} of {len(judged)} targets hold, {missed} missed\n")
