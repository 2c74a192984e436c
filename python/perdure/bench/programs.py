"""Finds and runs the benchmark programs of the build tree or the installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from perdure.bench.facts import Fact, read_facts


class BenchFailed(RuntimeError):
    """A benchmark program is missing, or did not end well."""


def build_trees() -> list[Path]:
    """Where programs may stand: $PERDURE_BUILD, this clone's builds, the installation."""
    places = [Path(os.environ["PERDURE_BUILD"])] if os.environ.get("PERDURE_BUILD") else []
    clone = Path(__file__).resolve().parents[3]
    if (clone / "CMakePresets.json").exists():
        places += [clone / "build/release", clone / "build/dev"]
    places.append(Path(sys.prefix) / "libexec/perdure")
    return places


def find_program(name: str, folder: str = "bench") -> Path:
    """The program `name` below `folder` (bench, apps) of a build tree, or installed.

    Raises BenchFailed that says where it was looked for.
    """
    looked_at = []
    for tree in build_trees():
        for path in (tree / folder / name, *(tree / folder).glob(f"*/{name}"), tree / name):
            if os.access(path, os.X_OK) and path.is_file():
                return path
        looked_at.append(str(tree))
    if (found := shutil.which(name)) is not None:
        return Path(found)
    raise BenchFailed(f"there is no program {name} in {', '.join(looked_at)}; build it first")


def run_lines(command: list[str], environment: dict[str, str] | None = None) -> Iterator[str]:
    """The lines that `command` prints, as they come; stderr is passed through.

    `environment` is added to this process's. Raises BenchFailed if the exit code is not 0.
    """
    words = [str(word) for word in command]
    surroundings = {**os.environ, **(environment or {})}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=surroundings) as running:
        try:
            yield from running.stdout
        finally:
            if sys.exc_info()[0] is not None:
                running.terminate()
    if running.returncode != 0:
        raise BenchFailed(f"{Path(words[0]).name} ended with {running.returncode}")


def run_program(name: str, options: list[str], each: Callable[[Fact], None]) -> None:
    """Runs the bench program `name` and hands over each of its facts as it comes."""
    for fact in read_facts(run_lines([str(find_program(name)), *options])):
        each(fact)
