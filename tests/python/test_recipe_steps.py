# SPDX-License-Identifier: BSD-3-Clause
"""The recipes of CONTRIBUTING, followed on a copy of the tree: what they add is built and tested.

What is added lies in tests/recipes, or is the template that the recipe names, under another name.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ROOT

SLOW = os.environ.get("PERDURE_SLOW_TESTS") == "1"


@dataclass(frozen=True)
class Step:
    """A file that a recipe adds, as `source` with `old` replaced, and a list that it joins."""

    recipe: str
    source: str
    file: str
    old: str = ""
    joins: str = ""

    @property
    def name(self) -> str:
        return Path(self.file).stem

    def follow(self, tree: Path) -> None:
        text = (ROOT / self.source).read_text()
        if self.old:
            text = re.sub(rf"(?<!\.)\b{self.old}", self.name, text)  # not what numpy has
            text = text.replace(self.old.capitalize(), self.name.capitalize())
        assert not (tree / self.file).exists()
        (tree / self.file).write_text(text)
        if self.joins:
            path = tree / self.joins
            path.write_text(re.sub(rf"\b{self.old}\b", f"{self.old} {self.name}", path.read_text()))


STEPS = (
    Step("A scheme of redundancy", "tests/recipes/local.cpp", "src/levels/codings/local.cpp"),
    Step("A level", "tests/recipes/memory.cpp", "src/levels/kinds/memory.cpp"),
    Step("A paging policy", "src/sim/policies/fifo.cpp", "src/sim/policies/queue.cpp", "fifo",
         "src/sim/CMakeLists.txt"),
    Step("A law of failures", "python/perdure/energy/laws/weibull.py",
         "python/perdure/energy/laws/ageing.py", "weibull"),
)  # fmt: skip


def files_of(recipe: str) -> str:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.search(rf"^### {recipe}\n\nFiles: (.*?)\n\n", page, re.M | re.S)
    assert found, recipe
    return found[1]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of all that git knows, with what the recipes add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("this tree is no clone")
    copied = tmp_path_factory.mktemp("tree")
    for name in filter(None, listed.stdout.split("\0")):
        if not (ROOT / name).is_file():
            continue
        (copied / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copied / name)
    for step in STEPS:
        step.follow(copied)
    add_memory_model(copied / "data/devices.json")
    add_module(copied / "src/added")
    return copied


def add_memory_model(table: Path) -> None:
    models = json.loads(table.read_text())
    models["devices"].append({**models["devices"][1], "name": "added"})
    table.write_text(json.dumps(models))


def add_module(folder: Path) -> None:
    folder.mkdir()
    licence = "SPDX-License-Identifier: BSD-3-Clause\n"
    (folder / "added.cpp").write_text(f'// {licence}#include "base/status.hpp"\n')
    (folder / "CMakeLists.txt").write_text(f"# {licence}perdure_module(added DEPS base)\n")
    modules = folder.parent / "CMakeLists.txt"
    modules.write_text(modules.read_text().replace(" veloc)", " veloc added)"))
    layers = folder.parents[1] / "tools/layers.txt"
    layers.write_text(layers.read_text() + "added ⇐ base\n")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_recipe_names_the_files_that_it_takes(step):
    named = files_of(step.recipe)
    assert step.file.replace(step.name, "NAME") in named
    assert step.joins in named
    assert len(re.findall(r"`[^`]*/[^`]*`", named)) <= 3


@pytest.mark.skipif(not SLOW, reason="compiles half of the library; make soak does")
def test_what_the_recipes_add_is_built_and_passes(tree):
    build = tree / "build"
    options = ("-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DPERDURE_PYTHON=OFF",
               "-DPERDURE_MPI_WRAPPERS=")  # fmt: skip
    subprocess.run(["cmake", "-S", tree, "-B", build, "-G", "Ninja", *options], check=True)
    tests = {
        "levels_tests": "kinds_test.cpp,redundancy_test.cpp",
        "sim_tests": "account_test.cpp,policy_test.cpp,run_test.cpp,sweep_test.cpp",
        "model_tests": "device_table_test.cpp",
    }
    programs = [*tests, "node_losses"]
    subprocess.run(["cmake", "--build", build, "-j", "2", "--target", *programs, "perdure_added"],
                   check=True)  # fmt: skip
    found = {path.name: path for path in build.rglob("*") if path.name in programs}
    for test, sources in tests.items():
        subprocess.run([found[test], f"--sources={sources}"], check=True)
    lose = [found["node_losses"], "--scheme", "local:2", "--nodes", "4", "--trials", "40"]
    subprocess.run(lose, check=True)


@pytest.mark.skipif(not SLOW, reason="compares laws for a minute; make soak does")
def test_a_law_that_was_added_is_held_to_what_laws_are_held_to(tree):
    command = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "ageing",
               tree / "tests/python/test_energy_laws.py"]  # fmt: skip
    environment = {**os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    assert re.search(r"\b[1-9]\d* passed", ran.stdout)
