# SPDX-License-Identifier: BSD-3-Clause
"""The recipes of packaging name options, scripts and presets that exist, and the same version."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from conftest import BUILD, ROOT

PACKAGING = ROOT / "packaging"
RECIPES = sorted(
    path
    for path in PACKAGING.rglob("*")
    if path.name in ("package.py", "Dockerfile", "perdure.def", "meta.yaml")
)


def version() -> str:
    found = re.search(r"project\(perdure VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert found
    return found[1]


def test_there_is_a_recipe_for_each():
    assert [path.name for path in RECIPES] == [
        "meta.yaml", "Dockerfile", "perdure.def", "package.py"]  # fmt: skip


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.name)
def test_options_presets_and_scripts_exist(recipe):
    text = recipe.read_text()
    sources = "".join(path.read_text() for path in (ROOT / "cmake").glob("*.cmake"))
    sources += (ROOT / "CMakeLists.txt").read_text()
    options = set(re.findall(r"(PERDURE_[A-Z_]+)", text)) - {"PERDURE_ROOT"}
    assert options
    for option in options:
        assert re.search(rf"(option|set)\({option}\b", sources), option
    presets = {each["name"] for each in json.loads((ROOT / "CMakePresets.json").read_text())[
        "configurePresets"]}  # fmt: skip
    assert set(re.findall(r"--preset (\w+)", text)) <= presets
    for script in re.findall(r"tools/[a-z_]+\.sh", text):
        assert (ROOT / script).exists()


def test_spack_recipe_is_python_with_the_requirements_of_the_package():
    text = (PACKAGING / "spack/packages/perdure/package.py").read_text()
    tree = ast.parse(text)
    calls = [
        (node.func.id, node.args[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ]
    needed = {name.split("@")[0] for kind, name in calls if kind == "depends_on"}
    project = (ROOT / "pyproject.toml").read_text()
    dependencies = re.search(r"^dependencies = \[(.*?)\]", project, re.M | re.S)
    assert dependencies
    for name in re.findall(r'"([a-z0-9]+)', dependencies[1]):
        assert f"py-{name}" in needed
    assert ("version", version()) in calls


@pytest.mark.parametrize("folder", ["command_packages", "completions", "man"])
def test_the_command_is_built_with_packages_from_pythonpath(folder, tmp_path):
    """As Spack brings them: each in a prefix of its own, and named in the environment alone."""
    command = subprocess.run(
        ["ninja", "-C", BUILD, "-t", "commands", "-s", f"{folder}.done"],
        capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    bare = Path(sys.base_prefix, "bin", Path(os.path.realpath(sys.executable)).name)
    command, replaced = re.subn(r"\S*/\.venv/bin/python\S*", str(bare), command)
    assert replaced == 1
    command = command.replace(str(BUILD / folder), str(tmp_path / "made"))
    environment = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}
    subprocess.run(["sh", "-c", command], env=environment, check=True)
    assert any((tmp_path / "made").iterdir())


def test_the_citation_has_the_version():
    assert f"version: {version()}" in (ROOT / "CITATION.cff").read_text()
    assert f'version: "{version()}"' in (PACKAGING / "conda/meta.yaml").read_text()
