# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure ipv record`."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.documents import print_json
from perdure.exit_codes import FAILED
from perdure.ipv.advice import UNMARKED, advice_lines, alive_text, judge
from perdure.ipv.watched import place_text, run_watched
from perdure.screen import console, say
from perdure.tables import Table, table
from perdure.units import bytes_text

_SHOWN_WARNINGS = 10
_WORDS = ("object", "what the loop does with it", "first writer", "last writer")


def record(
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="The program, with its "
                                                 "arguments.")],
    least: Annotated[
        str | None,
        typer.Option("--min", metavar="BYTES", help="The least size of heap blocks that are "
                     "looked at.  [default: 1k]",
                     show_default=False),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show what is only read, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the reports as JSON.")] = False,
) -> None:
    """Run a program and tell which of its data the main loop carries between iterations.

    The program is built with perdure-clang --ipv-record. Ends with its exit code, or with 1 if it
    left no report or no iteration was seen.

    Examples: perdure ipv record -- ./heat; perdure ipv record --json -- mpiexec -n 2 ./sp.S
    """
    code, reports = run_watched(command, "record", min=least)
    reports = [judge(report) for report in reports]
    if as_json:
        print_json("ipv-record", {"reports": reports})
    else:
        _print(reports, everything)
    if not any(report["iterations"] for report in reports):
        say(f"perdure: {UNMARKED}", err=True)
        code = code or FAILED
    raise typer.Exit(code)


def _print(reports: list[dict], everything: bool) -> None:
    out = console()
    for report in reports:
        rank = f", rank {report['rank']} of {report['ranks']}" if report["ranks"] > 1 else ""
        out.print(f"{report['iterations']} iterations{rank}")
        out.print(_table(report, everything))
        for line in advice_lines(report):
            out.print(line)
        warnings = report["warnings"]
        for line in warnings[:_SHOWN_WARNINGS]:
            out.print(f"warning: {line}")
        if len(warnings) > _SHOWN_WARNINGS:
            out.print(f"and {len(warnings) - _SHOWN_WARNINGS} more warnings: --json")


def _table(report: dict, everything: bool) -> Table:
    made = table("object", "size", "carried", "kept", *_WORDS[1:], left=_WORDS)
    for found in report["objects"]:
        if found["verdict"] == "read only" and not everything:
            continue
        blocks = f" ({found['blocks']} blocks)" if found["blocks"] > 1 else ""
        made.add_row(
            found["name"] + blocks,
            bytes_text(found["size_bytes"]),
            bytes_text(found["carried_bytes"]),
            bytes_text(found["kept_per_iteration_max_bytes"]),
            found["verdict"] + alive_text(found),
            _writer(found, "first_writer"),
            _writer(found, "last_writer"),
        )
    return made


def _writer(found: dict, which: str) -> str:
    text = place_text(found[which])
    return text + (" and others" if found[f"{which}_differs"] else "")
