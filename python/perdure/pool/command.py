# SPDX-License-Identifier: BSD-3-Clause
"""The verbs `perdure pool ls|show|versions|check|dump|export|adopt|drain|verify|rm`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.core import load_core
from perdure.documents import print_json
from perdure.exit_codes import DONE, FAILED
from perdure.failures import Stopped, Wrong
from perdure.files import write_bytes
from perdure.option_groups import AsJson, output_file
from perdure.pool.levels_view import levels_json, print_levels
from perdure.pool.view import (
    drain_json,
    iteration_of,
    owner_text,
    pool_json,
    print_drain,
    print_findings,
    print_pool,
    print_versions,
    versions_json,
)
from perdure.screen import console, one_line, plain, say
from perdure.tables import table
from perdure.units import bytes_text
from perdure.watching import watching

if TYPE_CHECKING:
    from types import ModuleType

    from perdure import _core

app = typer.Typer(help="Look at pools, check, drain and remove them.", no_args_is_help=True)

PoolPath = Annotated[Path, typer.Argument(metavar="POOL", help="The pool's directory.")]
HeldPath = Annotated[
    Path, typer.Argument(metavar="POOL", help="The pool's directory, or what a drain has of the "
                         "pool: LEVEL/NAME, with the name of that directory.")
]
AnyOwner = Annotated[
    bool,
    typer.Option("--any-owner", help="Take the pool also if another user owns it, or others may "
                 "write to it."),
]
ReadData = Annotated[bool, typer.Option(help="Read all data and compare it with its checksums.")]


@app.command("ls")
def list_pools(
    directories: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR…", help="The directories to look in.  "
                                          "[default: .]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the pools in directories, or the directories that are pools."""
    core = load_core()
    reports = []
    for directory in directories or [Path()]:
        for path in (directory, *_subdirectories(directory)):
            record = core.job_record_path(str(path))
            if os.path.lexists(record) or core.is_drained_pool(str(path)):
                reports.append((path, _try_inspect(core, path)))
    if as_json:
        print_json("pool-ls", {"pools": [_line_json(path, report) for path, report in reports]})
        return
    made = table("pool", "owner", "job", "ranks", "version", "iteration", "files", "state",
                 left=("pool", "owner", "job", "state"))
    for path, report in reports:
        made.add_row(*_line(path, report))
    console().print(made if reports else "no pools here")


def _subdirectories(directory: Path) -> list[Path]:
    """Raises OSError if the directory can't be read: a wrong name is no empty directory."""
    return sorted(path for path in directory.iterdir() if path.is_dir())


def _try_inspect(core: ModuleType, path: Path) -> _core.PoolReport | str:
    """The report, or the sentence that says why there is none."""
    try:
        return core.inspect_pool(str(path))
    except core.Error as failure:
        return str(failure)


def _line(path: Path, report: _core.PoolReport | str) -> list[str]:
    if isinstance(report, str):
        return [one_line(path), _owner_of(path), "-", "-", "-", "-", "-", report]
    iteration = iteration_of(report.ranks[0].catalogue) if report.ranks else None
    return [
        one_line(path),
        owner_text(report),
        one_line(report.job_name),
        str(report.rank_count),
        "-" if report.version is None else str(report.version),
        "-" if iteration is None else str(iteration),
        bytes_text(sum(rank.file_bytes for rank in report.ranks)),
        {"fine": "fine", "crash": "crashed", "damage": "damaged"}[report.worst.name],
    ]


def _owner_of(path: Path) -> str:
    try:
        return load_core().user_text(path.stat().st_uid).removeprefix("user ")
    except OSError:
        return "-"


def _line_json(path: Path, report: _core.PoolReport | str) -> dict:
    if isinstance(report, str):
        return {"directory": str(path), "error": report}
    return pool_json(report)


@app.command("show")
def show_pool(pool: HeldPath, as_json: AsJson = False) -> None:
    """Show what a pool holds: ranks, versions, arrays and scalars."""
    report = load_core().inspect_pool(str(pool))
    if as_json:
        print_json("pool", pool_json(report))
    else:
        print_pool(report, console())


