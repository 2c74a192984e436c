# SPDX-License-Identifier: BSD-3-Clause
"""What a commit must say of itself, for tools/tidy.py --commits.

A subject is "area: what changes", at most SUBJECT_COLUMNS long. What changes behaviour, format or
speed has a body: that is taken to be any change of code, other than comments, in PRODUCT. Merges
are left alone.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

SUBJECT_COLUMNS = 60
PRODUCT = ("src", "include", "fortran", "pass", "python/core", "python/perdure")
TESTS = (":(exclude)*_test.cpp", ":(exclude)**/testing/**", ":(exclude)*.md")
SUBJECT = re.compile(r"[a-z][\w.,/ -]*: \S")
COMMENT = re.compile(r"[+-]\s*(//|/\*|\*|#(?!\s*(include|define|if|else|endif|pragma))|!|$)")


def _git(root: Path, *words: str) -> str:
    ran = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    if ran.returncode != 0:
        raise SystemExit(f"tidy: git {' '.join(words)}: {ran.stderr.strip()}")
    return ran.stdout


def _changes_product(root: Path, commit: str) -> bool:
    shown = _git(root, "show", "--format=", "-U0", "-M", commit, "--", *PRODUCT, *TESTS)
    changed = [line for line in shown.splitlines()
               if line[:1] in "+-" and line[:4] not in ("+++ ", "--- ")]
    return any(not COMMENT.match(line) for line in changed)


def check_commits(root: Path, commits: str) -> Iterator[tuple[str, str]]:
    """(commit, what is wrong) for each commit of the range `commits`, oldest first."""
    listed = _git(root, "log", "--reverse", "--no-merges", "--format=%h", commits)
    for commit in listed.split():
        subject, _, body = _git(root, "show", "-s", "--format=%s%n%b", commit).partition("\n")
        if len(subject) > SUBJECT_COLUMNS:
            yield commit, (f"the subject has {len(subject)} columns of at most {SUBJECT_COLUMNS}: "
                           f"{subject}")
        if not SUBJECT.match(subject):
            yield commit, f"the subject is not 'area: what changes': {subject}"
        if not body.strip() and _changes_product(root, commit):
            yield commit, f"changes the product, and has no body that says why: {subject}"
