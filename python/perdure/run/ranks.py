# SPDX-License-Identifier: BSD-3-Clause
"""Notices that an attempt can't come to its end: ranks that are lost, launchers that are stuck.

The rules, with their reasons, are in docs/run.md ("What counts as a failure"). A rank is known from
its first sight: by its run page, or by the variables that its launcher gave it. How a process
ended can be seen only until its parent takes notice; an end that nobody saw counts as orderly.

A loss that is seen once may be gone at the next look: the caller counts how long each lasts.
"""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass

from perdure.run.launchers import (
    is_launcher,
    is_launcher_or_daemon,
    rank_number,
    rank_variables,
    world_size,
)
from perdure.run.page import Phase, RunPage
from perdure.run.process_table import Identity, Process, read_environment, read_process
from perdure.run.processes import ProcessTree, identity_is_live, parents_of, send

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE_TICKS = 2.0
_IDLE_SHARE = 0.01  # of a core: a script that waits looks around now and then

Losses = dict[Hashable, str]  # sentences; the same loss has the same key at each look


@dataclass
class Rank:
    """A process that a launcher started as a rank."""

    process: Process
    variables: dict[str, str]
    ranks: int  # of its job; 0 if that is not known
    all_here: bool  # the job has no rank on another machine
    ancestors: tuple[Identity, ...]  # nearest first
    launchers: tuple[Identity, ...]  # those that end with it: its parent, and mpiexec and the like
    ended: bool = False
    status: int = 0  # as waitpid gives it; 0 too if nobody saw it

    def note_end(self, process: Process | None) -> None:
        """Takes over what is seen of it now."""
        if process is None or process.identity != self.process.identity:
            self.ended = True
        elif not process.is_live:
            self.ended, self.status = True, process.status


