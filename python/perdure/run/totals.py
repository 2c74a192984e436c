# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of an attempt have done together, at its end and on its way there."""

from __future__ import annotations

from dataclasses import dataclass, fields

from perdure.run.page import NO_ITERATION, RunPage

SAMPLES_MAX = 400  # as many as a picture can show


@dataclass(frozen=True)
class Totals:
    """What the ranks reported together: slowest rank's times, all ranks' bytes."""

    ranks: int
    ranks_reporting: int
    restored_version: int | None
    restart_s: float
    version: int | None
    iteration: int | None
    commits: int
    commit_s: float
    commit_bytes: int
    model_s: float


def totals(pages: list[RunPage]) -> Totals:
    """Sums up the pages of an attempt; no pages give zeros and None."""
    iterations = [page.iteration for page in pages if page.iteration != NO_ITERATION]
    restarted = [page for page in pages if page.has_restarted]
    return Totals(
        ranks=pages[0].ranks if pages else 0,
        ranks_reporting=len(pages),
        restored_version=max((page.restored_version for page in restarted), default=None),
        restart_s=_slowest(pages, "restart_ns"),
        version=max((page.version for page in pages), default=None),
        iteration=max(iterations, default=None),
        commits=max((page.commits for page in pages), default=0),
        commit_s=_slowest(pages, "commit_ns_total"),
        commit_bytes=sum(page.commit_bytes_total for page in pages),
        model_s=_slowest(pages, "model_ns_total"),
    )


def _slowest(pages: list[RunPage], name: str) -> float:
    return max((getattr(page, name) for page in pages), default=0) * 1e-9


@dataclass(frozen=True)
class Sample:
    """The state at a time since the attempt began, in seconds."""

    seconds: float
    version: int
    commits: int
    commit_s: float
    commit_bytes: int


class History:
    """Samples of an attempt: one where something had changed; every second goes when they are too
    many. The first and the last change are always there."""

    def __init__(self) -> None:
        self._samples: list[Sample] = []
        self._newest: Sample | None = None  # the last change, if it is not in the list
        self._gap_s = 0.0

    def note(self, seconds: float, pages: list[RunPage]) -> None:
        """The state of the pages at `seconds`, which never goes back."""
        now = totals(pages)
        last = self._newest or (self._samples[-1] if self._samples else None)
        if now.version is None or (last and (last.version, last.commits) ==
                                   (now.version, now.commits)):  # fmt: skip
            return
        self._newest = Sample(
            round(seconds, 4), now.version, now.commits, round(now.commit_s, 6), now.commit_bytes
        )
        if self._samples and seconds < self._samples[-1].seconds + self._gap_s:
            return
        self._samples.append(self._newest)
        self._newest = None
        if len(self._samples) >= SAMPLES_MAX:
            if len(self._samples) % 2 == 0:
                self._newest = self._samples[-1]
            self._samples = self._samples[::2]
            self._gap_s = max(2 * self._gap_s, seconds / SAMPLES_MAX)

    def as_json(self) -> dict[str, list]:
        """A list for each of a sample's fields."""
        samples = self._samples + ([self._newest] if self._newest else [])
        return {
            each.name: [getattr(sample, each.name) for sample in samples]
            for each in fields(Sample)
        }
