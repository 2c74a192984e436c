# SPDX-License-Identifier: BSD-3-Clause
"""Capacities, budgets and options as people write them."""

from __future__ import annotations

import re

from perdure.failures import Wrong


def mib_text(size: float) -> str:
    """A capacity in bytes as "128 MiB", or to three digits as "2.35 MiB"."""
    mib = size / (1 << 20)
    return f"{mib:.0f} MiB" if mib >= 100 or mib.is_integer() else f"{mib:.3g} MiB"


def parse_budget(text: str) -> float:
    """The slowdown that "slowdown=20%" allows, as a share (0.2). Raises Wrong."""
    match = re.fullmatch(r"\s*slowdown\s*=\s*([0-9]+(?:\.[0-9]+)?)\s*(%?)\s*", text)
    if match is None:
        raise Wrong(f"'{text}' is no budget; write it as slowdown=20%")
    return float(match.group(1)) / (100 if match.group(2) else 1)


def parse_options(words: list[str] | None) -> dict[str, str]:
    """Options of a policy, each NAME=VALUE. Raises Wrong."""
    options = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Wrong(f"'{word}' is no option of a policy; write it as alpha=0.9")
        options[name] = value
    return options


def joules_text(joules: float) -> str:
    """An energy as "8.5 J" or "120 mJ"."""
    for scale, unit in ((1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ")):
        if joules >= scale:
            return f"{joules / scale:.4g} {unit}"
    return f"{joules * 1e9:.4g} nJ"
