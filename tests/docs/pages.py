#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the documents name, held against the tree and the command.

    pages.py --write      writes the tables of options, exit codes and settings anew

Each check takes the text of a page and returns what is wrong with it, one sentence each.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PERDURE_BUILD", ROOT / "build/dev"))

_FOLDERS = "src|include|python|apps|bench|pass|tests|tools|docs|examples|data|cmake|fortran"
_SUFFIXES = r"[ch](?:pp)?|S|in|py|sh|txt|md|json|cmake|f90"
_PATH = re.compile(rf"`((?:{_FOLDERS})/[\w./+-]+\.(?:{_SUFFIXES})|pyproject\.toml)`")
_FUNCTION = re.compile(r"`((?:\w+::)*\w+)\(\)`")


@cache
def tracked() -> tuple[str, ...]:
    """What git tracks or would: there may be rests of other branches beside it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return tuple(name for name in listed.split("\0") if name and (ROOT / name).is_file())


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


# --- paths and functions -------------------------------------------------------------------------


def wrong_paths(page: str) -> Iterator[str]:
    """Each path in backquotes exists; capitals such as NAME stand for any name."""
    for path in _PATH.findall(page):
        if "NAME" not in path and path not in tracked():
            yield f"there is no {path}"


def wrong_functions(page: str) -> Iterator[str]:
    """Each `name()` occurs in the last file that its paragraph or item named before it."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\d+\. |\| )", page):
        path = None
        for token in re.finditer(rf"{_PATH.pattern}|{_FUNCTION.pattern}", paragraph):
            if token.group(1):
                path = token.group(1)
            elif path is None:
                yield f"{token.group(2)}() is named without its file"
            elif path in tracked() and not has_function(text_of(path), token.group(2)):
                yield f"{path} has no {token.group(2)}()"


def has_function(code: str, name: str) -> bool:
    """`name` is called, declared or defined in `code`; of A::b also that A is there."""
    *outer, last = name.split("::")
    called = re.search(rf"\b{last}\b\s*[(;]|\({last}\)|\b{last}\b\)\(", code) is not None
    return called and all(re.search(rf"\b{each}\b", code) for each in outer)


def functions_by_walk(page: str) -> dict[str, int]:
    """How many functions each section "## Walk …" names."""
    sections = re.split(r"^## ", page, flags=re.M)[1:]
    return {
        section.splitlines()[0]: len(_FUNCTION.findall(section))
        for section in sections
        if section.startswith("Walk ")
    }


# --- recipes -------------------------------------------------------------------------------------


# A mode reaches from the header to the medium; nothing gathers its rules in one file.
_FILES_MAX = {"A mode of an array": 4}


def wrong_recipes(page: str) -> Iterator[str]:
    """Each recipe of CONTRIBUTING names its files, and what finds a forgotten one.

    Beside the new file, whose name has NAME in it, at most three are touched.
    """
    for recipe in re.split(r"^### ", recipes_part(page), flags=re.M)[1:]:
        name = recipe.splitlines()[0]
        files = re.search(r"^Files: (.*?)\n\n", recipe, re.M | re.S)
        named = set() if files is None else set(_PATH.findall(files.group(1)))
        touched = {path for path in named if "NAME" not in path}
        if not named or len(touched) > _FILES_MAX.get(name, 3):
            yield f"recipe '{name}' does not name one to three files"
        if re.search(r"^Forgotten: ", recipe, re.M) is None:
            yield f"recipe '{name}' does not say what finds a forgotten file"


def recipes_of(page: str) -> list[str]:
    return re.findall(r"^### (.*)$", recipes_part(page), re.M)


def recipes_part(page: str) -> str:
    return page.partition("\n## Recipes")[2].partition("\n## ")[0]


# --- tables --------------------------------------------------------------------------------------


