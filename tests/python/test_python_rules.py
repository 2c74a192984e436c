# SPDX-License-Identifier: BSD-3-Clause
"""The rules for Python in pyproject.toml find what they forbid; the stub of _core is true."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT

SOURCES = {".c", ".cpp", ".h", ".hpp", ".py", ".txt"}


@pytest.mark.parametrize(
    "file, line, broken",
    [
        ("perdure/units.py", "import perdure_bench.facts", "nothing from the benchmarks"),
        ("perdure/units.py", "import perdure.pool.view", "imports only what is below it"),
        ("perdure/pool/view.py", "import perdure.cache.record", "imports only what is below it"),
        ("perdure/run/page.py", "import perdure.run.job", "there are no cycles"),
        ("perdure/run/stall.py", "    import perdure.run.attempt", "there are no cycles"),
    ],
)
def test_planted_imports_break_the_contract_that_forbids_them(tmp_path, file, line, broken):
    shutil.copytree(ROOT / "python", tmp_path / "python")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with open(tmp_path / "python" / file, "a", encoding="utf-8") as source:
        source.write(f"\n\ndef planted():\n{line}\n" if line.startswith(" ") else f"{line}\n")
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-logo", "--no-cache"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": "python"}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    (verdict,) = [line for line in done.stdout.splitlines() if broken in line and "BROKEN" in line]
    assert verdict


def test_one_variable_seeds_every_random_test():
    code = [ROOT / folder for folder in ("src", "tests", "apps", "bench", "python")]
    files = [path for folder in code for path in folder.rglob("*") if path.suffix in SOURCES]
    named = {name for path in files for name in re.findall(r"PERDURE_\w*SEED\b", path.read_text())}
    assert named == {"PERDURE_TEST_SEED"}


def exit_codes_as_numbers(source: str) -> list[int]:
    """Lines in which a command is ended with a number other than 0, not a name of exit_codes.py."""
    found = []
    for node in ast.walk(ast.parse(source)):
        ending = isinstance(node, ast.Call) and ast.unparse(node.func) in ENDINGS
        kept = isinstance(node, ast.Assign) and any(
            ast.unparse(target).endswith(("exit_code", "EXIT_CODE")) for target in node.targets
        )
        if not ending and not kept:
            continue
        parts = node.args if isinstance(node, ast.Call) else [node.value]
        numbers = (each for part in parts for each in ast.walk(part))
        found += [node.lineno for each in numbers
                  if isinstance(each, ast.Constant) and type(each.value) is int and each.value]
    return found


ENDINGS = ("typer.Exit", "sys.exit", "os._exit", "SystemExit")


def test_the_command_ends_with_no_code_but_those_of_the_list():
    for path in (ROOT / "python").rglob("*.py"):
        assert exit_codes_as_numbers(path.read_text(encoding="utf-8")) == [], path


@pytest.mark.parametrize(
    "line", ["raise typer.Exit(3)", "raise typer.Exit(0 if fine else 1)", "sys.exit(code or 5)",
             "result.exit_code = result.exit_code or 122"])  # fmt: skip
def test_a_code_that_is_not_in_the_list_is_found(line):
    assert exit_codes_as_numbers(line) == [1]
