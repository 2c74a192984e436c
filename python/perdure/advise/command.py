# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure advise`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.documents import print_json
from perdure.failures import Stopped, Wrong
from perdure.files import NotAFile, read_text
from perdure.option_groups import AsJson
from perdure.progress import progress
from perdure.screen import console, say
from perdure.units import parse_time

if TYPE_CHECKING:
    from perdure.advise.judge import Advice, Assumed, Carried, Choice
    from perdure.advise.place import Commit, Medium
    from perdure.advise.program import Program
    from perdure.advise.recording import Recording


def advise(
    command: Annotated[
        list[str], typer.Argument(metavar="CMD", help="The program as it is, with its launcher.")
    ],
    pool: Annotated[
        Path | None,
        typer.Option("--pool", metavar="DIR", help="The directory where pools are to be; commits "
                     "are tried there.  [default: /dev/shm, else .]", show_default=False),
    ] = None,
    mtbf: Annotated[
        str, typer.Option(metavar="TIME", help="The mean time between failures of the job.")
    ] = "24h",
    job: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="How long the real job runs, without failures.  "
                     "[default: long enough to be protected]", show_default=False),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Say what a version in each such interval costs.  "
                     "[default: the best interval]", show_default=False),
    ] = None,
    carried: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What `perdure ipv record --json` printed of the same "
                     "program: only what its loop carries is to be protected.",
                     show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a program once, and say what to protect, how, how often, and what it costs.

    The program stays as it is: its memory is looked at from outside, and its MPI-IO and its windows
    are counted by a preloaded library. Then commits of as many bytes are tried where pools are to
    be. Let it run for some seconds of its main loop. With --json what it prints goes to stderr.

    Ends with the program's exit code.

    Examples: perdure advise -- mpiexec -n 4 ./solver input.dat;
        perdure advise --pool /mnt/pmem --mtbf 6h -- ./heat;
        perdure advise --json -- mpiexec -n 4 python solver.py
    """
    from perdure.advise.judge import Assumed
    from perdure.advise.place import medium_of
    from perdure.advise.program import program_of
    from perdure.advise.recording import record
    from perdure.advise.view import Report, report_json

    place = pool or _default_place()
    if not place.is_dir():
        raise Wrong(f"{place} is no directory; make it, or name the one in which pools are to be")
    assumed = Assumed(_time("--mtbf", mtbf), _time("--job", job) if job else None,
                      _time("--interval", interval) if interval else None,
                      len(os.sched_getaffinity(0)))
    known = read_carried(carried) if carried else None
    medium = medium_of(place)
    made = record(command, sys.stderr if as_json else None)
    if made.stopped:
        raise Stopped("stopped; nothing is said of a run that did not end")
    program = program_of(made)
    with progress("measuring", 2) as advance:
        advice, unknown = _advice(made, program, medium, place, assumed, known, advance)
    report = Report(made, program, medium, assumed, advice, unknown)
    if as_json:
        print_json("advise", report_json(report))
    else:
        console().print(report)
    raise typer.Exit(made.exit_code)


def _default_place() -> Path:
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK | os.X_OK) else Path()


def _time(option: str, text: str) -> float:
    """Seconds, more than none. Raises Wrong."""
    seconds = parse_time(text, unit="")
    if seconds <= 0:
        raise Wrong(f"{option} {text}: a time must be more than nothing")
    return seconds


def _advice(
    made: Recording, program: Program, medium: Medium, place: Path, assumed: Assumed,
    known: Carried | None, advance: Callable[[], None],
) -> tuple[list[Advice], str]:  # fmt: skip
    """All of it, after the measurements; and why nothing is said of a cache, if nothing is."""
    from perdure.advise.cached import predict_files
    from perdure.advise.judge import choose, doubts, of_files, of_written, protection

    choice = choose(program, known)
    commit = None
    if choice.what != "nothing" and not program.uses_perdure:
        commit = _commit(medium, program, choice)
    advance()
    main = protection(program, choice, commit, medium, assumed, known)
    doubts(main, program, made.run_s, made.exit_code)
    predicted, unknown = predict_files(made.mpi, place)
    advance()
    return [main, *of_files(predicted), *of_written(program, main)], unknown


def _commit(medium: Medium, program: Program, choice: Choice) -> Commit | None:
    from perdure.advise.place import NotMeasured, measure_commit

    try:
        return measure_commit(medium, program.ranks_seen, choice.bytes, choice.mode, choice.share)
    except NotMeasured as failure:
        say(f"perdure: {failure}", err=True)
        return None


def read_carried(file: Path) -> Carried:
    """What `perdure ipv record --json` says that the loop carries. Raises Wrong."""
    from perdure.advise.judge import Carried

    try:
        reports = json.loads(read_text(file))["reports"]
        found = [
            (sum(int(each["carried_bytes"]) for each in report["objects"]),
             tuple(str(each["name"]) for each in report["objects"] if each["carried_bytes"]))
            for report in reports
        ]  # fmt: skip
    except NotAFile as failure:
        raise Wrong(str(failure)) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Wrong(f"{file} is not what perdure ipv record --json prints") from None
    size, names = max(found, default=(0, ()))
    if not size:
        raise Wrong(f"{file}: no loop of it carries anything; perdure ipv record says why")
    return Carried(size, names)
