# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS hostile
"""Settings: one list of keys, files that become variables, and what `perdure config` says."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, a_few
from perdure.core import load_core
from perdure.failures import Wrong
from perdure.settings.files import read_settings
from perdure.settings.keys import BY_NAME, KEYS
from perdure.units import parse_time

SLIP = "PERDURE_EMULATE"[:-1]


class Home:
    """A user's home with a file of settings, and one of a job."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "config/perdure/config.toml"
        self.user.parent.mkdir(parents=True, mode=0o755)
        self.job = folder / "job.toml"
        self.folder = folder
        folder.chmod(0o755)

    def __call__(self, *words, **variables: str) -> subprocess.CompletedProcess:
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith("PERDURE_") or name == "PERDURE_BUILD"}
        given = {"XDG_CONFIG_HOME": str(self.folder / "config"), **variables}
        if self.job.exists():
            given.setdefault("PERDURE_CONFIG", str(self.job))
        return subprocess.run([ROOT / "perdure", *words], capture_output=True, text=True,
                              timeout=60, check=False, cwd=self.folder, env={**kept, **given})

    def shown(self, **variables: str) -> dict[str, dict]:
        ran = self("config", "show", "--json", **variables)
        assert ran.returncode == 0, ran.stderr
        return {row["key"]: row for row in json.loads(ran.stdout)["settings"]}


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path)


def write(file: Path, text: str) -> Path:
    file.write_text(text)
    file.chmod(0o600)
    return file


# --- the list ------------------------------------------------------------------------------------


def test_each_key_is_a_variable_that_the_library_knows_and_the_page_has_each():
    core = load_core()
    assert all(core.is_known_variable(key.variable) for key in KEYS)
    assert len(BY_NAME) == len(KEYS)


GOOD = {"switch": [(True, "1"), (False, "0")], "text": [("every=10", "every=10")],
        "path": [("/a b/c", "/a b/c")], "time": [("30s", "30s"), ("off", "off")],
        "milliseconds": [(250, "250"), ("2s", "2000"), (0, "0"), ("250ms", "250")]}  # fmt: skip
BAD = {"switch": [1, "yes", "1"], "text": [7, "", "a\nb", "\x1b[2J", True, ["x"]],
       "path": ["a/b", "", 3, "~someone/x", "./x"], "time": [30, "30", "-3s", "soon", "3 parsecs"],
       "milliseconds": [True, -1, 0.5, "30", "x", 3_600_001, "2h", 1e400, []]}  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_value_of_a_key_is_what_its_variable_takes_and_others_are_refused(key, monkeypatch):
    monkeypatch.setenv("HOME", "/somewhere")
    kind = key.kind
    good = [(word, word) for word in kind.choices] or GOOD[kind.name]
    for value, variable in good:
        assert kind.variable(value) == variable
    if kind.name == "path":
        assert kind.variable("~/x") == "/somewhere/x"
    for value in BAD.get(kind.name, ["other", 1, True]):
        with pytest.raises((Wrong, ValueError)):
            kind.variable(value)
    if key.default in ("10000", "30000"):
        assert kind.variable(int(key.default)) == key.default
    if kind.name == "time" and key.default != "off":
        parse_time(key.default, unit="")


# --- which value holds ---------------------------------------------------------------------------


def test_the_environment_goes_before_the_jobs_file_and_that_before_the_users(home):
    write(home.user, 'levels = "every=1"\nemulate = "dram"\n\nlock_wait_ms = "3s"\n')
    write(home.job, 'levels = "every=2"\nemulate = "paper-nvm"\n')
    rows = home.shown(PERDURE_LEVELS="every=3")
    assert [(rows[key]["value"], rows[key]["source"], rows[key]["place"]) for key in
            ("levels", "emulate", "lock_wait_ms", "check")] == [
        ("every=3", "environment", None), ("paper-nvm", "file", f"{home.job}:2"),
        ("3000", "file", f"{home.user}:4"), (None, "default", None)]  # fmt: skip
    assert rows["lock_wait_ms"]["unit"] == "ms" and rows["lock_wait_ms"]["default"] == "10000"
    assert home.shown(PERDURE_LEVELS="")["levels"]["value"] == "every=2"


def test_what_a_verb_starts_has_the_variables_of_the_files(home):
    write(home.user, 'levels = "every=1"\ncheck = true\n')
    write(home.job, 'levels = "a b\'c"\n')
    words = ["--", "sh", "-c", 'echo "$PERDURE_LEVELS,$PERDURE_CHECK,$PERDURE_EMULATE"']
    for verb in (["run", "--quiet"], ["energy", "run", "--writers", "1"]):
        ran = home(*verb, *words, PERDURE_EMULATE="dram")
        assert ran.stdout == "a b'c,1,dram\n", ran.stderr
        assert home(*verb, *words, PERDURE_LEVELS="mine").stdout == "mine,1,\n"


