# SPDX-License-Identifier: BSD-3-Clause
"""A solver runs undisturbed, then again with a rank killed in a commit, and is restarted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perdure.programs import OPEN_MPI, Program, ProgramFailed
from perdure.run.attempt import Limits
from perdure.run.job import JobResult
from perdure.run.rehearsal import Rehearsal
from perdure.units import seconds_text
from perdure_bench.solver import last_report, run_captured, solve

RANKS = 2
KILLING_RUNS = 2
_LIMITS = Limits(timeout_s=300)


@dataclass(frozen=True)
class Killing:
    """What happened; times in seconds."""

    setting: str
    rehearsal: Rehearsal
    undisturbed_s: float
    attempts_s: tuple[float, float]
    seconds: float  # both attempts, and what is between them
    committed: int  # newest version when the rank was killed
    restored: int
    restart_s: float
    answers: tuple[str, str]  # undisturbed, and of the job that was killed

    @property
    def equal(self) -> bool:
        return self.answers[0] == self.answers[1]

    @property
    def verdict(self) -> str:
        return "the answers are equal, bit for bit" if self.equal else "THE ANSWERS DIFFER"


def kill_and_restart(
    solver: Program,
    edge: int,
    iterations: int,
    protect: str,
    pools: Path,
    advance: Callable[[], None],
) -> Killing:
    """Runs both jobs and reports them as they go. Raises ProgramFailed."""
    setting = f"{RANKS} ranks of {edge} x {edge} x {edge} points, {iterations} iterations"
    setting = f"hpccg ({solver.flavour}), {setting}, protection {protect}"
    print(setting, flush=True)

    def run(name: str, rehearsal: Rehearsal | None) -> tuple[JobResult, dict]:
        options = ("--protect", protect, "--pool", pools / name)
        ran = _run(solve(solver, RANKS, edge, iterations, *options), rehearsal)
        advance()
        return ran

    undisturbed, whole = run("undisturbed", None)
    print(f"  undisturbed  {seconds_text(undisturbed.seconds)}, answer {whole['hash']}")
    rehearsal = Rehearsal(1, "copy", iteration=iterations // 2)
    print(f"  SIGKILL      to {rehearsal}", flush=True)
    killed, resumed = run("killed", rehearsal)
    if not killed.rehearsal_happened or len(killed.attempts) != 2:
        raise ProgramFailed("the rank was not killed")
    first, second = killed.attempts
    killing = Killing(
        setting=setting,
        rehearsal=rehearsal,
        undisturbed_s=undisturbed.seconds,
        attempts_s=(first.seconds, second.seconds),
        seconds=killed.seconds,
        committed=max(page.version for page in first.pages),
        restored=resumed["restored_version"],
        restart_s=max(page.restart_ns for page in second.pages) * 1e-9,
        answers=(whole["hash"], resumed["hash"]),
    )
    _tell(killing)
    return killing


def _tell(killing: Killing) -> None:
    first_s, _ = killing.attempts_s
    after = f"after {seconds_text(first_s)}, version {killing.committed} was committed"
    print(f"  killed       {after}")
    took = seconds_text(killing.restart_s)
    print(f"  restarted    from version {killing.restored}, restored in {took}")
    print(f"  finished     {seconds_text(killing.seconds)} in all, answer {killing.answers[1]}")
    print(killing.verdict, flush=True)


def _run(command: list[str], rehearsal: Rehearsal | None) -> tuple[JobResult, dict]:
    """Runs the job; raises ProgramFailed, with what it printed, if it does not end well."""
    result, printed = run_captured(
        command, restarts=int(rehearsal is not None), rehearsal=rehearsal, limits=_LIMITS,
        environment=OPEN_MPI,
    )  # fmt: skip
    if result.exit_code != 0:
        raise ProgramFailed(f"hpccg ended with {result.exit_code}:\n{printed[-1000:]}")
    return result, last_report(printed)
