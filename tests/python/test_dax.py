# SPDX-License-Identifier: BSD-3-Clause
"""Tests of what judges the killed virtual machines of tests/dax, and of their archive."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "dax"))
from images import Archive  # noqa: E402
from judge import judge  # noqa: E402

RESTART = b"mounted\nrestarted 17 power failure\ncommitted 18\ncommitted 19\ncommit"


def test_a_restart_at_or_after_what_was_acknowledged_is_right() -> None:
    for acknowledged in (0, 16, 17):
        verdict = judge(RESTART, "dax_job", acknowledged, must_restart=True)
        assert not verdict.faults
        assert (verdict.restarted, verdict.acknowledged) == (17, 19)


def test_a_restart_before_what_was_acknowledged_is_a_loss() -> None:
    verdict = judge(RESTART, "dax_job", 18, must_restart=True)
    assert set(verdict.faults) == {"lost"}


def test_a_line_that_was_cut_acknowledges_nothing() -> None:
    verdict = judge(b"restarted 3 power failure\ncommitted 4\ncommitted 51", "dax_job", 3, True)
    assert verdict.acknowledged == 4


@pytest.mark.parametrize(
    ("program", "code", "fault"),
    [
        ("dax_job", 2, "wrong"),
        ("dax_job", 1, "refused"),
        ("ipv_kill_job", 3, "lost"),
        ("pool_job_mpich", 4, "wrong"),
        ("pool_job_mpich", 5, "lost"),
        ("pool_job_mpich", 139, "refused"),
    ],
)
def test_an_exit_code_is_what_its_program_says(program: str, code: int, fault: str) -> None:
    said = b"mounted\nwhat was seen\nended %d\n" % code
    assert judge(said, program, 0, True).faults == {fault: f"exit code {code}: what was seen"}


def test_a_guest_without_a_restart_is_refused_unless_it_was_killed_before() -> None:
    assert set(judge(b"mounted\n", "dax_job", 5, must_restart=True).faults) == {"refused"}
    assert not judge(b"mounted\n", "dax_job", 5, must_restart=False).faults


def test_an_error_of_the_kernel_or_a_pool_that_is_not_on_dax_is_wrong() -> None:
    for text in (RESTART + b"\nEXT4-fs error (device pmem0)\n", b"restarted 1 process crash\n"):
        assert set(judge(text, "dax_job", 0, must_restart=True).faults) == {"wrong"}


@pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio, which would unpack it, is missing")
def test_the_archive_is_one_that_cpio_unpacks(tmp_path: Path) -> None:
    archive = Archive()
    archive.add("bin/tool", b"odd")
    archive.add("bin/tool", b"not taken")
    archive.add("bin/deep/other", b"1234")
    unpack = ["cpio", "-i", "-d", "--quiet"]
    subprocess.run(unpack, input=archive.finish(), cwd=tmp_path, check=True)
    assert (tmp_path / "bin/tool").read_bytes() == b"odd"
    assert (tmp_path / "bin/deep/other").read_bytes() == b"1234"
