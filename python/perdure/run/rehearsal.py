# SPDX-License-Identifier: BSD-3-Clause
"""The rehearsed failure: which rank is to be killed, when, and in which part of a commit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from perdure.run.launchers import is_launcher
from perdure.units import Wrong, parse_time

POINTS = ("copy", "data", "slot", "state", "agreed")
_COUNT_OPTIONS = ("-n", "-np", "--n", "--np", "-c", "--ntasks")


@dataclass(frozen=True)
class Rehearsal:
    """Kill `rank` at `iteration`, in its commit at `point`, or after `seconds` of computing.

    A point that is none of a commit is the program's own (tests/windows/accumulates.hpp).
    """

    rank: int
    point: str
    iteration: int | None = None
    seconds: float | None = None

    @property
    def in_commit(self) -> bool:
        """Whether the library kills it, at a point of a commit."""
        return self.iteration is not None and self.point in POINTS

    @property
    def environment(self) -> dict[str, str]:
        """What makes the rank kill itself; empty if the launcher does it after `seconds`."""
        if self.iteration is None:
            return {}
        value = f"rank={self.rank},iteration={self.iteration},point={self.point}"
        return {"PERDURE_KILL": value}

    def __str__(self) -> str:
        if self.iteration is None:
            return f"rank {self.rank} after {self.seconds:g} s of computing"
        place = "the commit of iteration" if self.in_commit else "iteration"
        return f"rank {self.rank} in {place} {self.iteration}, point {self.point}"


def rehearsal_asked(
    at: str | None, rank: int | None, point: str | None, command: list[str]
) -> Rehearsal | None:
    """What the options --kill-… ask for; raises Wrong where one of them would do nothing."""
    if at is None and (rank is not None or point is not None):
        given = "--kill-rank" if point is None else "--kill-point"
        raise Wrong(f"{given} kills nothing without --kill-at, which says when")
    if at is None:
        return None
    rehearsal = parse_rehearsal(at, rank, "copy" if point is None else point, command)
    if point is not None and rehearsal.iteration is None:
        raise Wrong(f"--kill-point is in the commit of an iteration, and --kill-at {at} is a time")
    return rehearsal


def parse_rehearsal(at: str, rank: int | None, point: str, command: list[str]) -> Rehearsal:
    """The rehearsal that `--kill-at at` asks for; raises Wrong with a sentence.

    `at` is an iteration ("200") or a time ("3.5s"). Without `rank`, rank 1 is killed, or rank 0
    if the command looks like a job of one rank: a launcher's survivors are then tested too.
    """
    if point not in POINTS:
        known = ", ".join(POINTS)
        raise Wrong(f"--kill-point '{point}' is no point of a commit; there are {known}")
    if rank is None:
        rank = min(1, ranks_of_command(command) - 1)
    try:
        if not at.isdigit():
            return Rehearsal(rank, point, seconds=parse_time(at, unit=""))
        if int(at) < 2**64:
            return Rehearsal(rank, point, iteration=int(at))
        raise Wrong
    except Wrong:
        raise Wrong(
            f"--kill-at '{at}' is neither an iteration such as 200 nor a time such as 3.5s"
        ) from None


def ranks_of_command(command: list[str]) -> int:
    """How many ranks the command line seems to start: 1 unless it names a launcher.

    A launcher without a count (a hostfile, a batch system's allocation) is taken to start 2.
    """
    for place, word in enumerate(command):
        if is_launcher(PurePath(word).name):
            return _count_after(command[place + 1 :])
    return 1


def _count_after(words: list[str]) -> int:
    for option, value in zip(words, words[1:]):
        if option in _COUNT_OPTIONS and value.isdigit():
            return max(1, int(value))
    return 2
