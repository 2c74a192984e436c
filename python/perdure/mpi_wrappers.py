# SPDX-License-Identifier: BSD-3-Clause
"""Compiler wrappers of MPIs: of which MPI each is, and which MPIs a program of it would load."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

# What mpi.h of each binary interface defines; the standard one may be of any MPI.
MPI_MACROS = {"abi": "MPI_ABI_VERSION", "openmpi": "OPEN_MPI", "mpich": "MPICH_VERSION"}
WRAPPER = re.compile(r"mpi(cc|cxx|fort)(\.[\w.-]+)?")
_COMPILER_S = 20.0
_PROGRAM_S = 5.0
_MPI_LIBRARY = re.compile(r"libmpi(ch|_abi)?\.so\.(\d+)")  # not those of one language
_MPICH_NUMBER = "12"  # of libmpi.so of whatever keeps to MPICH's binary interface


class Mixture(NamedTuple):
    """A wrapper whose programs load more than one MPI."""

    wrapper: str  # as it is called
    libraries: tuple[str, ...]  # libmpi.so.40, libmpich.so.12
    remedy: str  # the option that leaves one of them; "" if none is known


def _says(*words: str, given: str = "", limit_s: float = _PROGRAM_S) -> str:
    """What a program prints; "" if it can't be run or fails."""
    try:
        ran = subprocess.run(words, input=given, capture_output=True, text=True, errors="replace",
                             check=False, timeout=limit_s)  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return "" if ran.returncode else ran.stdout


def mpi_of(compiler: str) -> str | None:
    """The binary interface of the MPI that a compiler wrapper is of; None: unknown."""
    said = _says(compiler, "-E", "-dM", "-x", "c", "-", given="#include <mpi.h>\n",
                 limit_s=_COMPILER_S)
    macros = {line.split()[1] for line in said.splitlines() if line.startswith("#define ")}
    return next((name for name, macro in MPI_MACROS.items() if macro in macros), None)


def mpi_libraries(wrapper: str, first: Iterable[str] = ()) -> tuple[str, ...]:
    """The MPIs, as SONAMEs, of which a wrapper's programs are linked with something.

    It is asked for the command that it stands for (-show, which MPICH and Open MPI know), and its
    libraries are looked for as the linker does it, in the folders `first` before its own. Without
    an answer there is none.
    """
    words = _command(wrapper)
    folders = [*first, *_folders(words)]
    found: set[str] = set()
    for word in words[1:]:
        if word.startswith("-lmpi"):
            found |= _mpis_of(_library(words[0], folders, f"lib{word[2:]}.so"))
    return tuple(sorted(found))


def mixture_of(wrapper: str) -> Mixture | None:
    """What a wrapper mixes, and how it would not; None if it links one MPI, or none is known.

    Debian's mpifort.openmpi names no folder of its libmpi.so, so the linker takes that of the
    machine's default MPI. The folder is the one that its mpicc names.
    """
    libraries = mpi_libraries(wrapper)
    if _count(libraries) < 2:
        return None
    sibling = re.sub(r"mpi(cxx|fort)(?=[^/]*$)", "mpicc", wrapper)
    folders = _folders(_command(sibling)) if shutil.which(sibling) else []
    alone = folders and _count(mpi_libraries(wrapper, folders)) == 1
    return Mixture(wrapper, libraries, shlex.join(f"-L{each}" for each in folders) if alone else "")


def _count(libraries: Iterable[str]) -> int:
    """How many MPIs: libmpich.so.12 and libmpi.so.12 have one binary interface."""
    matches = [match for match in map(_MPI_LIBRARY.fullmatch, libraries) if match]
    return len({"mpich" if match[1] == "ch" or match[2] == _MPICH_NUMBER else match[0]
                for match in matches})


def _command(wrapper: str) -> list[str]:
    try:
        return shlex.split(_says(wrapper, "-show"))
    except ValueError:
        return []


def _folders(words: list[str]) -> list[str]:
    return [word[2:] for word in words if word.startswith("-L") and word != "-L"]


def _library(compiler: str, folders: list[str], name: str) -> str:
    for folder in folders:
        if (Path(folder) / name).exists():
            return str(Path(folder) / name)
    return _says(compiler, f"-print-file-name={name}").strip()


def _mpis_of(library: str) -> set[str]:
    """Itself, or what it needs: libmpi_mpifh.so needs the libmpi.so of its own MPI."""
    said = _says("readelf", "-dW", library) if library else ""
    names = re.findall(r"\((?:SONAME|NEEDED)\).*\[([^\]]+)\]", said)
    return {name for name in names if _MPI_LIBRARY.fullmatch(name)}
