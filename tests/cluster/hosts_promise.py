# SPDX-License-Identifier: BSD-3-Clause
"""What docs/levels.md promises of a restart, from what was acknowledged and what was taken.

Steps stand for versions: each commit makes one step, and what the state holds follows from it.

    no host lost                                the newest step that any rank saw committed
    at most as many lost as the scheme bears    the newest that was said to be whole on all levels
    more lost, with a drain                     the same, from the drain
    more lost, without one                      a refusal that names the ranks that are left

It is a lower bound: a version may be whole before somebody says so, and a scheme may bear more if
the lost hosts are of different failure groups. A restart that has more is right, up to the commit
that was under way. What a restart gave up must not come back.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TOLERATES = {"off": 0, "partner": 1, "xor:4": 1, "rs:2+2": 2}


@dataclass
class Promise:
    """Of one job; hosts are names, steps are numbers."""

    scheme: str
    drain: bool
    acknowledged: int = 0  # the newest step that a rank saw committed, in the life that goes on
    whole: int = 0  # the newest that was said to be on other hosts
    drained: int = 0  # and in the drain
    holders: set[str] = field(default_factory=set)  # hosts that may have what is needed
    lost: set[str] = field(default_factory=set)  # of these, gone, or not had by a start since
    weak: set[str] = field(default_factory=set)  # hosts with a changed image or guard
    damaged: bool = False  # data of the pool were changed, which is an error (P2)

    def starts_on(self, hosts: list[str]) -> None:
        """A host that a start has not got counts as lost: the start may give up what it holds."""
        self.lost |= self.holders - set(hosts)
        self.holders |= set(hosts)

    def loses(self, host: str) -> None:
        if host in self.holders:
            self.lost.add(host)

    def is_damaged_on(self, host: str) -> None:
        """A byte of a rank's file was changed there."""
        self.damaged = True
        self.loses(host)

    def is_weak_on(self, host: str) -> None:
        """A byte of an image or of a guard was changed there; what the pool has is whole."""
        self.weak.add(host)

    def commits(self, step: int) -> None:
        self.acknowledged = max(self.acknowledged, step)

    def levels_have(self, step: int, hosts: list[str]) -> None:
        """Whole on all levels, as levels_wait said to a job on these hosts."""
        if self.scheme != "off":
            self.whole = step
        if self.drain:
            self.drained = step
        self._is_safe_on(hosts)

    def restarted(self, step: int, hosts: list[str], brought_back: bool) -> None:
        """What was brought back gets its redundancy again before the program goes on."""
        if brought_back or step < self.acknowledged:
            self._goes_back_to(step, hosts)
        if brought_back and self.scheme != "off":
            self.whole = step
        self.acknowledged = max(self.acknowledged, step)

    @property
    def least(self) -> int:
        """The oldest step that a restart may have."""
        if not self.lost:
            return self.acknowledged
        bears = len(self.lost | self.weak) <= TOLERATES[self.scheme]
        of_hosts = self.whole if bears else 0
        return max(of_hosts, self.drained)

    @property
    def most(self) -> int:
        """The newest: one commit may have been under way on all ranks."""
        return self.acknowledged + 1

    @property
    def may_refuse(self) -> bool:
        return self.damaged or (bool(self.lost) and self.least == 0)

    def _goes_back_to(self, step: int, hosts: list[str]) -> None:
        self.acknowledged = step
        self.whole, self.drained = min(self.whole, step), min(self.drained, step)
        self._is_safe_on(hosts)

    def _is_safe_on(self, hosts: list[str]) -> None:
        self.holders, self.lost, self.weak, self.damaged = set(hosts), set(), set(), False
