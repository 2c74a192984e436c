# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure ipv explain`."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Annotated

import typer

from perdure.documents import print_json
from perdure.files import read_text
from perdure.ipv.explanation import (
    OBLIGATIONS,
    Unreadable,
    function_text,
    is_own,
    read_explanation,
    reasons_of,
    source_line,
    text_at,
    tier_of,
)
from perdure.screen import Screen, console
from perdure.tables import table
from perdure.units import bytes_text

_SHOWN = 3
_COLUMNS = 100


def explain(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file that `perdure-clang --ipv-explain` "
                             "wrote.")
    ] = Path("ipv.json"),
    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE",
                     help="What `perdure ipv record --json` printed: a table of the program's "
                     "objects, with their size, whether they are carried, and their tier."),
    ] = None,
    function: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show only functions with this in their "
                                 "name.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show what was inlined from the system's headers, too.")
    ] = False,
    every_place: Annotated[
        bool, typer.Option("--places", help="Show every place of each reason, not three.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the entries as JSON.")] = False,
) -> None:
    """Tell which loops of a program announce rows, and what stopped the others.

    Compile with perdure-clang --ipv --ipv-explain=ipv.json. In a nest of the tiers `rows` and `box`
    nothing is copied of what its rows overwrite; all else is copied when it is first stored to.
    What stopped more is listed by reason: how much it stops, and where it is.

    Examples: perdure ipv explain; perdure ipv explain ipv.json --record record.json
    """
    entries = read_explanation(file)
    reports = None if record is None else _read_record(record)
    entries = [entry for entry in entries if (everything or is_own(entry))
               and (function is None or function in entry["function"])]
    objects = None if reports is None else _objects(reports, entries)
    if as_json:
        print_json("ipv-explain", {"entries": entries, "objects": objects,
                                   "reasons": reasons_of(entries)})
        return
    out = console()
    if objects is not None:
        _print_objects(out, objects)
    _print_nests(out, entries)
    _print_refusals(out, entries, every_place)


def _read_record(path: Path) -> list[dict]:
    try:
        reports = json.loads(read_text(path))["reports"]
        return [found for report in reports for found in report["objects"]]
    except OSError as failure:
        raise Unreadable(f"{path}: {failure.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise Unreadable(f"{path} is not what `perdure ipv record --json` prints") from None


def _objects(reports: list[dict], entries: list[dict]) -> list[dict]:
    rows = []
    for found in reports:
        if found.get("kind") == "scalar":
            continue
        tier, against = tier_of(found.get("writers", []), entries)
        rows.append({"object": found["name"], "size_bytes": found["size_bytes"],
                     "carried": bool(found.get("carried_bytes")), "tier": tier,
                     "stopped_by": against})
    return rows


def _print_objects(out: Screen, objects: list[dict]) -> None:
    made = table("object", "size", "carried", "tier", "stopped by", title="Objects",
                 left=("object", "carried", "tier", "stopped by"))
    for found in objects:
        stops = {f"{entry['obligation']} {text_at(entry.get('at'))}: {entry['why']}"
                 for entry in found["stopped_by"] if "obligation" in entry}
        cells = (found["object"], bytes_text(found["size_bytes"]),
                 "yes" if found["carried"] else "no", found["tier"], "\n".join(sorted(stops)))
        made.add_row(*cells)
    out.print(made)


def _print_nests(out: Screen, entries: list[dict]) -> None:
    made = table("function", "base", "nest", "tests", "row", title="Nests that are boxes",
                 left=("function", "base", "nest", "row"))
    for entry in entries:
        if entry["kind"] != "nest":
            continue
        rows = "\n".join(f"{text_at(place)}  {source_line(place)}".rstrip()
                         for place in entry["rows"])
        nest = text_at(entry["nest"]) + (" (one row)" if entry["alone"] else "")
        made.add_row(function_text(entry["function"]), entry["base"], nest, str(entry["tests"]),
                     rows)
    out.print(made if made.rows else "No nest is a box.")


def _some(texts: list[str], every_one: bool) -> list[str]:
    """The first ones, and how many are left out."""
    shown = texts if every_one else texts[:_SHOWN]
    more = len(texts) - len(shown)
    return [*shown, f"{more} more (--places)"] if more else shown


def _print_refusals(out: Screen, entries: list[dict], every_place: bool) -> None:
    reasons = reasons_of(entries)
    if reasons:
        out.print("\nWhat stopped more, the most frequent first", style="bold")
    for reason in reasons:
        alone = f", {reason['alone']} by nothing else" if reason["alone"] else ""
        stops = (f"rows or loops: {reason['stops']}{alone}; in "
                 f"{', '.join(_some(reason['functions'], every_place))}")
        places = [f"{text_at(place)}  {source_line(place)}".rstrip()
                  for place in reason["places"]]
        out.print()
        texts = [(f"{reason['obligation']}  {reason['why']}", 0), (stops, 4)]
        if reason["alone"] and reason["remedy"]:
            texts.append((f"to win {reason['alone']}: {reason['remedy']}", 4))
        for text, indented in texts:
            out.print(textwrap.fill(text, _COLUMNS, initial_indent=" " * indented,
                                    subsequent_indent=" " * (indented + 4)))
        for place in _some(places, every_place):
            cut = place if len(place) <= _COLUMNS - 4 else place[: _COLUMNS - 5] + "…"
            out.print(f"    {cut}")
    left_alone = [entry for entry in entries if entry["kind"] in ("function", "module")]
    if left_alone:
        out.print("\nLeft alone", style="bold")
    for entry in left_alone:
        name = function_text(entry["function"]) or entry["module"]
        out.print(textwrap.fill(f"{name}: {entry['why']}", _COLUMNS, initial_indent="    ",
                                subsequent_indent="        "))
    seen = sorted({reason["obligation"] for reason in reasons} & OBLIGATIONS.keys())
    if seen:
        out.print()
    for obligation in seen:
        out.print(f"{obligation}: {OBLIGATIONS[obligation]}")
