# SPDX-License-Identifier: BSD-3-Clause
"""New contents for objects that a program holds already.

A program may have a generator or list of its state under another name too. So an object stays the
one that it was, where what comes back is of its type; which objects are the same one is as in what
comes back.
"""

from __future__ import annotations

from collections import defaultdict, deque
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from perdure.api.state.generators import refill_generator


class Refill:
    """Of one state. No object is used for two that are not the same."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}  # by id() of what comes back
        self._kept: list[Any] = []  # so that no id() is given twice
        self._used: set[int] = set()

    def value(self, old: Any, new: Any) -> Any:
        """`old` with the contents of `new`, or `new` where it can't have them."""
        if type(new) in (tuple, frozenset):
            return self._fixed(old, new)
        if id(new) not in self._made:
            self._kept += [old, new]
            fits = type(old) is type(new) and id(old) not in self._used
            self._used.add(id(old))
            self._made[id(new)] = self._filled(old if fits else new, new)
        return self._made[id(new)]

    def _items(self, old: Any, new: Any) -> list[Any]:
        return [self.value(one, other) for one, other in zip_longest(islice(old, len(new)), new)]

    def _fixed(self, old: Any, new: Any) -> Any:
        is_like = type(old) is type(new) is tuple
        return type(new)(self._items(old if is_like else (), new))

    def _filled(self, old: Any, new: Any) -> Any:
        """What is inside may be `old` objects even where `old` is `new` itself."""
        if isinstance(new, dict):
            return self._dict(old, new)
        if isinstance(new, (list, deque)):
            items = self._items(old, new)
            if getattr(old, "maxlen", None) != getattr(new, "maxlen", None):
                old = new
            old.clear()
            old.extend(items)
            return old
        if isinstance(new, set):
            items = self._items((), new)
            old.clear()
            old.update(items)
            return old
        if old is new:
            return new
        if isinstance(new, np.ndarray):
            return self._array(old, new)
        return old if refill_generator(old, new) else new

    def _dict(self, old: Any, new: Any) -> Any:
        made = {self.value(None, key): self.value(old.get(key), new[key]) for key in new}
        attributes = {
            name: self.value(getattr(old, name, None), item)
            for name, item in getattr(new, "__dict__", {}).items()
        }
        old.clear()
        for key, item in made.items():
            old[key] = item
        if hasattr(old, "__dict__"):
            old.__dict__.clear()
            old.__dict__.update(attributes)
        if isinstance(new, defaultdict):
            old.default_factory = new.default_factory
        return old

    def _array(self, old: Any, new: Any) -> Any:
        alike = old.dtype == new.dtype and old.shape == new.shape and old.strides == new.strides
        # The memory of a view may be that of another array too.
        if not alike or old.base is not None or not old.flags.writeable:
            return new
        old[...] = new
        return old
