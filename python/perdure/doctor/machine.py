# SPDX-License-Identifier: BSD-3-Clause
"""The machine as the doctor sees it: files of the kernel and of the administrator, and programs.

Files are below $PERDURE_SYSFS_ROOT, which is / but in tests. What they hold, and what programs
say, is not believed to be short, or text.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from perdure.core import load_core
from perdure.files import read_beginning

_TEXT_BYTES_MAX = 256 << 10
_PROGRAM_S = 5.0


def _root() -> Path:
    return Path(os.environ.get("PERDURE_SYSFS_ROOT") or "/")


@dataclass(frozen=True)
class Machine:
    """Where the checks look. `core` is what the library says (perdure._core)."""

    core: ModuleType | Any = field(default_factory=load_core)
    root: Path = field(default_factory=_root)
    uid: int = field(default_factory=os.geteuid)

    def at(self, path: str) -> Path:
        """Where a file of the machine is."""
        return self.root / path.lstrip("/")

    def read(self, path: str) -> str:
        """The text of a file; "" if it can't be read."""
        try:
            return read_beginning(self.at(path), _TEXT_BYTES_MAX).decode(errors="replace")
        except OSError:
            return ""

    def has(self, path: str) -> bool:
        """Whether there is anything of that name."""
        return self.at(path).exists()

    def names(self, path: str) -> list[str]:
        """What is in a folder, sorted; nothing if it can't be read."""
        try:
            return sorted(os.listdir(self.at(path)))
        except OSError:
            return []

    def program(self, name: str) -> str | None:
        """Where PATH has the program."""
        return shutil.which(name)

    def programs(self, beginning: str) -> list[str]:
        """Names of programs in PATH that begin so."""
        found: set[str] = set()
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            try:
                names = os.listdir(folder or ".")
            except OSError:
                continue
            found.update(name for name in names if name.startswith(beginning))
        return sorted(name for name in found if shutil.which(name))

    def says(self, *words: str) -> str | None:
        """What a program prints; None if it can't be run, fails, or takes five seconds."""
        try:
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, timeout=_PROGRAM_S, check=False)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
        if done.returncode != 0:
            return None
        return done.stdout[:_TEXT_BYTES_MAX].decode(errors="replace")
