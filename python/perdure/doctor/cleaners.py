# SPDX-License-Identifier: BSD-3-Clause
"""What removes old files, or those of users who logged out, and whether a directory is in its way.

Of systemd-tmpfiles the lines are read that give an age (tmpfiles.d(5)), of a file of each name the
first in /etc, /run and /usr/lib; of tmpreaper and tmpwatch their directories; of logind RemoveIPC.
"""

from __future__ import annotations

import configparser
import fnmatch
import pwd
import re
import shlex
from pathlib import Path

from perdure.doctor.check import OK, PROBLEM, Check
from perdure.doctor.machine import Machine

_FOLDERS = ("etc/tmpfiles.d", "run/tmpfiles.d", "usr/local/lib/tmpfiles.d", "usr/lib/tmpfiles.d")
_AGED = set("dDevqQCX")  # X excludes a folder, but not what is in it
_EXCLUDED = set("xX")
_LOGIND = ("usr/lib/systemd/logind.conf", "run/systemd/logind.conf", "etc/systemd/logind.conf")
_SYSTEM_UIDS = 1000


def cleaner_check(machine: Machine, path: Path) -> Check:
    """The first cleaner that would take a pool from the directory, if there is any."""
    place = str(path.resolve())
    rule = _tmpfiles_rule(machine, place)
    if rule is not None:
        where, age = rule
        excluded = shlex.quote(f"x {place}")
        return _taken("systemd-tmpfiles", f"removes what is older than {age} from {where}",
                      "exclude the directory",
                      f"echo {excluded} | sudo tee -a /etc/tmpfiles.d/perdure.conf")
    for check in (_tmpreaper(machine, place), _tmpwatch(machine, place), _logind(machine, place)):
        if check is not None:
            return check
    return Check("cleaners", OK, "none cleans here", "a pool stays until it is removed",
                 facts={"cleaner": None})


def _taken(cleaner: str, what: str, improve: str, command: str) -> Check:
    return Check("cleaners", PROBLEM, f"{cleaner} {what}",
                 "a pool that is not in use goes; of one in use the next commit fails", improve,
                 command, {"cleaner": cleaner})


def _below(place: str, folder: str) -> bool:
    folder = folder.rstrip("/")
    return place == folder or place.startswith(folder + "/")


def _matches(place: str, pattern: str) -> bool:
    """Whether the pattern is of the place, or of a folder above it."""
    parents = [place, *map(str, Path(place).parents)]
    return any(fnmatch.fnmatchcase(each, pattern.rstrip("/") or "/") for each in parents)


def _tmpfiles_rule(machine: Machine, place: str) -> tuple[str, str] | None:
    """(folder, age) of the innermost rule; None where systemd does not run, or has none."""
    if not machine.has("run/systemd/system"):
        return None
    found: tuple[str, str] | None = None
    for kind, pattern, age in _tmpfiles_lines(machine):
        if not _matches(place, pattern):
            continue
        if kind in _EXCLUDED:
            return None
        longer = found is None or len(pattern) > len(found[0])
        if longer:
            found = (pattern, age) if age != "-" else found
    return found


def _tmpfiles_lines(machine: Machine) -> list[tuple[str, str, str]]:
    """(letter, path, age) of all lines that can clean or exclude; those that exclude come first."""
    files: dict[str, str] = {}
    for folder in _FOLDERS:
        for name in machine.names(folder):
            if name.endswith(".conf"):
                files.setdefault(name, f"{folder}/{name}")
    lines = []
    for file in files.values():
        for line in machine.read(file).splitlines():
            words = _words(line)
            if len(words) < 2 or words[0][0] not in _AGED | _EXCLUDED:
                continue
            age = (words[5:6] or ["-"])[0]
            lines.append((words[0][0], words[1], age.lstrip("~") or "-"))
    return sorted(lines, key=lambda each: each[0] not in _EXCLUDED)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quote without its other
        return line.split()


def _tmpreaper(machine: Machine, place: str) -> Check | None:
    text = machine.read("etc/tmpreaper.conf")
    if not text or re.search(r"^SHOWWARNING=true", text, re.M):  # Debian's switch, it does nothing
        return None
    folders = re.search(r"^TMPREAPER_DIRS=['\"]?([^'\"\n]*)", text, re.M)
    age = re.search(r"^TMPREAPER_TIME=['\"]?([^'\"\n]*)", text, re.M)
    for folder in (folders[1] if folders else "/tmp/.").split():
        if _below(place, folder.removesuffix("/.")):
            protected = shlex.quote(f"TMPREAPER_PROTECT_EXTRA='{place}/*'")
            return _taken("tmpreaper", f"removes what is older than {age[1] if age else '7d'} "
                          f"from {folder}", "protect the directory",
                          f"echo {protected} | sudo tee -a /etc/tmpreaper.conf")
    return None


def _tmpwatch(machine: Machine, place: str) -> Check | None:
    text = machine.read("etc/cron.daily/tmpwatch")
    for folder in ("/tmp", "/var/tmp"):
        if re.search(rf"\s{folder}(\s|$)", text) and _below(place, folder):
            return _taken("tmpwatch", f"removes old files from {folder}",
                          "exclude the directory: -x in /etc/cron.daily/tmpwatch", "")
    return None


def _logind(machine: Machine, place: str) -> Check | None:
    """RemoveIPC takes a user's files of /dev/shm when the user's last session ends."""
    if not _below(place, "/dev/shm") or machine.uid < _SYSTEM_UIDS:
        return None
    if not machine.has("run/systemd/sessions") or not _removes_ipc(machine):
        return None
    if machine.has(f"var/lib/systemd/linger/{_user_name(machine.uid)}"):
        return None
    return _taken("logind", "removes your files of /dev/shm when you log out (RemoveIPC)",
                  "let your session outlive the log-out", "loginctl enable-linger")


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _removes_ipc(machine: Machine) -> bool:
    """What logind.conf says; the last file counts. It is on unless it is set."""
    value = "yes"
    for file in _LOGIND:
        for each in (file, *(f"{file}.d/{name}" for name in machine.names(f"{file}.d"))):
            settings = configparser.ConfigParser(interpolation=None, strict=False)
            try:
                settings.read_string(machine.read(each))
            except configparser.Error:
                continue
            value = settings.get("Login", "RemoveIPC", fallback=value)
    return value.strip().lower() not in ("no", "false", "off", "0", "n", "f")