@app.command("versions")
def show_versions(pool: HeldPath, as_json: AsJson = False) -> None:
    """List the versions that can be restored, newest first.

    Ends with 1 if the pool is damaged so that no restart is possible, with 2 if there is none.
    """
    report = load_core().inspect_pool(str(pool))
    if as_json:
        print_json("pool-versions", {"versions": versions_json(report)})
    elif report.version is not None:
        print_versions(report, console())
    if report.version is None:
        say(f"perdure: {pool} is damaged; see `perdure pool check {pool}`", err=True)
        raise typer.Exit(FAILED)


@app.command("check")
def check_pool(
    pool: HeldPath,
    data: ReadData = True,
    as_json: AsJson = False,
) -> None:
    """Check that a pool is whole. Ends with 1 if it is damaged, with 2 if there is none.

    What a crash leaves behind is no damage: a restart settles it.
    """
    report = load_core().inspect_pool(str(pool), verify_data=data)
    damaged = report.worst.name == "damage"
    if as_json:
        print_json("pool", pool_json(report))
    else:
        out = console()
        print_findings(report, out)
        version = "no version yet" if report.version is None else f"version {report.version}"
        verdict = "damaged" if damaged else f"whole, a restart gives {version}"
        out.print(f"{pool}: {verdict}" + ("" if data else " (data was not read)"))
    raise typer.Exit(FAILED if damaged else DONE)


@app.command("dump")
def dump_array(
    pool: HeldPath,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="An array, scalar or state; "
                            "`perdure pool show` lists them.")
    ],
    rank: Annotated[int, typer.Option(metavar="RANK", min=0, help="The rank whose it is.")] = 0,
    out: Annotated[
        Path | None, output_file("-o", "--output", help="Write it to this .npy file; - "
                                 "writes its bytes to stdout.")
    ] = None,
) -> None:
    """Print an array, scalar or state of the version that a restart would give, or write it.

    A state of Python is printed and written as JSON, a text as it is.
    """
    from perdure.pool.dump import dumped

    found = dumped(str(pool), rank, name)
    if str(out) == "-":
        sys.stdout.buffer.write(found.raw)
    elif out is None:
        say(f"{found.title}\n{found.text}")
    else:
        write_bytes(out, found.file())


