# SPDX-License-Identifier: BSD-3-Clause
"""Snippets of pages are run, or compiled: each block of each page, as snippets.py says of it."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pages
import pytest
import snippets
import tutorial
from snippets import Aside, Compiled, Python, Run, Same, Settings
from test_pages import page, statements

ROOT, BUILD = pages.ROOT, pages.BUILD
LIMIT_S = 200
TORCH = os.environ.get("PERDURE_TORCH_PYTHON") or (sys.executable if find_spec("torch") else None)
EACH = [(name, block, how) for name, blocks in snippets.pages().items()
        for block, how in zip(blocks, snippets.HOW.get(name, []), strict=False)]


def of(kind):
    """The blocks that are held to the code in that way, with a name each."""
    return [pytest.param(name, block, how, id=f"{Path(name).stem}:{block.line}")
            for name, block, how in EACH if isinstance(how, kind)]


def test_every_snippet_of_every_page_has_its_row():
    counts = {name: len(blocks) for name, blocks in snippets.pages().items()}
    assert {name: len(rows) for name, rows in snippets.HOW.items()} == counts
    assert sum(counts.values()) > 80


def test_every_page_with_a_session_is_done_by_a_test():
    listed = (ROOT / "tests/docs/CMakeLists.txt").read_text()
    of_each = r"^(?:set\(pages|perdure_choose\(of_\w+) ([a-z0-9_ ]+?)(?:\)| IF )"
    done = set(" ".join(re.findall(of_each, listed, re.M)).split())
    with_sessions = {path.stem for path in (ROOT / "docs").glob("*.md")
                     if re.search(r"^```(?:console|diff)$", path.read_text(), re.M)}
    assert with_sessions == done and len(done) > 8


def test_a_new_snippet_is_missed():
    text = page("docs/run.md")
    more = snippets.blocks_of(text + "\n    perdure run -- ./solver\n\n    perdure devices\n")
    assert len(more) == len(snippets.blocks_of(text)) + 1
    item = "- an item\n    that goes on\n\n```console\n$ true\n```\n\n```\na screen\n```\n"
    assert snippets.blocks_of(item) == []


def test_what_is_not_run_is_said_with_its_reason():
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|$",
                      page("docs/testing.md").partition("\n## Snippets of the pages")[2]
                      .partition("\n## ")[0], re.M)
    said = {(what, why): set(re.findall(r"\w+", where))
            for what, where, why in rows[1:] if "---" not in where}
    wanted: dict[tuple[str, str], set[str]] = {}
    for name, _, how in EACH:
        aside = how.leave if isinstance(how, Run) else how
        if isinstance(aside, Aside):
            wanted.setdefault((aside.what, aside.why), set()).add(Path(name).stem)
    assert said == wanted
    for _, why in wanted:
        for file in re.findall(r"`(test_[\w]+\.py)`", why):
            assert (ROOT / "tests/python" / file).exists(), file


# --- programs ------------------------------------------------------------------------------------


def framed(frame: str, text: str) -> str:
    """The frame with the snippet where it says so."""
    whole = (snippets.FRAMES / frame).read_text()
    for mark, part in (("first line of the snippet", text.partition("\n")[0]),
                       ("snippet until ...", text.partition("...\n")[0]),
                       ("snippet after ...", text.partition("...\n")[2])):
        if mark in whole:
            line = re.compile(rf"^.*{re.escape(mark)}.*$", re.M)
            whole = line.sub(lambda _, part=part: part, whole)
            text = text.partition("\n")[2] if mark.startswith("first") else text
    return re.sub(r"^ *// snippet$", lambda _: text, whole, flags=re.M)


@pytest.mark.parametrize("name, block, how", of(Compiled))
def test_lines_of_a_program_compile_without_a_warning(name, block, how, tmp_path):
    source = tmp_path / how.frame
    source.write_text(framed(how.frame, block.text))
    language = source.suffix
    tutorial.make_commands(tmp_path / "bin")
    compiler = {".c": [tmp_path / "bin/mpicc"], ".cpp": ["c++", "-std=c++20"],
                ".f90": [tmp_path / "bin/mpifort"]}[language]
    if language == ".f90":
        modules = [ROOT / "fortran/perdure.f90", ROOT / "fortran/perdure_mpi.f90"]
        words = [*compiler, "-fsyntax-only", "-I", ROOT / "fortran", *modules, source]
    else:
        words = [*compiler, "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused-but-set-variable",
                 "-I", ROOT / "include", "-I", snippets.FRAMES, source]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False,
                          timeout=LIMIT_S)
    if "not found" in done.stderr and done.returncode == 127:
        pytest.skip(done.stderr)
    assert done.returncode == 0, f"{name}, line {block.line}\n{done.stderr}"


@pytest.mark.parametrize("name, block, how", of(Same))
def test_lines_of_a_program_are_in_one_that_a_test_runs(name, block, how):
    if block.language == "python":
        assert block.text in page(how.file)
        return
    whole = "".join(statements(page(how.file))).replace(";", "")
    shown = [line.replace(";", "") for line in statements(block.text)]
    assert [line for line in shown if line not in whole] == [] or "".join(shown) in whole


# --- commands ------------------------------------------------------------------------------------


@functools.cache
def commands_in(folder: Path) -> Path:
    tutorial.make_commands(folder)
    return folder


@pytest.fixture
def place():
    """Folders in memory, where there is one: many snippets commit often."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="perdure-test-", dir=memory) as folder:
        yield Path(folder)