def first_cells(page: str, heading: str) -> list[str]:
    """The first column of the tables below a heading, without their own headings."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    rows = re.findall(r"^\| (.*?) \|", section.group(1) if section else "", re.M)
    return [row for row in rows if "`" in row]


def difference(documented: set[str], real: set[str], what: str) -> list[str]:
    """Both ways."""
    return [f"{what} {name} is not documented" for name in sorted(real - documented)] + [
        f"there is no {what} {name}" for name in sorted(documented - real)
    ]


def wrong_variables(page: str) -> list[str]:
    cells = "\n".join(re.findall(r"^\| (.*?) \|", page, re.M))
    documented = set(re.findall(r"`(PERDURE_\w+)`", cells))
    return difference(documented, variables_read(), "variable") + [
        f"{_KNOWN_VARIABLES}: {wrong}"
        for wrong in difference(documented, known_variables(), "variable")
    ]


_KNOWN_VARIABLES = "src/base/environment.cpp"


def known_variables() -> set[str]:
    """Those of which Perdure does not say that it reads none of that name."""
    return set(re.findall(r"\"(PERDURE_[A-Z0-9_]*\w)\"", text_of(_KNOWN_VARIABLES)))


@cache
def variables_read() -> set[str]:
    """Quoted names in programs, and names that scripts expand; not those of enumerations."""
    found: set[str] = set()
    for name in tracked():
        path = Path(name)
        if path.suffix == ".md" or name.startswith(("docs/", "tests/docs/", "data/", "packaging/")):
            continue
        if name.startswith("src/base/environment"):  # names all, and reads none
            continue
        if path.suffix in {".c", ".h", ".cpp", ".hpp", ".py"}:
            found.update(re.findall(r"[\"'](PERDURE_[A-Z0-9_]+)[\"'{]", text_of(name)))
        elif path.suffix in {".sh", ".in"} or name == "perdure":
            found.update(re.findall(r"\$\{?(PERDURE_[A-Z0-9_]+)", text_of(name)))
    asked = " ".join(text_of(name) for name in tracked() if name.endswith((".cpp", ".c")))
    headers = " ".join(text_of(name) for name in tracked() if name.startswith("include/"))
    constant = r"^(?:#define)?\s+(PERDURE_[A-Z0-9_]+)(?: =|,|$| \()"
    constants = set(re.findall(constant, headers, re.M))
    constants -= set(re.findall(r'\b(?:getenv|environment)\("(PERDURE_\w+)"\)', asked))
    return {f"{name}NAME" if name.endswith("_") else name for name in found - constants}


def wrong_layers(page: str) -> list[str]:
    """The table of docs/design.md says what tools/layers.txt allows."""
    documented = {}
    for module, uses in re.findall(r"^\| `([\w/]+)` \| (.*?) \|", page, re.M):
        documented[module.removeprefix("include/")] = " ".join(sorted(re.findall(r"`(\w+)`", uses)))
    real = {
        module.strip(): " ".join(sorted(set(uses.split())))
        for module, _, uses in (
            line.partition("⇐") for line in text_of("tools/layers.txt").splitlines() if "⇐" in line
        )
        if not module.startswith("#")
    }
    named = {f"{module} ⇐ {uses}" for module, uses in documented.items() if module in real}
    missing = [f"layer {module} has no row" for module in real if module not in documented]
    return missing + difference(named, {f"{module} ⇐ {uses}" for module, uses in real.items()
                                        if module in documented}, "layer")


def wrong_policies(page: str) -> list[str]:
    """The files of src/sim/policies are in the list of its CMakeLists.txt, and in the page."""
    listed = re.search(r"set\(policies ([\w\s]+)\)", text_of("src/sim/CMakeLists.txt"))
    files = {Path(name).stem for name in tracked() if re.match(r"src/sim/policies/\w+\.cpp", name)}
    documented = set(re.findall(r"`(\w+)`", " ".join(first_cells(page, "Policies"))))
    named = set(listed.group(1).split() if listed else ())
    return difference(documented, files, "policy") + difference(named, files, "listed policy")


GLOSSARY_MAX = 100


def wrong_glossary(page: str) -> list[str]:
    """No word is explained twice, and there are not too many of them."""
    words = re.findall(r"^\| \*\*(.*?)\*\*", page, re.M)
    twice = [f"'{word}' is explained twice" for word in sorted(set(words)) if words.count(word) > 1]
    if len(words) <= GLOSSARY_MAX:
        return twice
    return [*twice, f"{len(words)} words, at most {GLOSSARY_MAX}: merge two, or define one where "
            "it is used"]  # fmt: skip


# --- the command ---------------------------------------------------------------------------------


@cache
def command():
    """The command of a clone, with the verbs that measure."""
    sys.path[:0] = [str(ROOT / "python"), str(BUILD / "python")]
    from perdure.cli import command_line
    from perdure_bench.cli import VERBS

    return command_line(VERBS)


@cache
def verbs() -> dict[str, tuple[str, ...]]:
    """Every verb of `perdure`, such as "pool ls", with its options."""
    return dict(_verbs_below(command(), ""))


def _verbs_below(verb, name: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    below = getattr(verb, "commands", None)
    if below is None:
        options = [each for each in verb.params if each.param_type_name == "option"]
        yield name, tuple("/".join([*each.opts, *each.secondary_opts]) for each in options)
    else:
        for word, each in below.items():
            yield from _verbs_below(each, f"{name} {word}".strip())


def benchmarks() -> set[str]:
    """The names that `perdure bench` takes, as its help lists them."""
    bench = command().commands["bench"]
    (names,) = (each for each in bench.params if each.param_type_name == "argument")
    return set(names.help.partition("all, ")[2].rstrip(".").split(", "))


_SHORTENED = {"trace record": "trace", "energy profile run": "energy profile",
              "config flags": "config"}


def wrong_verbs(page: str) -> list[str]:
    """The table of verbs has each of them."""
    documented = set()
    for cell in first_cells(page, "Verbs"):
        for usage in re.findall(r"`perdure ([^`]*)`", cell):
            words = re.match(r"[a-z ]*[a-z]\b", usage)
            documented.add(words.group() if words else usage)
    whole = {short: verb for verb, short in _SHORTENED.items()}
    return difference({whole.get(name, name) for name in documented}, set(verbs()), "verb")


def wrong_benchmarks(page: str) -> list[str]:
    documented = {cell.strip("`") for cell in first_cells(page, "Benchmarks")}
    return difference(documented, benchmarks(), "benchmark")


def options_table() -> str:
    rows = [
        f"| `perdure {verb}` | {' '.join(f'`{option}`' for option in options)} |\n"
        for verb, options in verbs().items()
    ]
    return "| verb | options |\n|---|---|\n" + "".join(rows)


def exits():
    """The exit codes of the verbs, as the code has them."""
    command()
    from perdure_bench.cli import EXITS

    return EXITS


def exits_table() -> str:
    command()
    from perdure.exit_codes import table

    return table(exits(), _SHORTENED)


def settings_table() -> str:
    command()
    from perdure.settings.keys import table

    return table()


_TABLES = {"docs/cli.md": {"options": options_table, "exit codes": exits_table},
           "docs/environment.md": {"settings": settings_table}}


def with_tables(page: str, path: str) -> str:
    """The page with its tables as the command has them."""
    for name, made in _TABLES[path].items():
        mark = f"<!-- {name}: begin; tests/docs/pages.py --write -->\n"
        before, begin, rest = page.partition(mark)
        _, end, after = rest.partition(f"<!-- {name}: end -->\n")
        if not begin or not end:
            raise ValueError(f"{path} has no marks around its table of {name}")
        page = before + begin + made() + end + after
    return page


def wrong_tables(page: str, path: str) -> list[str]:
    """The tables of options, exit codes and settings are those of the code, word for word."""
    new, old = with_tables(page, path).splitlines(), page.splitlines()
    return [f"pages.py --write adds: {row}" for row in new if row not in old] + [
        f"pages.py --write removes: {row}" for row in old if row not in new
    ]


# The rows of docs/ends.md that are of each kind of what a process ends (src/base/process_end.hpp).
_ROWS_OF_KINDS = {
    "cached_files": ("cached file", "file that stands aside", "file in a pool's versions"),
    "windows": ("window",),
    "pools": ("pool", "way to a level"),
}


def wrong_ends(page: str) -> list[str]:
    """What docs/ends.md says otherwise than the list of what ends, and its exit code."""
    header = (ROOT / "src/base/process_end.hpp").read_text(encoding="utf-8")
    codes = (ROOT / "python/perdure/exit_codes.py").read_text(encoding="utf-8")
    (listed,) = re.findall(r"enum class OpenKind[^{]*{(.*?)};", header, re.DOTALL)
    kinds = [kind for kind in re.findall(r"^  (\w+),", listed, re.MULTILINE) if kind != "kinds"]
    (code,) = re.findall(r"left_behind_code = (\d+);", header)
    findings = [f"there is no row for OpenKind::{kind}" for kind in kinds
                if kind not in _ROWS_OF_KINDS]
    for kind in kinds:
        for row in _ROWS_OF_KINDS.get(kind, ()):
            if f"| {row} |" not in page:
                findings.append(f"docs/ends.md has no row '{row}' for OpenKind::{kind}")
    if page.count(f"ends with {code}") < 2:
        findings.append(f"docs/ends.md does not say that a process ends with {code}")
    if f"LEFT_BEHIND = {code} " not in codes:
        findings.append(f"`perdure run` does not end with {code}")
    return findings


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    for name in _TABLES:
        text = (ROOT / name).read_text(encoding="utf-8")
        (ROOT / name).write_text(with_tables(text, name), encoding="utf-8")