@app.command("export")
def export_pool(
    pool: HeldPath,
    to: Annotated[
        Path, output_file("--to", help="What is written: a name that ends with .npz, .h5 or .zarr.")
    ],
    version: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The version; `perdure pool versions` "
                                 "lists them.", show_default="the newest")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write all arrays and scalars of a version to a file for other programs.

    An array of which ranks have boxes is one, whole; of others there is one for each rank,
    "u.rank3". Types are those of the program. Nothing is locked: a job may go on with the pool, and
    what is written is one version, whole.

    Example: perdure pool export /mnt/pmem/heat --to heat.npz
    """
    from perdure.pool.export import check_kind, export

    check_kind(to)
    done = export(str(pool), version, to)
    if as_json:
        print_json("pool-export", {
            "pool": str(pool), "file": str(to), "version": done.version,
            "arrays": [
                {"name": each.key, "dtype": each.dtype.str, "shape": list(each.shape)}
                for each in done.arrays
            ],
            "scalars": done.scalars, "left_out": done.left_out,
        })
        return
    size = bytes_text(sum(each.size_bytes for each in done.arrays))
    arrays, scalars = len(done.arrays), len(done.scalars)
    say(f"{to}: {arrays} array{'s' * (arrays != 1)}, {size}, and {scalars} scalar"
        f"{'s' * (scalars != 1)} of version {done.version}")
    for name in done.left_out:
        say(f"perdure: {one_line(name)} is left out: it is in mode flush, without versions, and a "
            "job uses the pool", err=True)


@app.command("adopt")
def adopt_pool(pool: PoolPath, any_owner: AnyOwner = False) -> None:
    """Say that a pool which was moved or copied belongs where it is now.

    A pool notes the directory in which it was made, and a job refuses it in another one: it might
    have been put in the place of the job's own. Look at it with `perdure pool show` first.

    Example: cp -r /scratch/heat /scratch/heat-2; perdure pool adopt /scratch/heat-2
    """
    load_core().adopt_pool(str(pool), any_owner)


@app.command("drain")
def drain_pool(
    pool: PoolPath,
    level: Annotated[
        Path, typer.Option("--to", metavar="LEVEL", help="A directory that outlives the node.")
    ],
    keep: Annotated[int, typer.Option(metavar="N", min=1,
        help="How many whole versions stay in LEVEL.")] = 2,
    any_owner: AnyOwner = False,
    as_json: AsJson = False,
) -> None:
    """Bring a pool's newest versions to another file system, after the job.

    Run it on every node of the job, in any order or at a time: it needs no MPI. Each brings what
    its own ranks have, and the one that finds all ranks there makes the version whole. What is
    there already is left as it is. A pool in use is refused.

    Ends with 1 if a version could not be brought there, with 2 if there is no pool or it is in use.

    Example, in an epilog: perdure pool drain /dev/shm/heat --to /scratch/levels
    """
    with watching() as watch:
        report = load_core().drain_pool(
            str(pool), str(level), keep, any_owner, watch.of("draining")
        )
    if as_json:
        print_json("pool-drain", drain_json(report))
    else:
        print_drain(report, console())
    if report.stopped:
        raise Stopped("stopped; the same command goes on")
    if report.problems or any(each.problem for each in report.versions):
        raise typer.Exit(FAILED)


@app.command("verify")
def verify_levels(
    pools: Annotated[
        list[Path], typer.Argument(metavar="POOL…", help="The pool's directory on each node.")
    ],
    drains: Annotated[
        list[Path] | None,
        typer.Option("--drain", metavar="LEVEL", help="A directory to which versions are "
                     "drained; may be repeated."),
    ] = None,
    data: ReadData = True,
    any_owner: AnyOwner = False,
    as_json: AsJson = False,
) -> None:
    """Say which nodes a job can lose now, and to which version it would restart.

    It looks at the directories that it is given, which may be those of several nodes where one
    machine sees them, and at drains; a running job may go on meanwhile. Of each version: whose
    images and guards are whole, whether all ranks can have it, and how many nodes may be lost, of
    any and of each failure group. Then what a restart would find now, and without each node.

    Ends with 1 if a file is damaged or no version can bear the loss of a node, with 2 without pool.

    Example: perdure pool verify /nodes/*/pmem/heat --drain /scratch/levels
    """
    with watching() as watch:
        places = [str(place) for place in drains or []]
        report = load_core().verify_levels(
            [str(pool) for pool in pools], places, data, any_owner, watch.of("reading")
        )
    if as_json:
        print_json("pool-verify", levels_json(report))
    else:
        print_levels(report, console())
    whole = any(not each.problem for each in report.drained)
    borne = whole or any(each.losses > 0 for each in report.kept)
    raise typer.Exit(DONE if borne and not report.problems else FAILED)


@app.command("rm")
def remove_pool(
    pools: Annotated[list[Path], typer.Argument(metavar="POOL…", help="The pools' directories.")],
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Remove the pools without asking.")
    ] = False,
    any_owner: AnyOwner = False,
) -> None:
    """Remove pools for good. A pool in use is refused, and files that are not the pool's stay."""
    core = load_core()
    for pool in pools:
        if not os.path.lexists(core.job_record_path(str(pool))):
            raise Wrong(f"{pool} holds no pool; `perdure pool ls` lists those of a directory")
        if not yes:
            report = _try_inspect(core, pool)
            held = report if isinstance(report, str) else _held_text(report)
            typer.confirm(f"Remove {one_line(pool)} ({plain(held)})?", abort=True)
        core.remove_pool(str(pool), any_owner)


def _held_text(report: _core.PoolReport) -> str:
    return f"version {report.version} of job {one_line(report.job_name)} of {owner_text(report)}"
