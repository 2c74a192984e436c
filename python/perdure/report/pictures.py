# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a job: its attempts over time, and its commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from perdure.figures import BLUE, GREEN, ORANGE, RED, SILVER, SKY, figure_of, finish
from perdure.report.job import PHASES, Attempt, Job
from perdure.units import rate_text

PHASE_COLOURS = dict(zip(PHASES, (SKY, GREEN, BLUE, RED, SILVER)))
_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_BINS = 80  # of the picture of commits
_MB = 1e6


def draw_timeline(job: Job) -> Callable[[BinaryIO], None]:
    """Versions over time, with each attempt's phases below and its failure marked."""

    def draw(file: BinaryIO) -> None:
        scale, unit = _unit(job.seconds)
        figure = figure_of(10, 3.6, "Versions over time")
        upper, lower = figure.subplots(
            2, 1, sharex=True, gridspec_kw={"height_ratios": (3, 1), "hspace": 0.05}
        )
        for attempt in job.attempts:
            _versions(upper, attempt, scale)
            _bars(lower, attempt, scale)
        # No marker where nothing failed, but its name in the legend only where one is.
        failed = [each for each in job.attempts if each.failed]
        if failed:
            upper.plot(
                [(each.began_s + each.seconds) / scale for each in failed],
                [each.version or 0 for each in failed],
                "x", color=RED, markersize=8, markeredgewidth=2, label="attempt failed",
            )
            upper.legend(fontsize=8, frameon=False, loc="upper left")
        upper.set_ylim(bottom=0)
        upper.set_xlim(0, job.seconds / scale)
        finish(upper, None, "newest version")
        lower.set_yticks([])
        lower.set_ylim(-0.5, 0.5)
        finish(lower, f"{unit} since the job began", None, "x")
        lower.spines["left"].set_visible(False)
        figure.savefig(file, format="svg")

    return draw


def _versions(axis: Any, attempt: Attempt, scale: float) -> None:
    """A stair that goes on to the attempt's end."""
    # Before it is restored a pool reports version 0.
    samples = [each for each in attempt.samples if each.version >= (attempt.restored or 0)]
    if samples:
        times = [attempt.began_s + each.seconds for each in samples]
        versions = [each.version for each in samples]
        times.append(attempt.began_s + attempt.seconds)
        axis.step([each / scale for each in times], [*versions, versions[-1]], where="post",
                  color=BLUE, linewidth=1.4)


def _bars(axis: Any, attempt: Attempt, scale: float) -> None:
    """Start, what was kept, and what was lost, where they were."""
    kept = attempt.seconds - attempt.lost_s
    start = min(attempt.starting_s, kept)
    for name, begin, end in (("starting", 0.0, start), ("computing", start, kept),
                             ("lost work", kept, attempt.seconds)):
        if end > begin:
            axis.barh(0, (end - begin) / scale, 0.6, (attempt.began_s + begin) / scale,
                      color=PHASE_COLOURS[name], linewidth=0)


def draw_commits(job: Job, device_MBps: float | None) -> Callable[[BinaryIO], None] | None:
    """How fast commits wrote and what share of the time they took; None where too few were seen."""
    rows = [row for attempt in job.attempts for row in _rates(attempt, job.seconds / _BINS)]
    if len(rows) < 2:  # noqa: PLR2004
        return None

    def draw(file: BinaryIO) -> None:
        scale, unit = _unit(job.seconds)
        figure = figure_of(10, 3.2, "Commits over time")
        left, right = figure.subplots(1, 2)
        times = [row[0] / scale for row in rows]
        left.plot(times, [row[1] / _MB for row in rows], "o", color=BLUE, markersize=3)
        if device_MBps is not None:
            left.axhline(device_MBps, color=ORANGE, linewidth=1.2,
                         label=f"the profile's device, {rate_text(device_MBps * _MB, 1)}")
            left.legend(fontsize=8, frameon=False, loc="lower right")
        right.plot(times, [100 * row[2] for row in rows], "o", color=BLUE, markersize=3)
        for axis, label in ((left, "MB/s while committing, all ranks"),
                            (right, "% of the time in commits")):
            axis.set_xlim(0, job.seconds / scale)
            axis.set_ylim(bottom=0)
            finish(axis, f"{unit} since the job began", label)
        figure.savefig(file, format="svg")

    return draw


def _rates(attempt: Attempt, bin_s: float) -> Sequence[tuple[float, float, float]]:
    """Time, bytes a second of commits, and their share of the time; of at least `bin_s` each."""
    rows, last = [], None
    for sample in attempt.samples:
        if last is None:
            last = sample
            continue
        took_s, spent_s = sample.seconds - last.seconds, sample.commit_s - last.commit_s
        if sample.commits > last.commits and took_s >= bin_s and spent_s > 0:
            rate = (sample.commit_bytes - last.commit_bytes) / spent_s
            rows.append((attempt.began_s + sample.seconds, rate, min(1.0, spent_s / took_s)))
            last = sample
    return rows


def _unit(seconds: float) -> tuple[float, str]:
    """What a time axis of that length is labelled in."""
    return next((each for each in _UNITS if seconds >= 2 * each[0]), _UNITS[-1])
