# SPDX-License-Identifier: BSD-3-Clause
"""What the report of `perdure ipv record` means: which objects belong into a version, and why."""

from __future__ import annotations

from perdure.ipv.symbols import name_heap_objects
from perdure.ipv.watched import place_text
from perdure.screen import some_of

CARRIED, RESULT, REWRITTEN, UNREAD, READ_ONLY = (
    "carried", "read after the loop", "rewritten before use", "never read", "read only",
)  # fmt: skip
_ORDER = (CARRIED, RESULT, REWRITTEN, UNREAD, READ_ONLY)
UNSEEN = (
    "Scalars in registers and on the stack can't be seen: save the loop's counter, and what "
    "else of them goes on."
)
UNMARKED = (
    "no iteration was seen: mark the main loop by perdure_ipv_restart() and "
    "perdure_ipv_persist(), or by perdure_trace_iteration()"
)


def judge(report: dict) -> dict:
    """The report with names, a `verdict` for each object, and `save`, `pairs`, `warnings`."""
    objects = report["objects"]
    name_heap_objects(objects)
    report["pairs"] = [_pair(pair, objects) for pair in report["pairs"]]
    for found in objects:
        found["verdict"] = verdict_of(found)
    objects.sort(key=lambda found: (_ORDER.index(found["verdict"]), found["kind"] == "scalar",
                                    -found["size_bytes"]))
    report["save"] = [found["name"] for found in objects if found["verdict"] == CARRIED]
    report["warnings"] = [line for found in objects for line in _late_writers(found)]
    return report


def _pair(pair: dict, objects: list[dict]) -> dict:
    """Two arrays that take turns, by name: the one of odd iterations first."""
    first, second = (objects[place] for place in pair["objects"])
    return {"objects": [first["name"], second["name"]], "size_bytes": first["size_bytes"],
            "breach": pair["breach"]}


def is_pair(pair: dict) -> bool:
    """Whether the two may be one object, as far as the run shows it."""
    return pair["breach"] is None


def verdict_of(found: dict) -> str:
    """One of the five words for what the loop does with an object."""
    if found["carried_bytes"]:
        return CARRIED
    if found["after_loop_bytes"]:
        return RESULT
    if not found["stored_bytes"]:
        return READ_ONLY
    return UNREAD if found["unread_bytes"] == found["stored_bytes"] else REWRITTEN


def alive_text(found: dict) -> str:
    """After which iterations a carried object is alive, if not after all."""
    even, odd = found["alive_after_even_bytes"], found["alive_after_odd_bytes"]
    if not even == odd == 0 and 0 in (even, odd):
        return f", alive after {'odd' if odd else 'even'} ones"
    return ""


def _late_writers(found: dict) -> list[str]:
    if found["verdict"] == READ_ONLY:
        return []
    return [
        f"{found['name']}: stored to at {place_text(writer)} in {writer['iterations']} iterations, "
        f"first in iteration {writer['first_iteration']}; iteration 1 does not show it"
        for writer in found["writers"]
        if writer["first_iteration"] > 1
    ]


def advice_lines(report: dict) -> list[str]:
    """Which objects to save, and which need not be."""
    groups: dict[str, list[str]] = {verdict: [] for verdict in _ORDER}
    for found in report["objects"]:
        groups[found["verdict"]].append(found["name"])
    lines = [f"save {_list(groups[CARRIED])}" if groups[CARRIED] else "nothing that was seen is "
             "carried from one iteration to the next"]
    lines += [_pair_text(pair) for pair in report["pairs"]]
    if groups[RESULT]:
        lines.append(f"{_list(groups[RESULT])}: rewritten by each iteration, and read when the "
                     "loop has ended; save it too if a job may restart at the last version")
    if groups[REWRITTEN]:
        lines.append(f"{_list(groups[REWRITTEN])}: rewritten before use")
    return [*lines, *parts_lines(report), UNSEEN]


_BREACHES = {
    "stored": "iterations store to different bytes of them",
    "read": "an iteration reads what it is to overwrite",
    "walls": "what no iteration stores to differs in them",
}  # fmt: skip


def _pair_text(pair: dict) -> str:
    first, second = pair["objects"]
    turns = f"{first} is stored to in odd iterations, {second} in even ones"
    if is_pair(pair):
        return (f"{turns}, and only the one stored to last is alive: make them one object, by "
                f"perdure_ipv_pair() of {pair['size_bytes']} bytes; nothing is copied then")
    byte = pair["breach"]["byte"]
    where = "" if byte is None else f", at byte {byte}"
    return f"{turns}, but they are no pair: {_BREACHES[pair['breach']['rule']]}{where}"


def parts_lines(report: dict) -> list[str]:
    """Of which members of its structs the carried bytes of an object are, if not of all."""
    return [
        f"{found['name']}: {_parts_text(found['elements'])}"
        for found in report["objects"]
        if found["verdict"] == CARRIED and found.get("elements")
        and found["carried_bytes"] < found["size_bytes"]
    ]


def _parts_text(elements: dict) -> str:
    parts = [
        f"{part['member']} ({_bytes_text(part)})" if part["member"] else _bytes_text(part)
        for part in elements["carried"]
    ]
    text = (f"of each struct {elements['struct']} of {elements['bytes']} bytes it carries "
            f"{_list(parts)}")
    return text if elements["has_names"] else text + "; for the names of members compile with -g"


def _bytes_text(part: dict) -> str:
    first, last = part["offset"], part["offset"] + part["bytes"] - 1
    return f"byte {first}" if first == last else f"bytes {first} to {last}"


def _list(names: list[str]) -> str:
    return some_of(names, 12)
