# SPDX-License-Identifier: BSD-3-Clause
"""Copies installed Python packages, with all that they require, to a folder.

    python copy_packages.py FOLDER NAME…

What a package brings as scripts is left out.
"""

from __future__ import annotations

import re
import shutil
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


def closure(names: list[str]) -> dict[str, Distribution]:
    """The packages and, again and again, what they require here, without extras."""
    found: dict[str, Distribution] = {}
    wanted = list(names)
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in found:
            continue
        found[name] = distribution(name)
        for line in found[name].requires or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    for package in closure(sys.argv[2:]).values():
        for file in package.files or []:
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            place = folder / file
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), place)


if __name__ == "__main__":
    main()
