# SPDX-License-Identifier: BSD-3-Clause
"""The compiled module perdure._api, or one sentence that says how to get it."""

from __future__ import annotations

from perdure.api.errors import Unsupported

try:
    from perdure import _api as _api
except ImportError as missing:
    raise Unsupported(
        f"the compiled module perdure._api is missing ({missing}); run pip install . in the"
        " clone, or build it (cmake --build --preset dev --target _api) and add build/dev/python"
        " to PYTHONPATH"
    ) from None
