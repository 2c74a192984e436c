# SPDX-License-Identifier: BSD-3-Clause
"""One line of a record of MPI files and windows, whose form is checked before it counts."""

from __future__ import annotations

import json

_MOST = 2**64
_FILE = {
    "file": str,
    "node": str,
    "rank": int,
    "cached": bool,
    "read_only": bool,
    "delete_on_close": bool,
    "size_at_open": float,
    "size_at_close": float,
    "block_bytes": float,
    "unplaced_bytes": float,
    "calls": dict,
    "accesses": list,
    "touched_blocks": list,
    "written_blocks": list,
    "fetched_blocks": list,
}
_WINDOW = {
    "window": str,
    "bytes": int,
    "rank": int,
    "ranks": int,
    "fences": int,
    "unlocks": int,
    "completes": int,
    "open_s": float,
}
_CALL = {"calls": int, "seconds": float}
_ACCESS = {
    "direction": str,
    "sequential": bool,
    "nonblocking": bool,
    "size_log2": int,
    "calls": int,
    "bytes": float,
    "seconds": float,
}
_NAMES = {str: "a text", bool: "true or false", dict: "an object", list: "a list"}


class WrongLine(ValueError):
    """The line is none of a record; the sentence says why."""


def parse_line(text: str) -> dict:
    """The line as an object all of whose members are there. Raises WrongLine."""
    try:
        line = json.loads(text)
    except json.JSONDecodeError as wrong:
        raise WrongLine(f"is no JSON: {wrong.msg}") from None
    except (ValueError, RecursionError):  # too many digits, or too many brackets
        raise WrongLine("is no JSON of ours") from None
    if not isinstance(line, dict) or not ({"accesses", "run_s", "window"} & set(line)):
        raise WrongLine("is no line of a record")
    if "run_s" in line:
        _check_member(line, "run_s", float)
    if "window" in line:
        _check(line, _WINDOW)
    if "accesses" in line or "file" in line:
        _check_file(line)
    return line


def _check_file(line: dict) -> None:
    _check(line, _FILE)
    for call in line["calls"].values():
        _check(call, _CALL)
    for access in line["accesses"]:
        _check(access, _ACCESS)
    for name in ("touched_blocks", "written_blocks", "fetched_blocks"):
        for run in line[name]:
            whole = isinstance(run, list) and len(run) == 2 and all(map(_is_count, run))
            if not whole:
                raise WrongLine(f"has {name} that are no runs of blocks")


def _check(members: object, form: dict[str, type]) -> None:
    if not isinstance(members, dict):
        raise WrongLine("has something else where an object should be")
    for name, kind in form.items():
        _check_member(members, name, kind)


def _check_member(members: dict, name: str, kind: type) -> None:
    value = members.get(name)
    if kind is int and not _is_count(value):
        raise WrongLine(f"has no count {name}")
    if kind is float and not (_is_count(value) or isinstance(value, float) and 0 <= value <= _MOST):
        raise WrongLine(f"has no number {name}")
    if kind in _NAMES and not isinstance(value, kind):
        raise WrongLine(f"has no {name}, or it is not {_NAMES[kind]}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def blocks_of(runs: list[list[int]]) -> int:
    """How many blocks are in any of the runs [first, count]; as many as they say, none is made."""
    blocks = end = 0
    for first, count in sorted(runs):
        blocks += max(first + count - max(first, end), 0)
        end = max(end, first + count)
    return blocks
