# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench kill_nodes`: as `kill`, with whole nodes that are lost, and ranks that move.

hpccg in copy mode on four of six pretended nodes of one machine: each has a directory of its own
with its rank's pool (PERDURE_NODE_ID). A rank is killed at a random moment and the launcher ends
the job. Then nodes' directories are removed, mostly as many as the redundancy bears, at times none
or one more; ranks stay, change places or go to spare nodes, and the job is started again, at times
killed again. What the files can give is read before and after the loss (census of levels).

    kills      jobs that were killed
    wrong      the answer differs in any bit
    lost       a restart gave an older version than one that a rank had seen committed, if no node
               was lost, else than what the files had guarded; beyond the promise: could give
    refused    a start did not end well although its files could give a version
    leftovers  files in /dev/shm that the job left behind
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perdure.core import load_core
from perdure.programs import Program, ProgramFailed
from perdure.run.rehearsal import POINTS, Rehearsal
from perdure_bench.facts import Fact
from perdure_bench.kill import FAULTS, Trials, run_campaign
from perdure_bench.shared_memory import SharedMemoryWatch
from perdure_bench.solver import find_solvers
from perdure_bench.trial import Job, Ran, run_attempt

SUMMARY = "jobs that lose whole nodes, on nodes that change, and their answers"
_KILLS, _KILLS_QUICK = 300, 12
_RANKS, _NODES, _EVERY = 4, 6, 4
_EDGE, _ITERATIONS = 16, 80
_LOSSES = {"partner": 1, "xor:4": 1, "rs:2+2": 2, "drain": 0}
_STARTS_MAX = 4
_YIELDING_SHARE = 0.8  # an MPI that spins is slow with more ranks than cores
_SCRIPT = """\
#!/bin/sh
rank=${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK:-0}}}}
set -- {nodes}
shift "$rank"
export PERDURE_NODE_ID="$1" PERDURE_LEVELS={levels}
exec {solver} {words} --pool {root}/node-"$1"/pool
"""


@dataclass(frozen=True)
class NodesJob(Job):
    """hpccg with its ranks on pretended nodes; `protect` is what is kept elsewhere."""

    nodes: tuple[int, ...] = tuple(range(_RANKS))

    def command(self, pool: Path) -> list[str]:
        levels = f"every={_EVERY};patience=60s;redundancy="
        levels += f"off;drain={pool}/drain" if self.protect == "drain" else self.protect
        edge = str(_EDGE)
        words = [edge, edge, edge, "--iterations", str(_ITERATIONS), "--json", "--protect", "copy"]
        script = _SCRIPT.format(
            nodes=" ".join(map(str, self.nodes)),
            levels=shlex.quote(levels),
            solver=shlex.quote(str(self.solver.program)),
            words=" ".join(words),
            root=shlex.quote(str(pool)),
        )
        for place in (pool, *(pool / f"node-{node}" for node in self.nodes)):
            place.mkdir(mode=0o700, exist_ok=True)
        (pool / "rank").write_text(script)
        (pool / "rank").chmod(0o700)
        return [self.solver.launcher, "-n", str(self.ranks), str(pool / "rank")]


class NodesCampaign(Trials):
    """Trials of a solver on nodes, by what is kept elsewhere."""

    def __init__(self, solvers: list[Program], pools: Path, draw: random.Random):
        super().__init__(solvers, pools, draw, tuple(_LOSSES))
        self._answer = ""

    def run_trial(self, kills_left: int) -> None:
        case = min(_LOSSES, key=lambda name: self.counts[name]["kills"])
        solver = self._draw_solver()
        if not self._answer:
            self._answer = self._undisturbed(solver)
        self.trials += 1
        watch = SharedMemoryWatch()
        trial = Trial(NodesJob(solver, _RANKS, case), self._pools / "trial", self._draw)
        try:
            found = trial.run(min(kills_left, _STARTS_MAX), self._answer)
        finally:
            shutil.rmtree(trial.root, ignore_errors=True)
        found["leftovers"] = len(watch.leftovers())
        found[solver.flavour] += found["kills"]
        if any(found[name] for name in FAULTS):
            print(f"perdure bench kill_nodes: {dict(found)}: {trial.text}", file=sys.stderr)
        self._count(case, found)

    def _draw_solver(self) -> Program:
        yielding = self._yielding()
        chosen = yielding if yielding and self._draw.random() < _YIELDING_SHARE else self._programs
        return self._draw.choice(chosen)

    def _undisturbed(self, solver: Program) -> str:
        root = self._pools / "undisturbed"
        ran = run_attempt(NodesJob(solver, _RANKS, "partner"), None, root)
        shutil.rmtree(root)
        if ran.exit_code != 0:
            raise ProgramFailed(f"hpccg ended with {ran.exit_code}: {ran.printed[-300:].strip()}")
        return ran.report["hash"]


