# SPDX-License-Identifier: BSD-3-Clause
"""`perdure cache recover` with parts that it finds in a state between two others."""

from __future__ import annotations

import fcntl


def unborn_part(place):
    """What a job leaves that is killed while it opens a file: a part without a header."""
    part = place / "0123456789abcdef.part"
    part.write_bytes(bytes(8192))
    return part


def test_a_part_whose_making_was_cut_short_holds_nothing_and_is_removed(perdure, tmp_path):
    part = unborn_part(tmp_path)
    ran = perdure("cache", "recover", tmp_path)
    assert ran.code == 0, ran.err
    assert not part.exists()


def test_a_part_in_use_is_left_alone_and_named(perdure, tmp_path):
    part = unborn_part(tmp_path)
    with part.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        ran = perdure("cache", "recover", tmp_path)
    assert ran.code == 0 and "is in use, and left alone" in ran.err
    assert part.exists()
