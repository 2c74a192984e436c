# SPDX-License-Identifier: BSD-3-Clause
"""Finds and runs programs of the build tree or the installation, MPI programs among them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.exit_codes import SIGNALLED
from perdure.failures import Failed, NoProgram, NotExecutable

PACKAGE = Path(__file__).resolve().parent
CLONE = PACKAGE.parents[1]  # where the sources are; LIBDIR/perdure in a prefix
# Open MPI runs as root, on fewer cores than ranks, and yields only if it is asked to.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


class ProgramFailed(Failed):
    """A program is missing, did not end well, or what it reports cannot be."""


def build_trees() -> list[Path]:
    """Where programs may be: $PERDURE_BUILD, this clone's builds, the installation."""
    return [*_builds(), CLONE / "programs"]  # of LIBDIR/perdure, where it is installed


def _builds() -> list[Path]:
    places = [Path(os.environ["PERDURE_BUILD"])] if os.environ.get("PERDURE_BUILD") else []
    if (CLONE / "CMakePresets.json").exists():
        places += [CLONE / "build/release", CLONE / "build/dev"]
    return places


def library_folders(in_build: str, installed: str = "") -> list[Path]:
    """Where the libraries of this Perdure may be: those of builds, of the wheel, of the prefix.

    Below a build tree that is `in_build`, below a folder of installed libraries `installed`.
    """
    places = [tree / in_build for tree in _builds()]
    places.append(PACKAGE / "lib" / installed)
    if CLONE.name == "perdure" and PACKAGE.parent.name == "python":
        places.append(CLONE.parent / installed)  # LIBDIR
    return places


def find_program(name: str, folder: str = "bench") -> Path:
    """The program `name` below `folder` (bench, apps) of a build tree, or installed.

    Raises ProgramFailed that says where it was looked for.
    """
    looked_at = []
    for tree in build_trees():
        for path in (tree / folder / name, *(tree / folder).glob(f"*/{name}"), tree / name):
            if os.access(path, os.X_OK) and path.is_file():
                return path
        looked_at.append(str(tree))
    if (found := shutil.which(name)) is not None:
        return Path(found)
    raise ProgramFailed(f"there is no program {name} in {', '.join(looked_at)}; {_remedy()}")


def _remedy() -> str:
    if (CLONE / "CMakePresets.json").exists():
        return f"build it: make -C {CLONE} all"
    return "it is not installed with Perdure, but built in its clone, by make all"


def make_program(name: str, folder: str = "bench") -> Path:
    """The program `name`, which a build tree, if there is one, makes or brings up to date first.

    Raises ProgramFailed with the end of the build's output.
    """
    for tree in build_trees():
        if not (tree / "build.ninja").exists():
            continue
        making = ["cmake", "--build", str(tree), "--target", name]
        made = subprocess.run(making, check=False, capture_output=True, text=True)
        if made.returncode != 0:
            last = "\n".join((made.stdout + made.stderr).splitlines()[-20:])
            raise ProgramFailed(f"{' '.join(making)} failed:\n{last}")
        break
    return find_program(name, folder)


def run_lines(command: list[str], environment: dict[str, str] | None = None) -> Iterator[str]:
    """The lines that `command` prints, as they come; stderr is passed through.

    `environment` is added to this process's. Raises ProgramFailed if the exit code is not 0.
    """
    words = [str(word) for word in command]
    surroundings = {**os.environ, **(environment or {})}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=surroundings) as running:
        try:
            yield from running.stdout or ()
        finally:
            if sys.exc_info()[0] is not None:
                running.terminate()
    if running.returncode != 0:
        raise ProgramFailed(f"{Path(words[0]).name} ended with {running.returncode}")


