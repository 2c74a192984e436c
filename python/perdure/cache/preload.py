"""What a job's environment needs for its files to be cached: the library, and which files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


class NoLibrary(RuntimeError):
    """There is no library for the job's MPI; the sentence says where it was looked for."""


def flavour_of(command: list[str]) -> str:
    """Which MPI a job's launcher belongs to: mpich or openmpi.

    Asks the launcher (the first word) for its version. Raises NoLibrary if it is neither.
    """
    try:
        asked = subprocess.run(
            [command[0], "--version"], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise NoLibrary(f"{command[0]} --version: {failed}") from None
    text = (asked.stdout + asked.stderr).lower()
    if "open mpi" in text or "openrte" in text or "prrte" in text:
        return "openmpi"
    if "hydra" in text or "mpich" in text:
        return "mpich"
    raise NoLibrary(
        f"{command[0]} is not known as the launcher of MPICH or Open MPI; say --mpi mpich or "
        "--mpi openmpi"
    )


def find_library(flavour: str) -> Path:
    """libperdure_mpi_FLAVOUR.so of a build tree or an installation. Raises NoLibrary."""
    name = f"libperdure_mpi_{flavour}.so"
    clone = Path(__file__).resolve().parents[3]
    places = []
    if os.environ.get("PERDURE_BUILD"):
        places.append(Path(os.environ["PERDURE_BUILD"]) / "src/capi")
    places += [clone / "build/release/src/capi", clone / "build/dev/src/capi"]
    for prefix in (Path(sys.prefix), Path("/usr/local"), Path("/usr")):
        places += [prefix / "lib", prefix / "lib64", *sorted(prefix.glob("lib/*-linux-gnu"))]
    for place in places:
        if (place / name).exists():
            return (place / name).resolve()
    raise NoLibrary(f"there is no {name} in {', '.join(map(str, places))}; build or install it")


def cache_environment(
    command: list[str], patterns: list[str], options: str = "", flavour: str | None = None
) -> dict[str, str]:
    """The variables with which `command` caches the files that match one of the patterns.

    `options` are more of PERDURE_CACHE, such as "pool=/mnt/pmem;ack=async". Raises NoLibrary.
    """
    library = find_library(flavour or flavour_of(command))
    loaded = os.environ.get("LD_PRELOAD")
    wish = f"files={':'.join(patterns)}"
    return {
        "LD_PRELOAD": f"{library}:{loaded}" if loaded else str(library),
        "PERDURE_CACHE": f"{wish};{options}" if options else wish,
    }
