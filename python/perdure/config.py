# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure config`: with which flags programs are built, wherever this Perdure is.

And the settings: `perdure config show|env` (settings/show.py).

A build tree, a prefix and a wheel say it in the same way, by files for pkg-config. They are read
here, so that programs are built the same where there is no pkg-config, or where nobody knows the
folder for PKG_CONFIG_PATH.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sysconfig
from pathlib import Path
from typing import Annotated

import typer

import perdure
from perdure.failures import Failed, Wrong
from perdure.mpi_wrappers import MPI_MACROS, mixture_of, mpi_of
from perdure.option_groups import by_default
from perdure.programs import library_folders
from perdure.screen import console, say
from perdure.settings.show import env, show

# Where the linker and the loader look by themselves.
_SEARCHED = {"/lib", "/lib64", "/usr/lib", "/usr/lib64"}
_SEARCHED |= {f"{lib}/{sysconfig.get_config_var('MULTIARCH')}" for lib in ("/lib", "/usr/lib")}
_FOLDERS = ("includedir", "libdir", "bindir", "fortrandir", "cmakedir")

app = typer.Typer(
    cls=by_default("flags", alone=True),
    help="Print with which flags programs are built: perdure config --cflags --libs. All options: "
    "perdure config flags --help. And say which settings hold: perdure config show.",
)

Cflags = Annotated[bool, typer.Option("--cflags", help="What C and C++ are compiled with.")]
Fortran = Annotated[bool, typer.Option("--fortran", help="For Fortran: the modules' sources.")]
Libs = Annotated[bool, typer.Option("--libs", help="What programs are linked with.")]
Veloc = Annotated[bool, typer.Option("--veloc", help="For programs that were written for VELOC.")]
Includedir = Annotated[
    bool, typer.Option("--includedir", help="The folder with perdure/perdure.h.")
]
Libdir = Annotated[bool, typer.Option("--libdir", help="The folder of the libraries.")]
Bindir = Annotated[bool, typer.Option("--bindir", help="The folder of perdure-clang and the like.")]
Fortrandir = Annotated[
    bool, typer.Option("--fortrandir", help="The folder of the Fortran modules' sources.")
]
Cmakedir = Annotated[bool, typer.Option("--cmakedir", help="The folder for CMake's perdure_DIR.")]
Pkgconfigdir = Annotated[
    bool, typer.Option("--pkgconfigdir", help="The folder for PKG_CONFIG_PATH.")
]
Pythonpath = Annotated[
    bool, typer.Option("--pythonpath", help="What PYTHONPATH needs to import perdure.")
]
Mpi = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="For programs with this MPI: mpich, openmpi or abi.",
                 show_default="none")
]


class Package:
    """A file for pkg-config: what it says of flags and folders."""

    def __init__(self, file: Path) -> None:
        self._values = {"pcfiledir": str(file.parent)}
        self._fields: dict[str, list[str]] = {}
        for line in file.read_text(encoding="utf-8").splitlines():
            if value := re.fullmatch(r"(\w+)=(.*)", line):
                self._values[value[1]] = os.path.normpath(self._filled_in(value[2]))
            elif field := re.fullmatch(r"([\w.]+): +(.*)", line):
                self._fields[field[1]] = [self._filled_in(word) for word in field[2].split()]
        missing = {*_FOLDERS} - {*self._values} | {"Cflags", "Libs"} - {*self._fields}
        if missing:
            raise Failed(f"{file} does not say {', '.join(sorted(missing))}; "
                         "it is of another version: install or build this one again")

    def _filled_in(self, text: str) -> str:
        return re.sub(r"\$\{(\w+)\}", lambda name: self._values.get(name[1], ""), text)

    def folder(self, name: str) -> Path:
        """One of _FOLDERS."""
        return Path(self._values[name])

    def cflags(self) -> list[str]:
        """Of C and C++."""
        return [word for word in self._fields["Cflags"] if word != "-I/usr/include"]

    def libs(self) -> list[str]:
        """With the path from which a program loads them, where the system does not look."""
        words = []
        for word in self._fields["Libs"]:
            folder = word.removeprefix("-L")
            if word.startswith("-L") and folder in _SEARCHED:
                continue
            words += [word, f"-Wl,-rpath,{folder}"] if word.startswith("-L") else [word]
        return words

    def fortran(self, modules: tuple[str, ...]) -> list[str]:
        """The sources of modules, which are compiled with the program."""
        folder = self.folder("fortrandir")
        return [f"-I{folder}", *(str(folder / f"{name}.f90") for name in modules)]


def find_packages() -> Path:
    """The folder of the files for pkg-config. Raises Failed."""
    places = library_folders("pkgconfig", "pkgconfig")
    for place in places:
        file = place / "perdure.pc"
        if file.exists() and (Package(file).folder("libdir") / "libperdure.so").exists():
            return place
    raise Failed(f"there is no library with its perdure.pc in {', '.join(map(str, places))}; "
                 "build it: make all, or install it")


