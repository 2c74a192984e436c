# SPDX-License-Identifier: BSD-3-Clause
"""The page of a job: how it ended, its time, its commits, what was planned, what to change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.energy.plan.file import ReadPlan, read_plan
from perdure.energy.profile.file import Profile, read_profile
from perdure.pages.page import svg, write_page
from perdure.report.advice import Judgement, rate_of
from perdure.report.job import Job, read_job
from perdure.report.pictures import PHASE_COLOURS, draw_commits, draw_timeline
from perdure.screen import say

_DAY_S = 86400.0


@dataclass(frozen=True)
class Against:
    """A figure as planned and as measured."""

    name: str
    planned: float
    measured: float
    unit: str  # "s", or "" for a number


def write_job_page(
    document: dict[str, Any],
    source: Path,
    mtbf_s: float | None,
    plan_file: Path | None,
    profile_file: Path | None,
    file: Path,
) -> None:
    """Writes the page of a document; what was there before stays until it is whole.

    Raises Wrong for one that is wrong, and OSError.
    """
    job = read_job(source, document)
    plan = _plan_of(job, plan_file)
    profile = read_profile(profile_file) if profile_file else None
    judgement = Judgement(job, mtbf_s)
    device = _device_MBps(job, profile)
    commits = draw_commits(job, device)
    write_page(file, __file__, {
        "job": job,
        "phases": job.phases(),
        "colours": PHASE_COLOURS,
        "judgement": judgement,
        "advice": judgement.advice(),
        "intervals": judgement.intervals(),
        "rate": rate_of(job),
        "device_MBps": device,
        "against": _against(job, plan) if plan else [],
        "timeline": svg(draw_timeline(job)),
        "commits": svg(commits) if commits else None,
    })  # fmt: skip


def _plan_of(job: Job, given: Path | None) -> ReadPlan | None:
    """The plan that was asked for, or the one that the job followed, if it is still there."""
    if given is not None:
        return read_plan(given)
    if job.plan is None:
        return None
    if not Path(job.plan).exists():
        say(f"perdure: the job's plan {job.plan} is gone: nothing is compared with it", err=True)
        return None
    return read_plan(Path(job.plan))


def _device_MBps(job: Job, profile: Profile | None) -> float | None:
    """The profile's bandwidth with as many writers as ranks, or the nearest number it has."""
    if profile is None:
        return None
    ranks = max(attempt.ranks for attempt in job.attempts)
    points = profile.of("write")
    nearest = min(abs(point.setting.writers - ranks) for point in points)
    return max(point.bandwidth_MBps.mean for point in points
               if abs(point.setting.writers - ranks) == nearest)


def _against(job: Job, plan: ReadPlan) -> list[Against]:
    """What a plan said, and what was. A day of work is one without failures and commits."""
    phases, rows = job.phases(), []
    if job.interval_s is not None:
        rows.append(Against("computing between commits", plan.work_s, job.interval_s, "s"))
        rows.append(Against("a commit holds the job up for", float(plan.machine.write_s),
                            job.commit_s / job.commits, "s"))
    if phases["computing"] > 0:
        work_s = phases["computing"]
        rows.append(Against("time over that without commits and failures",
                            plan.expected.time_per_work, job.seconds / work_s, ""))
        rows.append(Against("failures a day", float(plan.machine.rate_per_s) * _DAY_S,
                            job.failures / job.seconds * _DAY_S, ""))
    return rows

