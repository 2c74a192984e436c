"""The verb `perdure run`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perdure.cache.preload import NoLibrary, cache_environment
from perdure.run.attempt import Limits
from perdure.run.job import JobRequest, JobResult, run_job
from perdure.run.live import make_live
from perdure.run.rehearsal import POINTS, parse_rehearsal
from perdure.run.report import job_json, print_report

_REPORT_COLUMNS = 1000  # where stderr is no terminal: nothing is cut

CommitPlan = Annotated[
    Path | None,
    typer.Option(metavar="PLAN", help="Commit as this plan of `perdure energy plan` says: its "
                 "interval, levels, writers and clock.", show_default=False),
]


def run(
    command: Annotated[
        list[str], typer.Argument(help="The job, for example: mpiexec -n 4 ./solver", metavar="CMD")
    ],
    restarts: Annotated[
        int | None,
        typer.Option(min=0, help="Start again up to N times after a failure.  [default: 0; 1 with "
                     "--kill-at]", show_default=False),
    ] = None,
    kill_at: Annotated[
        str | None,
        typer.Option(metavar="N|Ts", help="Rehearse a failure: kill one rank at iteration N, or "
                     "after T seconds of computing, in the first attempt."),
    ] = None,
    kill_rank: Annotated[
        int | None,
        typer.Option(min=0, help="Which rank.  [default: 1; 0 if there is one]",
                     show_default=False),
    ] = None,
    kill_point: Annotated[
        str, typer.Option(metavar="|".join(POINTS), help="Where in the commit of iteration N.")
    ] = "copy",
    timeout: Annotated[
        float | None, typer.Option(min=0, help="End an attempt that lasts longer (seconds).")
    ] = None,
    hang_timeout: Annotated[
        float,
        typer.Option(min=0, help="End an attempt whose launcher still runs this many seconds "
                     "after a rank was lost."),
    ] = 30.0,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE|-", help="Write statistics.")
    ] = None,
    cache: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Cache the MPI-IO files whose path (or, without a "
                     "slash, name) matches; may be repeated."),
    ] = None,
    cache_options: Annotated[
        str, typer.Option(metavar="K=V;…", help="How, for example 'pool=/mnt/pmem;ack=async'.")
    ] = "",
    commit_plan: CommitPlan = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing of its own.")] = False,
) -> None:
    """Run a job, show its commits, and start it again after a failure.

    Ends with the job's exit code, or 128 + signal; 124 after --timeout or --hang-timeout.

    Example: perdure run --cache '*.dat' -- mpiexec -n 4 ./solver
    """
    try:
        rehearsal = kill_at and parse_rehearsal(kill_at, kill_rank, kill_point, command)
    except ValueError as wrong:
        raise typer.BadParameter(str(wrong), param_hint="--kill-at") from None
    restarts = int(bool(rehearsal)) if restarts is None else restarts
    request = JobRequest(
        command,
        restarts,
        rehearsal or None,
        Limits(timeout, hang_timeout),
        _cache_environment(cache, cache_options) | _plan_environment(commit_plan),
    )
    result = run_job(request, make_live(quiet))
    _report(result, quiet, json_file)
    raise typer.Exit(result.exit_code)


def _cache_environment(patterns: list[str] | None, options: str) -> dict[str, str]:
    if not patterns:
        if options:
            raise typer.BadParameter(
                "is for --cache, which says which files", param_hint="--cache-options"
            )
        return {}
    try:
        return cache_environment(patterns, options)
    except NoLibrary as missing:
        typer.echo(f"perdure: {missing}", err=True)
        raise typer.Exit(1) from None


def _plan_environment(plan: Path | None) -> dict[str, str]:
    """What tells the library of a plan, which is read here so that a wrong one is told at once."""
    if plan is None:
        return {}
    from perdure.energy.plan_file import read_plan
    from perdure.energy.quantities import Wrong

    try:
        read_plan(plan)
    except Wrong as wrong:
        raise typer.BadParameter(str(wrong), param_hint="--commit-plan") from None
    return {"PERDURE_ENERGY_PLAN": str(plan.resolve())}


def _report(result: JobResult, quiet: bool, json_file: str | None) -> None:
    if not quiet and result.attempts:
        width = None if sys.stderr.isatty() else _REPORT_COLUMNS
        print_report(result, Console(stderr=True, width=width, highlight=False))
    if json_file is None:
        return
    text = json.dumps(job_json(result), indent=2) + "\n"
    if json_file == "-":
        sys.stdout.write(text)
        return
    try:
        with open(json_file, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as failed:
        sys.stderr.write(f"perdure: statistics were not written: {failed}\n")
