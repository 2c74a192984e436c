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
    see, takes what the ranks leave for the launcher; `requeue`: the scheduler may start again.

    `ranks_per_node`: a program that takes any number of ranks has so many on each node, and goes on
    with fewer nodes, down to `least`. None: its command says how many ranks there are."""

    allocation: Allocation
    wanted: int
    shared: Path
    requeue: bool = False
    ranks_per_node: int | None = None
    least: int = 1

    @property
    def needed(self) -> int:
        """Nodes without which there is no attempt."""
        return self.wanted if self.ranks_per_node is None else min(self.least, self.wanted)

    def choose(self) -> tuple[list[str], set[str]]:
        """The nodes for the next attempt, and the lost ones. Raises TooFewNodes, NoAllocation."""
        nodes, lost = self.allocation.usable(self.wanted)
        if len(nodes) < self.needed:
            raise TooFewNodes(
                f"{len(nodes)} nodes are left and the job needs {self.needed}; lost: "
                f"{nodes_text(lost)}"
            )
        return nodes, lost


def make_spread(
    allocation: Allocation,
    spares: int,
    shared: Path,
    requeue: bool,
    ranks_per_node: int | None = None,
    least: int = 1,
) -> Spread:
    """Raises NoAllocation if fewer nodes than one, or than `least`, would be left."""
    nodes = allocation.nodes()
    if spares >= len(nodes):
        raise NoAllocation(
            f"the job has {len(nodes)} nodes, which leaves none beside {spares} spares: ask the "
            "scheduler for more nodes than the program uses"
        )
    wanted = len(nodes) - spares
    if wanted < least:
        raise NoAllocation(
            f"the job has {wanted} nodes beside {spares} spares, and --min-nodes asks for {least}"
        )
    return Spread(allocation, wanted, shared, requeue, ranks_per_node, least)


def attempt_name(number: int) -> str:
    """By which a scheduler knows what belongs to an attempt."""
    return f"perdure-{number}"


def nodes_text(nodes: set[str] | list[str]) -> str:
    """ "n0, n1 and 7 more"; of a set in order."""
    return some_of(sorted(nodes) if isinstance(nodes, set) else nodes, _NODES_NAMED) or "none"