class Trial:
    """One job, from its first start to the one that nobody disturbs; `text` says what was done."""

    def __init__(self, job: NodesJob, root: Path, draw: random.Random):
        self._job, self.root, self._draw = job, root, draw
        self._found: Counter[str] = Counter()
        self.text = f"{job.solver.flavour}, {job.protect}"

    def run(self, kills: int, answer: str) -> Counter[str]:
        least = 0  # the version that the next start must give
        for start in range(kills + 1):
            last = start == kills or (start > 0 and self._draw.random() < 0.5)
            kill = None if last else self._draw_kill()
            self.text += f"; on {self._job.nodes}" + (f" {kill}" if kill else "")
            ran = run_attempt(self._job, kill, self.root)
            self._found["kills"] += len(ran.killed)
            if not self._went_well(ran, least, answer):
                break
            least = self._lose(ran)
            self._move()
        return self._found

    def _draw_kill(self) -> Rehearsal:
        rank = self._draw.randrange(_RANKS)
        if self._draw.random() < 0.5:
            iteration = self._draw.randint(1, _ITERATIONS - 1)
            return Rehearsal(rank, self._draw.choice(POINTS), iteration=iteration)
        return Rehearsal(rank, "", seconds=self._draw.uniform(0, 1.5))

    def _went_well(self, ran: Ran, least: int, answer: str) -> bool:
        """Whether there is a reason to start the job again."""
        restored = [p.restored_version for p in ran.attempts[-1].pages if p.has_restarted]
        self._found["lost"] += bool(restored) and min(restored) < least
        if ran.killed:
            return True
        if ran.exit_code == 0:
            self._found["wrong"] += ran.report["hash"] != answer
        elif least > 0:
            self._found["refused"] += 1
            self.text += f"; it said: {ran.printed[-500:].strip()}"
        else:
            self._found["refused_rightly"] += 1
        return False

    def _directories(self) -> list[str]:
        return [str(p.parent) for p in self.root.glob("node-*/pool/job")]

    def _lose(self, ran: Ran) -> int:
        """Removes nodes; the version that a restart must give from what is left."""
        committed = max((page.version for page in ran.attempts[-1].pages), default=0)
        directories = self._directories()
        if not directories:
            return 0
        guarded, _ = load_core().levels_held(directories)
        bears = _LOSSES[self._job.protect]
        count = self._draw.choices((0, max(1, bears), bears + 1), (2, 7, 1))[0]
        lost = self._draw.sample(self._job.nodes, min(count, _RANKS))
        for node in lost:
            shutil.rmtree(self.root / f"node-{node}", ignore_errors=True)
        self.text += f", lost {lost}"
        self._found[f"lost_{len(lost)}"] += 1
        left = self._directories()
        if not lost:
            return committed
        given = load_core().levels_held(left)[1] if left else 0
        within = len(lost) <= bears
        return max(given, self._drained(), guarded if within else 0)

    def _drained(self) -> int:
        whole = self.root.glob("drain/*/*/version-*/manifest")
        numbers = [int(path.parent.name.split("-")[1].split(".")[0]) for path in whole]
        return max(numbers, default=0)

    def _move(self) -> None:
        """Ranks whose node is lost go to another one; at times all change places."""
        there = [n for n in self._job.nodes if (self.root / f"node-{n}").exists()]
        spare = [n for n in range(_NODES) if n not in there]
        self._draw.shuffle(spare)
        nodes = [n if n in there else spare.pop() for n in self._job.nodes]
        if self._draw.random() < 0.4:
            self._draw.shuffle(nodes)
        self._job = NodesJob(self._job.solver, _RANKS, self._job.protect, tuple(nodes))


def measure(quick: bool, seed: int = 1) -> Iterator[Fact]:
    """The outcomes by scheme, then of all. Raises ProgramFailed."""
    wanted = _KILLS_QUICK if quick else _KILLS
    os.environ.pop("PERDURE_LEVELS", None)
    return run_campaign("kill_nodes", NodesCampaign, find_solvers(), wanted, seed)