def find_package(folder: Path, mpi: str | None, veloc: bool) -> Package:
    """That of one process, of an MPI, or of VELOC's interface. Raises Wrong."""
    if veloc and mpi is not None:
        raise Wrong("--veloc serves every MPI: leave --mpi out")
    built = sorted(file.stem for file in folder.glob("perdure*.pc"))
    name = "perdure_veloc" if veloc else "perdure" if mpi is None else f"perdure_mpi_{mpi}"
    if name in built:
        return Package(folder / f"{name}.pc")
    mpis = [name.removeprefix("perdure_mpi_") for name in built if name.startswith("perdure_mpi_")]
    known = f"it has {', '.join(mpis)}" if mpis else "it was built without MPI"
    wanted = "MPI" if mpi is None else mpi or "''"
    raise Wrong(f"this Perdure has no library for {wanted}: {known}")


def _warn_of_other_mpi(mpi: str) -> None:
    """What would be linked with two MPIs is said before: mpicc leads where the machine says."""
    compiler = shutil.which("mpicc")
    found = None if compiler is None or mpi not in MPI_MACROS else mpi_of(compiler)
    if found is None or found == mpi:
        return
    say(f"perdure: {compiler} is of another MPI, {found}, and a program must have one only: use "
        f"{mpi}'s compiler, as mpicc.{mpi} on Debian, or --mpi {found}; `perdure doctor` shows "
        "all of them", err=True)


def _warn_of_mixtures(mpi: str) -> None:
    """Debian's mpifort.openmpi links the machine's default MPI beside its own."""
    for name in ("mpifort", f"mpifort.{mpi}"):
        if shutil.which(name) is None or (name == "mpifort" and mpi_of(name) != mpi):
            continue
        if (mixed := mixture_of(name)) is not None:
            remedy = f"give it {mixed.remedy} before all else" if mixed.remedy else \
                f"use another Fortran compiler of {mpi}"
            say(f"perdure: {name} links {' and '.join(mixed.libraries)}, and a program must have "
                f"one MPI only: {remedy}; `perdure doctor` shows all of them", err=True)


@app.command("flags")
def config(
    cflags: Cflags = False,
    fortran: Fortran = False,
    libs: Libs = False,
    mpi: Mpi = None,
    veloc: Veloc = False,
    includedir: Includedir = False,
    libdir: Libdir = False,
    bindir: Bindir = False,
    fortrandir: Fortrandir = False,
    cmakedir: Cmakedir = False,
    pkgconfigdir: Pkgconfigdir = False,
    pythonpath: Pythonpath = False,
) -> None:
    """Print with which flags programs are compiled and linked, and where what they need is.

    Of the Perdure that this command belongs to: a wheel, a prefix, a package, or a clone's build.
    Flags are in one line, as words of a shell; where a path has a space, write
    eval "cc solver.c $(perdure config --cflags --libs)". Each folder is a line. Without options:
    all of it.

    Examples: cc -o solver solver.c $(perdure config --cflags --libs);
    mpicc -o solver solver.c $(perdure config --mpi mpich --cflags --libs);
    gfortran $(perdure config --fortran) heat.f90 $(perdure config --libs);
    cmake -S . -B build -Dperdure_DIR="$(perdure config --cmakedir)"
    """
    packages = find_packages()
    package = find_package(packages, mpi, veloc)
    modules = ("perdure", *(["perdure_mpi"] if mpi else []), "perdure_ipv")
    flags = {
        "cflags": (cflags, package.cflags()),
        "fortran": (fortran, package.fortran(modules)),
        "libs": (libs, package.libs()),
    }
    if mpi is not None and (cflags or libs):
        _warn_of_other_mpi(mpi)
    if mpi is not None and fortran:
        _warn_of_mixtures(mpi)
    asked = dict(zip(_FOLDERS, (includedir, libdir, bindir, fortrandir, cmakedir), strict=True))
    folders = {name: (is_asked, str(package.folder(name))) for name, is_asked in asked.items()}
    folders["pkgconfigdir"] = (pkgconfigdir, str(packages))
    imported = ":".join(str(Path(place).parent) for place in perdure.__path__)
    folders["pythonpath"] = (pythonpath, imported)
    _print(flags, folders)


app.command("show")(show)
app.command("env")(env)


def _print(
    flags: dict[str, tuple[bool, list[str]]], folders: dict[str, tuple[bool, str]]
) -> None:
    """What was asked for, or all with its names."""
    out = console()
    if not any(is_asked for is_asked, _ in (*flags.values(), *folders.values())):
        for name, (_, words) in flags.items():
            out.print(f"{name:<13}{shlex.join(words)}")
        for name, (_, folder) in folders.items():
            out.print(f"{name:<13}{folder}")
        return
    line = [word for is_asked, words in flags.values() if is_asked for word in words]
    if line:
        out.print(shlex.join(line))
    for is_asked, folder in folders.values():
        if is_asked:
            out.print(folder)
