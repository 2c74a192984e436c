# SPDX-License-Identifier: BSD-3-Clause
"""Lets the tests of the cluster import the command."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]
