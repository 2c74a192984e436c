# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure run`."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from perdure.cache.preload import cache_environment, find_library, preloading
from perdure.documents import json_text
from perdure.ending import os_text
from perdure.files import NotAFile, open_append, write_text
from perdure.option_groups import output_file
from perdure.run.allocation import NoAllocation, this_allocation
from perdure.run.attempt import Limits
from perdure.run.job import JobRequest, JobResult, run_job
from perdure.run.live import make_live
from perdure.run.placement import NoPlace, check_launcher, check_no_ranks
from perdure.run.rehearsal import POINTS, rehearsal_asked
from perdure.run.report import job_json, print_report
from perdure.run.spread import Spread, make_spread
from perdure.screen import bad_parameter, console, say
from perdure.units import Wrong, parse_time

HangTimeout = Annotated[
    str,
    typer.Option(metavar="TIME", help="End an attempt whose launcher still runs so long after a "
                 "rank was lost, or after all ranks ended; inf: never."),
]
StallTimeout = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="End an attempt in which no rank has progressed for so long: "
                 "no version, no commit, no other phase.", show_default="only warn"),
]
CommitPlan = Annotated[
    Path | None,
    typer.Option(metavar="PLAN", help="Commit as this plan of `perdure energy plan` says: its "
                 "interval, levels, writers and clock.", show_default=False),
]


Command = Annotated[
    list[str], typer.Argument(help="The job, for example: mpiexec -n 4 ./solver", metavar="CMD")
]
Restarts = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Start again up to N times after a failure.",
                 show_default="0; 1 with --kill-at, N with --spares"),
]
KillAt = Annotated[
    str | None,
    typer.Option(metavar="N|TIME", help="Rehearse a failure: kill one rank at iteration N, "
                 "or after 3.5s of computing, in the first attempt."),
]
KillRank = Annotated[
    int | None,
    typer.Option(metavar="RANK", min=0, help="The rank to kill.",
                 show_default="1; 0 if there is one"),
]
KillPoint = Annotated[
    str | None,
    typer.Option(metavar="|".join(POINTS), help="The point in the commit of iteration N at which"
                 " the rank is killed.",
                 show_default="copy")
]
Timeout = Annotated[
    str | None, typer.Option(metavar="TIME", help="End an attempt that lasts longer: 90s, 2h.")
]
Cache = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN", help="Cache the MPI-IO files whose path (or, without a "
                 "slash, name) matches; may be repeated."),
]
CacheOptions = Annotated[
    str, typer.Option(metavar="NAME=VALUE;…", help="How files are cached, for example "
                      "'directory=/mnt/pmem;ack=async'.")
]
AnyOwner = Annotated[
    bool,
    typer.Option("--any-owner", help="Let the job use directories and files that another user "
                 "owns or may write to: whoever can write them can change what it computes."),
]
Spares = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Leave N nodes of the allocation unused, and take one "
                 "of them for each that is lost.", show_default=False),
]
Requeue = Annotated[
    bool,
    typer.Option("--requeue", help="Put the job back into the queue if a node is lost and no "
                 "attempt is left, or if SIGUSR1 made it end early."),
]
RanksPerNode = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Start N ranks on each node, however many nodes there "
                 "are: for a program that goes on with any number of ranks (PERDURE_ANY_RANKS).",
                 show_default=False),
]
MinNodes = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Go on with fewer nodes, as long as N are left; needs "
                 "--ranks-per-node.", show_default="1"),
]
Log = Annotated[
    Path | None,
    output_file("--log", help="Add the job's output to this file too, with a line "
                "at the begin and end of each attempt."),
]
RunDir = Annotated[
    Path,
    typer.Option(metavar="DIR", help="A directory that all nodes see, where ranks say that they "
                 "have closed their pools; for --spares and --requeue."),
]


