# SPDX-License-Identifier: BSD-3-Clause
"""A check: what was found, what Perdure does with it, and what to improve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

OK, NOTE, PROBLEM = "ok", "note", "problem"
MARKS = (OK, NOTE, PROBLEM)


@dataclass(frozen=True)
class Check:
    """One line of the doctor's. Texts may hold what the machine's files and programs say."""

    name: str
    mark: str
    found: str
    does: str
    improve: str = ""
    command: str = ""  # to be pasted into a shell
    facts: dict[str, Any] = field(default_factory=dict)  # plain values, for programs
