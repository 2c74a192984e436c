# SPDX-License-Identifier: BSD-3-Clause
"""The case n-to-m-dcp of `perdure bench state`: shards of PyTorch that another number of processes
loads, from pools and from torch's own files.

Four processes keep 128 MiB of tensors, and 1, 2, 3 and 8 load them by torch.distributed.checkpoint,
with PoolReader and with torch's FileSystemReader, by turns in one job. The time is that of load()
in the slowest process, into tensors that are there; both are on tmpfs. PoolReader compares all that
it reads with its checksums, and torch has none.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from perdure.core import load_core
from perdure.programs import ProgramFailed
from perdure.progress import progress
from perdure_bench.facts import Fact
from perdure_bench.solver import job_output, pool_directory

_OLD = 4
_LIMIT_S = 240
_JOB = "perdure_bench.dcp_job"

Facts = Callable[[str, list[float], list[float], dict], Iterator[Fact]]


def python_with_torch() -> str | None:
    """The one that PERDURE_TORCH_PYTHON names, or this one, if it has torch."""
    named = os.environ.get("PERDURE_TORCH_PYTHON")
    return named or (sys.executable if find_spec("torch") else None)


def against_dcp(python: str, quick: bool, new: tuple[int, ...], facts: Facts) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    edge, rounds = (512, 2) if quick else (2048, 15)
    with pool_directory() as place, progress("bench state", len(new) + 1) as advance:
        job = [python, "-m", _JOB]
        _run([*job, "make", place, edge, _OLD, 0])
        advance()
        for ranks in new:
            samples = _samples(_run([*job, "take", place, edge, ranks, rounds]), rounds)
            more = {"ranks": ranks, "old_ranks": _OLD, "mebibytes": 16 * edge * edge * 2 >> 20}
            yield from facts("n-to-m-dcp", samples["own"], samples["rival"], more)
            advance()


def _run(command: list[object]) -> str:
    modules = [Path(__file__).parents[1], Path(str(load_core().__file__)).parents[1]]
    around = {"PYTHONPATH": os.pathsep.join(map(str, modules)), "OMP_NUM_THREADS": "1"}
    return job_output(command, f"{_JOB} of {command[6]} processes", _LIMIT_S, around)


def _samples(output: str, rounds: int) -> dict[str, list[float]]:
    """Milliseconds, by way."""
    found: dict[str, list[float]] = {"own": [], "rival": []}
    for way, took in re.findall(r"^take (own|rival) (\d+)$", output, re.MULTILINE):
        found[way].append(int(took) / 1e6)
    if any(len(each) != rounds for each in found.values()):
        raise ProgramFailed(f"the job did not report; it printed: {output[-300:].strip()}")
    return found
