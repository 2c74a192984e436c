# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure bench`."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from perdure.exit_codes import DONE, FAILED
from perdure.failures import Failed, Wrong
from perdure.option_groups import picture_file
from perdure.run.bell import ENDING
from perdure.run.leftovers import remove_leftovers
from perdure.run.processes import adopt_orphans, end_descendants
from perdure_bench.facts import Fact, NotAFact, print_facts, run_program

NAMES = (
    "persist",
    "startup",
    "state",
    "crash",
    "hpccg",
    "levels",
    "windows",
    "cache",
    "files",
    "matpower",
    "predict",
    "record",
    "advise",
    "memsim",
    "energy",
    "ipv",
    "python",
    "veloc",
    "torch",
    "gpu",
    "foreign",
    "kill",
    "kill_windows",
    "kill_cache",
    "kill_nodes",
)
# Whose options they are.
_TAKES = {
    "seed": ("kill", "kill_windows", "kill_cache", "kill_nodes"),
    "directory": ("matpower", "memsim"),
    "only": ("ipv", "windows"),
    "programs": ("foreign",),
}
# Whose program bench_NAME measures all of it, and what that is.
_BY_PROGRAM = {
    "persist": "flush, copy and commit primitives against memcpy and libpmem",
    "crash": "crash images of a whole run, each recovered and compared",
}
_TABLE_COLUMNS = 1000  # where stdout is no terminal: nothing is cut


def bench(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME…", help=f"What is measured: all, {', '.join(NAMES)}."),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="A check within a minute each.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON lines.")] = False,
    plot: Annotated[Path | None, picture_file("--plot", help="Draw the facts")] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="The seed of what kill draws.  [default: 1]",
                     show_default=False),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where matpower puts its files, and memsim its traces, which it then keeps.",
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART",
            help="Measure only this of ipv: a program (cg, mg, ft, bt, sp, lu, eddy) or a part "
            "(times, misses, update, compile); of windows: a part (applications, operations, "
            "making). May be repeated.",
            show_default=False,
        ),
    ] = None,
    programs: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="A folder with programs of others, for foreign. May "
                     "be repeated.", show_default=False),
    ] = None,
) -> None:
    """Measure, and compare with the targets.

        Ends with 1 if a benchmark failed or a target of a full run was missed.

    Examples: perdure bench cache --quick --plot cache.png;
        perdure bench kill_cache --seed 7 --json;
        perdure bench ipv --only mg --only times;
        perdure bench foreign --programs mpich/test/mpi/rma
    """
    wanted = _check_names(names, bool(programs))
    parts = _check_parts(wanted, tuple(only or ()))
    if programs and "foreign" not in wanted:
        raise typer.BadParameter("--programs is of foreign")
    given: dict[str, object] = {"seed": seed, "directory": directory, "only": parts}
    given["programs"] = programs
    measured: dict[str, list[Fact]] = {}
    failed = False
    console = Console(width=None if sys.stdout.isatty() else _TABLE_COLUMNS, highlight=False)
    for name in wanted:
        try:
            with _stopped_by_signals():
                measured[name] = _measure(name, quick, as_json, given)
        except (Failed, Wrong, NotAFact) as failure:
            typer.echo(f"perdure: {name}: {failure}", err=True)
            failed = True
            continue
        if not as_json:
            print_facts(_title(name, quick), measured[name], console)
    if plot is not None:
        failed |= not _plot(measured, quick, plot)
    missed = any(fact.holds is False for facts in measured.values() for fact in facts)
    raise typer.Exit(FAILED if failed or (missed and not quick) else DONE)


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end it as Ctrl-C does: its jobs first, then what they had in memory."""
    adopt_orphans()  # the ranks of a launcher that ended before them
    since = time.time()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        end_descendants()
        remove_leftovers(since)
        raise KeyboardInterrupt

    before = {ending: signal.signal(ending, stop) for ending in ENDING}
    try:
        yield
    finally:
        for ending, handler in before.items():
            signal.signal(ending, handler)


def _check_names(names: list[str], programs: bool = False) -> list[str]:
    wanted = list(NAMES) if names == ["all"] else names
    if names == ["all"] and find_spec("torch") is None:
        typer.echo("perdure bench torch: skipped, because PyTorch is not there", err=True)
        wanted.remove("torch")
    if names == ["all"] and import_module("perdure_bench.gpu").driver_name() is None:
        typer.echo("perdure bench gpu: skipped, because there is no GPU", err=True)
        wanted.remove("gpu")
    if names == ["all"] and not programs and not import_module("perdure_bench.foreign").on_path():
        typer.echo("perdure bench foreign: skipped, because there is no ior or IMB", err=True)
        wanted.remove("foreign")
    for name in wanted:
        if name not in NAMES:
            raise typer.BadParameter(f"'{name}' is none of {', '.join(NAMES)}")
    return wanted


def _check_parts(names: list[str], only: tuple[str, ...]) -> tuple[str, ...]:
    takers = [name for name in names if name in _TAKES["only"]]
    if only and len(takers) != 1:
        raise typer.BadParameter(f"--only is of one of {', '.join(_TAKES['only'])}")
    if only:
        known = import_module(f"perdure_bench.{takers[0]}").ONLY
        for part in only:
            if part not in known:
                raise typer.BadParameter(f"--only '{part}' is none of {', '.join(known)}")
    return only


def _title(name: str, quick: bool) -> str:
    summary = _BY_PROGRAM.get(name) or import_module(f"perdure_bench.{name}").SUMMARY
    return f"{name}: {summary}" + (" (quick)" if quick else "")


def _measure(name: str, quick: bool, as_json: bool, given: dict[str, object]) -> list[Fact]:
    """`given`: options by name, of which each benchmark takes its own."""
    facts: list[Fact] = []
    options = {
        option: value for option, value in given.items()
        if name in _TAKES[option] and value not in (None, ())
    }  # fmt: skip
    if name in _BY_PROGRAM:
        measuring = run_program(f"bench_{name}", ["--quick"] if quick else [])
    else:
        measuring = import_module(f"perdure_bench.{name}").measure(quick, **options)
    with closing(measuring):  # its jobs and mounts do not stay where a signal stops it
        for fact in measuring:
            facts.append(fact)
            if as_json:
                print(fact.line(), flush=True)
    return facts


def _plot(measured: dict[str, list[Fact]], quick: bool, file: Path) -> bool:
    """One figure per benchmark: FILE, or FILE-NAME if there are several."""
    drawn = True
    for name, facts in measured.items():
        path = file if len(measured) == 1 else file.with_stem(f"{file.stem}-{name}")
        try:
            own = f"perdure_bench.{name}_plot"
            plot = import_module(own if find_spec(own) else "perdure_bench.plot")
            plot.draw(facts, _title(name, quick), path)
            typer.echo(f"drawn: {path}", err=True)
        except (ValueError, OSError) as failure:
            typer.echo(f"perdure: {path} was not drawn: {failure}", err=True)
            drawn = False
    return drawn
