# SPDX-License-Identifier: BSD-3-Clause
"""Files of settings: which there are, whether they may be believed, and what they say.

A file is TOML with a `key = value` a line, and no tables. The job's, $PERDURE_CONFIG, goes before
the user's, $XDG_CONFIG_HOME/perdure/config.toml. Whoever may write a file can have programs
started: so it must be this user's or root's, and nobody else may write to it or exchange it.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from perdure.failures import Failed, Wrong
from perdure.files import NotAFile, read_bytes
from perdure.settings.keys import BY_NAME

_BYTES_MAX = 64 << 10
JOB_FILE = "PERDURE_CONFIG"


class Setting(NamedTuple):
    """A value as its variable has it, and where it is written."""

    value: str
    file: Path
    line: int  # 0: not known


def user_file() -> Path:
    """Where the user's settings are, if there are any."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "perdure/config.toml"


def settings_of_files() -> dict[str, Setting]:
    """What the files say, by key. Raises Wrong with file and line, OSError for the job's file."""
    found: dict[str, Setting] = {}
    user = user_file()
    if os.path.lexists(user):
        found.update(read_settings(user))
    job = os.environ.get(JOB_FILE)
    if job:
        found.update(read_settings(Path(job)))
    return found


def read_settings(file: Path) -> dict[str, Setting]:
    """What a file says, by key. Raises Wrong, OSError."""
    _check_trusted(file)
    text = _text_of(file)
    lines = _lines_of(text)
    found = {}
    for name, value in _parsed(file, text).items():
        line = lines.get(name, 0)
        where = f"{file}:{line}" if line else str(file)
        if name not in BY_NAME:
            raise Wrong(f"{where}: there is no setting '{name}'{_meant(name)}")
        if not BY_NAME[name].in_file:
            raise Wrong(f"{where}: '{name}' is no setting of a file, as scripts read it: "
                        f"export {BY_NAME[name].variable}=…")
        try:
            found[name] = Setting(BY_NAME[name].kind.variable(value), file, line)
        except Wrong as wrong:
            raise Wrong(f"{where}: {name}: {wrong}") from None
    return found


def _meant(name: str) -> str:
    import difflib

    plain = name.lower().removeprefix("perdure_").replace("-", "_")
    near = difflib.get_close_matches(plain, BY_NAME, n=1)
    return f"; did you mean '{near[0]}'?" if near else "; `perdure config show` lists all"


def _check_trusted(file: Path) -> None:
    """Of the file that the name leads to, and the folder in which it could be exchanged."""
    place = file.resolve()
    for path, what in ((place, "file"), (place.parent, "folder")):
        status = path.stat()
        if status.st_uid not in (os.geteuid(), 0):
            raise Wrong(f"{path}: this {what} of settings belongs to another user "
                        f"({status.st_uid}), who could have programs started: copy it")
        writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if writable and not (what == "folder" and status.st_mode & stat.S_ISVTX):
            raise Wrong(f"{path}: others may write to this {what} of settings: chmod go-w it")
    for path in place.parent.parents:
        mode = path.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise Wrong(f"{path}: every user could exchange what is in this folder, and with it "
                        f"{file}: put it elsewhere")


def _text_of(file: Path) -> str:
    try:
        return read_bytes(file, _BYTES_MAX).decode()
    except NotAFile as wrong:
        raise Wrong(f"{wrong}; settings are a file of text") from None
    except UnicodeDecodeError as wrong:
        raise Wrong(f"{file}: no text in UTF-8, at byte {wrong.start}") from None


def _parsed(file: Path, text: str) -> Mapping[str, Any]:
    toml = _toml()
    try:
        return toml.loads(text)
    except toml.TOMLDecodeError as wrong:
        line = re.search(r"at line (\d+)", str(wrong))
        where = f"{file}:{line[1]}" if line else str(file)
        raise Wrong(f"{where}: not TOML: {wrong}; write a setting as levels = \"every=10\"") \
            from None
    except RecursionError:
        raise Wrong(f"{file}: not TOML of settings: too deep") from None


def _toml() -> Any:
    """From Python 3.11 on it is in the standard library."""
    try:
        return import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    except ImportError:
        raise Failed("a file of settings needs Python 3.11, or pip install tomli") from None


def _lines_of(text: str) -> dict[str, int]:
    """The line of each key that is written bare or in quotes; a table's name counts as one."""
    key = re.compile(r"""\s*\[{0,2}\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*[=.\]]""")
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if found := key.match(line):
            lines.setdefault(found[1] or found[2] or found[3] or "", number)
    return lines


def apply_files() -> None:
    """Sets the variables of this process that files say, and the environment does not."""
    for name, setting in settings_of_files().items():
        variable = BY_NAME[name].variable
        os.environ[variable] = os.environ.get(variable) or setting.value
