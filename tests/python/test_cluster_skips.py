# SPDX-License-Identifier: BSD-3-Clause
"""The tests of tests/cluster where there can be no cluster."""

from __future__ import annotations

import os
import subprocess
import sys

from conftest import ROOT


def test_tests_of_a_cluster_are_skipped_with_the_reason_where_there_is_no_slurm(tmp_path):
    words = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*words, ROOT / "tests/cluster"], capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": str(tmp_path), "COLUMNS": "1000"},
    )  # fmt: skip
    last = ran.stdout.splitlines()[-1]
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " skipped in " in last and "failed" not in last  # the judge needs no hosts
    assert "run tools/bootstrap.sh --cluster" in ran.stdout
