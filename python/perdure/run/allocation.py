# SPDX-License-Identifier: BSD-3-Clause
"""The allocation that a job runs in: its nodes, which of them are lost, and the way back to the
queue. One class per scheduler, each found by a variable that it sets for its jobs.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

from perdure.files import read_beginning

_ASK_S = 30.0  # for one question to the scheduler
_KNOCK_S = 3.0
_KNOCKS = 2
_KNOCK_THREADS = 64
_STEP_END_S = 5.0  # a step that has a lost node ends when Slurm learns of that
_NODEFILE_BYTES_MAX = 16 << 20
_LOST = {"DOWN", "FAIL", "FAILING", "ERROR", "NOT_RESPONDING", "POWERED_DOWN", "FUTURE"}
_LEAVING = {"DRAIN", "DRAINING", "DRAINED", "REBOOT_REQUESTED", "MAINT"}


class NoAllocation(RuntimeError):
    """There is no allocation, or its scheduler does not answer; the text is a sentence."""


class NoAnswer(NoAllocation):
    """The scheduler did not answer, or with an error; it may do better later."""


class Allocation(ABC):
    """The nodes of this job. Every question may raise NoAllocation."""

    name: str  # of the scheduler
    environment: ClassVar[dict[str, str]] = {}  # what its launchers are to have

    @abstractmethod
    def nodes(self) -> list[str]:
        """All of them, lost ones too, each once."""

    @abstractmethod
    def lost(self) -> set[str]:
        """Those on which nothing can be started."""

    def leaving(self) -> set[str]:
        """Those that still work, but that the administrator wants back."""
        return set()

    def requeue(self) -> None:
        """Puts the job back into the queue, which ends it; NoAllocation if that can't be."""
        raise NoAllocation(
            f"{self.name} lets no job put itself back into the queue: submit a job that runs after "
            "this one fails"
        )

    def end_steps(self, attempt: str) -> None:  # noqa: B027  (not every scheduler knows of them)
        """Ends what an attempt, started under this name, has left on any node."""

    def usable(self, wanted: int) -> tuple[list[str], set[str]]:
        """`wanted` nodes to start on, fewer if there are no more, and the lost ones."""
        nodes, lost = self.nodes(), self.lost()
        leaving = self.leaving()
        alive = [node for node in nodes if node not in lost]
        best = sorted(alive, key=lambda node: node in leaving)[:wanted]
        return [node for node in nodes if node in best], lost.intersection(nodes)


class Slurm(Allocation):
    """In the environment of sbatch or salloc."""

    name = "Slurm"
    # Of the attempt before Slurm may still wait for a lost node, and count its processors as busy.
    # For hydra and Open MPI too, which start their daemons by srun.
    environment: ClassVar[dict[str, str]] = {"SLURM_OVERLAP": "1"}

    def __init__(self) -> None:
        self._job = os.environ["SLURM_JOB_ID"]
        self._list = os.environ.get("SLURM_JOB_NODELIST", "")
        self._leaving: set[str] = set()

    def nodes(self) -> list[str]:
        return _ask("scontrol", "show", "hostnames", self._list).split()

    def lost(self) -> set[str]:
        """What Slurm knows to be lost, and the nodes whose slurmd does not take a connection:
        Slurm itself learns of a loss only after its SlurmdTimeout."""
        answer = _ask("scontrol", "show", "node", self._list, "--oneliner").splitlines()
        facts = {each["NodeName"]: each for each in map(_facts, answer) if "NodeName" in each}
        states = {node: _words(each.get("State", "")) for node, each in facts.items()}
        self._leaving = {node for node, words in states.items() if words & _LEAVING}
        lost = {node for node, words in states.items() if words & _LOST}
        port = self._slurmd_port()
        places = {
            node: (each.get("NodeAddr", node), int(each.get("Port", port)))
            for node, each in facts.items()
            if node not in lost
        }
        return lost | _silent(places)

    def leaving(self) -> set[str]:
        return self._leaving

    def _slurmd_port(self) -> int:
        found = re.search(r"^SlurmdPort\s*=\s*(\d+)", _ask("scontrol", "show", "config"), re.M)
        return int(found[1]) if found else 6818

    def requeue(self) -> None:
        _ask("scontrol", "requeue", self._job)

    def end_steps(self, attempt: str) -> None:
        deadline = time.monotonic() + _STEP_END_S
        while steps := self._steps(attempt):
            _ask("scancel", "--signal=KILL", *steps)
            if time.monotonic() > deadline:
                return
            time.sleep(0.2)

    def _steps(self, attempt: str) -> list[str]:
        lines = _ask("squeue", "--noheader", "--steps", "--jobs", self._job, "--format=%i %j")
        pairs = [line.split() for line in lines.splitlines()]
        return [pair[0] for pair in pairs if pair[1:] == [attempt]]


