"""All commands of `perdure ipv`."""

from __future__ import annotations

from perdure.ipv import explain_command  # noqa: F401  (they register themselves)
from perdure.ipv.app import app

__all__ = ["app"]
