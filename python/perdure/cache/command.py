# SPDX-License-Identifier: BSD-3-Clause
"""The verbs `perdure cache ls|recover|discard|predict`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cache.left import recover_group, together
from perdure.cache.predict_command import predict_command
from perdure.core import load_core
from perdure.documents import fields, print_json
from perdure.exit_codes import FAILED
from perdure.failures import Failed, Wrong
from perdure.option_groups import AsJson
from perdure.progress import progress
from perdure.screen import bad_parameter, console, say
from perdure.tables import table
from perdure.units import bytes_text, time_text

if TYPE_CHECKING:
    from types import ModuleType

    from perdure import _core

app = typer.Typer(
    help="Look at what a crash left of cached files, and save or discard it; predict what a cache "
    "would save.",
    no_args_is_help=True,
)
app.command("predict", no_args_is_help=True)(predict_command)

_PART = ("node", "nodes", "size_bytes", "unsaved_bytes", "through_bytes", "evicted_bytes",
         "created_ns", "in_use", "same_boot", "file_changed")  # fmt: skip

Directories = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="DIR…",
        help="Directories of parts (perdure_cache_directory).  [default: this user's in /dev/shm]",
    ),
]
Name = Annotated[
    list[str] | None,
    typer.Option("--file", metavar="PATH", help="Take only this cached file; may be repeated."),
]


def _places(core: ModuleType, directories: list[Path] | None) -> list[Path]:
    """The directories to look at: those given and, of pretended nodes, those below them."""
    places = []
    for directory in directories or [Path(core.default_part_directory())]:
        places += [directory, *sorted(directory.glob("node-*"))]
    return places


def _found(
    core: ModuleType, directories: list[Path] | None
) -> Iterator[tuple[Path, _core.FoundPart]]:
    for place in _places(core, directories):
        try:
            parts = core.list_parts(str(place))
        except core.Error as failure:
            if directories and place in directories:
                raise Wrong(str(failure)) from None
            continue
        for part in parts:
            yield place, part


def state_of(part: _core.FoundPart) -> str:
    """What is to be done with a part, in a word or a sentence."""
    if part.in_use:
        return "in use"
    if part.fault:
        return part.fault
    if part.unsaved_bytes == 0:
        return "saved"
    if part.file_changed:
        return "left behind; the file was changed since"
    return "left behind" if part.same_boot else "left behind by another boot"


def part_json(part: _core.FoundPart) -> dict:
    """A part as plain values; sizes in bytes, times in nanoseconds since 1970."""
    return {
        "file": part.path,
        "part": part.file,
        "pool": part.pool or None,
        **fields(part, _PART),
        "fault": part.fault or None,
    }


@app.command("ls")
def list_parts(directories: Directories = None, as_json: AsJson = False) -> None:
    """List the parts of cached files that this node holds.

    Example: perdure cache ls /mnt/pmem/cache
    """
    core = load_core()
    parts = [part for _, part in _found(core, directories)]
    if as_json:
        print_json("cache-ls", {"parts": [part_json(part) for part in parts]})
        return
    made = table("file", "node", "size", "unsaved", "since", "state",
                 left=("file", "since", "state"))
    for part in parts:
        made.add_row(
            part.path or part.file,
            f"{part.node + 1} of {part.nodes}" if part.nodes else "-",
            bytes_text(part.size_bytes),
            bytes_text(part.unsaved_bytes),
            time_text(part.created_ns),
            state_of(part),
        )
    console().print(made if parts else "no parts of cached files here")


def _chosen(
    core: ModuleType, directories: list[Path] | None, names: list[str] | None
) -> list[tuple[Path, _core.FoundPart]]:
    wanted = None if not names else {str(Path(name).absolute()) for name in names}
    found = [
        (place, part)
        for place, part in _found(core, directories)
        if wanted is None or part.path in wanted or part.file in wanted
    ]
    for _, part in found:
        if part.in_use:
            say(f"perdure: {part.path or part.file} is in use, and left alone", err=True)
    chosen = [(place, part) for place, part in found if not part.in_use]
    missing = (wanted or set()) - {part.path for _, part in chosen} - {p.file for _, p in chosen}
    if missing:
        raise Failed(f"nothing was left behind of {', '.join(sorted(missing))}")
    return chosen


def _check_choice(
    to: Path | None, keep_file: bool, overwrite_file: bool, as_it_is: bool, names: list[str] | None
) -> None:
    if keep_file and (to is not None or overwrite_file or as_it_is):
        raise bad_parameter("leaves nothing to recover, and can't be combined with another choice",
                            param_hint="--keep-file")
    for choice, given in (("--to", to is not None), ("--keep-file", keep_file),
                          ("--overwrite-file", overwrite_file)):
        if given and not names:
            raise bad_parameter("say of which file, with --file", param_hint=choice)


@app.command("recover")
def recover(
    directories: Directories = None,
    names: Name = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="Write what the job had to FILE, a new one, and "
                     "leave the cached file as it is; or the name that the cached file has now."),
    ] = None,
    keep_file: Annotated[
        bool, typer.Option("--keep-file", help="Keep the file as it is, and remove the part."),
    ] = False,
    overwrite_file: Annotated[
        bool, typer.Option("--overwrite-file", help="Write to the file even if it was changed "
                           "since."),
    ] = False,
    as_it_is: Annotated[
        bool,
        typer.Option("--as-it-is", help="Keep what a file that is committed with a pool has got "
                     "since the pool's newest version."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write what a crash left behind to the cached files, and remove the parts.

    May be cut short and begun anew. A file on several nodes is recovered on each of them, or on
    one that sees the directories of all. A file that was committed with a pool goes back to the
    pool's newest version. A file that somebody else changed since is left alone, and so is its
    part, until you say what counts. Ends with 1 if a part could not be recovered; that part stays.

    Examples: perdure cache recover /mnt/pmem/cache;
    perdure cache recover --file /scratch/out.dat --to /scratch/job.dat
    """
    _check_choice(to, keep_file, overwrite_file, as_it_is, names)
    core = load_core()
    chosen = _chosen(core, directories, names)
    if keep_file:
        _tell(_discard_all(core, chosen), as_json, "discarded")
        return
    target = "" if to is None else str(to.absolute())
    outcomes = []
    groups = together(chosen)
    if to is not None and len(groups) > 1:
        raise bad_parameter("takes one file, and several were left behind; name one of them with "
                            "--file", param_hint="--to")
    with progress("recovering", len(groups)) as advance:
        for group in groups:
            outcomes += recover_group(core, group, not as_it_is, overwrite_file, target)
            advance()
    _tell(outcomes, as_json, "recovered")


