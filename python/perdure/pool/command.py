"""The verbs `perdure pool ls|show|versions|check|dump|rm`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from perdure.core import load_core
from perdure.pool.view import (
    iteration_of,
    pool_json,
    print_findings,
    print_pool,
    print_versions,
    versions_json,
)
from perdure.units import bytes_text

app = typer.Typer(help="Look at pools, check them, remove them.", no_args_is_help=True)

NO_POOL = 2  # exit code: nothing to look at
DAMAGED = 1
_NUMPY_TYPES = {
    "byte": "u1",
    "int32": "<i4",
    "int64": "<i8",
    "float32": "<f4",
    "float64": "<f8",
    "complex128": "<c16",
}

PoolPath = Annotated[Path, typer.Argument(metavar="POOL", help="The pool's directory.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 1000, highlight=False)


@contextmanager
def _failures_told(code: int) -> Iterator:
    """Gives perdure._core; a failure of it ends the command with `code` and its sentence."""
    core = load_core()
    try:
        yield core
    except core.Error as failure:
        typer.echo(f"perdure: {failure}", err=True)
        raise typer.Exit(code) from None


@app.command("ls")
def list_pools(
    directories: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR…", help="Where to look.  [default: .]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the pools in directories, or the directories that are pools."""
    core = load_core()
    reports = []
    for directory in directories or [Path()]:
        for path in (directory, *_subdirectories(directory)):
            if Path(core.job_record_path(str(path))).exists():
                reports.append((path, _try_inspect(core, path)))
    if as_json:
        print(json.dumps([_line_json(path, report) for path, report in reports], indent=2))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("pool", "job", "ranks", "version", "iteration", "files", "state"):
        justify = "left" if name in ("pool", "job", "state") else "right"
        table.add_column(name, justify=justify, overflow="fold")
    for path, report in reports:
        table.add_row(*_line(path, report))
    _console().print(table if reports else "no pools here")


def _subdirectories(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.is_dir())
    except OSError:
        return []


def _try_inspect(core, path: Path):
    """The report, or the sentence that says why there is none."""
    try:
        return core.inspect_pool(str(path))
    except core.Error as failure:
        return str(failure)


def _line(path: Path, report) -> list[str]:
    if isinstance(report, str):
        return [str(path), "-", "-", "-", "-", "-", report]
    iteration = iteration_of(report.ranks[0].catalogue) if report.ranks else None
    return [
        str(path),
        report.job_name,
        str(report.rank_count),
        "-" if report.version is None else str(report.version),
        "-" if iteration is None else str(iteration),
        bytes_text(sum(rank.file_bytes for rank in report.ranks)),
        {"fine": "fine", "crash": "crashed", "damage": "damaged"}[report.worst.name],
    ]


def _line_json(path: Path, report) -> dict:
    if isinstance(report, str):
        return {"directory": str(path), "error": report}
    return pool_json(report)


@app.command("show")
def show_pool(pool: PoolPath, as_json: AsJson = False) -> None:
    """Show what a pool holds: ranks, versions, arrays and scalars."""
    with _failures_told(NO_POOL) as core:
        report = core.inspect_pool(str(pool))
    if as_json:
        print(json.dumps(pool_json(report), indent=2))
    else:
        print_pool(report, _console())


@app.command("versions")
def show_versions(pool: PoolPath, as_json: AsJson = False) -> None:
    """List the versions that can be restored, newest first.

    Ends with 1 if the pool is damaged so that no restart is possible, with 2 if there is none.
    """
    with _failures_told(NO_POOL) as core:
        report = core.inspect_pool(str(pool))
    if as_json:
        print(json.dumps(versions_json(report), indent=2))
    elif report.version is not None:
        print_versions(report, _console())
    if report.version is None:
        typer.echo(f"perdure: {pool} is damaged; see `perdure pool check {pool}`", err=True)
        raise typer.Exit(DAMAGED)


@app.command("check")
def check_pool(
    pool: PoolPath,
    data: Annotated[
        bool, typer.Option(help="Read all data and compare it with its checksums.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Check that a pool is whole. Ends with 1 if it is damaged, with 2 if there is none.

    What a crash leaves behind is no damage: a restart settles it.
    """
    with _failures_told(NO_POOL) as core:
        report = core.inspect_pool(str(pool), verify_data=data)
    damaged = report.worst.name == "damage"
    if as_json:
        print(json.dumps(pool_json(report), indent=2))
    else:
        console = _console()
        print_findings(report, console)
        version = "no version yet" if report.version is None else f"version {report.version}"
        verdict = "damaged" if damaged else f"whole, a restart gives {version}"
        console.print(f"{pool}: {verdict}" + ("" if data else " (data was not read)"))
    raise typer.Exit(DAMAGED if damaged else 0)


@app.command("dump")
def dump_array(
    pool: PoolPath,
    name: Annotated[str, typer.Argument(metavar="ARRAY")],
    rank: Annotated[int, typer.Option(min=0, help="Whose part.")] = 0,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help=".npy; - for raw bytes.")
    ] = None,
) -> None:
    """Print an array of the version that a restart would give, or write it to a file."""
    import numpy

    with _failures_told(DAMAGED) as core:
        kind, extents, content = core.dump_array(str(pool), rank, name)
    if out == "-":
        sys.stdout.buffer.write(content)
        return
    array = numpy.frombuffer(content, dtype=_NUMPY_TYPES[kind]).reshape(extents)
    if out is None:
        print(f"{name}: {kind}{list(extents)} of rank {rank}\n{array}")
        return
    with open(out, "wb") as file:
        numpy.save(file, array)


@app.command("rm")
def remove_pool(
    pools: Annotated[list[Path], typer.Argument(metavar="POOL…")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove pools for good. A pool in use is refused."""
    for pool in pools:
        with _failures_told(NO_POOL) as core:
            if not yes:
                report = _try_inspect(core, pool)
                held = report if isinstance(report, str) else f"version {report.version}"
                typer.confirm(f"Remove {pool} ({held})?", abort=True)
            core.remove_pool(str(pool))
