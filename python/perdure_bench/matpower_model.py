# SPDX-License-Identifier: BSD-3-Clause
"""A scaling model beyond the machine: what powers take on many nodes, stock and cached.

A power of n x n cells on p = q^2 ranks, `RANKS_PER_NODE` on each of k nodes, takes

    stock    compute / p + moved / pfs          + fixed
    cached   compute / p + moved / (k * node)   + fixed

compute  n^3 steps for each product, at the measured speed of a core
moved    (2 q + 1) n^2 bytes for each product
pfs      bytes per second that stock MPI-IO moved: one file system, however many nodes there are
node     bytes per second that the cache of one node moved
fixed    opening and closing as measured: the cache reads and writes back n^2 bytes of each file
         then, which the file system bounds

The network is not in it: on k nodes the cache sends (k - 1) / k of what it moves to other nodes.
Pure.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

RANKS_PER_NODE = 4
MODELLED_RANKS = (4, 16, 36, 64, 144, 256, 576)
NOTE = "one file system, many nodes; no network"


@dataclass(frozen=True)
class Outcome:
    """What a run reported; times in seconds, of its slowest rank; bytes of all ranks."""

    total: float
    open: float
    io: float
    compute: float
    close: float
    moved_bytes: float
    answer: str


@dataclass(frozen=True)
class Model:
    """Speeds of one machine, for powers of one number of nodes of the graph."""

    nodes: int
    power: int
    steps_per_s: float  # of a core
    pfs_bytes_per_s: float
    node_bytes_per_s: float
    stock_fixed_s: float
    cached_fixed_s: float

    def moved_bytes(self, ranks: int) -> float:
        """By all ranks in all products."""
        return (self.power - 1) * (2 * math.isqrt(ranks) + 1) * self.nodes**2

    def compute_s(self, ranks: int) -> float:
        """Every rank on a core of its own."""
        return (self.power - 1) * self.nodes**3 / (self.steps_per_s * ranks)

    def stock_s(self, ranks: int) -> float:
        """Whole time with the parallel file system alone."""
        moved_s = self.moved_bytes(ranks) / self.pfs_bytes_per_s
        return self.compute_s(ranks) + moved_s + self.stock_fixed_s

    def cached_s(self, ranks: int) -> float:
        """Whole time with a cache on every node."""
        computers = max(1, ranks // RANKS_PER_NODE)
        moved_s = self.moved_bytes(ranks) / (computers * self.node_bytes_per_s)
        return self.compute_s(ranks) + moved_s + self.cached_fixed_s

    @property
    def speeds(self) -> dict:
        """What was taken from the measured runs."""
        values = asdict(self).items()
        return {f"model_{name}": value for name, value in values if name.endswith("_s")}


def fit(nodes: int, power: int, busy_cores: int, stock: Outcome, cached: Outcome) -> Model:
    """The model that runs with both were taken from; `busy_cores` are those that they had."""
    steps = (power - 1) * nodes**3
    return Model(
        nodes,
        power,
        steps_per_s=steps / (stock.compute * busy_cores),
        pfs_bytes_per_s=stock.moved_bytes / stock.io,
        node_bytes_per_s=cached.moved_bytes / cached.io,
        stock_fixed_s=stock.open + stock.close,
        cached_fixed_s=cached.open + cached.close,
    )