def test_an_option_goes_before_the_files(home):
    write(home.user, 'cache = "files=*.old"\nany_owner = false\n')
    ran = home("run", "--quiet", "--any-owner", "--", "sh", "-c", "echo $PERDURE_ANY_OWNER")
    assert ran.stdout == "1\n", ran.stderr


def test_a_shell_gets_the_same_by_config_env(home):
    write(home.user, 'levels = "a b\'c;$(touch made)"\ncheck = true\n')
    printed = home("config", "env", PERDURE_CHECK="0")
    assert printed.returncode == 0 and "PERDURE_CHECK" not in printed.stdout
    said = subprocess.run(["sh", "-c", f'{printed.stdout}\nprintf %s "$PERDURE_LEVELS"'],
                          capture_output=True, text=True, cwd=home.folder, check=True)
    assert said.stdout == "a b'c;$(touch made)" and not (home.folder / "made").exists()


def test_the_verbs_of_the_command_follow_the_files_themselves(home):
    models = json.loads((ROOT / "data/devices.json").read_text())
    write(home.user, f'devices = "{home.folder}/nothing.json"\n')
    ran = home("devices")
    assert ran.returncode != 0 and "nothing.json" in ran.stderr and models


# --- files that are wrong ------------------------------------------------------------------------

WRONG = [
    ('levls = "x"', ":1: there is no setting 'levls'; did you mean 'levels'?"),
    ('\n\nPERDURE_CHECK = true', ":3: there is no setting 'PERDURE_CHECK'; did you mean 'check'?"),
    ('"lock-wait-ms" = 3', ":1: there is no setting 'lock-wait-ms'; did you mean 'lock_wait_ms'?"),
    ("nothing_like_it = 1", ":1: there is no setting 'nothing_like_it'; `perdure config show`"),
    ("[perdure]\ncheck = true", ":1: there is no setting 'perdure'"),
    ("check.on = true", ":1: check: {'on': True} is neither true nor false"),
    ("# one\ncheck = 1", ":2: check: 1 is neither true nor false"),
    ('lock_wait_ms = "30"', ":1: lock_wait_ms: '30' has no unit"),
    ('lock_wait_ms = "3 parsecs"', ":1: lock_wait_ms: '3 parsecs': 'parsecs' is no unit"),
    ('tracker = "kernal"', ":1: tracker: 'kernal' is none of kernel, faults"),
    ('devices = "mine.json"', ":1: devices: 'mine.json' is no path from / or ~/ on"),
    ('clang = "clang-20"', ":1: 'clang' is no setting of a file"),
    ("check = true\ncheck = false", ":2: not TOML"), ("check = yes", ":1: not TOML"),
    ('levels = "\\u001b[2J"', ":1: levels: '\\x1b[2J' is empty, or has characters"),
    ("\x00", "not TOML"), ("[" * 5000, "not TOML"),
]  # fmt: skip


A_DOZEN = a_few(WRONG, 12)


@pytest.mark.parametrize("text, said", A_DOZEN, ids=range(len(A_DOZEN)))
def test_a_wrong_file_is_a_mistake_with_its_line_before_anything_is_started(home, text, said):
    write(home.user, text + "\n")
    ran = home("run", "--", "touch", "made")
    assert ran.returncode == 2 and not (home.folder / "made").exists(), ran.stderr
    assert f"{home.user}" in ran.stderr and said in ran.stderr and "\x1b" not in ran.stderr
    assert ran.stderr.count("\n") == 1


A_FEW = a_few(WRONG, 1)


@pytest.mark.parametrize("text, said", A_FEW, ids=range(len(A_FEW)))
def test_a_wrong_file_is_a_mistake_of_each_verb_that_needs_it_and_doctor_says_it(home, text, said):
    write(home.user, text + "\n")
    assert home("config", "show").returncode == 2 and home("config", "env").returncode == 2
    assert home("run", "--help").returncode == 0 and home("version").returncode == 0
    doctor = home("doctor", "--json")
    (check,) = [each for each in json.loads(doctor.stdout)["checks"] if each["name"] == "settings"]
    assert doctor.returncode == 1 and check["mark"] == "problem" and said in check["found"]