def _discard_all(core: ModuleType, chosen: list[tuple[Path, _core.FoundPart]]) -> list[dict]:
    outcomes = []
    for place, part in chosen:
        outcome = {"file": part.path, "part": part.file, "lost_bytes": part.unsaved_bytes}
        outcome["error"] = None
        try:
            core.discard_part(str(place), part.file)
        except core.Error as failure:
            outcome["error"] = str(failure)
        outcomes.append(outcome)
    return outcomes


@app.command("discard")
def discard(
    directories: Directories = None,
    names: Name = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Take all that was left behind, if no --file is named.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove parts that a crash left behind, with the writes that are in no file yet.

    Example: perdure cache discard --file /scratch/out.dat
    """
    if not names and not everything:
        raise bad_parameter("say which --file, or --all", param_hint="--file")
    core = load_core()
    _tell(_discard_all(core, _chosen(core, directories, names)), as_json, "discarded")


def _tell(outcomes: list[dict], as_json: bool, verb: str) -> None:
    if as_json:
        print_json("cache-outcome", {"parts": outcomes})
    elif not outcomes:
        print("nothing was left behind")
    said = set()
    for outcome in outcomes:
        name = outcome["file"] or outcome["part"]
        if outcome["error"] and (name, outcome["error"]) in said:
            continue  # parts of one file
        said.add((name, outcome["error"]))
        if outcome["error"]:
            say(f"perdure: {name}: {outcome['error']}", err=True)
        elif not as_json:
            size = outcome.get("written_bytes", outcome.get("lost_bytes", 0))
            print(f"{verb} {name}: {bytes_text(size)}")
    if any(outcome["error"] for outcome in outcomes):
        raise typer.Exit(FAILED)
