# SPDX-License-Identifier: BSD-3-Clause
"""All commands of `perdure ipv`."""

from __future__ import annotations

from perdure.ipv import (  # noqa: F401  (they register themselves)
    check_command,
    explain_command,
    record_command,
)
from perdure.ipv.app import app

__all__ = ["app"]
