# SPDX-License-Identifier: BSD-3-Clause
"""The arrays that hold states, and the names of these."""

from __future__ import annotations

_STATE_PREFIX = "perdure.state."


def is_state(name: str) -> bool:
    """Whether an array is one of them."""
    return name.startswith(_STATE_PREFIX)


def shown_name(name: str) -> str:
    """Of a state without what it is stored under."""
    return name.removeprefix(_STATE_PREFIX)


def state_name(name: str) -> str:
    """The array of a state."""
    return _STATE_PREFIX + name
