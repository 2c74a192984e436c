# SPDX-License-Identifier: BSD-3-Clause
"""What a build tree compiles, from its compile_commands.json.

CMake may put sources of a target together (perdure_together in cmake/perdure_module.cmake); the
command is then that of a file which includes them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

Command = dict[str, str]


def sources_of(command: Command) -> list[str]:
    """The sources that a command compiles."""
    path = Path(command["directory"], command["file"])
    if path.parent.name != "Unity" or not path.name.startswith("unity_"):
        return [command["file"]]
    return re.findall(r'^#include "(.+)"$', path.read_text(encoding="utf-8"), re.MULTILINE)


def commands_of(build: Path) -> list[Command]:
    """The commands of a build tree."""
    commands: list[Command] = json.loads((build / "compile_commands.json").read_text("utf-8"))
    return commands


def one_by_one(build: Path) -> list[Command]:
    """The same, with a command for each source."""
    return [
        {**command, "file": source, "command": command["command"].replace(command["file"], source)}
        for command in commands_of(build)
        for source in sources_of(command)
    ]
