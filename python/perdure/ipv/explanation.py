# SPDX-License-Identifier: BSD-3-Clause
"""What `perdure-clang --ipv-explain` left: nests that are boxes, and what stopped others."""

from __future__ import annotations

import json
from pathlib import Path

from perdure.failures import Wrong
from perdure.files import read_bytes, read_text

OBLIGATIONS = {
    "B1": "the rows of a nest make up a box, known in front of it",
    "B2": "what else the nest touches is known in front of it",
    "S1": "a row's place and length are known before it; no two iterations store to a byte",
    "S2": "the array's loads in the nest are of the element that the same iteration stores to",
    "S4": "nothing in the nest calls what is not known, or does what can't be seen",
}


# What in the source would take a reason away, by how its sentence begins.
REMEDIES = (
    ("has several exits", "take what leaves the loop early into a loop of its own"),
    ("how often it runs", "keep the bound in a local variable, which no store of the loop can "
     "change"),
    ("its address is not a constant step", "let consecutive iterations store to consecutive "
     "elements: scattered stores are no row"),
    ("is conditional", "store to the element in each iteration: its old value, where it stays"),
    ("stores do not cover", "store to all members of the struct in this loop, or keep those that "
     "change in an array of their own"),
    ("where it begins is not known", "keep the array's pointer in a local variable"),
    ("is read when a part of it", "read the member or element before the stores to it, or all of "
     "it after"),
    ("its addresses are not known", "take indirect accesses to arrays of the same kind out of the "
     "loop nest, or declare the array static in this file"),
    ("reads another element", "write into a second array, and exchange the two: an update in place "
     "reads what it overwrites"),
    ("stores to the same array", "take the single stores to the array out of the nest"),
    ("calls ", "take the call out of the nest, or let it be inlined"),
    ("a volatile or atomic access", "take it out of the nest"),
)


class Unreadable(Wrong):
    """The file can't be explained; the sentence says why and what to do."""


def read_explanation(path: Path) -> list[dict]:
    """Its entries, in order, each once, as a file may be compiled twice. Raises Unreadable."""
    try:
        text = read_text(path)
    except OSError as failure:
        raise Unreadable(
            f"{path}: {failure.strerror}; compile with perdure-clang --ipv --ipv-explain={path}"
        ) from None
    entries = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            entry = json.loads(line)
            entry["kind"], entry["function"], entry["module"]
        except (ValueError, KeyError, TypeError):
            raise Unreadable(
                f"{path}:{number}: this is no line of --ipv-explain; remove the file and "
                "compile again"
            ) from None
        if entry not in entries:
            entries.append(entry)
    return entries


def function_text(name: str) -> str:
    """npb::mg::solve, without its parameters."""
    return name.replace("(anonymous namespace)::", "").split("(")[0]


def text_at(place: dict | None) -> str:
    """factors.cpp:236, or a dash."""
    return "-" if place is None else f"{Path(place['file']).name}:{place['line']}"


def source_line(place: dict | None) -> str:
    """The line of the source, if it can still be read."""
    if place is None:
        return ""
    try:
        lines = read_bytes(place["file"]).decode("utf-8", "replace").splitlines()
        return lines[place["line"] - 1].strip()
    except (OSError, IndexError):
        return ""


def is_own(entry: dict) -> bool:
    """Of the program, not of a header of the system that was inlined."""
    places = [entry.get("nest"), entry.get("at"), *(entry.get("rows") or [])]
    files = [place["file"] for place in places if place is not None]
    return not files or any(not file.startswith("/usr/") for file in files)


def places_of(entries: list[dict]) -> dict[tuple[str, int], list[dict]]:
    """Entries by the lines that store to their rows, or were refused."""
    found: dict[tuple[str, int], list[dict]] = {}
    for entry in entries:
        stores = list(entry.get("rows") or [])
        stores.append(entry.get("row"))
        if entry["kind"] == "loop":
            stores.append(entry.get("at"))
        for place in stores:
            if place is not None:
                found.setdefault((Path(place["file"]).name, place["line"]), []).append(entry)
    return found


def reasons_of(entries: list[dict]) -> list[dict]:
    """What stopped more, by reason, the most frequent first.

    `remedy`: what in the source would take it away, or none; `stops`: how many loops that store but
    have no row, and rows that have no larger nest; `alone`: how many of them by nothing else, so
    that they gain when it goes; `places`: where it is, each once, in the order of the entries.
    """
    by_reason: dict[tuple[str, str], list[dict]] = {}
    reasons: dict[tuple, set[tuple[str, str]]] = {}
    for entry in entries:
        if entry["kind"] in ("refused", "loop"):
            reason = entry["obligation"], entry["why"]
            by_reason.setdefault(reason, []).append(entry)
            reasons.setdefault(_stopped(entry), set()).add(reason)
    listed = []
    for (obligation, why), found in by_reason.items():
        stopped = {_stopped(entry) for entry in found}
        places: dict[str, dict | None] = {text_at(entry["at"]): entry["at"] for entry in found}
        listed.append({"obligation": obligation, "why": why, "stops": len(stopped),
                       "remedy": _remedy_of(why),
                       "alone": sum(len(reasons[one]) == 1 for one in stopped),
                       "functions": sorted({function_text(entry["function"]) for entry in found}),
                       "places": list(places.values())})
    return sorted(listed, key=lambda reason: (-reason["stops"], -reason["alone"]))


def _remedy_of(why: str) -> str | None:
    return next((text for begin, text in REMEDIES if why.startswith(begin)), None)


def _stopped(entry: dict) -> tuple:
    """A row, or a loop: the same for all reasons that stop it."""
    place = entry["row"] if entry["kind"] == "refused" else entry["nest"]
    return entry["function"], entry.get("base"), text_at(place)


def tier_of(writers: list[dict], entries: list[dict]) -> tuple[str, list[dict]]:
    """The best that was reached where an object is written: a word, and what stopped more.

    `writers` are places of `perdure ipv record`.
    """
    by_place = places_of(entries)
    reached, against, unknown = 0, [], 0
    for writer in writers:
        found = by_place.get((Path(writer["file"]).name, writer["line"]), [])
        if any(entry["kind"] == "nest" for entry in found):
            reached += 1
        elif found:
            against += found
        else:
            unknown += 1
    if not writers:
        return "never written", []
    if reached == len(writers):
        return "box", []
    word = f"box at {reached} of {len(writers)} places" if reached else "none"
    return word, against
