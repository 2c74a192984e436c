# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS hostile
"""What files and other users contain does not reach the terminal, and never holds a command up."""

from __future__ import annotations

import ctypes
import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest

from conftest import BUILD, ROOT
from perdure import files
from perdure.screen import Screen, one_line, plain

# Each would do something to a terminal, or to a table of rich.
IN_THIS_PROCESS = True
EVIL = [
    "[/]",
    "[bold]loud[/bold]",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[31m",
    "\x9b31m",
    "\u202egnp.exe",
    "two\nlines",
    "$\\frac{1}{0}$",
    "\x00",
]


class Options(ctypes.Structure):
    _fields_ = [
        ("flags", ctypes.c_uint),
        ("job", ctypes.c_char_p),
        ("emulate", ctypes.c_char_p),
        ("delay", ctypes.c_int),
        ("copy_threads", ctypes.c_uint),
        ("keep", ctypes.c_uint),
        ("levels", ctypes.c_char_p),
    ]


def make_pool(directory: Path, name: str) -> None:
    """A pool whose job and whose array have that name."""
    library = ctypes.CDLL(str(BUILD / "src/capi/libperdure.so"))
    library.perdure_last_error.restype = ctypes.c_char_p
    pool, array = ctypes.c_void_p(), ctypes.c_void_p()

    def check(code: int) -> None:
        assert code == 0, library.perdure_last_error()

    options = Options(job=name.encode())
    check(library.perdure_open(str(directory).encode(), ctypes.byref(options), ctypes.byref(pool)))
    shape = ctypes.c_uint64(3)
    check(library.perdure_array_open(pool, name.encode(), 5, 1, ctypes.byref(shape), 1, None,
                                     ctypes.byref(array)))
    check(library.perdure_restart(pool, None))
    check(library.perdure_commit(pool, None))
    check(library.perdure_close(pool))


def assert_harmless(text: str) -> None:
    for character in text:
        assert character in "\n\t" or character.isprintable(), repr(text)


# At most 63 bytes, as the name of a job is.
@pytest.mark.parametrize("name", ["[/]", "[bold]x\x1b]0;t\x07\x1b[2J\x9b31m\u202eexe\ntwo"])
def test_names_in_a_pool_are_shown_as_they_are(perdure, tmp_path, name):
    place = tmp_path / name.replace("/", "") if name != "[/]" else tmp_path / "[red]"
    make_pool(place, name)
    for words in (("ls", tmp_path), ("ls", place), ("show", place), ("check", place),
                  ("versions", place), ("dump", place, name), ("dump", place, "no such array")):
        ran = perdure("pool", *words)
        assert ran.code == (1 if "no such array" in words else 0), (words, ran.err)
        assert_harmless(ran.out.decode() + ran.err)
        if words[0] == "show":
            assert one_line(name) in ran.out.decode()
    shown = json.loads(perdure("pool", "show", "--json", place).out)
    assert shown["job"] == name


def test_what_plans_and_profiles_contain_is_shown_as_it_is(perdure, tmp_path):
    name = "".join(EVIL)
    for number, document in enumerate((
        {"kind": name},
        {"schema": 1, "kind": "perdure-energy-plan", "interval_s": name},
        {"schema": 1, "kind": "perdure-energy-plan", name: 1},
        {"schema": name, "kind": "perdure-energy-profile"},
        [name],
        name,
    )):
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(document), encoding="utf-8")
        for words in (("energy", "explain", file), ("run", "--commit-plan", file, "--", "true")):
            ran = perdure(*words)
            assert ran.code != 0 and "Traceback" not in ran.err, ran.err
            assert_harmless(ran.out.decode() + ran.err)


def test_what_is_no_file_is_an_error_at_once(perdure, tmp_path):
    fifo, folder = tmp_path / "fifo", tmp_path / "folder"
    os.mkfifo(fifo)
    folder.mkdir()
    for place in (fifo, folder):
        for words in (("energy", "explain", place), ("ipv", "explain", place),
                      ("run", "--commit-plan", place, "--", "true")):
            ran = perdure(*words, limit_s=30)
            assert ran.code not in (0, 124) and "Traceback" not in ran.err, (words, ran.err)


def test_the_promise_reads_the_same_everywhere():
    """P6 is word for word the same in the promise and among the threats."""
    promises = [
        re.search(r"^- \*\*P6 .*?\n\n", (ROOT / page).read_text("utf-8"), re.M | re.S).group()
        for page in ("docs/promise.md", "docs/security.md")
    ]
    assert promises[0] == promises[1]


def test_ls_of_a_missing_directory_is_an_error(perdure, tmp_path):
    ran = perdure("pool", "ls", tmp_path / "none")
    assert ran.code == 2 and "none" in ran.err


def test_rm_asks_only_about_pools_that_exist(perdure, tmp_path):
    ran = perdure("pool", "rm", tmp_path / "none", stdin=b"y\n")
    assert ran.code == 2 and b"Remove" not in ran.out and "holds no pool" in ran.err


def test_the_command_says_whose_a_pool_is_and_adopts_a_copy(perdure, tmp_path):
    make_pool(tmp_path / "pool", "job")
    text = perdure("pool", "ls", tmp_path).out.decode()
    assert f"({os.geteuid()})" in text
    shown = json.loads(perdure("pool", "show", "--json", tmp_path / "pool").out)
    assert shown["owner"]["uid"] == os.geteuid()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("job", "rank-00000"):
        (copy / name).write_bytes((tmp_path / "pool" / name).read_bytes())
        (copy / name).chmod(0o600)
    assert "adopt" in perdure("pool", "check", copy).out.decode()
    assert perdure("pool", "adopt", copy).code == 0
    assert "adopt" not in perdure("pool", "check", copy).out.decode()


def test_what_is_written_replaces_a_link_and_never_follows_it(tmp_path):
    precious, link = tmp_path / "precious", tmp_path / "report.json"
    precious.write_text("results of a month")
    link.symlink_to(precious)
    (tmp_path / f".report.json.{os.getpid()}").symlink_to(precious)
    files.write_text(link, "ours")
    assert precious.read_text() == "results of a month"
    assert link.read_text() == "ours" and not link.is_symlink()
    assert stat.S_IMODE(link.stat().st_mode) == 0o600
    with pytest.raises(OSError):
        link.unlink()
        link.symlink_to(precious)
        files.append_text(link, "more")
    assert precious.read_text() == "results of a month"
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for act in (lambda: files.read_bytes(fifo), lambda: files.write_text(fifo, "x"),
                lambda: files.append_text(fifo, "x")):
        with pytest.raises(OSError):
            act()
    big = tmp_path / "big"
    big.write_bytes(bytes(1001))
    assert len(files.read_bytes(big, 1001)) == 1001
    with pytest.raises(files.NotAFile):
        files.read_bytes(big, 1000)


@pytest.mark.parametrize("name", EVIL)
def test_a_screen_obeys_nothing_that_it_shows(name, capsys):
    screen = Screen(sys.stdout)
    screen.print(name)
    assert_harmless(capsys.readouterr().out)
    assert_harmless(plain(name))
    assert "\n" not in one_line(name)
    assert plain("Zürich, 5 µs – 100 %") == "Zürich, 5 µs – 100 %"


def test_a_directory_in_the_place_of_an_input_is_named_and_leaves_no_descriptor(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(files.NotAFile, match=f"{re.escape(str(tmp_path))} is a directory"):
        files.read_bytes(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