@pytest.fixture
def surroundings(tmp_path_factory, place):
    """An empty folder, a home of its own, and the commands of this build on the path."""
    commands = commands_in(tmp_path_factory.getbasetemp() / "bin")
    for folder in ("home", "work", "pmem", "scratch/job"):
        (place / folder).mkdir(parents=True)
    path = f"{commands}:{BUILD / 'trace/bin'}:{ROOT}:{os.environ['PATH']}"
    if TORCH is not None:
        path += f":{Path(TORCH).parent}"  # torchrun
    return {
        **{name: value for name, value in os.environ.items()
           if not name.startswith(("PERDURE_", "SLURM_"))},
        "PATH": path, "HOME": str(place / "home"), "PERDURE_BUILD": str(BUILD), "ROOT": str(ROOT),
        "XDG_CONFIG_HOME": str(place / "home/.config"), "FRAMES": str(snippets.FRAMES),
        "EXAMPLES": str(ROOT / "examples"), "TESTS": str(ROOT / "tests"),
        "LD_LIBRARY_PATH": f"{BUILD / 'src/capi'}:{BUILD / 'src/preload'}",
        "CPATH": str(ROOT / "include"),
        "PYTHONPATH": f"{BUILD / 'python'}:{ROOT / 'python'}",
    }  # fmt: skip


def script_of(block, how, place: Path) -> str:
    """What a shell is given: the commands as they stand, except for what a test has elsewhere."""
    text = re.sub(r" -- mpiexec …$", " -- mpiexec -n 4 ./solver", block.text, flags=re.M)
    other = {"/mnt/pmem": str(place / "pmem"), "/scratch": str(place / "scratch"),
             "/tmp/run": str(place / "record"), "mpiexec -n 4": "mpiexec -n 2",
             "build/dev": str(BUILD), "./perdure ": "perdure "}
    for old, new in {**how.other, **other}.items():
        assert old in text or old in other, f"'{old}' is gone from the page"
        text = text.replace(old, new)
    kept = [line for line in text.splitlines()
            if how.leave is None or not line.startswith("perdure bench")]
    lines = [part for line in kept for part in (how.each, line)]
    return "\n".join(["set -e -o pipefail", how.prepare, *lines, how.after])


@pytest.mark.parametrize("name, block, how", of(Run))
def test_commands_end_well(name, block, how, surroundings, place):
    for needed in how.needs:
        if shutil.which(needed, path=surroundings["PATH"]) is None:
            pytest.skip(f"there is no {needed}")
    done = subprocess.run(["bash", "-c", script_of(block, how, place)], env=surroundings,
                          cwd=place / "work", stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=LIMIT_S)  # fmt: skip
    ended = f"{done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    assert done.returncode == 0, f"{name}, line {block.line}\n{block.text}\nended with {ended}"


@pytest.mark.parametrize("name, block, how", of(Settings))
def test_settings_of_a_file_are_found_and_hold(name, block, how, surroundings, place):
    folder = place / "home/.config/perdure"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(block.text)
    shown = subprocess.run([ROOT / "perdure", "config", "show"], env=surroundings, check=True,
                           capture_output=True, text=True, timeout=LIMIT_S).stdout  # fmt: skip
    keys = re.findall(r"^(\w+) = ", block.text, re.M)
    assert keys
    for key in keys:
        (line,) = [line for line in shown.splitlines() if line.startswith(key)]
        assert line.split("\t")[1].startswith("user's, line"), line


# --- Python --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, block, how", of(Python))
def test_lines_of_python_run(name, block, how, surroundings, place):
    python = TORCH if how.torch else sys.executable
    if python is None:
        pytest.skip("needs PyTorch: pip install torch, or PERDURE_TORCH_PYTHON")
    text = block.text
    for old, new in how.other.items():
        assert old in text, f"'{old}' is gone from the page"
        text = text.replace(old, new)
    program = f"PMEM = '{place}/pmem'\n{how.before}\n{text}\n{how.after}\n"
    (place / "work/program.py").write_text(program.replace("/mnt/pmem", f"{place}/pmem"))
    for _ in range(how.times):
        done = subprocess.run([python, "program.py", "heat"], env=surroundings,
                              cwd=place / "work", capture_output=True, text=True, check=False,
                              timeout=LIMIT_S)  # fmt: skip
        assert done.returncode == 0, f"{name}, line {block.line}\n{done.stderr}"
