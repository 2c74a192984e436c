# SPDX-License-Identifier: BSD-3-Clause
"""The compiled module perdure._core, or one sentence that says how to get it."""

from __future__ import annotations

from types import ModuleType

from perdure.failures import Failed


def load_core() -> ModuleType:
    """perdure._core. Raises Failed if it was not built."""
    try:
        from perdure import _core
    except ImportError as missing:
        raise Failed(
            f"the compiled module is missing ({missing}); build it: make all, or pip install ."
        ) from None
    return _core
