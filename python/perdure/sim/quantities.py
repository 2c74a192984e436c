"""Capacities and shares as people write them."""

from __future__ import annotations

import re

_UNITS = {
    "B": 1,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
    "TIB": 1 << 40,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}


def parse_bytes(text: str) -> int:
    """A capacity in bytes: "128MiB", "1.5 GiB", "4096". Raises ValueError with a remedy."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", text)
    unit = _UNITS.get((match.group(2) or "B").upper()) if match else None
    if match is None or unit is None:
        raise ValueError(f"'{text}' is no capacity; write it as 128MiB, 1GiB or a number of bytes")
    size = float(match.group(1)) * unit
    if size != int(size):
        raise ValueError(f"'{text}' is not a whole number of bytes")
    return int(size)


def mib_text(size: float) -> str:
    """A capacity in bytes as "128 MiB"."""
    return f"{size / (1 << 20):.6g} MiB"


def parse_budget(text: str) -> float:
    """The slowdown that "slowdown=20%" allows, as a share (0.2). Raises ValueError."""
    match = re.fullmatch(r"\s*slowdown\s*=\s*([0-9]+(?:\.[0-9]+)?)\s*(%?)\s*", text)
    if match is None:
        raise ValueError(f"'{text}' is no budget; write it as slowdown=20%")
    return float(match.group(1)) / (100 if match.group(2) else 1)


def parse_options(words: list[str] | None) -> dict[str, str]:
    """Options of a policy, each NAME=VALUE. Raises ValueError."""
    options = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ValueError(f"'{word}' is no option of a policy; write it as alpha=0.9")
        options[name] = value
    return options


def joules_text(joules: float) -> str:
    """An energy as "8.5 J" or "120 mJ"."""
    for scale, unit in ((1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ")):
        if joules >= scale:
            return f"{joules / scale:.4g} {unit}"
    return f"{joules * 1e9:.4g} nJ"
