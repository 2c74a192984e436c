#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fills the figures of the documents from the facts that benchmarks printed.

    ./perdure bench memsim --json | tools/figures.py take memsim    keeps the facts, and fills
    tools/figures.py                                                fills all documents
    tools/figures.py --check                                        names what differs; ends with 1

docs/figures/NAME.jsonl has a line with the commit, the machine, the command and the date, then the
facts of the benchmark NAME, without those that only its pictures need. A block of a document is

    <!-- figures: NAME
    @ CG=cg; MG=mg: | $label | {$/hot_share:.1%} |
    -->
    | CG | 98.2 % |
    | MG | 57.7 % |
    <!-- end -->

The comment is its text with the facts left open; what is between is made of it, and is never
edited. A line that begins with @ is repeated: of CG=cg the first stands for $label and the
second for $. {commit}, {machine}, {command} and {date} are those of the facts. A fact is

    {OF#CASE/METRIC[FIELD=VALUE]@OTHER*FACTOR:FORMAT}

OF# takes it from docs/figures/OF.jsonl instead of the block's. [FIELD=VALUE] selects, where several
facts have that case and metric; [FIELD=] has no such field. @OTHER is another field than the value;
@limit and @aim are the most and the least that is wanted and whether it is met, @verdict that
alone, @unsettled a star. FORMAT is Python's, with a q at its end for the quartiles in brackets. All
but case and metric can be left out. With a ? at its end the text is empty where there is no such
fact.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = ("figures", "commit", "machine", "command", "date")
PICTURES = ("sweep_energy_j", "policy_time_s")  # metrics, and a field:
CURVE = "curve"

_BLOCK = re.compile(r"<!-- figures: (?P<name>\w+)\n(?P<template>.*?)^-->\n(?P<text>.*?)"
                    r"^<!-- end -->$", re.MULTILINE | re.DOTALL)
_BEGIN = re.compile(r"^<!-- figures: \w+$", re.MULTILINE)
_FACT = re.compile(r"\{(?:(?P<of>\w+)#)?(?P<case>[^{}\[\]\s]+)/(?P<metric>\w+)"
                   r"(?P<select>(?:\[\w+=[^\]]*\])*)"
                   r"(?:@(?P<field>\w+))?(?:\*(?P<factor>[\d.e-]+))?(?::(?P<format>[^{}?]*))?"
                   r"(?P<may>\?)?\}")
_EACH = re.compile(r"^@ ([^:\n]+): (.*\n)", re.MULTILINE)
_SELECT = re.compile(r"\[(\w+)=([^\]]*)\]")
_OPEN = re.compile(r"\{[^{}\n]*\}")
_ROW = re.compile(r"^\|.*\d")


class Wrong(Exception):
    """A document or the facts are not as they must be; the sentence says how."""


class Facts:
    """What is in one file of facts."""

    def __init__(self, lines: list[str], place: str) -> None:
        self.place = place
        try:
            rows = [json.loads(line) for line in lines]
        except json.JSONDecodeError as error:
            raise Wrong(f"{place} has a line that is no JSON: {error}") from None
        self.header = rows[0] if rows else {}
        missing = [name for name in HEADER if not self.header.get(name)]
        if missing:
            raise Wrong(f"{place}: its first line does not say {', '.join(missing)}")
        self.rows: dict[tuple[str, str], list[dict]] = {}
        for row in rows[1:]:
            self.rows.setdefault((row["case"], row["metric"]), []).append(row)

    def text(self, wanted: re.Match) -> str:
        """What takes the place of {CASE/METRIC…}."""
        chosen = _SELECT.findall(wanted["select"])
        rows = [row for row in self.rows.get((wanted["case"], wanted["metric"]), [])
                if all(_same(row.get(field), value) for field, value in chosen)]
        if not rows and wanted["may"]:
            return ""
        if len(rows) != 1:
            raise Wrong(f"{self.place} has {len(rows)} facts that are {wanted[0]}, and must have 1")
        row, field = rows[0], wanted["field"] or "value"
        verdict = ", **missed**" if row.get("holds") is False else ""
        if field == "verdict":
            return verdict
        if field == "limit":
            return f"≤ {row['target']:g}{verdict}" if row.get("target") is not None else ""
        if field == "aim":
            return f" (≥ {row['target']:g}{verdict})" if row.get("target") is not None else ""
        if field == "unsettled":
            return " *" if row.get("settled") is False else ""
        if row.get(field) is None:
            raise Wrong(f"{self.place}: the fact of {wanted[0]} has no {field}")
        return _formatted(row, field, wanted["format"] or "", float(wanted["factor"] or 1))


def _same(found, wanted: str) -> bool:
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return wanted != "" and abs(found - float(wanted)) < 1e-9
    return ("" if found is None else str(found)) == wanted


def _formatted(row: dict, field: str, form: str, factor: float) -> str:
    value = row[field]
    if isinstance(value, str) and value.startswith("["):
        value = json.loads(value)
    if isinstance(value, list):
        texts = [_number(each * factor, form) for each in value]
        return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
    if isinstance(value, str):
        return value
    number = form.removesuffix("q")
    text = _number(value * factor, number)
    if form.endswith("q") and row.get("low") is not None:
        low, high = (_number(row[end] * factor, number) for end in ("low", "high"))
        text += f" ({low} to {high})"
    return text


def _number(value: float, form: str) -> str:
    if not form:  # three digits, without an exponent
        form = ".0f" if abs(value) >= 100 else ".1f" if abs(value) >= 10 else ".2f"
    return format(value, form).replace("%", " %").replace("-", "−")


def _repeated(found: re.Match) -> str:
    lines = []
    for word in found[1].split(";"):
        label, _, case = word.strip().partition("=")
        lines.append(found[2].replace("$label", label).replace("$", case or label))
    return "".join(lines)


def filled(template: str, name: str, facts: dict[str, Facts], used: set[str]) -> str:
    """A template with its facts, which are those of `name` unless they say otherwise."""

    def of(other: str) -> Facts:
        if other not in facts:
            raise Wrong(f"docs/figures has no {other}.jsonl")
        used.add(other)
        return facts[other]

    text = _EACH.sub(_repeated, template)
    for field in HEADER:
        text = text.replace("{" + field + "}", str(of(name).header[field]))
    text = _FACT.sub(lambda found: of(found["of"] or name).text(found), text)
    left = _OPEN.search(text)
    if left is not None:
        raise Wrong(f"{of(name).place}: '{left[0]}' is no {{CASE/METRIC}}")
    return text


def all_facts(root: Path) -> dict[str, Facts]:
    """By benchmark."""
    return {
        path.stem: Facts(path.read_text().splitlines(), str(path.relative_to(root)))
        for path in sorted((root / "docs/figures").glob("*.jsonl"))
    }


def documents(root: Path) -> list[Path]:
    """Those that can have blocks."""
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def renewed(text: str, facts: dict[str, Facts], used: set[str]) -> str:
    """A document with its blocks as the facts have them."""

    def block(found: re.Match) -> str:
        template = found["template"]
        return (f"<!-- figures: {found['name']}\n{template}-->\n"
                f"{filled(template, found['name'], facts, used)}<!-- end -->")

    if len(_BEGIN.findall(text)) != len(_BLOCK.findall(text)):
        raise Wrong("a block '<!-- figures: NAME' lacks its '-->' or its '<!-- end -->'")
    return _BLOCK.sub(block, text)


def findings(root: Path, write: bool) -> list[str]:
    """Fills the documents, or says what differs in them."""
    facts, used, found = all_facts(root), set(), []
    for path in documents(root):
        text, place = path.read_text(), str(path.relative_to(root))
        try:
            new = renewed(text, facts, used)
        except Wrong as wrong:
            found.append(f"{place}: {wrong}")
            continue
        if place == "docs/figures.md":
            found += [f"{place}: a figure is in no block: {line}"
                      for line in _BLOCK.sub("", text).splitlines() if _ROW.match(line)]
        if write and new != text:
            path.write_text(new)
        elif new != text:
            old_lines, new_lines = text.splitlines(), new.splitlines()
            at = next((i for i, pair in enumerate(zip(old_lines, new_lines)) if pair[0] != pair[1]),
                      min(len(old_lines), len(new_lines)) - 1)
            found.append(f"{place}:{at + 1}: says '{old_lines[at]}', but the facts are "
                         f"'{new_lines[at]}'; run tools/figures.py, or repeat the benchmark")
    found += [f"docs/figures/{name}.jsonl is used by no document" for name in facts
              if name not in used]
    return found


def machine() -> str:
    """The processors, memory and kernel of this machine, in words."""
    cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    processors = len(re.findall(r"^processor\s*:", Path("/proc/cpuinfo").read_text(), re.MULTILINE))
    name = cpu[1] if cpu else platform.machine()
    return (f"{name}, {processors} processors, {int(memory[1]) / 2**20:.0f} GiB, "
            f"Linux {platform.release().split('-')[0]}")


def take(root: Path, name: str, command: str, without: list[str], lines: list[str]) -> None:
    """Keeps what a benchmark printed, without some of its metrics."""
    git = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
                         cwd=root, capture_output=True, text=True, check=True)
    header = dict(zip(HEADER, (name, git.stdout.strip(), machine(), command,
                               time.strftime("%Y-%m-%d", time.gmtime()))))
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    if not rows:
        raise Wrong(f"there is no fact on the standard input; give it what {command} prints")
    kept = [{key: value for key, value in row.items() if value is not None and key != CURVE}
            for row in rows if row["metric"] not in (*PICTURES, *without)]
    place = root / "docs/figures" / f"{name}.jsonl"
    place.parent.mkdir(exist_ok=True)
    place.write_text("".join(f"{json.dumps(row)}\n" for row in [header, *kept]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="say what differs, change nothing")
    verbs = parser.add_subparsers(dest="verb")
    taking = verbs.add_parser("take", help="keep the facts on the standard input")
    taking.add_argument("name", help="the benchmark")
    taking.add_argument("--command", help="what printed them  [default: ./perdure bench NAME]")
    taking.add_argument("--without", nargs="*", default=[], metavar="METRIC",
                        help="what other work on the machine spoiled")
    options = parser.parse_args()
    try:
        if options.verb == "take":
            command = options.command or f"./perdure bench {options.name} --json"
            take(ROOT, options.name, command, options.without, sys.stdin.read().splitlines())
        found = findings(ROOT, not options.check)
    except Wrong as wrong:
        found = [str(wrong)]
    print("\n".join(found) or "figures: the documents are as the facts have them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
