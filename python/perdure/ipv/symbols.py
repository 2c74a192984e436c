# SPDX-License-Identifier: BSD-3-Clause
"""Where a program allocates its memory: places of the source, and names of variables."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from perdure.files import read_bytes

_SYMBOLIZERS = ("llvm-symbolizer-19", "llvm-symbolizer")
_SYSTEM = ("/usr/include/", "/usr/lib/", "/usr/local/include/", "/opt/")
_FORTRAN = re.compile(r"allocate\s*\((.*)\)", re.IGNORECASE)
_ALLOCATORS = {"malloc", "calloc", "realloc", "aligned_alloc", "posix_memalign", "new", "std"}
_ASSIGNED = re.compile(r"([A-Za-z_]\w*(?:(?:\.|->)\w+|\[[^]]*\])*)\s*=\s*(?:\([^()]*\)\s*)?$")
_DECLARED = re.compile(r"[A-Za-z_]\w*(?=\s*[({])")


def name_heap_objects(objects: list[dict]) -> None:
    """Gives each object of kind heap its `frames` with file, line and function, and a `name`."""
    heap = [found for found in objects if found["kind"] == "heap"]
    known = _symbolize({(f["module"], f["offset"]) for found in heap for f in found["frames"]})
    for found in heap:
        places = [
            place
            for frame in found["frames"]
            for place in known.get((frame["module"], frame["offset"]), [])
        ]
        found["frames"] = places or found["frames"]
        found["name"] = _name_of(places) or _module_name(found["frames"])
    _tell_apart(heap)


def _symbolize(addresses: set[tuple[str, int]]) -> dict[tuple[str, int], list[dict]]:
    """The places of each address in the program's own source, innermost first."""
    program = next(filter(None, map(shutil.which, _SYMBOLIZERS)), None)
    if program is None or not addresses:
        return {}
    asked = sorted(addresses)
    text = "".join(f'"{module}" {offset:#x}\n' for module, offset in asked)
    done = subprocess.run(
        [program, "--output-style=JSON", "--inlines"],
        input=text, capture_output=True, text=True, check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(answers) != len(asked):
        return {}
    return {key: _own_places(answer) for key, answer in zip(asked, answers, strict=True)}


def _own_places(answer: dict) -> list[dict]:
    return [
        {
            "file": symbol["FileName"],
            "line": symbol["Line"],
            "column": symbol["Column"],
            "function": symbol["FunctionName"],
        }
        for symbol in answer.get("Symbol", [])
        if symbol["Line"] and not symbol["FileName"].startswith(_SYSTEM)
    ]


def _name_of(places: list[dict]) -> str:
    """The variable that is allocated, and where; or only where."""
    inner = ""
    for place in places:
        variable = _variable_at(place, inner)
        if variable:
            return f"{variable} ({Path(place['file']).name}:{place['line']})"
        inner = place["function"]
    return f"{Path(places[0]['file']).name}:{places[0]['line']}" if places else ""


def _variable_at(place: dict, callee: str) -> str:
    """`u` where the call at a place is `u = malloc(n)` or `Array u(n)`; else ''.

    `u/w` where it is Fortran's `allocate(u(n), w(n))`.
    """
    line = _line_of(place["file"], place["line"])
    allocate = _FORTRAN.search(line)
    if allocate and Path(place["file"]).suffix.lower().startswith(".f"):
        inner = re.sub(r"\([^()]*\)", "", allocate.group(1))
        return "/".join(name.strip() for name in inner.split(",") if "=" not in name)
    start = place["column"] - 1
    if start < 0 or start >= len(line):
        return ""
    assigned = _ASSIGNED.search(line[:start])
    if assigned:
        return assigned.group(1)
    declared = _DECLARED.match(line, start)
    if declared is None or declared.group() in _ALLOCATORS:
        return ""
    called = re.split(r"\W+", callee.split("(")[0])
    return "" if declared.group() in called else declared.group()


@lru_cache(maxsize=4096)
def _line_of(file: str, number: int) -> str:
    try:
        lines = read_bytes(file).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return lines[number - 1] if number <= len(lines) else ""


def _module_name(frames: list[dict]) -> str:
    if not frames or "module" not in frames[0]:
        return "heap"
    return f"{Path(frames[0]['module']).name}+{frames[0]['offset']:#x}"


def _tell_apart(heap: list[dict]) -> None:
    """Objects of equal names get numbers, in the order of their allocation."""
    names = [found["name"] for found in heap]
    counts: dict[str, int] = {}
    for found, name in zip(heap, names, strict=True):
        if names.count(name) > 1:
            counts[name] = counts.get(name, 0) + 1
            found["name"] = f"{name} #{counts[name]}"
