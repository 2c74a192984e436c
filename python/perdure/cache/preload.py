# SPDX-License-Identifier: BSD-3-Clause
"""What a job's environment needs for its files to be cached: the library, and which files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from perdure.programs import ProgramFailed, library_folders

_NAME = "libperdure_preload.so"


class NoLibrary(ProgramFailed):
    """There is no library to preload; the sentence says where it was looked for."""


def find_library() -> Path:
    """libperdure_preload.so of a build tree or an installation. Raises NoLibrary.

    It finds out by itself which MPI a program has.
    """
    places = library_folders("src/capi")
    for prefix in (Path(sys.prefix), Path("/usr/local"), Path("/usr")):
        places += [prefix / "lib", prefix / "lib64", *sorted(prefix.glob("lib/*-linux-gnu"))]
    for place in places:
        if (place / _NAME).exists():
            return (place / _NAME).resolve()
    raise NoLibrary(f"there is no {_NAME} in {', '.join(map(str, places))}; build or install it")


def preloading(library: Path) -> dict[str, str]:
    """The variables with which a job loads `library`, beside what it loads anyway.

    ld.so takes spaces and colons in LD_PRELOAD for separators. So a library in a folder with a
    space is named without its folder, which is searched. Raises NoLibrary for other separators.
    """
    separators = {sign for sign in " :;" if sign in str(library)}
    if separators - {" "}:
        raise NoLibrary(f"{library} can't be preloaded: ld.so takes ':' and ';' in a path for "
                        "separators; build or install Perdure in another folder")
    loaded = os.environ.get("LD_PRELOAD")
    named = library.name if separators else str(library)
    variables = {"LD_PRELOAD": f"{named}:{loaded}" if loaded else named}
    if separators:
        searched = os.environ.get("LD_LIBRARY_PATH")
        variables["LD_LIBRARY_PATH"] = f"{library.parent}:{searched}" if searched else str(
            library.parent
        )
    return variables


def cache_environment(patterns: list[str], options: str = "") -> dict[str, str]:
    """The variables with which a job caches the files that match one of the patterns.

    `options` are more of PERDURE_CACHE, such as "directory=/mnt/pmem;ack=async". Raises NoLibrary.
    """
    settings = f"files={':'.join(patterns)}"
    return {
        **preloading(find_library()),
        "PERDURE_CACHE": f"{settings};{options}" if options else settings,
    }
