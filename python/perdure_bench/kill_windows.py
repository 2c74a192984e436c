# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench kill_windows`: as `kill`, with programs of persistent MPI windows.

A protection is a pattern of synchronisation and a mode: fence (every second one commits), pscw (the
end of an exposure epoch commits), passive (lock_all and flush_all), dynamic (attached memory), list
(thousands of attached regions, more with every step), two (two windows of different modes in one
version), accumulate (each of MPI's atomic calls; one half of the kills are within one of them, and
counted as in_call). The job is tests/windows/window_job.cpp. Killed are also ranks between their
commit and their neighbour's (point state), and when others have gone on to the next epoch (point
agreed).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from perdure.programs import find_programs
from perdure.run.rehearsal import Rehearsal
from perdure_bench.facts import Fact
from perdure_bench.kill import Campaign, run_campaign
from perdure_bench.trial import ITERATIONS, Job

SUMMARY = "jobs of persistent windows killed at random moments, and their answers"
_KILLS, _KILLS_QUICK = 200, 24
_CELLS, _CELLS_QUICK = 1 << 18, 1 << 14  # of each rank, 8 bytes each
_CALLS = ("accumulate", "get_accumulate", "fetch_and_op", "compare_and_swap")


@dataclass(frozen=True)
class WindowJob(Job):
    """A job of window_job; `protect` is PATTERN-MODE, or PATTERN-MODE-async."""

    cells: int = _CELLS

    @property
    def problem(self) -> tuple:
        pattern, mode, *_ = self.protect.split("-")
        if pattern == "accumulate":
            return (self.ranks, pattern, mode == "flush")
        return (self.ranks, pattern if pattern in ("two", "list") else "one")

    @property
    def environment(self) -> dict[str, str]:
        """Swaps of Open MPI 4.1.4 crash by themselves where it copies by way of the kernel."""
        if not self.protect.startswith("accumulate"):
            return super().environment
        return {**super().environment, "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}

    def command(self, pool: Path) -> list[str]:
        pattern, mode, *more = self.protect.split("-")
        words = ["--pattern", pattern, "--mode", mode, *(f"--{word}" for word in more)]
        size = ["--iterations", ITERATIONS, "--cells", self.cells]
        return self.solver.command(self.ranks, *words, *size, "--pool", pool)


class WindowCampaign(Campaign):
    """Every pattern in the modes that it can have."""

    protections = (
        "fence-copy",
        "fence-copy-async",
        "fence-twin",
        "fence-log",
        "pscw-copy",
        "pscw-twin",
        "passive-copy",
        "passive-twin",
        "passive-log",
        "dynamic-copy",
        "dynamic-log",
        "list-copy",
        "list-log",
        "two-copy",
        "two-log",
        "accumulate-copy",
        "accumulate-twin",
        "accumulate-log",
        "accumulate-flush",
    )
    make_job = WindowJob

    def _draw_job(self) -> Job:
        job = super()._draw_job()
        assert isinstance(job, WindowJob)
        return replace(job, cells=_CELLS_QUICK) if self._quick else job

    def _draw_kill(self, job: Job, number: int) -> Rehearsal:
        kill = super()._draw_kill(job, number)
        if kill.iteration is None or not job.protect.startswith("accumulate"):
            return kill
        return replace(kill, point=self._draw.choice(_CALLS))


def measure(quick: bool, seed: int = 1) -> Iterator[Fact]:
    """The outcomes per protection, then of all. Raises ProgramFailed."""
    wanted = _KILLS_QUICK if quick else _KILLS
    programs = find_programs("window_job", "tests/windows")
    campaign = partial(WindowCampaign, quick=quick)
    return run_campaign("kill_windows", campaign, programs, wanted, seed)
