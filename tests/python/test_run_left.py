# SPDX-License-Identifier: BSD-3-Clause
"""What `perdure run` does with notes of parts of cached files. tests/ends has whole jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.run.left_behind import Note, parse_note, read_notes, settle

PART = "/dev/shm/perdure-nowhere/0123456789abcdef.part"


def note_file(folder: Path, *words: str, name: str = "part-1") -> Path:
    path = folder / name
    path.write_bytes(b"".join(word.encode() + b"\0" for word in words))
    return path


def test_a_note_names_the_node_the_part_and_the_file():
    content = b"n1\0/dev/shm/a\nb.part\0/scratch/x y\0"
    assert parse_note(content) == Note("n1", "/dev/shm/a\nb.part", "/scratch/x y")


@pytest.mark.parametrize("content", [b"", b"n1\0p\0", b"n1\0p\0f", b"n1\0p\0f\0more", b"\0" * 9])
def test_what_is_no_note_is_passed_over(content, tmp_path):
    assert parse_note(content) is None
    (tmp_path / "part-1").write_bytes(content)
    assert read_notes([tmp_path]) == []


def test_a_part_that_two_attempts_noted_is_one(tmp_path):
    for attempt in ("attempt-1", "attempt-2"):
        (tmp_path / attempt).mkdir()
        note_file(tmp_path / attempt, "n1", PART, "/scratch/x")
    assert len(read_notes([tmp_path / "attempt-1", tmp_path / "attempt-2"])) == 1


def test_a_part_on_another_node_is_named_with_what_saves_it_there(tmp_path):
    note_file(tmp_path, "n1", PART, "/scratch/x")
    (left,) = settle([tmp_path], node="n0")
    assert (left.file, left.part, left.node, left.written_bytes) == ("/scratch/x", PART, "n1", 0)
    assert "on node n1" in left.sentence
    assert "`perdure cache recover /dev/shm/perdure-nowhere`" in left.sentence


def test_a_part_that_is_gone_is_not_left(tmp_path):
    note_file(tmp_path, "n0", PART, "/scratch/x")
    assert settle([tmp_path], node="n0") == []
