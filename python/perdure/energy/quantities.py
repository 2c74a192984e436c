# SPDX-License-Identifier: BSD-3-Clause
"""Sizes, times, powers, rates and shares as people write them: a number and its unit.

Every function raises Wrong with what was seen and what would do. Nothing here guesses a unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing import TypeGuard

from perdure import units
from perdure.units import TIMES, Wrong

POWER_MAX = 1e12
POWERS = {"mW": 1e-3, "W": 1.0, "kW": 1e3, "MW": 1e6}
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

_Parsed = TypeVar("_Parsed")


def is_number(value: object) -> TypeGuard[float]:
    """Whether what stood in a document is a number that a float can hold, and finite."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def parse_size(text: str) -> float:
    """Bytes of "64GB" (10^9) or "64GiB" (2^30); more than none."""
    size = float(units.parse_size(text, unit=""))
    if size <= 0:
        raise Wrong(f"'{text}': a size must be more than nothing")
    return size


def parse_time(text: str) -> float:
    """Seconds of "130s", "14.66h", "5min"; 0 needs its unit as well."""
    return units.parse_time(text, unit="")


def parse_power(text: str) -> float:
    """Watts of "471.1W"; at most POWER_MAX."""
    watts = float(units.parse_quantity(text, "power", POWERS, "471.1W"))
    if watts > POWER_MAX:
        raise Wrong(f"'{text}' is more power than any machine takes; write it as 471.1W")
    return watts


def parse_power_drawn(text: str) -> float:
    """Watts of a node that does something; more than none."""
    watts = parse_power(text)
    if watts <= 0:
        raise Wrong(f"'{text}': a node that runs takes more than no power")
    return watts


def parse_bandwidth(text: str) -> float:
    """Bytes a second of "510MB/s"; more than none."""
    return units.parse_bandwidth(text, unit="")


def parse_rate(text: str) -> float:
    """Failures a second of "1.9e-5/s", "2/d" or "0.07/h"; more than none."""
    match = re.fullmatch(rf"\s*({_NUMBER})\s*/\s*([A-Za-z]+)\s*", text)
    if match is None or match.group(2) not in TIMES:
        raise Wrong(f"'{text}' is no failure rate; write it as 1.9e-5/s, 0.07/h or 2/d")
    rate = float(match.group(1)) / float(TIMES[match.group(2)])
    if rate <= 0 or not math.isfinite(rate):
        raise Wrong(f"'{text}': a failure rate must be more than nothing")
    return rate


def parse_share(text: str) -> float:
    """A share of 1 from "70%" or "0.7"."""
    match = re.fullmatch(rf"\s*({_NUMBER})\s*(%?)\s*", text)
    share = float(match.group(1)) / (100 if match.group(2) else 1) if match else -1.0
    if not 0 < share <= 1:
        raise Wrong(f"'{text}' is no share between 0 and 1; write it as 70% or 0.7")
    return share


def parse_count(text: str) -> int:
    """A whole number, at least 1, also as "1e7"."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 <= value <= 2**53 or value != int(value):
        raise Wrong(f"'{text}' is no whole number of at least 1; write it as 1000 or 1e7")
    return int(value)


def parse_list(text: str | None, parse: Callable[[str], _Parsed]) -> list[_Parsed] | None:
    """Each of several values divided by commas; None stays None."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise Wrong(f"'{text}' has an empty place; divide the values by single commas")
    return [parse(word) for word in words]


def duration_text(seconds: float) -> str:
    """Four digits and the unit that fits: "128 s", "2.41 h", "3.1 d"."""
    if not math.isfinite(seconds):
        return "never"
    for unit, least in (("d", 2 * 86400), ("h", 2 * 3600), ("min", 600), ("s", 1), ("ms", 1e-3)):
        if seconds >= least:
            return f"{seconds / float(TIMES[unit]):.4g} {unit}"
    return f"{seconds / 1e-6:.4g} us" if seconds > 0 else "0 s"


def percent_text(share: float) -> str:
    """A share as "4.10 %"; small ones keep two digits."""
    return f"{100 * share:.2f} %" if abs(share) >= 1e-3 else f"{100 * share:.2g} %"
