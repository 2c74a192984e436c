# SPDX-License-Identifier: BSD-3-Clause
"""The verbs `perdure trace`, `perdure trace info` and `perdure trace import`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.core import load_core
from perdure.documents import print_json
from perdure.exit_codes import DONE, FAILED, INTERRUPTED
from perdure.failures import Wrong
from perdure.files import remove
from perdure.option_groups import by_default, grouped, output_file
from perdure.programs import end_text, shell_code
from perdure.screen import say
from perdure.trace.record import (
    final_name,
    recorder_text,
    run_in_valgrind,
    run_recorded,
)
from perdure.trace.summary import summary_json, summary_lines
from perdure.units import bytes_text, parse_size

if TYPE_CHECKING:
    from types import ModuleType

    from perdure._core import TraceImport

FORMATS = ("lackey", "din", "dramsim3", "ramulator", "oracle_general", "csv")


app = typer.Typer(
    cls=by_default("record"),
    help="Record which memory a program accesses, beyond a CPU cache: "
    "perdure trace -o FILE -- CMD. All options: perdure trace record --help.",
    no_args_is_help=True,
)

NoTimes = Annotated[
    bool, typer.Option("--no-times", help="Store no date and no duration: two runs of a program "
                       "that repeats itself give the same bytes.")
]
Helper = Annotated[
    str | None,
    typer.Option(metavar="auto|on|off", help="A thread of the recorder writes the trace; auto: "
                 "where the program may use more than one processor.  [default: auto]",
                 show_default=False),
]
Buffer = Annotated[
    str | None,
    typer.Option(metavar="SIZE",
                 help="Memory for records that the helper has not written yet.  [default: 4M]",
                 show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the totals as JSON.")]


@dataclass(frozen=True)
class Through:
    """The cache that accesses go through, and what of them is kept: recorded or imported."""

    size: Annotated[
        str | None,
        typer.Option(metavar="SIZE",
                     help="Size of the CPU cache: 256K, 2M.  [default: 1M]", show_default=False)
    ] = None
    line: Annotated[
        str | None,
        typer.Option(metavar="BYTES",
                     help="Bytes of a line of the CPU cache.  [default: 64]", show_default=False)
    ] = None
    ways: Annotated[
        str | None,
        typer.Option(metavar="N", help="Lines in a set of the CPU cache.  [default: 1]",
                     show_default=False)
    ] = None
    mode: Annotated[
        str | None,
        typer.Option(metavar="paper|modern|none",
                     help="What a miss is: one access of its own type; a read, and a write of the "
                     "line that was dirty; no cache.  [default: paper]",
                     show_default=False),
    ] = None
    page: Annotated[
        str | None,
        typer.Option(metavar="SIZE",
                     help="Bytes of a page: 4K, 64K.  [default: 4K]", show_default=False)
    ] = None
    floor: Annotated[
        str | None,
        typer.Option(metavar="PAGES",
                     help="Simulations are exact from this many pages on; 0: keep all records.  "
                     "[default: 256]", show_default=False),
    ] = None
    compute: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time of the program without recording, for the "
                     "simulator.", show_default=False),
    ] = None


@app.command(
    "record", context_settings={"allow_interspersed_args": False}, no_args_is_help=True
)
@grouped
def record(
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="The program, with its "
                                                 "arguments.")],
    output: Annotated[Path, output_file("-o", "--output", help="The file that gets the trace.")],
    valgrind: Annotated[
        bool, typer.Option("--valgrind", help="Record a program that was not compiled for it, "
                           "through Valgrind's lackey.")
    ] = False,
    marked: Annotated[
        bool, typer.Option("--marked", help="Record only between perdure_trace_begin() and "
                           "_end().")
    ] = False,
    through: Through = Through(),
    helper: Helper = None,
    buffer: Buffer = None,
    no_times: NoTimes = False,
    as_json: AsJson = False,
) -> None:
    """Run a program and record its accesses of the memory.

    Ends with the program's exit code, or with 1 if there is no whole trace.

    Examples: perdure trace -o cg.ptrace -- ./cg.B;
    perdure trace -o cg.ptrace --size 2M --ways 16 --mode modern -- mpiexec -n 2 ./cg.B;
    perdure trace --valgrind -o ls.ptrace -- ls
    """
    core = load_core()
    options = {**asdict(through), "times": "off" if no_times else None,
               "region": "marked" if marked else None, "helper": helper, "buffer": buffer}
    if valgrind:
        code, traces = _record_in_valgrind(core, command, output, options), [output]
    else:
        code, traces = run_recorded(command, output, options)
    is_whole = _tell_all(core, output, traces, as_json, code)
    raise typer.Exit(shell_code(code) or (DONE if is_whole else FAILED))


def _record_in_valgrind(
    core: ModuleType, command: list[str], output: Path, options: dict[str, str | None]
) -> int:
    if options["region"]:
        raise Wrong("regions can't be recognised in Valgrind; leave out --marked")

    def progress(count: int, seconds: float) -> None:
        if sys.stderr.isatty():
            rate = bytes_text(int(count / max(seconds, 1e-9)))
            print(f"\r{bytes_text(count)} of lackey's text, {rate}/s, {seconds:.0f} s ",
                  end="", file=sys.stderr, flush=True)

    code = run_in_valgrind(core, command, output, options, progress)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return code


def _run_interruptibly(work: Callable[[], object], undo: Callable[[], None]) -> None:
    """Does `work`, which may wait for a pipe for ever, so that Ctrl-C ends it at once."""
    try:
        ThreadPoolExecutor(1).submit(work).result()
    except KeyboardInterrupt:
        undo()
        say("perdure: stopped", err=True)
        os._exit(INTERRUPTED)  # nothing can wake the other thread for an orderly end


def _tell_all(core: ModuleType, output: Path, traces: list[Path], as_json: bool, code: int) -> bool:
    """Gives traces their names and tells their totals; False if one is not whole."""
    traces_read, is_whole = [], True
    for number, path in enumerate(traces):
        try:
            summary = core.summarise_trace(str(path))
        except core.Error as failure:
            is_whole = False
            left = path.replace(final_name(output, number, len(traces), None))
            say(f"perdure: {failure}; it is left in {left}{end_text(code)}", err=True)
            continue
        rank = summary.rank if summary.ranks > 1 else None
        final = path.replace(final_name(output, number, len(traces), rank))
        traces_read.append(summary_json(final, summary))
    _print(traces_read, as_json)
    return is_whole


def _print(traces_read: list[dict], as_json: bool) -> None:
    if as_json:
        print_json("trace-info", {"traces": traces_read})
        return
    for values in traces_read:
        print("\n".join(summary_lines(values)))


@app.command("info")
def info(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="The files of the "
                                                "traces.")],
    as_json: AsJson = False,
) -> None:
    """Tell what traces hold; each is read to its end and checked. Ends with 1 if one is not whole.

    Example: perdure trace info cg.ptrace
    """
    core = load_core()
    for path in files:
        path.stat()  # a file that is not there is a mistake, one that is not whole a finding
    traces_read, is_whole = [], True
    for path in files:
        try:
            traces_read.append(summary_json(path, core.summarise_trace(str(path))))
        except core.Error as failure:
            say(f"perdure: {failure}", err=True)
            is_whole = False
    _print(traces_read, as_json)
    raise typer.Exit(DONE if is_whole else FAILED)


@app.command("import")
@grouped
def import_(
    form: Annotated[
        str, typer.Argument(metavar="FORMAT", help=f"The format: {', '.join(FORMATS)}.")
    ],
    source: Annotated[Path, typer.Argument(metavar="IN", help="What the other tool wrote: a "
                                           "file, a pipe, or - for stdin.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The file that gets the trace; - "
                                           "for stdout.")],
    columns: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="The columns of csv, in their order, as "
                     "time,op,size,address.  [default: the first line]",
                     show_default=False),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="Bytes that an address in csv counts: 512 for "
                     "sectors.  [default: 1]",
                     show_default=False),
    ] = None,
    through: Through = Through(),
    no_times: NoTimes = False,
    as_json: AsJson = False,
) -> None:
    """Make a trace of what another tool recorded.

    lackey and din hold accesses of the program, which go through the cache; the others hold
    accesses of the memory, which are taken as they are. What fails, or is stopped, leaves nothing.

    Examples: perdure trace import lackey lackey.txt ls.ptrace;
    zstd -dc io.oracleGeneral.zst | perdure trace import oracle_general - io.ptrace;
    perdure trace import csv --columns time,op,size,address --unit 512 io.csv io.ptrace
    """
    core = load_core()
    if form not in FORMATS:
        raise Wrong(f"'{form}' is no format; there are {', '.join(FORMATS)}")
    if form != "csv" and (columns or unit):
        raise Wrong(f"--columns and --unit are for csv, not for {form}")
    unit_bytes = parse_size(unit) if unit else 1
    if unit_bytes == 0:
        raise Wrong("--unit 0: addresses count at least bytes")
    if not output.parent.is_dir():
        raise Wrong(f"{output} can't be written: there is no folder {output.parent}")
    options = {**asdict(through), "times": "off" if no_times else None}
    with _whole_or_nothing(output) as target:
        request = recorder_text(str(target), options)
        importing = core.TraceImport(
            form, str(source), request, f"imported from {source}", columns or "",
            unit_bytes,
        )  # fmt: skip
        _run_interruptibly(importing.run, lambda: remove(target) if target != output else None)
    if form == "oracle_general":
        say(_what_is_lost(importing), err=True)
    if str(output) != "-":
        _print([summary_json(output, core.summarise_trace(str(output)))], as_json)


@contextmanager
def _whole_or_nothing(output: Path) -> Iterator[Path]:
    """Where the trace is made: beside `output`, whose name it gets when it is whole. A pipe gets it
    as it comes."""
    if str(output) == "-" or (output.exists() and not output.is_file()):
        yield output
        return
    target = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        yield target
        target.replace(output)
    except BaseException:
        remove(target)
        raise


def _what_is_lost(importing: TraceImport) -> str:
    lost = "perdure: the format has no directions: all are taken as reads"
    if importing.cut_requests:
        count = importing.cut_requests
        lost += (
            f"; {count:,} request{'s' * (count != 1)} of more than a page, of up to"
            f" {importing.largest_bytes:,} bytes, {'is' if count == 1 else 'are'} taken as one page"
        )
    return f"{lost}. The same trace as csv, with columns op, size and address, keeps both"
