#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs mpi4py's own tests with the library preloaded, in variants that the set of tests has.

    tools/mpi4py_tests.py rma --build DIR [--mpi NAME]… [--variant V]… [--ranks N]…
    tools/mpi4py_tests.py rma … --run FILE       a program of mpi4py instead of its tests

    rma   windows and one-sided communication, in the variants of tests/rma/variant.sh
    io    files, in the variants of tests/mpiio/variant.sh: with every file cached, or none

The tests come from mpi4py's source archive, and mpi4py itself from its wheel, which works with
every MPI whose ABI is MPICH's or Open MPI's. Both are fetched from PyPI into DIR/mpi4py, once.
Prints a line for each run, then what mpi4py skipped and why. Ends with 1 if a run failed,
and with 77 (skipped) if PyPI could not be reached or the MPI does not fit the wheel.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = "4.1.2"
SKIPPED = 77
LIMIT_S = 120


class Unavailable(RuntimeError):
    """What is needed is not to be had here; the sentence says what."""


@dataclass(frozen=True)
class TestSet:
    """Tests of mpi4py that belong together, and what they are run in."""

    modules: str  # a pattern of mpi4py's test runner
    script: str
    variants: tuple[str, ...]
    # Tests that are left out of some variants with several ranks, and why.
    left_out: tuple[str, ...] = ()
    left_out_of: tuple[str, ...] = ()
    reason: str = ""


SETS = {
    "rma": TestSet(
        modules=r"test_(win|rma|rma_nb)\b",
        script="tests/rma/variant.sh",
        variants=("plain", "preloaded", "copy", "log", "flush", "twin"),
        # Where the end of an epoch commits, which is collective, they wait for each other.
        left_out=("testFlush", "testStartCompletePost"),
        left_out_of=("copy", "log", "flush"),
        reason="their ranks do not end epochs together, so they cannot commit together",
    ),
    "io": TestSet(
        modules=r"test_(io|file)\b",
        script="tests/mpiio/variant.sh",
        variants=("plain", "preloaded", "cached", "parts", "sync_nvm", "nodes"),
    ),
}


@dataclass(frozen=True)
class Mpi:
    """One MPI flavour of a build tree."""

    name: str
    mpicc: str
    mpiexec: str
    layer: Path


def mpis_of(build: Path) -> list[Mpi]:
    """The flavours that CMake found for `build`, whose layer is built."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    wrappers = re.search(r"^PERDURE_MPI_USED:\w+=(.*)$", cache, re.MULTILINE)
    found = []
    for entry in wrappers.group(1).split(";") if wrappers else []:
        name, mpicc = entry.split("=", 1)
        mpiexec = re.search(rf"^PERDURE_MPIEXEC_{name}:\w+=(.*)$", cache, re.MULTILINE)
        layer = build / f"src/capi/libperdure_mpi_{name}.so"
        if mpiexec and layer.exists():
            found.append(Mpi(name, mpicc, mpiexec.group(1), layer))
    return found


def fetch(place: Path, allowed: bool) -> tuple[Path, Path]:
    """The folders of mpi4py's tests and of mpi4py; fetched, if `allowed`, when not there."""
    tests, package = place / f"mpi4py-{VERSION}/test", place / "wheel"
    if not allowed and not (tests.is_dir() and package.is_dir()):
        raise Unavailable("mpi4py was not fetched yet; leave out --no-fetch")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wanted = f"mpi4py=={VERSION}"
    if not tests.is_dir():
        source = ["download", "--no-deps", "--no-binary", "mpi4py", "--dest", str(place), wanted]
        _fetched([*pip, *source], "the tests")
        with tarfile.open(place / f"mpi4py-{VERSION}.tar.gz") as archive:
            archive.extractall(place, _tests_in(archive))
    if not package.is_dir():
        wheel = ["install", "--no-deps", "--only-binary", ":all:", "--target", str(package)]
        _fetched([*pip, *wheel, wanted], "the wheel")
    return tests, package


