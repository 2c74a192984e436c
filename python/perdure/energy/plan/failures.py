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

from perdure.energy.quantities import Wrong, duration_text, parse_time
from perdure.files import read_text

FEW = 20
LIKELY = 0.05  # a shape is called Weibull if chance explains it with less than that


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
    """Mean time between failures with its 95 % interval; Weibull shape with its p-value.

    `p_exponential` is the chance of a likelihood ratio so large if failures were exponential.
    """

    mtbf_s: float
    low_s: float
    high_s: float
    events: int
    shape: float | None
    p_exponential: float | None
    warnings: tuple[str, ...]


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


def _lines(file: Path) -> list[str]:
    try:
        return read_text(file, "utf-8-sig").splitlines()
    except OSError as failure:
        raise Wrong(f"{file}: {failure.strerror or failure}") from None
    except UnicodeDecodeError:
        raise Wrong(f"{file}: no list of failures: it is not text") from None


def read_failures(file: Path, merge_s: float = 0.0) -> Failures:
    """The failures in a CSV file; events at most `merge_s` after one before count as that one.

    Raises Wrong with file, line and remedy.
    """
    limits: dict[str, str] = {}
    rows: list[tuple[int, str]] = []
    for number, line in enumerate(_lines(file), 1):
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


def _checked(file, gaps, watched, events, censored, merged) -> Failures:
    if events < 1 or watched <= 0:
        raise Wrong(
            f"{file}: there is no time between two failures; two are needed at least, or one and "
            "# begin"
        )
    warnings = ()
    if merged > 0:
        warnings = (f"{file}: {merged} events came together with another one, and do not count",)
    return Failures(tuple(gaps), watched, events, censored, warnings)


def estimate(failures: Failures) -> Estimate:
    """MTBF by time watched over events, its interval by chi-squared; shape by likelihood."""
    from scipy.stats import chi2

    events, watched = failures.events, failures.watched_s
    ended = bool(failures.censored_s)
    low = 2 * watched / chi2.ppf(0.975, 2 * events + (2 if ended else 0))
    high = 2 * watched / chi2.ppf(0.025, 2 * events)
    warnings = list(failures.warnings)
    mtbf = watched / events
    if events < FEW:
        warnings.append(
            f"only {events} gaps between failures: the MTBF of {duration_text(mtbf)} may as well "
            f"be {duration_text(low)} or {duration_text(high)} (95 %); an MTBF wrong by 2 costs "
            "about a sixteenth more overhead, by 4 a quarter"
        )
    shape = chance = None
    if events >= 5 and min(failures.gaps_s) < max(failures.gaps_s):
        shape, chance = _weibull(failures)
        if chance < LIKELY:
            warnings.append(
                f"failures are not exponential: shape {shape:.2f} (chance explains that with "
                f"{chance:.2g}); plan with --weibull {shape:.2f}"
            )
    return Estimate(mtbf, low, high, events, shape, chance, tuple(warnings))


def _weibull(failures: Failures) -> tuple[float, float]:
    """Shape of greatest likelihood, and the p-value of shape 1 by the likelihood ratio."""
    from scipy.stats import CensoredData, chi2, expon, weibull_min

    seen = CensoredData(uncensored=list(failures.gaps_s), right=list(failures.censored_s))
    shape, _, scale = weibull_min.fit(seen, floc=0)

    def likelihood(law) -> float:
        return float(sum(law.logpdf(failures.gaps_s)) + sum(law.logsf(failures.censored_s)))

    mean = (sum(failures.gaps_s) + sum(failures.censored_s)) / len(failures.gaps_s)
    gain = likelihood(weibull_min(shape, scale=scale)) - likelihood(expon(scale=mean))
    return float(shape), float(chi2.sf(max(0.0, 2 * gain), 1))
