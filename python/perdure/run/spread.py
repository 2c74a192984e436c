# SPDX-License-Identifier: BSD-3-Clause
"""Where the ranks of a job run that has several nodes, and which it goes on with after a loss."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perdure.run.allocation import Allocation, NoAllocation
from perdure.screen import some_of

_NODES_NAMED = 8


class TooFewNodes(RuntimeError):
    """The allocation has fewer nodes left than the job needs; the text is a sentence."""


@dataclass(frozen=True)
class Spread:
    """`wanted` nodes of `allocation`, the others are spares. `shared`, a directory that all nodes
    see, takes what the ranks leave for the launcher; `requeue`: the scheduler may start again."""

    allocation: Allocation
    wanted: int
    shared: Path
    requeue: bool = False

    def choose(self) -> tuple[list[str], set[str]]:
        """The nodes for the next attempt, and the lost ones. Raises TooFewNodes, NoAllocation."""
        nodes, lost = self.allocation.usable(self.wanted)
        if len(nodes) < self.wanted:
            raise TooFewNodes(
                f"{len(nodes)} nodes are left and the job needs {self.wanted}; lost: "
                f"{nodes_text(lost)}"
            )
        return nodes, lost


def make_spread(allocation: Allocation, spares: int, shared: Path, requeue: bool) -> Spread:
    """Raises NoAllocation if fewer than one node would be left."""
    nodes = allocation.nodes()
    if spares >= len(nodes):
        raise NoAllocation(
            f"the job has {len(nodes)} nodes, which leaves none beside {spares} spares: ask the "
            "scheduler for more nodes than the program uses"
        )
    return Spread(allocation, len(nodes) - spares, shared, requeue)


def attempt_name(number: int) -> str:
    """By which a scheduler knows what belongs to an attempt."""
    return f"perdure-{number}"


def nodes_text(nodes: set[str] | list[str]) -> str:
    """ "n0, n1 and 7 more"; of a set in order."""
    return some_of(sorted(nodes) if isinstance(nodes, set) else nodes, _NODES_NAMED) or "none"
