# SPDX-License-Identifier: BSD-3-Clause
"""How the advice is shown: plain words for people, JSON for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from perdure.advise.judge import Advice, Assumed
from perdure.advise.place import Medium
from perdure.advise.program import Program
from perdure.advise.recording import Recording
from perdure.screen import one_line
from perdure.units import bytes_text, seconds_text

_COLUMNS_MAX = 100
_INSET = "  "
_NAMES_MAX = 6
_SURE = {"high": "quite sure", "medium": "fairly sure", "low": "not sure"}


@dataclass(frozen=True)
class Report:
    """What Screen.print() shows."""

    recording: Recording
    program: Program
    medium: Medium
    assumed: Assumed
    advice: list[Advice]
    no_files: str = ""

    def lines(self, columns: int | None) -> Iterator[tuple[str, str]]:
        """(style, text) of each line, for a terminal of so many columns or for a file."""
        room = min(columns or _COLUMNS_MAX, _COLUMNS_MAX)
        yield "bold", "The program"
        for sentence in program_sentences(self.recording, self.program):
            yield from _wrapped(sentence, room, _INSET)
        if self.no_files:
            yield from _wrapped(f"Cache or not is not known: {self.no_files}.", room, _INSET)
        yield "", ""
        yield "bold", "What to do"
        for number, each in enumerate(self.advice, 1):
            yield from self._advice_lines(number, each, room)
        yield "", ""
        yield from _wrapped(self._basis(), room, "")

    def _advice_lines(self, number: int, each: Advice, room: int) -> Iterator[tuple[str, str]]:
        yield from _wrapped(f"{number}. {each.text}", room, _INSET)
        inset = _INSET + "   "
        if each.names:
            more = len(each.names) - _NAMES_MAX
            names = each.names[:_NAMES_MAX] + ([f"and {more} more"] if more > 0 else [])
            yield from _wrapped(f"What changes: {', '.join(names)}.", room, inset)
        for sentence in (*each.how, *cost_sentences(each)):
            yield from _wrapped(sentence, room, inset)
        if each.command:
            yield "bold", f"{inset}$ {one_line(each.command)}" if each.command.startswith(
                "perdure ") else f"{inset}{one_line(each.command)}"
        why = f": {'; '.join(each.why)}" if each.why else ""
        yield from _wrapped(f"{_SURE[each.sure].capitalize()}{why}.", room, inset)

    def _basis(self) -> str:
        medium, made = self.medium, self.recording
        return (f"Pools on {medium.path} ({medium.kind}) survive {medium.survives}; failures every "
                f"{seconds_text(self.assumed.mtbf_s)} (--mtbf). Recording took "
                f"{seconds_text(made.looking_s)} of a processor, with {made.looks} looks.")


def _wrapped(text: str, room: int, inset: str) -> Iterator[tuple[str, str]]:
    hang = inset + ("   " if text[:1].isdigit() else "")
    for line in textwrap.wrap(one_line(text), room, initial_indent=inset, subsequent_indent=hang,
                              break_on_hyphens=False, break_long_words=False):
        yield "", line


def cost_sentences(each: Advice) -> list[str]:
    """What a version costs, and how often one is due."""
    if each.commit_s is None or each.interval_s is None or each.run_time_ratio is None:
        return []
    dear = 100 * (each.run_time_ratio - 1)
    least = 100 * ((each.least_ratio or each.run_time_ratio) - 1)
    share = "less than 0.01 %" if dear < 0.01 else f"{dear:.2g} %"
    if dear >= 0.01 and least < 0.95 * dear:
        share = f"{least:.2g} to {dear:.2g} %"
    sentences = [f"A version takes {seconds_text(each.commit_s)} here. Make one every "
                 f"{seconds_text(each.interval_s)}: {share} of the run time without failures."]
    if each.expected_ratio is not None:
        lost = 100 * (each.expected_ratio - 1)
        sentences.append(f"With failures, the work that is done again included: {lost:.2g} %. The "
                         f"pool takes {bytes_text(each.pool_bytes)}.")
    return sentences


def program_sentences(recording: Recording, program: Program) -> Iterator[str]:
    """What it is."""
    kind = f"an MPI program of {program.ranks} ranks" if program.is_mpi else "a program without MPI"
    kind = kind.replace("of 1 ranks", "of one rank")
    python = ", in Python" if program.is_python else ""
    yield f"It is {kind}{python}, which ran for {seconds_text(recording.run_s)}."
    if program.refused:
        yield f"Its memory can't be read: {program.refused}."
    elif program.has_looked:
        yield (f"Of a rank's memory, {bytes_text(program.changing_bytes)} go on changing, and "
               f"{bytes_text(program.constant_bytes)} do not.")
    for each in program.windows:
        ends = ", ".join(f"{count} {name}" for name, count in (
            ("fences", each.fences), ("passive epochs or flushes", each.unlocks),
            ("epochs of start and complete", each.completes)) if count)
        yield (f"It has {each.count} window{'s' * (each.count > 1)} by MPI_Win_{each.kind}, "
               f"{bytes_text(each.bytes)} a rank: {ends or 'no epoch ended'}.")
    paths = {use.path for use in recording.mpi.files}
    if paths:
        calls = sum(use.calls for use in recording.mpi.files)
        yield f"It does MPI-IO: {calls} accesses of {len(paths)} file{'s' * (len(paths) > 1)}."
    if recording.preloaded:
        yield f"Windows and MPI-IO were not seen: {recording.preloaded}."


def report_json(report: Report) -> dict[str, Any]:
    """The same for programs."""
    recording, program = report.recording, report.program
    return {
        "command": recording.command,
        "exit_code": recording.exit_code,
        "run_s": recording.run_s,
        "looks": recording.looks,
        "looking_s": recording.looking_s,
        "program": {
            "mpi": program.is_mpi,
            "python": program.is_python,
            "ranks": program.ranks,
            "ranks_seen": program.ranks_seen,
            "uses_perdure": program.uses_perdure,
            "memory_refused": program.refused or None,
            "changing_bytes": program.changing_bytes,
            "constant_bytes": program.constant_bytes,
            "memory": [asdict(each) | {"saved_bytes": each.saved_bytes}
                       for each in program.changing],
            "windows": [asdict(each) for each in program.windows],
            "mpi_files": len({use.path for use in recording.mpi.files}),
            "again": [{"files": each.pattern, "times": max(each.closed, each.renamed),
                       "bytes": each.bytes} for each in program.again],
            "growing": [{"files": each.pattern, "bytes": each.bytes} for each in program.growing],
        },
        "place": {"path": report.medium.path, "medium": report.medium.kind,
                  "file_system": report.medium.file_system, "survives": report.medium.survives},
        "mtbf_s": report.assumed.mtbf_s,
        "job_s": report.assumed.job_s,
        "cache_unknown": report.no_files or None,
        "advice": [asdict(each) for each in report.advice],
    }


