# SPDX-License-Identifier: BSD-3-Clause
"""What a job's figures say about it, and what to change: sentences with the figures in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from perdure.energy.formulas.model import Machine, time_optimal_work, time_per_work
from perdure.pages.page import unbroken
from perdure.report.job import Job
from perdure.units import bytes_text
from perdure.units import seconds_text as plain_seconds

seconds_text = unbroken(plain_seconds)
DEAR = 0.05  # a share of the time that commits may well take
SLOW_START = 0.2  # of the time, and _SLOW_START_S, from which it is named
_SLOW_START_S = 60.0
_WORTH = 0.005  # of the time: what a change must save to be proposed
_MTBFS_S = (3600.0, 86400.0, 7 * 86400.0, 30 * 86400.0)


@dataclass(frozen=True)
class Interval:
    """What committing every `work_s` of computing costs with failures `mtbf_s` apart.

    Shares are of the time that the job would take without failures and commits.
    """

    mtbf_s: float
    best_s: float
    best_share: float
    now_share: float | None  # None: hopeless, the job does not end


@dataclass(frozen=True)
class Advice:
    """What is said; `bad` if something went wrong. `command` is what to type."""

    text: str
    bad: bool = False
    command: str = ""


@dataclass(frozen=True)
class Judgement:
    """Of a job; `mtbf_s` is what the user or the job says, None where neither does."""

    job: Job
    given_mtbf_s: float | None

    @property
    def mtbf_s(self) -> float | None:
        if self.given_mtbf_s is None and self.job.failures:
            return self.job.seconds / self.job.failures
        return self.given_mtbf_s

    @cached_property
    def commit_s(self) -> float:
        """How long one commit holds the job up."""
        return self.job.commit_s / self.job.commits if self.job.commits else 0.0

    @cached_property
    def again_s(self) -> float:
        """From a failure until all compute again: the mean of what was seen."""
        started = [each.starting_s for each in self.job.attempts if each.start_s is not None]
        between = self.job.phases()["between attempts"] / max(1, len(self.job.attempts) - 1)
        pause = between if len(self.job.attempts) > 1 else 0.0
        return (sum(started) / len(started) if started else 0.0) + pause

    def intervals(self) -> list[Interval]:
        """For the known time between failures, or for some that are usual; empty without commits.

        By the exact model of docs/energy_plan.md, with the measured commit and restart.
        """
        if self.job.interval_s is None or self.commit_s <= 0:
            return []
        return [self._interval(each) for each in ([self.mtbf_s] if self.mtbf_s else _MTBFS_S)]

    def _interval(self, mtbf_s: float) -> Interval:
        machine = Machine(1 / mtbf_s, self.commit_s, self.again_s)
        best_s = float(time_optimal_work(machine))
        now_s = self.job.interval_s or 0.0
        now = float(time_per_work(now_s, machine)) - 1 if now_s > 0 else math.inf
        return Interval(mtbf_s, best_s, float(time_per_work(best_s, machine)) - 1,
                        now if math.isfinite(now) else None)

    def advice(self) -> list[Advice]:
        """The worst first."""
        return [*self._ending(), *self._cost(), *self._protection()]

    def _ending(self) -> list[Advice]:
        job, said = self.job, []
        if not job.completed:
            why = f": {job.last.why}" if job.last.why else ""
            rest = "; it is in the queue again" if job.requeued else ""
            said.append(Advice(f"The job did not complete. Its last attempt ended with "
                               f"{job.last.ending}{why}{rest}.", bad=True))  # fmt: skip
        if job.completed and job.last.unclosed:
            said.append(Advice(f"{job.last.unclosed} of {job.last.ranks} ranks did not close "
                               "their pool. Whatever came after their last commit is not kept: "
                               "close the pool before MPI_Finalize.", bad=True))
        if job.left_behind:
            said.append(Advice(f"{job.left_behind} parts of cached files could not be written back",
                               True, "perdure cache recover DIR"))
        lost = sorted({node for attempt in job.attempts for node in attempt.lost_nodes})
        if lost:
            said.append(Advice(f"Nodes that were lost: {', '.join(lost)}."))
        return said

    def _cost(self) -> list[Advice]:
        job, said = self.job, self._interval_to_change()
        computing = job.phases()["computing"]
        dear = job.commit_s / (computing + job.commit_s) if job.commit_s else 0.0
        if dear > DEAR and not said:
            said.append(Advice(
                f"Commits take {_percent(dear)} of the time. Commit less often, in the background "
                "(perdure_commit_begin), or with an array's mode that writes less (twin, log).",
            ))
        start = max(attempt.starting_s for attempt in job.attempts)
        if start > _SLOW_START_S and start > SLOW_START * job.seconds:
            restart = max(attempt.restart_s for attempt in job.attempts)
            said.append(Advice(f"Starting took {seconds_text(start)}, of which restoring the state "
                               f"took {seconds_text(restart)}: the rest is the launcher's and the "
                               "program's own."))
        return said

    def _interval_to_change(self) -> list[Advice]:
        """For the known time between failures, or for a day, if another interval is better."""
        for each in self.intervals()[: 1 if self.mtbf_s else 2][-1:]:
            if each.now_share is not None and each.now_share - each.best_share < _WORTH:
                continue
            every = seconds_text(each.mtbf_s)
            when = "With a failure" if self.mtbf_s else "If a failure came"
            now = "the job does not end"
            if each.now_share is not None:
                now = f"that costs {_percent(each.now_share)}"
            return [Advice(
                f"{when} every {every}, a commit after {seconds_text(each.best_s)} of computing "
                f"would be best, and cost {_percent(each.best_share)} of the time. "
                f"Now it comes after {seconds_text(self.job.interval_s or 0)}, and {now}."
            )]
        return []

    def _protection(self) -> list[Advice]:
        job, said = self.job, []
        if not any(attempt.ranks for attempt in job.attempts):
            said.append(Advice("No rank reported: the program does not use Perdure, so a failure "
                               "loses all that it computed.", True, "perdure doctor"))
            return said
        if not job.commits and job.completed:
            said.append(Advice("The program opened a pool and never committed: a failure would "
                               "have lost all of it.", bad=True))
        lost = job.phases()["lost work"]
        if lost > 0:
            said.append(Advice(f"Failures cost {seconds_text(lost)} of work that was done again, "
                               f"of {seconds_text(job.seconds)} in all."))
        if len(job.attempts) == 1 and job.last.failed and job.commits:
            said.append(Advice(f"Version {job.last.version} is kept: the same command goes on from "
                               "it. With --restarts it does so by itself.", False,
                               f"perdure run --restarts 5 -- {job.command}"))
        return said


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < DEAR else f"{100 * share:.0f} %"


def rate_of(job: Job) -> str:
    """Bytes committed over the time that commits took."""
    return f"{bytes_text(job.commit_bytes / job.commit_s)}/s" if job.commit_s > 0 else "-"
