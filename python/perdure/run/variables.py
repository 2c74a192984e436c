# SPDX-License-Identifier: BSD-3-Clause
"""Variables of the environment that are spelt like none that Perdure reads."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_PREFIX = "PERDURE_"
# Those of docs/environment.md, without the prefix; a test compares them.
_KNOWN = frozenset((
    "ANY_OWNER", "BENCH_DIR", "BENCH_DISK", "BENCH_MPICH5", "BUILD", "CACHE", "CACHE_HOST",
    "CACHE_MODEL", "CACHE_REPORT", "CHECKSUM", "CLANG", "COMMIT_LIMIT", "COMMIT_PATIENCE",
    "CRASH_IMAGE", "DEVICES", "EMULATE", "ENERGY_PLAN",
    "ENERGY_PROFILE", "ENERGY_REPORT", "ENERGY_STATE", "ENERGY_TIMEOUT_MS", "ENERGY_TOKENS",
    "FAKE_COUNT", "FAKE_KILL", "FILES_DIR", "FLANG", "FLUSH", "FUZZ_INPUTS", "GCC", "GLUSTER",
    "IPV", "IPV_CHECK", "IPV_EXPLAIN", "IPV_HISTORIES", "ISAL", "KEEPER", "KILL",
    "KNOWN_FAILURES", "LEVELS", "LOCK_WAIT_MS", "MPI_TIMEOUT", "NODE_ID", "ORACLE_ROOM",
    "ORACLE_RUNS", "ORACLE_TRACE", "PASS", "POOL", "PRELOAD_FIRST", "PYTHON", "RECORD", "ROOT",
    "ROUNDS", "RUN_DIR", "RUN_SHARED", "SKIP_PACKAGES", "SLOW_TESTS", "SMALL_POOL",
    "SUITE_VARIANT", "SWEEP_RUNS", "SYSFS_ROOT",
    "TEST_ACKNOWLEDGE", "TEST_DIR", "TEST_GRAPH", "TEST_INTERVALS", "TEST_KILLS",
    "TEST_MPICC_NAME", "TEST_MPIEXEC_NAME", "TEST_MPIS", "TEST_SEED", "TORCH_PYTHON", "TRACE",
    "TRACE_STARTED_AGAIN", "WINDOWS",
))  # fmt: skip


def misspelt(environment: Iterable[str]) -> list[str]:
    """A sentence for each name that begins with PERDURE_ and is not known."""
    sentences = []
    for name in sorted(environment):
        rest = name.removeprefix(_PREFIX)
        if rest == name or rest in _KNOWN or rest.startswith("TEST_"):
            continue
        close = get_close_matches(rest, sorted(_KNOWN), 1)
        meant = f"; did you mean {_PREFIX}{close[0]}?" if close else ""
        sentences.append(f"{name} is set, and Perdure has no such variable{meant}")
    return sentences