def _tests_in(archive: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """The plain files below test/; nothing else of the archive is put anywhere."""
    prefix = f"mpi4py-{VERSION}/test/"
    members = [member for member in archive if member.isfile() and member.name.startswith(prefix)]
    return [member for member in members if ".." not in Path(member.name).parts]


def _fetched(command: list[str], what: str) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        errors = ran.stderr.strip().splitlines()
        raise Unavailable(f"{what} of mpi4py {VERSION}: {errors[-1] if errors else 'pip failed'}")


def library_of(mpi: Mpi, place: Path) -> Path:
    """The shared library that programs of `mpi` are linked with."""
    program = place / f"probe_{mpi.name}"
    source = program.with_suffix(".c")
    source.write_text("#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n")
    built = subprocess.run([mpi.mpicc, source, "-o", program], capture_output=True, check=False)
    if built.returncode != 0:
        raise Unavailable(f"{mpi.mpicc} cannot compile a program of MPI")
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\blibmpi(?:ch)?\.so\.\d+ => (\S+)", linked)
    if found is None:
        raise Unavailable(f"programs of {mpi.mpicc} are not linked with libmpi or libmpich")
    return Path(found.group(1))


def surroundings(mpi: Mpi, place: Path, package: Path) -> dict[str, str]:
    """The environment in which the wheel of mpi4py finds this MPI.

    It asks for MPICH as libmpi.so.12, which Debian calls libmpich.so.12.
    """
    library = library_of(mpi, place)
    names = place / f"names_{mpi.name}"
    names.mkdir(exist_ok=True)
    is_mpich = library.name in ("libmpich.so.12", "libmpi.so.12")
    link = names / ("libmpi.so.12" if is_mpich else library.name)
    link.unlink(missing_ok=True)
    link.symlink_to(library)
    return {
        **os.environ,
        "LD_LIBRARY_PATH": f"{names}:{library.parent}",
        "MPI4PY_MPIABI": "mpich" if is_mpich else "openmpi",
        # mpi4py asks for MPI_THREAD_MULTIPLE, with which Open MPI 4.1 makes no windows.
        "MPI4PY_RC_THREAD_LEVEL": "serialized",
        "PYTHONPATH": f"{package}:{mpi.layer.parents[2] / 'python'}",  # perdure._api
        "PYTHONDONTWRITEBYTECODE": "1",
        "PERDURE_MPI_TIMEOUT": os.environ.get("PERDURE_MPI_TIMEOUT", str(LIMIT_S)),
    }


@dataclass(frozen=True)
class Job:
    """One run: of these tests, with this MPI, in this variant, on so many ranks."""

    tests: TestSet
    mpi: Mpi
    variant: str
    ranks: int

    def __str__(self) -> str:
        return f"{self.mpi.name} {self.variant} {self.ranks} ranks"


def run(job: Job, words: list[str], environment: dict[str, str]) -> str:
    """What the Python program `words` printed; raises SystemExit with it if it failed."""
    command = [job.variant, str(job.mpi.layer), job.mpi.mpiexec, str(job.ranks), sys.executable]
    ran = subprocess.run(
        [str(ROOT / job.tests.script), *command, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        check=False,
    )
    if ran.returncode != 0:
        _fail(job, f"ended with {ran.returncode}", ran.stdout)
    return ran.stdout


def run_tests(job: Job, folder: Path, around: dict[str, str]) -> set[str]:
    """Runs mpi4py's tests, and gives the reasons for which it skipped some."""
    words = [str(folder / "main.py"), "-v", "-i", job.tests.modules]
    if job.variant in job.tests.left_out_of and job.ranks > 1:
        words += [word for test in job.tests.left_out for word in ("-x", test)]
    output = run(job, words, around)
    counted = re.search(r"^Ran (\d+) tests?", output, re.MULTILINE)
    total = int(counted.group(1)) if counted else 0
    if total == 0:
        _fail(job, "ran no test", output)
    skipped = re.search(r"^OK \(skipped=(\d+)\)", output, re.MULTILINE)
    passed = total - (int(skipped.group(1)) if skipped else 0)
    print(f"{job}: {passed} of {total} tests passed", flush=True)
    return skips(output)


def _fail(job: Job, how: str, output: str) -> None:
    print(output[-6000:])
    print(f"{job}: FAILED, {how}", flush=True)
    raise SystemExit(1)


def skips(output: str) -> set[str]:
    """The reasons for which mpi4py skipped tests. All ranks print, so the lines are mixed."""
    return set(re.findall(r"skipped '([^'\n]*)'", output))


def rank_counts(mpi: Mpi, asked: list[int] | None) -> list[int]:
    """1 to 3, or what was asked for. MPICH spins: with more ranks than cores it takes hours."""
    if asked:
        return asked
    cores = len(os.sched_getaffinity(0))
    fitting = [ranks for ranks in (1, 2, 3) if ranks <= cores or "openmpi" in mpi.name]
    if len(fitting) < 3:
        print(f"{mpi.name}: left out are more ranks than the {cores} cores of this machine")
    return fitting


def jobs_of(asked: argparse.Namespace, mpi: Mpi) -> list[Job]:
    """What is to be run with one MPI."""
    tests = SETS[asked.set]
    return [
        Job(tests, mpi, variant, ranks)
        for ranks in rank_counts(mpi, asked.ranks)
        for variant in asked.variant or tests.variants
    ]


def run_all(asked: argparse.Namespace, mpis: list[Mpi], place: Path) -> None:
    """Everything that was asked for, and then what was left out and skipped."""
    skipped: dict[Job, set[str]] = {}
    folder, package = fetch(place, not asked.no_fetch)
    for mpi in mpis:
        environment = surroundings(mpi, place, package)
        for job in jobs_of(asked, mpi):
            if asked.run:
                run(job, [str(asked.run.resolve())], environment)
                print(f"{job}: {asked.run.name} passed", flush=True)
            else:
                skipped[job] = run_tests(job, folder, environment)
    for job, reasons in skipped.items():
        if reasons:
            print(f"{job}: mpi4py skips: {', '.join(sorted(reasons))}")
    tests = SETS[asked.set]
    if skipped and tests.left_out:
        wide = f"left out of {', '.join(tests.left_out_of)} with several ranks"
        print(f"{wide}: {', '.join(tests.left_out)}:\n  {tests.reason}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    parser.add_argument("--mpi", action="append", help="flavours; default: all of the build")
    parser.add_argument("--variant", action="append", help="default: all of the set")
    parser.add_argument("--ranks", action="append", type=int)
    parser.add_argument("--no-fetch", action="store_true", help="skip what is not there yet")
    parser.add_argument("--run", type=Path, metavar="FILE", help="instead of mpi4py's tests")
    asked = parser.parse_args()
    for variant in asked.variant or ():
        if variant not in SETS[asked.set].variants:
            parser.error(f"{variant} is none of {', '.join(SETS[asked.set].variants)}")
    mpis = [mpi for mpi in mpis_of(asked.build) if not asked.mpi or mpi.name in asked.mpi]
    if not mpis:
        parser.error(f"no MPI of {asked.build} is {asked.mpi or 'built'}; build it first")
    place = asked.build / "mpi4py"
    place.mkdir(exist_ok=True)
    try:
        run_all(asked, mpis, place)
    except Unavailable as reason:
        print(f"mpi4py_tests: skipped: {reason}")
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
