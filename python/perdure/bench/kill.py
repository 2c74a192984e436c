"""`perdure bench kill`: jobs killed at random places, restarted, and compared bit for bit.

Each trial draws an MPI, a protection, a rank, an iteration and a point of the commit, runs hpccg
under the launcher of `perdure run`, and compares the answer with one of an undisturbed run.

    wrong    the answer differs in any bit
    lost     restart gave an older version than one that a rank had seen committed
    refused  the second attempt did not end well
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perdure.bench.facts import Fact
from perdure.bench.programs import BenchFailed
from perdure.bench.solver import (
    OPEN_MPI,
    PROTECTIONS,
    Solver,
    find_solvers,
    last_report,
    pool_directory,
)
from perdure.run.attempt import Limits
from perdure.run.job import JobRequest, JobResult, run_job
from perdure.run.live import Live
from perdure.run.rehearsal import POINTS, Rehearsal

SUMMARY = "killed jobs, their restarts and their answers"
OUTCOMES = ("kills", "wrong", "lost", "refused")
_RANKS, _EDGE, _ITERATIONS = 2, 12, 24
_LIMITS = Limits(timeout_s=120, hang_s=20)
_TRIALS, _TRIALS_QUICK = 200, 12


@dataclass(frozen=True)
class Trial:
    """One rehearsed failure of one job."""

    solver: Solver
    protect: str
    rehearsal: Rehearsal


def measure(quick: bool, each: Callable[[Fact], None], seed: int = 1) -> None:
    """Hands over the outcomes per protection. Raises BenchFailed, also if nothing was killed."""
    solvers = find_solvers()
    draw = random.Random(seed)
    counts = {protect: Counter() for protect in PROTECTIONS}
    with pool_directory() as pools:
        answer = {solver: _answer(solver, pools) for solver in solvers}
        for number in range(_TRIALS_QUICK if quick else _TRIALS):
            trial = _draw(draw, solvers, PROTECTIONS[number % len(PROTECTIONS)])
            counts[trial.protect].update(_try(trial, answer[trial.solver], pools / str(number)))
    for protect, counted in counts.items():
        if counted["kills"] == 0:
            raise BenchFailed(f"no job with protection {protect} was killed")
        for fact in _facts(protect, counted, seed):
            each(fact)


def _draw(draw: random.Random, solvers: list[Solver], protect: str) -> Trial:
    rank, iteration = draw.randrange(_RANKS), draw.randint(1, _ITERATIONS)
    rehearsal = Rehearsal(rank, draw.choice(POINTS), iteration=iteration)
    return Trial(draw.choice(solvers), protect, rehearsal)


def _run(solver: Solver, options: list, rehearsal: Rehearsal | None) -> tuple[JobResult, str]:
    """A job of hpccg, and all that it printed."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        request = JobRequest(
            solver.command(_RANKS, _EDGE, _ITERATIONS, *options),
            restarts=0 if rehearsal is None else 1,
            rehearsal=rehearsal,
            limits=_LIMITS,
            environment=OPEN_MPI,
            output=output,
        )
        result = run_job(request, Live())
        output.seek(0)
        printed = output.read()
    if result.attempts and result.attempts[-1].stopped_by is not None:
        raise BenchFailed("interrupted")
    return result, printed


def _answer(solver: Solver, pools: Path) -> str:
    result, printed = _run(solver, ["--pool", pools / f"answer-{solver.flavour}"], None)
    if result.exit_code != 0:
        raise BenchFailed(f"hpccg ended with {result.exit_code}: {printed[-300:].strip()}")
    return last_report(printed)["hash"]


def _try(trial: Trial, answer: str, pool: Path) -> Counter:
    """The outcomes of a trial: "kills", and what went wrong."""
    options = ["--protect", trial.protect, "--pool", pool]
    result, printed = _run(trial.solver, options, trial.rehearsal)
    counted = Counter(kills=int(result.rehearsal_happened))
    if result.exit_code != 0:
        counted["refused"] += 1
        return counted
    counted["wrong"] += last_report(printed)["hash"] != answer
    if len(result.attempts) == 2:
        first, second = result.attempts
        committed = max((page.version for page in first.pages), default=0)
        restored = max((page.restored_version for page in second.pages), default=0)
        counted["lost"] += restored < committed
    return counted


def _facts(protect: str, counted: Counter, seed: int) -> list[Fact]:
    facts = []
    for metric in OUTCOMES:
        claimed = metric != "kills"
        facts.append(
            Fact(
                "kill",
                protect,
                metric,
                counted[metric],
                "",
                n=counted["kills"],
                target=0 if claimed else None,
                holds=counted[metric] == 0 if claimed else None,
                more={"seed": seed},
            )
        )
    return facts