def run(
    command: Command,
    restarts: Restarts = None,
    kill_at: KillAt = None,
    kill_rank: KillRank = None,
    kill_point: KillPoint = None,
    timeout: Timeout = None,
    hang_timeout: HangTimeout = "30s",
    stall_timeout: StallTimeout = None,
    json_file: Annotated[
        Path | None, output_file("--json", help="Write statistics; - for stdout.")
    ] = None,
    cache: Cache = None,
    cache_options: CacheOptions = "",
    log: Log = None,
    any_owner: AnyOwner = False,
    commit_plan: CommitPlan = None,
    spares: Spares = None,
    requeue: Requeue = False,
    ranks_per_node: RanksPerNode = None,
    min_nodes: MinNodes = None,
    run_dir: RunDir = Path(),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing of its own.")] = False,
) -> None:
    """Run a job, show its commits, and start it again after a failure.

    Ends with the job's exit code, or 128 + signal; 124 if one of the timeouts ended it, 123 if it
    ended with 0 before all ranks had closed their pools. SIGUSR1 makes it end after one more
    commit.

    Examples: perdure run --restarts 5 --stall-timeout 1h -- mpiexec -n 4 ./solver;
    perdure run --log job.log --cache '*.dat' -- mpiexec -n 4 ./solver;
    perdure run --spares 1 --requeue -- srun -n 12 ./solver;
    perdure run --ranks-per-node 4 --min-nodes 2 --requeue -- srun ./solver
    """
    rehearsal = rehearsal_asked(kill_at, kill_rank, kill_point, command)
    spread = _spread(command, spares, requeue, run_dir, ranks_per_node, min_nodes)
    if restarts is None:
        restarts = max(bool(rehearsal), spares or 0)
        if spread is not None and ranks_per_node is not None:
            restarts = max(restarts, (spares or 0) + spread.wanted - spread.needed)
    request = JobRequest(
        command,
        restarts,
        rehearsal or None,
        _limits(timeout, hang_timeout, stall_timeout),
        _cache_environment(cache, cache_options) | _plan_environment(commit_plan)
        | ({"PERDURE_ANY_OWNER": "1"} if any_owner else {}),
        spread=spread,
        log=_checked_log(log),
    )
    result = run_job(request, make_live(quiet))
    _report(result, quiet, json_file)
    raise typer.Exit(result.exit_code)


def _checked_log(log: Path | None) -> Path | None:
    """Raises the mistake of a name that can't be written, before anything is started."""
    if log is not None:
        try:
            if str(log) == "-":
                raise NotAFile("- is the standard output, where the job's output goes anyhow")
            open_append(log).close()
        except OSError as wrong:
            raise bad_parameter(os_text(wrong), param_hint="--log") from None
    return log


def _spread(
    command: list[str],
    spares: int | None,
    requeue: bool,
    directory: Path,
    ranks_per_node: int | None,
    min_nodes: int | None,
) -> Spread | None:
    if min_nodes is not None and ranks_per_node is None:
        raise bad_parameter("is for --ranks-per-node, which says that the program goes on with "
                            "fewer ranks", param_hint="--min-nodes")  # fmt: skip
    if spares is None and not requeue and ranks_per_node is None:
        return None
    try:
        spread = make_spread(
            this_allocation(), spares or 0, directory.resolve(), requeue, ranks_per_node,
            min_nodes or 1,
        )  # fmt: skip
        check_launcher(command)
        if ranks_per_node is not None:
            check_no_ranks(command)
    except (NoAllocation, NoPlace) as wrong:
        hint = "--ranks-per-node" if ranks_per_node is not None else \
            "--requeue" if spares is None else "--spares"
        raise bad_parameter(str(wrong), param_hint=hint) from None
    return spread


def _limits(timeout: str | None, hang: str, stall: str | None) -> Limits:
    def read(text: str | None, option: str) -> float | None:
        try:
            return text if text is None else math.inf if text == "inf" else parse_time(text)
        except Wrong as wrong:
            raise bad_parameter(str(wrong), param_hint=option) from None

    hang_s = read(hang, "--hang-timeout") or 0.0
    return Limits(read(timeout, "--timeout"), hang_s, read(stall, "--stall-timeout"))


def _cache_environment(patterns: list[str] | None, options: str) -> dict[str, str]:
    if not patterns:
        if os.environ.get("PERDURE_RECORD") and not options:
            return preloading(find_library())  # what records is in the same library
        if options:
            raise bad_parameter(
                "is for --cache, which says which files", param_hint="--cache-options"
            )
        return {}
    for pattern in patterns:
        if pattern.startswith("-"):
            raise bad_parameter(
                f"needs the files to cache, and is given '{pattern}'; for all of them: --cache '*'",
                param_hint="--cache",
            )
    return cache_environment(patterns, options)


def _plan_environment(plan: Path | None) -> dict[str, str]:
    """Names a plan to the library; it is read here so that a wrong one is reported at once."""
    if plan is None:
        return {}
    from perdure.energy.plan.file import read_plan

    try:
        read_plan(plan)
    except Wrong as wrong:
        raise bad_parameter(str(wrong), param_hint="--commit-plan") from None
    return {"PERDURE_ENERGY_PLAN": str(plan.resolve())}


def _report(result: JobResult, quiet: bool, json_file: Path | None) -> None:
    if not quiet and result.attempts:
        print_report(result, console(stderr=True))
    if json_file is None:
        return
    text = json_text("run", job_json(result)) + "\n"
    if str(json_file) == "-":
        sys.stdout.write(text)
        return
    try:
        write_text(json_file, text)
    except OSError as failed:
        say(f"perdure: statistics were not written: {os_text(failed)}", err=True)