class RankWatch:
    """Knows the ranks of an attempt that run on this machine."""

    def __init__(self, tree: ProcessTree):
        self._tree = tree
        self._by_page: dict[int, Process] = {}
        self._page_launchers: dict[Identity, tuple[Identity, ...]] = {}
        self._ranks: dict[Identity, Rank] = {}
        self._ticks: dict[Identity, tuple[int, float]] = {}
        self._own_variables = rank_variables(dict(os.environ))

    def note_pages(self, pages: Iterable[RunPage]) -> None:
        """Remembers the processes of pages; a page alone may be another host's."""
        for page in pages:
            known = self._by_page.get(page.rank)
            if known is None or known.pid != page.pid:
                process = self._tree.member(page.pid)
                if process is not None:
                    self._by_page[page.rank] = process
                    launchers = _launchers_among(parents_of(process) or [])
                    self._page_launchers[process.identity] = launchers

    def kill(self, rank: int) -> bool:
        """Sends SIGKILL to a rank that has a page; False if it is not known to run here."""
        process = self._by_page.get(rank)
        return process is not None and send(signal.SIGKILL, process)

    def state_of(self, rank: int) -> str:
        """What the process of a rank with a page does, in words."""
        process = self._by_page.get(rank)
        now = read_process(process.pid) if process is not None else None
        if process is None:
            return "out of sight"
        if now is None or now.identity != process.identity:
            return f"process {process.pid}: gone"
        return f"process {process.pid}: {now.state_text}"

    def losses(self, pages: list[RunPage], now_s: float) -> Losses:
        """All that is wrong at this moment. Takes the exit status of adopted orphans, too."""
        processes = self._tree.descendants()
        self._find_ranks(processes)
        for rank in self._ranks.values():
            if not rank.ended:
                pid = rank.process.pid
                rank.note_end(processes.get(pid) or read_process(pid))
        live = {process.identity for process in processes.values() if process.is_live}
        self._forget_ended(live)
        unclosed = [page for page in pages if not self._is_over(page, live)]
        lost = self._lost_with_open_pool(unclosed)
        waiting = not self._any_computes(unclosed, lost, processes)
        lost.update(self._lost_by_status(processes))
        if waiting:
            lost.update(self._stuck(processes, now_s))
        self._tree.reap(processes)
        return lost

    def _find_ranks(self, processes: dict[int, Process]) -> None:
        """A rank is the topmost process with variables that its parent does not have.

        What it starts inherits them, and may be anything.
        """
        children = _children_of(processes)
        todo = [(process, self._inherited(process)) for process in children[os.getpid()]]
        while todo:
            process, inherited = todo.pop()
            if process.identity in self._ranks or not process.is_live:
                continue
            environment = read_environment(process.pid)
            variables = rank_variables(environment)
            if any(inherited.get(name) != value for name, value in variables.items()):
                self._add(process, variables, environment, processes)
            else:
                below = variables if environment else inherited
                todo += [(child, below) for child in children[process.pid]]

    def _inherited(self, child: Process) -> dict[str, str]:
        """What our own child has from its parent: an adopted one may have been a rank's."""
        if child.pid == self._tree.command_pid:
            return self._own_variables
        return rank_variables(read_environment(child.pid))

    def _add(self, process: Process, variables: dict, environment: dict, processes: dict) -> None:
        above = _above(process, processes)
        ranks, all_here = world_size(environment)
        self._ranks[process.identity] = Rank(
            process,
            variables,
            ranks,
            all_here,
            ancestors=tuple(each.identity for each in above),
            launchers=_launchers_among(above),
        )

    def _is_over(self, page: RunPage, live: set[Identity]) -> bool:
        """Whether a page's pool is closed, or its rank was of a step whose launcher has ended."""
        process = self._by_page.get(page.rank)
        if page.phase == Phase.closed or process is None or process.pid != page.pid:
            return page.phase == Phase.closed
        launchers = self._page_launchers.get(process.identity, ())
        return bool(launchers) and not live.intersection([process.identity, *launchers])

    def _forget_ended(self, live: set[Identity]) -> None:
        """An ended rank whose launcher has ended as well is a step of the job that is over."""
        self._ranks = {
            identity: rank
            for identity, rank in self._ranks.items()
            if not rank.ended or live.intersection(rank.launchers)
        }

    def _lost_with_open_pool(self, unclosed: list[RunPage]) -> Losses:
        """Ranks that were seen alive, are gone, and had not closed their pool."""
        lost: Losses = {}
        for page in unclosed:
            process = self._by_page.get(page.rank)
            if process is None or process.pid != page.pid or identity_is_live(process.identity):
                continue
            why = f"rank {page.rank} (process {page.pid}) is gone and had not closed its pool"
            lost["page", page.rank] = why
        return lost

    def _any_computes(self, unclosed: list[RunPage], lost: Losses, processes: dict) -> bool:
        if any(not rank.ended or self._lives_on(rank, processes) for rank in self._ranks.values()):
            return True
        if any(identity_is_live(process.identity) for process in self._by_page.values()):
            return True
        return any(("page", page.rank) not in lost for page in unclosed)

    def _lives_on(self, rank: Rank, processes: dict[int, Process]) -> bool:
        """Whether a rank that ended in order has left its work to a process in the background."""
        return rank.status == 0 and any(
            process.is_live
            and process.parent == os.getpid()
            and process.pid != self._tree.command_pid
            and rank_variables(read_environment(process.pid)) == rank.variables
            for process in processes.values()
        )

    def _lost_by_status(self, processes: dict[int, Process]) -> Losses:
        """Ranks that failed: by a signal, or with an exit code of which nobody takes notice."""
        lost: Losses = {}
        for identity, rank in self._ranks.items():
            seen = processes.get(identity[0])
            ignored = seen is not None and seen.identity == identity
            failed = rank.ended and (os.WIFSIGNALED(rank.status) or rank.status and ignored)
            if failed and not self._has_successor(rank):
                number = rank_number(rank.variables)
                lost[identity] = f"rank {number} (process {identity[0]}) {_ending(rank.status)}"
        for process in processes.values():
            parent = processes.get(process.parent)
            if process.is_live or not process.status or parent is None:
                continue
            if self._has_lost(parent, process):
                why = f"process {process} of {parent.name} {_ending(process.status)}"
                lost.setdefault(process.identity, why)
        return lost

    def _has_lost(self, parent: Process, failed: Process) -> bool:
        """Whether a child that was never seen alive must have been a rank."""
        if is_launcher_or_daemon(parent.name):
            return True
        starters = {rank.ancestors[:1] for rank in self._ranks.values()}
        return os.WIFSIGNALED(failed.status) and (parent.identity,) in starters

    def _has_successor(self, rank: Rank) -> bool:
        """Whether its parent has started it again."""
        return any(
            not other.ended
            and other.variables == rank.variables
            and other.ancestors[:1] == rank.ancestors[:1]
            for other in self._ranks.values()
        )

    def _stuck(self, processes: dict[int, Process], now_s: float) -> Losses:
        """Launchers that do not end although nothing is left for them to wait for."""
        stuck: dict[Process, tuple[Identity | None, str]] = {}
        children = _children_of(processes)
        for process in processes.values():
            why = self._why_stuck(process, [c for c in children[process.pid] if not c.is_live])
            if process.is_live and why is not None:
                stuck[process] = why
        if stuck and not self._others_work(processes, stuck, now_s):
            return {
                (process.identity, key): f"{process.name} (process {process.pid}) {why}"
                for process, (key, why) in stuck.items()
            }
        self._ticks.clear()
        return {}

    def _why_stuck(
        self, process: Process, ended: list[Process]
    ) -> tuple[Identity | None, str] | None:
        starts_ranks = is_launcher_or_daemon(process.name)
        for child in ended:
            if child.status or starts_ranks:
                return child.identity, f"takes no notice that {child} {_ending(child.status)}"
        if is_launcher(process.name) and self._has_no_rank_left(process):
            return None, "does not end although all of its ranks have"
        return None

    def _has_no_rank_left(self, launcher: Process) -> bool:
        own = [rank for rank in self._ranks.values() if launcher.identity in rank.ancestors]
        here = any(rank.all_here or 0 < rank.ranks <= len(own) for rank in own)
        return here and all(rank.ended for rank in own)

    def _others_work(
        self, processes: dict[int, Process], stuck: Collection[Process], now_s: float
    ) -> bool:
        """Whether anything under the command may be on its way to the next step of the job.

        What idles above a stuck process is not, and neither are the daemons of a stuck launcher.
        """
        waiting = {each for process in stuck for each in (process, *_above(process, processes))}
        for process in processes.values():
            above = _above(process, processes)
            adopted = (above[-1] if above else process).pid != self._tree.command_pid
            if not process.is_live or adopted:
                continue
            if is_launcher_or_daemon(process.name):
                works = process not in waiting and not any(each in stuck for each in above)
            else:
                works = process not in waiting or not self._is_idle(process, now_s)
            if works:
                return True
        return False

    def _is_idle(self, process: Process, now_s: float) -> bool:
        before, since_s = self._ticks.setdefault(process.identity, (process.cpu_ticks, now_s))
        allowed = _IDLE_TICKS + _IDLE_SHARE * _TICKS_PER_S * (now_s - since_s)
        return process.cpu_ticks - before <= allowed


def _children_of(processes: dict[int, Process]) -> dict[int, list[Process]]:
    children = defaultdict(list)
    for process in processes.values():
        children[process.parent].append(process)
    return children


def _above(process: Process, processes: dict[int, Process]) -> list[Process]:
    """Its parent, that one's, and so on below this process."""
    above = []
    while (parent := processes.get(process.parent)) is not None and parent not in above:
        above.append(parent)
        process = parent
    return above


def _launchers_among(above: list[Process]) -> tuple[Identity, ...]:
    """What ends with a rank of these parents: the nearest, and mpiexec and the like further up."""
    launchers = [each for each in above[1:] if is_launcher_or_daemon(each.name)]
    return tuple(each.identity for each in [*above[:1], *launchers])


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by {signal_name(os.WTERMSIG(status))}"
    return f"ended with exit code {os.WEXITSTATUS(status)}"


def signal_name(number: int) -> str:
    """ "SIGKILL" for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
