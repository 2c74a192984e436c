# SPDX-License-Identifier: BSD-3-Clause
"""Dicts that a pool saves with every version: Pool.state().

A state is an array of bytes that is as long as its contents, in mode log with marks. So a commit
stores the pages that differ, and nothing of a state that stayed as it was.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from perdure.api.array import Array, Ranks, array_flags, open_array, rank_rule
from perdure.api.errors import InvalidArgument, NotFound, WrongRanks, WrongShape
from perdure.api.kinds import Kinds
from perdure.api.native import _api
from perdure.api.state.refill import Refill
from perdure.api.state.stored import NAME_PREFIX, is_empty, pack, unpack
from perdure.api.texts import checked_text


class State:
    """A dict and the array that holds it."""

    def __init__(
        self,
        pool: _api.Pool,
        kinds: Kinds,
        name: str,
        values: dict[str, Any],
        ranks: Ranks | None,
    ):
        if not isinstance(values, dict):
            raise TypeError(f"state '{name}' is {type(values).__name__}, not a dict")
        checked_text("the name of a state", name)
        self.name, self.values = name, values
        self.packed()
        stored = NAME_PREFIX + name
        if ranks == "rows":
            raise InvalidArgument(f"state '{name}' has no rows; say ranks='same' or 'by hand'")
        extent = 0
        with suppress(NotFound, WrongRanks):  # of these restart() says which states are concerned
            extent = pool.stored_shape(stored, rank_rule(name, ranks))[0]
        flags = array_flags(None, True, False)
        self.array: Array = open_array(
            pool, kinds, stored, extent, np.uint8, "log", flags, None, ranks
        )

    def packed(self) -> bytes:
        """As it is now. Raises TypeError for what can't be kept, with its place."""
        return pack(self.values, self.name)

    def store(self, packed: bytes) -> None:
        """For the next version. Waits until a commit that is under way has read what was there."""
        array = self.array
        old = array.working
        if old.tobytes() == packed:
            return
        new = np.frombuffer(packed, np.uint8)
        if old.size == new.size:
            changed = np.flatnonzero(old != new)
            first, end = int(changed[0]), int(changed[-1]) + 1
        else:
            first, end = 0, new.size
        del old
        if array.saving:
            array.before_write()
        if array.shape[0] != new.size:
            array.resize(new.size)
        array.working[first:end] = new[first:end]
        array.mark(first, end - first)

    def found(self, source: str) -> dict[str, Any] | None:
        """What the version has; None: it lacks this state. Raises Damaged, WrongShape."""
        raw = self.array.working
        if is_empty(raw):
            return None
        value = unpack(raw, f"{source}: state '{self.name}'")
        if type(value) is not type(self.values):
            raise WrongShape(
                f"state '{self.name}' is {type(value).__name__} in the pool, not"
                f" {type(self.values).__name__}; give it another name"
            )
        return value


class States:
    """All of a pool."""

    def __init__(self, pool: _api.Pool, kinds: Kinds, source: str):
        self._pool, self._kinds, self._source = pool, kinds, source
        self._states: list[State] = []

    def add(
        self, name: str, values: dict[str, Any], is_restarted: bool, ranks: Ranks | None
    ) -> Array:
        """Its array."""
        for each in self._states:
            if each.name == name or each.values is values:
                raise InvalidArgument(f"state '{each.name}' of this pool is a dict already; use it")
        made = State(self._pool, self._kinds, name, values, ranks)
        if is_restarted:
            _fill(made, made.found(self._source))
        self._states.append(made)
        return made.array

    def save(self) -> None:
        """Before a commit: all are encoded, then stored. Raises TypeError, NoSpace."""
        for state, packed in [(state, state.packed()) for state in self._states]:
            state.store(packed)

    def load(self) -> None:
        """After a restart or restore: all are read, then filled. Raises Damaged, WrongShape."""
        for state, found in [(state, state.found(self._source)) for state in self._states]:
            _fill(state, found)


def _fill(state: State, found: dict[str, Any] | None) -> None:
    if found is not None:
        Refill().value(state.values, found)
