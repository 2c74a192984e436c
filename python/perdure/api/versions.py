# SPDX-License-Identifier: BSD-3-Clause
"""Versions that a pool keeps. For windows too, whose programs may have no numpy."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.api.errors import InvalidArgument
from perdure.api.native import _api


@dataclass(frozen=True)
class Version:
    """A version that a pool keeps; `parent` is the version that it was made from.

    `committed_ns` counts nanoseconds since 1970. An abandoned version is one before which an older
    one was restored, and the newest was not made from it.
    """

    version: int
    parent: int
    committed_ns: int
    abandoned: bool


def versions_of(pool: _api.Pool) -> list[Version]:
    """The versions that can be restored, newest first. Local."""
    return [
        Version(kept.version, kept.parent, kept.committed_ns, kept.abandoned)
        for kept in pool.versions()
    ]


def version_number(version: int) -> int:
    """`version`, if it can be the number of one; raises InvalidArgument."""
    if not 0 <= version < 2**64:
        raise InvalidArgument(f"{version} is no number of a version; versions() lists them")
    return version
