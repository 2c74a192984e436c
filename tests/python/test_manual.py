# SPDX-License-Identifier: BSD-3-Clause
"""The man pages that the command writes: they have all verbs and options, and man takes them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import in_this_process
from perdure.cli import command_line
from perdure.exit_codes import FAILED
from perdure_bench.cli import VERBS


def leaves(command, words):
    """Each command below one, with the words that lead to it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
    for word, each in (inner or {}).items():
        yield from leaves(each, [*words, word])


@pytest.fixture(scope="module")
def manual(tmp_path_factory) -> Path:
    """A folder with a space, where the command has written its pages."""
    folder = tmp_path_factory.mktemp("manual") / "my manual"
    ran = in_this_process("help", "--man", folder, verbs=VERBS)
    assert (ran.code, ran.err) == (0, "") and f"man -M '{folder}' perdure" in ran.out.decode()
    return folder


def test_the_pages_have_each_verb_and_each_option(manual):
    pages = {file.stem: file.read_text().replace("\\-", "-")
             for file in (manual / "man1").iterdir()}
    assert set(pages) == {"perdure", *(f"perdure-{verb}" for verb in VERBS)}
    seen = 0
    for words, command in leaves(command_line(VERBS), []):
        page = pages[f"perdure-{words[0]}"]
        assert f"\\fBperdure-{words[0]}\\fR(1)" in pages["perdure"], words
        assert f".B perdure {' '.join(words)}\n" in page
        for param in command.params:
            for option in param.opts if param.param_type_name == "option" else ():
                assert param.hidden or f"\\fB{option}\\fR" in page, (words, option)
                seen += 1
    assert seen > 100


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is missing")
def test_groff_has_no_warning_of_a_page(manual):
    for page in (manual / "man1").iterdir():
        read = ["groff", "-man", "-ww", "-z", "-Kutf8", "-Tutf8", page]
        done = subprocess.run(read, capture_output=True, text=True, check=True, timeout=60)
        assert done.stderr == "", page.name


@pytest.mark.skipif(shutil.which("man") is None, reason="man is missing")
def test_man_shows_a_page_as_it_is_typed(manual):
    show = ["man", "-M", manual, "-P", "cat", "perdure-run"]
    done = subprocess.run(show, capture_output=True, text=True, check=True, timeout=60)
    text = " ".join(done.stdout.split())
    assert "perdure run --log job.log --cache '*.dat' -- mpiexec -n 4 ./solver" in text
    assert "perdure run [options] CMD" in text


def test_a_place_that_is_refused_is_a_failure(tmp_path):
    (tmp_path / "file").touch()
    ran = in_this_process("help", "--man", tmp_path / "file")
    assert ran.code == FAILED and ran.err == f"perdure: {tmp_path / 'file'}: Not a directory\n"
