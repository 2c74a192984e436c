# SPDX-License-Identifier: BSD-3-Clause
"""Reads when failures happened, and estimates how often they will.

The form is CSV: lines of `#` are comments, the first other line names the columns, one of which
is `time` or `interval`:

    # begin: 2026-01-01T00:00:00Z
    # end: 2026-07-01T00:00:00Z
    time,node
    2026-01-03T04:05:06Z,n17
    2026-01-11T23:00:00Z,n03

`time` is an ISO 8601 time (without a zone: UTC) or a number of seconds; `interval` the time since
the failure before, with a unit (14.66h) or in seconds. `# begin` and `# end` (same form as the
column) say how long was watched; without them the first event begins it and the last ends it.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from perdure.energy.documents import read_words
from perdure.energy.laws import laws
from perdure.energy.laws.law import Law
from perdure.energy.quantities import Wrong, duration_text, parse_time

FEW = 20
LIKELY = 0.05  # failures are called exponential unless chance explains them with less than that
FEWEST = 5  # gaps that a law is fitted to


@dataclass(frozen=True)
class Failures:
    """Gaps between failures in order; `watched_s` is the whole time watched.

    `censored_s` are stretches in which no failure had come when watching began or ended.
    """

    gaps_s: tuple[float, ...]
    watched_s: float
    events: int
    censored_s: tuple[float, ...] = ()
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Estimate:
    """Mean time between failures with its 95 % interval, and the likeliest law with memory.

    `p_exponential` is the chance of finding a law so much likelier if failures were exponential;
    where that is small, `advice` says how to plan with it.
    """

    mtbf_s: float
    low_s: float
    high_s: float
    events: int
    law: Law | None
    p_exponential: float | None
    warnings: tuple[str, ...]
    advice: str | None = None


def _instant(text: str, where: str) -> float:
    try:
        return _finite(float(text), where, text)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise Wrong(
            f"{where}: '{text}' is no time; write it as 2026-01-03T04:05:06Z or in seconds"
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return when.timestamp()


def _finite(value: float, where: str, text: str) -> float:
    if not math.isfinite(value):
        raise Wrong(f"{where}: '{text}' is no finite number")
    return value


def _length(text: str, where: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parse_time(text)
        except Wrong as wrong:
            raise Wrong(f"{where}: {wrong}") from None
    if _finite(seconds, where, text) < 0:
        raise Wrong(f"{where}: an interval of {text} is negative")
    return seconds


def read_failures(file: Path, merge_s: float = 0.0) -> Failures:
    """The failures in a CSV file; events at most `merge_s` after one before count as that one.

    Raises Wrong with file, line and remedy.
    """
    text = read_words(file, "list of failures", "utf-8-sig")
    limits: dict[str, str] = {}
    rows: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            name, colon, value = line.lstrip("# \t").partition(":")
            if colon and name.strip().lower() in ("begin", "end"):
                limits[name.strip().lower()] = value.strip()
        elif line.strip():
            rows.append((number, line))
    if not rows:
        raise Wrong(f"{file}: there are no failures in it")
    header = [name.strip().lower() for name in next(csv.reader([rows[0][1]]))]
    column = next((name for name in ("time", "interval") if name in header), None)
    if column is None:
        raise Wrong(
            f"{file}: line {rows[0][0]} must name the columns, one of them 'time' or 'interval'; "
            f"it is '{rows[0][1][:60]}'"
        )
    place, values = header.index(column), []
    for number, line in rows[1:]:
        cells, where = next(csv.reader([line])), f"{file}: line {number}"
        if len(cells) <= place or not cells[place].strip():
            raise Wrong(f"{where}: no {column} in '{line[:60]}'")
        parse = _instant if column == "time" else _length
        values.append(parse(cells[place].strip(), where))
    if column == "interval":
        return _of_intervals(file, values, merge_s)
    ends = {name: _instant(text, f"{file}: # {name}") for name, text in limits.items()}
    return _of_times(file, values, ends.get("begin"), ends.get("end"), merge_s)


def _of_intervals(file: Path, values: list[float], merge_s: float) -> Failures:
    kept, waiting = [], 0.0
    for value in values:
        waiting += value
        if value > merge_s:
            kept.append(waiting)
            waiting = 0.0
    censored = (waiting,) if waiting else ()
    return _checked(file, kept, sum(values), len(kept), censored, len(values) - len(kept))


def _of_times(
    file: Path, times: list[float], begin: float | None, end: float | None, merge_s: float
) -> Failures:
    times = sorted(times)
    for name, limit, wrong in (("begin", begin, times and times[0] < (begin or times[0])),
                               ("end", end, times and times[-1] > (end or times[-1]))):
        if limit is not None and wrong:
            raise Wrong(f"{file}: there are failures {'before' if name == 'begin' else 'after'} "
                        f"# {name}")
    kept = []
    last = -math.inf
    for time in times:
        if time - last > merge_s:
            kept.append(time)
        last = time
    gaps = [after - before for before, after in zip(kept, kept[1:])]
    censored, watched, events = [], sum(gaps), len(gaps)
    if begin is not None and kept:
        # The first gap began before anybody watched; of exponential ones it counts as whole.
        watched, events = watched + kept[0] - begin, events + 1
        gaps.insert(0, kept[0] - begin)
    if end is not None and kept:
        watched += end - kept[-1]
        censored.append(end - kept[-1])
    gaps = [gap for gap in gaps if gap > 0]
    merged = len(times) - len(kept)
    return _checked(file, gaps, watched, min(events, len(gaps)), tuple(censored), merged)


def _checked(
    file: Path, gaps: list[float], watched: float, events: int, censored: tuple[float, ...],
    merged: int,
) -> Failures:
    if events < 1 or watched <= 0:
        raise Wrong(
            f"{file}: there is no time between two failures; two are needed at least, or one and "
            "# begin"
        )
    warnings: tuple[str, ...] = ()
    if merged > 0:
        warnings = (f"{file}: {merged} events came together with another one, and do not count",)
    return Failures(tuple(gaps), watched, events, censored, warnings)


def estimate(failures: Failures) -> Estimate:
    """MTBF by time watched over events, its interval by chi-squared; laws by likelihood."""
    from scipy.stats import chi2

    events, watched = failures.events, failures.watched_s
    ended = bool(failures.censored_s)
    low = float(2 * watched / chi2.ppf(0.975, 2 * events + (2 if ended else 0)))
    high = float(2 * watched / chi2.ppf(0.025, 2 * events))
    warnings, mtbf = list(failures.warnings), watched / events
    if events < FEW:
        warnings.append(
            f"only {events} gap{'s' * (events != 1)} between failures: the MTBF of"
            f" {duration_text(mtbf)} may as well be {duration_text(low)} or {duration_text(high)}"
            " (95 %); an MTBF wrong by 2 costs about a sixteenth more overhead, by 4 a quarter"
        )
    law = chance = advice = None
    if events >= FEWEST and min(failures.gaps_s) < max(failures.gaps_s):
        law, chance = _likeliest(failures)
        if chance < LIKELY:
            advice = (f"failures are not exponential (chance explains them with {chance:.2g}); "
                      f"plan with --law {law.text(2)}")
    return Estimate(mtbf, low, high, events, law, chance, tuple(warnings), advice)


def _likeliest(failures: Failures) -> tuple[Law, float]:
    """The likeliest law with memory, and the p-value of failures without.

    The p-value is that of the likelihood ratio, times the number of laws that were tried.
    """
    from scipy.stats import chi2

    found = [fitted(law, failures) for law in laws().values()]
    without = max(each[0] for each in found if not each[1].parameters)
    others = [each for each in found if each[1].parameters]
    likelihood, best = max(others, key=lambda each: each[0])
    gain = max(0.0, 2 * (likelihood - without))
    return best, min(1.0, len(others) * float(chi2.sf(gain, len(best.parameters))))


def fitted(law: type[Law], failures: Failures) -> tuple[float, Law]:
    """The law of greatest likelihood of its kind, and that likelihood's logarithm."""
    from scipy.optimize import minimize

    gaps = np.array(failures.gaps_s)
    ages = np.concatenate((gaps, failures.censored_s))
    start = law.usual(float(ages.sum() / gaps.size))

    def made(logarithms: np.ndarray) -> Law:
        mean_s, *values = np.exp(logarithms).tolist()
        return law(mean_s, **dict(zip(start.values(), values)))

    def unlikely(logarithms: np.ndarray) -> float:
        try:
            found = made(logarithms)
        except Wrong:
            return math.inf
        with np.errstate(all="ignore"):
            value = np.log(found.hazard(gaps)).sum() + np.log(found.survival(ages)).sum()
        return -float(value) if math.isfinite(value) else math.inf

    found = minimize(unlikely, np.log([start.mean_s, *start.values().values()]),
                     method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
    return -float(found.fun), made(found.x)
