"""Jobs on the fake cluster: batch scripts, programs on the wheel's MPICH, and their answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

from fake_cluster import Cluster

from perdure.run.page import read_pages

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PERDURE_BUILD", ROOT / "build/dev"))
MPICH = ROOT / "build/mpi/mpich432"
LIMIT_S = 240.0
_REQUEUE_S = 3.0  # earlier, nodes revoke the credential of the job that they have just ended
HPCCG = BUILD / "apps/hpccg/hpccg_mpich"
PAGERANK = BUILD / "apps/pagerank/pagerank_mpich"
POOL_JOB = BUILD / "tests/mpiio/pool_job_mpich"


def mpi_environment(folder: Path) -> dict[str, str]:
    """Runs what was built for Debian's MPICH on the wheel's, which has the same binary interface:
    Debian's own, 4.0.2, hangs in MPI_Finalize between hosts."""
    place = folder / "mpich"
    place.mkdir(exist_ok=True)
    if not (place / "libmpich.so.12").exists():
        (place / "libmpich.so.12").symlink_to(MPICH / "lib/libmpi.so.12")
    parts = [place, MPICH / "lib", MPICH / "lib/mpich"]
    return {"LD_LIBRARY_PATH": ":".join(str(part) for part in parts)}


def hash_in(text: str) -> str:
    """Of a program's answer, all of whose bits it covers."""
    found = re.findall(r"hash (\w{16})", text)
    assert len(found) == 1, text
    return found[0]


def undisturbed(folder: Path, command: list) -> str:
    """The hash of the answer of a program that no node is taken from, on this machine."""
    words = [MPICH / "bin/mpiexec", "-n", 3, *command]
    done = subprocess.run(
        [str(word) for word in words], env={**os.environ, **mpi_environment(folder)},
        capture_output=True, text=True, timeout=LIMIT_S, check=True,
    )  # fmt: skip
    return hash_in(done.stdout)


class Job:
    """A batch job of the cluster; what it prints goes to one file, however often it starts."""

    def __init__(self, cluster: Cluster, options: list, script: str, environment: dict[str, str]):
        self._cluster = cluster
        self.folder = Path(cluster.root)
        path = self.folder / "job.sh"
        path.write_text(script)
        words = ["sbatch", "--parsable", "--open-mode=append", "-o", self.output_file, *options]
        given = {**mpi_environment(self.folder), **environment}
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

    def wait(self) -> None:
        """Until it is over. A job that was put back into the queue starts soon, not in 2 minutes.

        While Slurm does not know that a node is lost, an ended job stays COMPLETING: it is told.
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