def output_of(
    command: Sequence[object],
    name: str,
    environment: dict[str, str] | None = None,
    limit_s: float | None = None,
) -> str:
    """What `command` prints; `environment` is all of its environment, where that is given.

    Raises ProgramFailed, with `name` and the end of what it says, if its exit code is not 0 or it
    has not ended after `limit_s` seconds.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, env=environment,
                              timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"{name}: not done after {limit_s} s") from None
    if done.returncode != 0:
        raise ProgramFailed(f"{name} ended with {done.returncode}: {done.stderr[-500:].strip()}")
    return done.stdout


def run_to_end(command: Sequence[str], more: Mapping[str, str], **how: Any) -> int:
    """Runs `command` with `more` in its environment: its exit code, or minus a signal's number.

    `how`: more for subprocess.Popen. Raises NoProgram or NotExecutable if it can't be started.
    """
    program = program_path(command[0])
    surroundings = {**os.environ, **more}
    try:
        with subprocess.Popen(command, executable=program, env=surroundings, **how) as running:
            return wait_for(running)
    except OSError as failure:
        raise NotExecutable(f"{command[0]}: {failure.strerror}") from None


def program_path(word: str) -> str:
    """Where the program is that a command line begins with, as a shell finds it."""
    program = shutil.which(word)
    if program is not None:
        return program
    if os.path.dirname(word) and os.path.exists(word):
        raise NotExecutable(f"{word}: this is no program that you may run")
    raise NoProgram(f"{word}: there is no such program")


def wait_for(running: subprocess.Popen) -> int:
    """Its exit code. Ctrl-C reaches the program as well, which then ends as it likes."""
    while True:
        try:
            return running.wait()
        except KeyboardInterrupt:
            continue


def end_text(code: int) -> str:
    """How a program ended, if not well."""
    if code == 0:
        return ""
    return f" (it ended with {code})" if code > 0 else f" (signal {-code} ended it)"


def shell_code(code: int) -> int:
    """The exit code of a program as a shell reports it."""
    return code if code >= 0 else SIGNALLED - code


@dataclass(frozen=True)
class Program:
    """An MPI program of one flavour with that MPI's launcher."""

    flavour: str
    program: Path
    launcher: str

    def command(self, ranks: int, *words: object, given: Mapping[str, object] = {}) -> list[str]:
        """The job with `ranks` ranks, which are `given` variables that their launcher hasn't."""
        env = ["env", *(f"{name}={value}" for name, value in given.items())] if given else []
        return [str(word) for word in (self.launcher, "-n", ranks, *env, self.program, *words)]


def find_programs(stem: str, folder: str = "apps") -> list[Program]:
    """STEM_FLAVOUR of every MPI flavour that was built; raises ProgramFailed if there is none."""
    for tree in build_trees():
        programs = sorted((tree / folder).glob(f"**/{stem}_*"))
        programs = [p for p in programs if p.is_file() and os.access(p, os.X_OK)]
        programs = [p for p in programs if not p.name.endswith("_test")]
        if programs:
            return [_with_launcher(tree, path, stem) for path in programs]
    return [_with_launcher(None, find_program(stem, folder), stem)]


def _with_launcher(tree: Path | None, program: Path, stem: str) -> Program:
    flavour = program.name.removeprefix(f"{stem}_")
    launcher = _launcher_of_build(tree, flavour) or shutil.which(f"mpiexec.{flavour}")
    launcher = launcher or shutil.which("mpiexec")
    if launcher is None:
        raise ProgramFailed(f"there is no mpiexec for {program}")
    return Program(flavour, program, launcher)


def _launcher_of_build(tree: Path | None, flavour: str) -> str | None:
    """The launcher that CMake found for a flavour."""
    if tree is None or not (tree / "CMakeCache.txt").exists():
        return None
    cache = (tree / "CMakeCache.txt").read_text(encoding="utf-8")
    found = re.search(rf"^PERDURE_MPIEXEC_{re.escape(flavour)}:\w+=(.+)$", cache, re.MULTILINE)
    return found.group(1) if found else None
