#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every command that the documents name exists.

    commands.py --build DIR

Looks at indented blocks of all Markdown files: targets of make, presets of cmake and ctest,
patterns of ctest (some test must match), scripts, programs, extras of pip's package, and verbs of
perdure with their options, as docs/cli.md has them, which docs.pages holds against the command.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def commands_of(page: Path) -> list[str]:
    """The commands of its indented blocks, without comments."""
    found = []
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        fenced ^= line.startswith("```")
        if fenced or not re.match(r"    [\w./]", line):
            continue
        for command in line.split(" # ")[0].split("&&"):
            words = command.split()
            while words and re.match(r"[A-Z_]+=", words[0]):
                words.pop(0)
            if words:
                found.append(" ".join(words))
            found += re.findall(r"\$\(((?:\./)?perdure [^()]*)\)", command)
    return found


def make_targets() -> set[str]:
    (phony,) = re.findall(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(), re.M)
    return set(phony.split())


def presets() -> set[str]:
    listed = json.loads((ROOT / "CMakePresets.json").read_text())
    return {preset["name"] for preset in listed["configurePresets"]}


def options_of_command() -> dict[str, set[str]]:
    """Each verb, such as "pool ls", with its options."""
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `perdure ([a-z ]+)` \| (`-.*`) \|$", page, re.M)
    verbs = {verb: set(re.findall(r"--?[\w-]+", options)) for verb, options in rows}
    for usage in re.findall(r"^\| `perdure ([a-z ]*[a-z])\b", page, re.M):
        verbs.setdefault(usage, set())
    return verbs


def extras() -> set[str]:
    """What may be asked of pip, in brackets."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = project.partition("[project.optional-dependencies]\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^(\w+) =", section, re.M))


class Checker:
    """Says what is wrong with a command, or nothing."""

    def __init__(self, build: Path):
        self.build = build
        self.targets = make_targets()
        self.presets = presets()
        self.verbs = options_of_command()
        self.extras = extras()

    def problem(self, command: str) -> str | None:
        words = shlex.split(command)
        first = words[1] if words[0] == "python3" else words[0]
        if first == "make":
            return None if words[1] in self.targets else f"no target {words[1]}"
        if first in ("cmake", "ctest"):
            return self._preset_problem(words) or self._pattern_problem(words)
        if first in ("perdure", "./perdure"):
            return self._perdure_problem(words[1:])
        if words[:2] == ["pip", "install"]:
            return self._pip_problem(words[2:])
        if first.startswith(("tools/", "tests/", "build/dev/")):
            return self._file_problem(first)
        return None

    def _preset_problem(self, words: list[str]) -> str | None:
        name = words[words.index("--preset") + 1] if "--preset" in words else None
        return None if name in self.presets or name is None else f"no preset {name}"

    def _pattern_problem(self, words: list[str]) -> str | None:
        if words[0] != "ctest" or not {"-R", "-L"} & set(words):
            return None
        options = [word for word in words[1:] if word not in ("--preset", *self.presets)]
        asked = ["ctest", "--test-dir", str(self.build), "-N", *options]
        listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        return None if re.search(r"Total Tests: [1-9]", listed) else "no test matches"

    def _perdure_problem(self, words: list[str]) -> str | None:
        own = list(itertools.takewhile(lambda word: word not in ("--", "|"), words))
        verb = ""
        for word in own:
            longer = f"{verb} {word}".strip()
            if not any(f"{name} ".startswith(f"{longer} ") for name in self.verbs):
                break
            verb = longer
        if not verb:
            return f"no verb {words[0]}"
        # A group has those of its members: `perdure trace` is `perdure trace record`.
        below = [name for name in self.verbs if f"{name} ".startswith(f"{verb} ")]
        known = {"--help", "-h"}.union(*(self.verbs[name] for name in below))
        asked = [word.partition("=")[0] for word in own if re.match(r"--?[a-z]", word)]
        return next((f"{verb} has no {word}" for word in asked if word not in known), None)

    def _pip_problem(self, words: list[str]) -> str | None:
        for word in words:
            named = re.fullmatch(r"(\.|perdure)(?:\[(.*)\])?", word)
            if named and named[1] != ".":
                return "the package is in no index: pip install ."
            if named and not set(filter(None, (named[2] or "").split(","))) <= self.extras:
                return f"no extra {named[2]}"
        return None

    def _file_problem(self, path: str) -> str | None:
        inside = path.removeprefix("build/dev/")
        file = self.build / inside if inside != path else ROOT / path
        return None if file.exists() else f"no file {path}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    checker = Checker(parser.parse_args().build)
    checked = wrong = 0
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]:
        for command in commands_of(page):
            checked += 1
            if (problem := checker.problem(command)) is not None:
                wrong += 1
                print(f"{page.relative_to(ROOT)}: {command}: {problem}")
    print(f"{checked} commands, {wrong} wrong")
    return 1 if wrong or checked < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
