"""Writes quantities for people: three digits and a unit."""

from __future__ import annotations

import time

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def seconds_text(seconds: float) -> str:
    """A duration in seconds as "2.5 ms", "13.2 s" or "3 min 20 s"."""
    if seconds >= 120:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    for scale, unit in _TIMES:
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return "0 s"


def bytes_text(size: float) -> str:
    """A size in bytes as "64 MB"; decimal units."""
    for scale, unit in _SIZES:
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.0f} B"


def rate_text(size: float, seconds: float) -> str:
    """`size` bytes in `seconds` as "3.2 GB/s"; a dash if no time has passed."""
    return f"{bytes_text(size / seconds)}/s" if seconds > 0 else "-"


def time_text(nanoseconds: int) -> str:
    """Nanoseconds since the epoch as local time; a dash for 0."""
    if nanoseconds == 0:
        return "-"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(nanoseconds * 1e-9))
