# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure demo`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perdure.exit_codes import DONE, FAILED
from perdure.option_groups import picture_file
from perdure.programs import CLONE, ProgramFailed
from perdure.progress import progress
from perdure.units import seconds_text
from perdure_bench.demo.costs import CASES, costs_table, measure_costs, runs_of
from perdure_bench.demo.killing import KILLING_RUNS, Killing, kill_and_restart
from perdure_bench.hpccg import Size
from perdure_bench.solver import find_solvers, huge_page_directory, pool_directory

_SIDE_NOTE = """
overhead      an iteration with its commit, over one of none in the same round
commit waits  how long a commit kept the solver waiting
restart       from having the matrix to the first iteration, all that the program sets up included
Pools are in memory, the files of disk on a disk. A demonstration: one small grid, few rounds.
The figures to quote are those of `perdure bench hpccg`."""


def demo(
    iterations: Annotated[int, typer.Option(metavar="N", min=4,
        help="Iterations of the solver that is killed.")] = 80,
    protect: Annotated[str, typer.Option(metavar="MODE",
        help="How arrays are protected: copy, async, twin or log.")] = "copy",
    edge: Annotated[int, typer.Option(metavar="N", min=4,
        help="Points along an edge of a rank's grid.")] = 56,
    rounds: Annotated[int, typer.Option(metavar="N", min=1, help="How often the table of costs "
                                        "is measured.")] = 5,
    picture: Annotated[
        Path | None,
        picture_file("--picture", help="The picture to draw.  [default: out/perdure-demo.png of "
                     "the clone, else ./perdure-demo.png]"),
    ] = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw no picture.")] = False,
) -> None:  # fmt: skip
    """Kill a solver in the middle of a commit, restart it, compare the answers, tell the costs.

    Ends with 1 if the answers differ or a run fails.
    """
    began = time.monotonic()
    size = Size(edge, max(4, iterations // 4), rounds, False)
    try:
        killing, costs = _run(size, iterations, protect)
    except ProgramFailed as failure:
        typer.echo(f"perdure: {failure}", err=True)
        raise typer.Exit(FAILED) from None
    print(f"\nall of it took {seconds_text(time.monotonic() - began)}")
    if not no_picture:
        _draw(killing, costs, picture or _default_picture())
    raise typer.Exit(DONE if killing.equal else FAILED)


def _run(size: Size, iterations: int, protect: str) -> tuple[Killing, list]:
    solver = find_solvers()[0]
    total = KILLING_RUNS + runs_of(size)
    with pool_directory() as pools, huge_page_directory(pools), progress("demo", total) as advance:
        killing = kill_and_restart(solver, size.edge, iterations, protect, pools, advance)
        costs = measure_costs(solver, size, pools, advance)
    title = f"What a commit in each of {size.iterations} iterations costs"
    print(f"\n{title} (median of {size.rounds} rounds of {len(CASES)} runs):\n", flush=True)
    Console(width=100, highlight=False).print(costs_table(costs))
    print(_SIDE_NOTE)
    return killing, costs


def _draw(killing: Killing, costs: list, file: Path) -> None:
    from perdure_bench.demo import picture

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        picture.draw(killing, costs, file)
    except (OSError, ValueError) as failure:
        typer.echo(f"perdure: {file} was not drawn: {failure}", err=True)
        raise typer.Exit(FAILED) from None
    sys.stdout.flush()
    print(f"picture: {_short(file)}")


def _default_picture() -> Path:
    clone = (CLONE / "CMakePresets.json").exists()
    return (CLONE / "out" if clone else Path.cwd()) / "perdure-demo.png"


def _short(file: Path) -> Path:
    """As seen from here, if it is below."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_absolute() and here in file.parents else file
