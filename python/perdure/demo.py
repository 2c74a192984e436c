"""The verb `perdure demo`: a solver is killed, goes on, and ends with the same answer."""

from __future__ import annotations

import sys
import tempfile
from typing import Annotated

import typer

from perdure.bench.programs import BenchFailed
from perdure.bench.solver import OPEN_MPI, find_solvers, last_report, pool_directory
from perdure.run.attempt import Limits
from perdure.run.job import JobRequest, JobResult, run_job
from perdure.run.live import make_live
from perdure.run.rehearsal import Rehearsal
from perdure.units import seconds_text

_RANKS, _EDGE = 2, 40
_LIMITS = Limits(timeout_s=300)


def demo(
    iterations: Annotated[int, typer.Option(min=4, help="Of the solver.")] = 80,
    protect: Annotated[str, typer.Option(help="copy, async, twin or log.")] = "copy",
) -> None:
    """Kill a solver in the middle of a commit, restart it, and compare the answers."""
    try:
        equal = _demonstrate(iterations, protect)
    except BenchFailed as failure:
        typer.echo(f"perdure demo: {failure}", err=True)
        raise typer.Exit(1) from None
    raise typer.Exit(0 if equal else 1)


def _demonstrate(iterations: int, protect: str) -> bool:
    solver = find_solvers()[0]
    points = f"{_RANKS} ranks of {_EDGE} x {_EDGE} x {_EDGE} points, {iterations} iterations"
    print(f"hpccg ({solver.flavour}), {points}, protection {protect}", flush=True)
    with pool_directory() as pools:

        def run(name: str, rehearsal: Rehearsal | None) -> tuple[JobResult, dict]:
            options = ("--protect", protect, "--pool", pools / name)
            command = solver.command(_RANKS, _EDGE, iterations, *options)
            return _run(command, rehearsal)

        undisturbed, whole = run("undisturbed", None)
        print(f"  undisturbed  {seconds_text(undisturbed.seconds)}, answer {whole['hash']}")
        rehearsal = Rehearsal(1, "copy", iteration=iterations // 2)
        print(f"  kill         {rehearsal}", flush=True)
        killed, resumed = run("killed", rehearsal)
    if not killed.rehearsal_happened:
        raise BenchFailed("the rank was not killed")
    first, second = killed.attempts
    committed = max(page.version for page in first.pages)
    print(f"  killed       after {seconds_text(first.seconds)}, version {committed} was committed")
    took = seconds_text(max(page.restart_ns for page in second.pages) * 1e-9)
    print(f"  restarted    from version {resumed['restored_version']} in {took}")
    print(f"  finished     {seconds_text(killed.seconds)} in all, answer {resumed['hash']}")
    equal = resumed["hash"] == whole["hash"]
    print("the answers are equal, bit for bit" if equal else "THE ANSWERS DIFFER")
    return equal


def _run(command: list[str], rehearsal: Rehearsal | None) -> tuple[JobResult, dict]:
    """Runs the job; raises BenchFailed, with what it printed, if it does not end well."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        restarts = 0 if rehearsal is None else 1
        request = JobRequest(command, restarts, rehearsal, _LIMITS, OPEN_MPI, output)
        result = run_job(request, make_live(quiet=not sys.stderr.isatty()))
        output.seek(0)
        printed = output.read()
    if result.exit_code != 0:
        raise BenchFailed(f"hpccg ended with {result.exit_code}:\n{printed[-1000:]}")
    return result, last_report(printed)