def test_the_jobs_file_must_be_there_and_the_users_need_not(home):
    assert home("config", "show").returncode == 0
    missing = home("config", "show", PERDURE_CONFIG=str(home.folder / "missing"))
    assert missing.returncode == 2 and "missing: No such file" in missing.stderr


def test_a_file_that_is_none_or_too_long_is_refused_at_once(home):
    for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"),
                 lambda path: write(path, "#" * (1 << 17))):
        make(home.job)
        ran = home("devices")
        assert ran.returncode == 2 and ran.stderr.startswith(
            "perdure: /dev/zero: others" if home.job.is_symlink() else f"perdure: {home.job}")
        home.job.rmdir() if home.job.is_dir() else home.job.unlink()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_not_believed(home, mode):
    write(home.user, "check = true\n").chmod(mode)
    ran = home("config", "show")
    assert ran.returncode == 2 and "others may write to this file" in ran.stderr


@pytest.mark.parametrize("mode, believed", [(0o777, False), (0o770, False), (0o1777, True)])
def test_a_folder_in_which_others_could_exchange_the_file_is_not_believed(home, mode, believed):
    write(home.user, "check = true\n")
    home.user.parent.chmod(mode)
    ran = home("config", "show")
    assert (ran.returncode == 0) == believed
    assert believed or "others may write to this folder" in ran.stderr


def test_a_folder_above_that_every_user_may_write_is_not_believed(home):
    write(home.user, "check = true\n")
    home.folder.chmod(0o777)
    ran = home("config", "show")
    assert ran.returncode == 2 and f"{home.folder}: every user could exchange" in ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")
def test_a_file_of_another_user_is_not_believed_also_through_a_link(home):
    theirs = write(home.folder / "theirs.toml", "check = true\n")
    os.chown(theirs, 4242, 4242)
    home.job.symlink_to(theirs)
    ran = home("run", "--", "touch", "made")
    assert ran.returncode == 2 and "belongs to another user (4242)" in ran.stderr
    assert not (home.folder / "made").exists()


def test_the_users_own_link_to_a_file_of_the_user_is_followed(home):
    real = write(home.folder / "dotfile.toml", "check = true\n")
    home.user.symlink_to(real)
    assert home.shown()["check"]["value"] == "1"
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_hostile_values_and_names_do_not_reach_the_terminal(home):
    ran = home("config", "show", PERDURE_LEVELS="\x1b[2Jevil\u202e\nline",
               **{"PERDURE_\x1b[2J": "1", SLIP: "x"})
    assert ran.returncode == 0 and not set("\x1b\u202e") & set(ran.stdout + ran.stderr)
    assert f"{SLIP} is set" in ran.stderr and "did you mean PERDURE_EMULATE?" in ran.stderr


# --- what is said of one -------------------------------------------------------------------------


def test_one_setting_has_all_that_is_known_and_a_wrong_name_is_a_mistake(home):
    ran = home("config", "show", "tracker")
    assert "word of kernel, faults" in ran.stdout and "PERDURE_TRACKER" in ran.stdout
    assert home("config", "show", "trakcer").returncode == 2


def test_config_without_words_says_how_programs_are_built_as_before(home):
    alone, asked = home("config"), home("config", "flags")
    assert alone.stdout == asked.stdout and re.search(r"^cflags ", alone.stdout, re.M)


def test_a_line_is_found_for_each_key_that_a_file_has(tmp_path):
    tmp_path.chmod(0o755)
    file = write(tmp_path / "x.toml", '# levels = "no"\n"check" = true\n  levels="every=1"\n'
                 "'emulate' = '''dram'''\n")
    assert {key: each.line for key, each in read_settings(file).items()} == \
        {"check": 2, "levels": 3, "emulate": 4}


# --- programs in C -------------------------------------------------------------------------------

OPENS = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
pool = ctypes.c_void_p()
print(library.perdure_flush_init(1) if sys.argv[2] == "flush" else
      library.perdure_open(sys.argv[2].encode(), None, ctypes.byref(pool)))
"""


@pytest.mark.parametrize("entry", ["flush", "pool"])
def test_a_slip_of_the_keys_is_named_where_a_program_begins_with_the_library(entry, tmp_path):
    library = BUILD / "src/capi/libperdure.so"
    place = "flush" if entry == "flush" else str(tmp_path / "pool")
    ran = subprocess.run([sys.executable, "-c", OPENS, library, place], capture_output=True,
                         text=True, timeout=60, check=True, env={**os.environ, SLIP: "x"})
    assert ran.stdout == "0\n"
    assert f"{SLIP} is set" in ran.stderr and ran.stderr.count("did you mean PERDURE_EMULATE?") == 1
