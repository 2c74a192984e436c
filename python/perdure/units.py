# SPDX-License-Identifier: BSD-3-Clause
"""Sizes and times as people write them (docs/cli.md, "Sizes and times"), and writes them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from fractions import Fraction

from perdure.failures import Wrong

_LONG_TIMES = ((86400, "days", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
_SHOWN_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_SHOWN_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


SIZES: dict[str, Fraction | float] = {"B": 1, "kB": 10**3}
for _power, _letter in enumerate("KMGTP", 1):
    SIZES |= dict.fromkeys((_letter.lower(), _letter, f"{_letter}iB"), 1024**_power)
    SIZES[f"{_letter}B"] = 1000**_power
TIMES: dict[str, Fraction | float] = {
    "ns": Fraction(1, 10**9), "us": Fraction(1, 10**6), "ms": Fraction(1, 1000),
    "s": 1, "min": 60, "h": 3600, "d": 86400, "y": 31557600,
}  # fmt: skip
_NUMBER = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"


def parse_quantity(
    text: str, what: str, units: Mapping[str, Fraction | float], example: str, unit: str = ""
) -> Fraction:
    """A number and its unit. `unit`: of a number without one, which is refused if this is empty."""
    match = re.fullmatch(rf" *({_NUMBER}) *([A-Za-z]*) *", text)
    if match is None:
        raise Wrong(f"'{text}' is no {what}; write it as {example}")
    unit = match[2] or unit
    if not unit:
        raise Wrong(f"'{text}' has no unit; write the {what} as {example}")
    if unit not in units:
        raise Wrong(f"'{text}': '{unit}' is no unit of a {what}; there are {', '.join(units)}")
    value = Fraction(match[1]) * Fraction(units[unit])
    if value < 0:
        raise Wrong(f"'{text}' is negative; a {what} cannot be")
    if value >= 2**64:
        raise Wrong(f"'{text}' is too large for a {what}")
    return value


def parse_size(text: str, unit: str = "B") -> int:
    """Bytes of "4096", "64k" and "64KiB" (65536), "64kB" (64000). Raises Wrong."""
    size = parse_quantity(text, "size", SIZES, "64GB or 128MiB", unit)
    if size.denominator != 1:
        raise Wrong(f"'{text}' is not a whole number of bytes")
    return int(size)


def parse_time(text: str, unit: str = "s") -> float:
    """Seconds of "130", "130s", "250ms", "14.66h". Raises Wrong."""
    return float(parse_quantity(text, "time", TIMES, "130s, 5min or 14.66h", unit))


def parse_bandwidth(text: str, unit: str = "B") -> float:
    """Bytes a second of "2GB/s", with a `unit` of "2e9" too; more than none. Raises Wrong."""
    number, slash, per = text.partition("/")
    if per.strip() != "s" if slash else not unit:
        raise Wrong(f"'{text}' is no bandwidth; write it as 510MB/s")
    try:
        size = parse_size(number, unit)
    except Wrong as wrong:
        raise Wrong(f"{wrong}, and /s after it") from None
    if size == 0:
        raise Wrong(f"'{text}': a bandwidth must be more than nothing")
    return float(size)


def seconds_text(seconds: float) -> str:
    """A duration in seconds as "2.5 ms", "13.2 s", "3 min 20 s", "5 h 2 min" or "9 days 3 h"."""
    for whole, name, part, part_name in _LONG_TIMES:
        if seconds >= 2 * whole:
            rest = int(seconds % whole // part)
            return f"{int(seconds // whole)} {name}" + (f" {rest} {part_name}" if rest else "")
    for scale, unit in _SHOWN_TIMES:
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return "0 s"


def bytes_text(size: float) -> str:
    """A size in bytes as "64 MB"; decimal units."""
    for scale, unit in _SHOWN_SIZES:
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


def rate_text(size: float, seconds: float) -> str:
    """`size` bytes in `seconds` as "3.2 GB/s"; a dash if no time has passed."""
    return f"{bytes_text(size / seconds)}/s" if seconds > 0 else "-"


def time_text(nanoseconds: int) -> str:
    """Nanoseconds since 1970 as local time; a dash for 0."""
    if nanoseconds == 0:
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(nanoseconds * 1e-9))