class Pbs(Allocation):
    """OpenPBS: the nodes are in $PBS_NODEFILE."""

    name = "PBS"

    def nodes(self) -> list[str]:
        path = Path(os.environ["PBS_NODEFILE"])
        try:
            return list(dict.fromkeys(read_beginning(path, _NODEFILE_BYTES_MAX).decode().split()))
        except (OSError, UnicodeDecodeError) as wrong:
            raise NoAllocation(f"PBS_NODEFILE can't be read: {wrong}") from None

    def lost(self) -> set[str]:
        nodes = self.nodes()
        answer = _ask("pbsnodes", "-F", "json", *nodes)
        try:
            states = json.loads(answer)["nodes"]
            known = {each.split(".")[0]: states[each]["state"] for each in states}
        except (ValueError, KeyError, TypeError, AttributeError) as wrong:
            raise NoAllocation(f"pbsnodes -F json: not understood: {wrong}") from None
        bad = {"down", "state-unknown", "offline", "unresolvable"}
        return {node for node in nodes if bad & set(known.get(node.split(".")[0], "").split(","))}


class Flux(Allocation):
    """An instance of Flux, as `flux batch` and `flux alloc` start one."""

    name = "Flux"

    def nodes(self) -> list[str]:
        return _ask("flux", "hostlist", "--expand", "instance").split()

    def lost(self) -> set[str]:
        down = _ask("flux", "resource", "list", "-n", "-s", "down", "-o", "{nodelist}").split()
        return set(_ask("flux", "hostlist", "--expand", *down).split()) if down else set()


_SCHEDULERS: dict[str, Callable[[], Allocation]] = {
    "SLURM_JOB_ID": Slurm,
    "PBS_NODEFILE": Pbs,
    "FLUX_URI": Flux,
}


def this_allocation() -> Allocation:
    """The innermost: Flux may run in a job of Slurm, PBS's or Slurm's not in another."""
    for variable in reversed(_SCHEDULERS):
        if os.environ.get(variable):
            return _SCHEDULERS[variable]()
    raise NoAllocation(
        "this is no job of a scheduler (neither " + " nor ".join(_SCHEDULERS) + " is set): use "
        "--spares and --requeue in what sbatch, salloc, qsub or flux batch starts"
    )


def _facts(line: str) -> dict[str, str]:
    return dict(re.findall(r"(\S+?)=(\S*)", line))


def _words(state: str) -> set[str]:
    """ "IDLE*+DRAIN" is IDLE and DRAIN, and the star says that the node does not respond."""
    words = set(re.split(r"[^A-Z_]+", state))
    return words | {"NOT_RESPONDING"} if "*" in state else words


def _silent(places: dict[str, tuple[str, int]]) -> set[str]:
    """The nodes that take no connection; all are tried at once."""
    with ThreadPoolExecutor(min(_KNOCK_THREADS, len(places) or 1)) as threads:
        answers = threads.map(_answers, places.values())
        return {node for node, answer in zip(places, answers, strict=True) if not answer}


def _answers(place: tuple[str, int]) -> bool:
    for _ in range(_KNOCKS):
        try:
            socket.create_connection(place, timeout=_KNOCK_S).close()
            return True
        except OSError:
            continue
    return False


def _ask(*words: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise NoAnswer(f"{words[0]}: {failed}") from None
    if done.returncode != 0:
        raise NoAnswer(f"{' '.join(words[:3])}: {done.stderr.strip() or done.returncode}")
    return done.stdout
