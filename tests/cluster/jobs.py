# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on the fake cluster: batch scripts, programs on PyPI's MPIs, and their answers."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from fake_cluster import Cluster

from perdure.run.page import read_pages

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PERDURE_BUILD", ROOT / "build/dev"))
LIMIT_S = 240.0
_REQUEUE_S = 3.0  # earlier, nodes revoke the credential of the job that they have just ended


@dataclass(frozen=True, eq=False)
class Mpi:
    """One of PyPI's. It runs what was built for `name`, Debian's MPI of the same binary interface,
    which does not work between hosts itself: MPICH 4.0.2 hangs in MPI_Finalize, and Open MPI 4.1.4
    has no one-sided calls there by default."""

    name: str
    place: Path
    srun: str
    one_a_node: str
    libraries: dict[str, str]  # what the programs call it, and what the wheel does
    here: tuple[str, ...] = ()  # options for three ranks on this machine alone
    more: dict[str, str] = field(default_factory=dict)

    @property
    def program_mpiexec(self) -> Path:
        return self.place / "bin/mpiexec"

    @property
    def mpiexec(self) -> str:
        return f"{self.program_mpiexec} -n 3 {self.one_a_node}"

    def program(self, folder: str, name: str, join: str = "_") -> Path:
        return BUILD / folder / f"{name}{join}{self.name}"

    def environment(self, folder: Path) -> dict[str, str]:
        place = folder / self.name
        place.mkdir(exist_ok=True)
        for name, target in self.libraries.items():
            if not (place / name).exists():
                (place / name).symlink_to(self.place / target)
        parts = [place, self.place / "lib", self.place / "lib" / self.name]
        return {"LD_LIBRARY_PATH": ":".join(str(part) for part in parts), **self.more}


MPICH = Mpi("mpich", ROOT / "build/mpi/mpich432", "srun --mpi=pmi2 -n 3", "-ppn 1",
            {"libmpich.so.12": "lib/libmpi.so.12"})  # fmt: skip
OPENMPI = Mpi("openmpi", ROOT / "build/mpi/openmpi5011", "srun --mpi=pmix -n 3",
              "--map-by ppr:1:node", {}, ("--map-by", ":oversubscribe"),
              {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_osc": "^ucx"})  # fmt: skip
MPIS = (MPICH, OPENMPI)


def hash_in(text: str) -> str:
    """Of a program's answer, all of whose bits it covers."""
    found = re.findall(r"hash (\w{16})", text)
    assert len(found) == 1, text
    return found[0]


def undisturbed(folder: Path, mpi: Mpi, command: list) -> str:
    """The hash of the answer of a program that no node is taken from, on this machine."""
    words = [mpi.program_mpiexec, "-n", 3, *mpi.here, *command]
    done = subprocess.run(
        [str(word) for word in words], env={**os.environ, **mpi.environment(folder)},
        capture_output=True, text=True, timeout=LIMIT_S, check=True,
    )  # fmt: skip
    return hash_in(done.stdout)


class Job:
    """A batch job of the cluster; what it prints goes to one file, however often it starts."""

    def __init__(
        self,
        cluster: Cluster,
        options: list,
        script: str,
        environment: dict[str, str],
        mpi: Mpi = MPICH,
    ):
        self._cluster = cluster
        self.folder = Path(cluster.root)
        path = self.folder / "job.sh"
        path.write_text(script)
        words = ["sbatch", "--parsable", "--open-mode=append", "-o", self.output_file, *options]
        given = {**mpi.environment(self.folder), **environment}
        self.id = cluster.run(*words, path, environment=given).strip()

    @property
    def output_file(self) -> Path:
        return self.folder / "output"

    @property
    def output(self) -> str:
        return self.output_file.read_text() if self.output_file.exists() else ""

    @property
    def statistics(self) -> dict:
        """Of the last `perdure run` of the job."""
        return json.loads((self.folder / "statistics.json").read_text())

    def state(self) -> str:
        """ "RUNNING None", "PENDING BeginTime"; "" when it is over."""
        try:
            words = ("squeue", "-h", "-j", self.id, "-o", "%T %r")
            return self._cluster.run(*words).strip()
        except subprocess.CalledProcessError:
            return ""

    def wait_for_version(self, version: int, node: str = "n0") -> None:
        """Until rank 0, which runs on `node`, has committed so many versions."""
        place = self._cluster.path_on(node, "/dev/shm")
        deadline = time.monotonic() + LIMIT_S
        while not any(page.rank == 0 and page.version >= version
                      for directory in place.glob("perdure-run-*/attempt-*")
                      for page in read_pages(directory)):  # fmt: skip
            assert time.monotonic() < deadline and self.state(), self.output
            time.sleep(0.05)

    def wait_for_output(self, text: str) -> None:
        deadline = time.monotonic() + LIMIT_S
        while text not in self.output:
            assert time.monotonic() < deadline and self.state(), self.output
            time.sleep(0.05)

    def signal_ranks(self, number: signal.Signals) -> None:
        """Sends it to every process on any node that has opened a pool of the nodes' memory."""
        pool = str(self._cluster.nvm).encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if any(word.startswith(pool) for word in words) and b"--pool" in words:
                    os.kill(int(process.name), number)

    def wait(self) -> None:
        """Until it is over. A job that was put back into the queue starts soon, not in 2 minutes.

        An ended job stays COMPLETING until Slurm knows that a node is lost, so Slurm is informed.
        """
        deadline = time.monotonic() + LIMIT_S
        while state := self.state():
            assert time.monotonic() < deadline, f"{state}\n{self.output}"
            if state.startswith("COMPLETING"):
                self._cluster.tell_losses()
            elif state.startswith("PENDING BeginTime"):
                time.sleep(_REQUEUE_S)
                self._cluster.run("scontrol", "update", f"jobid={self.id}", "StartTime=now")
            time.sleep(0.1)

    def facts(self) -> dict[str, str]:
        """What Slurm knows of it."""
        return dict(re.findall(r"(\S+?)=(\S*)", self._cluster.run("scontrol", "show", "job",
                                                                  self.id)))  # fmt: skip
