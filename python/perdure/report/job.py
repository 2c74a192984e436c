# SPDX-License-Identifier: BSD-3-Clause
"""A job as `perdure run --json` wrote it, and where its time went. The file is not trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from perdure.documents import VERSION
from perdure.energy.documents import Section
from perdure.failures import Wrong
from perdure.run.totals import Sample

KIND = "run"
PHASES = ("starting", "computing", "commits", "lost work", "between attempts")


@dataclass(frozen=True)
class Attempt:
    """One start of the command; times in seconds, the slowest rank's."""

    number: int
    began_s: float  # after the job's begin
    seconds: float
    start_s: float | None  # until all ranks computed
    restart_s: float
    ending: str
    why: str
    failed: bool
    ranks: int
    restored: int | None
    version: int | None
    iteration: int | None
    commits: int
    commit_s: float
    commit_bytes: int
    unclosed: int
    lost_nodes: list[str]
    samples: list[Sample]

    @property
    def starting_s(self) -> float:
        """All of it, where no rank began to compute."""
        return self.seconds if self.start_s is None else min(self.start_s, self.seconds)

    @property
    def newest_s(self) -> float:
        """When its newest version was seen; the end of its start where it made none."""
        made = [each.seconds for each in self.samples if each.commits > 0]
        return max(made, default=self.starting_s)

    @property
    def lost_s(self) -> float:
        """What a later attempt computes again: since the newest version."""
        return max(0.0, self.seconds - max(self.newest_s, self.starting_s)) if self.failed else 0.0

    def phases(self) -> dict[str, float]:
        """Seconds of each of PHASES but the last."""
        commits = min(self.commit_s, self.seconds - self.starting_s)
        rest = max(0.0, self.seconds - self.starting_s - commits - self.lost_s)
        return dict(zip(PHASES, (self.starting_s, rest, commits, self.lost_s)))


@dataclass(frozen=True)
class Job:
    """All attempts, and what belongs to the job as a whole."""

    source: str
    command: str
    host: str
    began: str
    perdure: str
    seconds: float
    exit_code: int
    completed: bool
    requeued: bool
    rehearsed: bool
    levels: str | None
    plan: str | None
    left_behind: int  # parts of cached files that nobody could save
    attempts: list[Attempt]

    @property
    def last(self) -> Attempt:
        return self.attempts[-1]

    def phases(self) -> dict[str, float]:
        """Seconds of each of PHASES, of all attempts."""
        sums = dict.fromkeys(PHASES, 0.0)
        for attempt in self.attempts:
            for name, seconds in attempt.phases().items():
                sums[name] += seconds
        inside = sum(attempt.seconds for attempt in self.attempts)
        sums["between attempts"] = max(0.0, self.seconds - inside)
        return sums

    @property
    def commits(self) -> int:
        return sum(attempt.commits for attempt in self.attempts)

    @property
    def commit_s(self) -> float:
        return sum(attempt.commit_s for attempt in self.attempts)

    @property
    def commit_bytes(self) -> int:
        return sum(attempt.commit_bytes for attempt in self.attempts)

    @property
    def failures(self) -> int:
        """Attempts that failed by themselves: a rehearsed failure does not count."""
        return sum(attempt.failed for attempt in self.attempts[int(self.rehearsed) :])

    @property
    def interval_s(self) -> float | None:
        """Time from the end of a commit to the begin of the next; None before the second one."""
        seconds = [attempt.newest_s - attempt.starting_s - attempt.commit_s
                   for attempt in self.attempts if attempt.commits > 0]
        return max(0.0, sum(seconds)) / self.commits if self.commits > 1 else None


def read_job(source: Path, document: dict[str, Any]) -> Job:
    """The job of a document. Raises Wrong with file, place and remedy."""
    whole = Section(f"{source}: ", document)
    whole.check_kind(KIND, VERSION)
    if not whole.sections("attempts"):
        raise Wrong(f"{source}: the job has no attempt: its command could not be started")
    rehearsal = document.get("rehearsal")
    return Job(
        source=source.name,
        command=" ".join(_words(whole, "command")),
        host=whole.text("host"),
        began=whole.text("began"),
        perdure=whole.text("perdure"),
        seconds=whole.number("seconds"),
        exit_code=whole.whole("exit_code", 0),
        completed=document.get("completed") is True,
        requeued=document.get("requeued") is True,
        rehearsed=isinstance(rehearsal, dict) and rehearsal.get("happened") is True,
        levels=whole.text("levels") if whole.has("levels") else None,
        plan=whole.text("plan") if whole.has("plan") else None,
        left_behind=sum(each.has("error") for each in whole.sections("left_behind")),
        attempts=[_attempt(each) for each in whole.sections("attempts")],
    )


def _words(section: Section, key: str) -> list[str]:
    value = section.values.get(key)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise Wrong(f"{section.place}{key} is {value!r}; it must be a list of words")
    return value


def _attempt(section: Section) -> Attempt:
    """One attempt of the document."""
    ended, code = section.text("ended"), section.whole("exit_code", 0)
    endings = {"exit": f"exit {code}", "signal": str(section.values.get("signal"))}
    return Attempt(
        number=section.whole("attempt"),
        began_s=section.number("began_s"),
        seconds=section.number("seconds"),
        start_s=section.maybe("start_s"),
        restart_s=section.number("restart_s"),
        ending=endings.get(ended, ended),
        why=section.text("why") if section.has("why") else "",
        failed=(ended, code) != ("exit", 0),
        ranks=section.whole("ranks", 0),
        restored=_maybe_whole(section, "restored_version"),
        version=_maybe_whole(section, "version"),
        iteration=_maybe_whole(section, "iteration"),
        commits=section.whole("commits", 0),
        commit_s=section.number("commit_s"),
        commit_bytes=section.whole("commit_bytes", 0),
        unclosed=len(section.values.get("ranks_unclosed") or ()),
        lost_nodes=_words(section, "lost"),
        samples=_samples(section.section("history")),
    )


def _maybe_whole(section: Section, key: str) -> int | None:
    return section.whole(key, 0) if section.has(key) else None


def _samples(history: Section) -> list[Sample]:
    """The rows of the history, whose lists are one for each field."""
    columns = [_numbers(history, each.name) for each in fields(Sample)]
    if len({len(column) for column in columns}) != 1:
        raise Wrong(f"{history.place.rstrip('.')}: its lists are of different lengths")
    rows = [Sample(seconds, int(version), int(commits), commit_s, int(size))
            for seconds, version, commits, commit_s, size in zip(*columns)]
    for before, after in zip(rows, rows[1:]):
        if after.seconds < before.seconds or after.commits < before.commits:
            raise Wrong(f"{history.place.rstrip('.')}: it goes back at {after.seconds} s")
    return rows


def _numbers(history: Section, key: str) -> Sequence[float]:
    value = history.values.get(key)
    if not isinstance(value, list):
        raise Wrong(f"{history.place}{key} is {value!r}; it must be a list")
    rows = [Section(f"{history.place}{key} ", {"value": each}) for each in value]
    return [row.number("value") for row in rows]
