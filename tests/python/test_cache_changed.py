# SPDX-License-Identifier: BSD-3-Clause
"""A cached file that somebody changes after its job was killed: the next open and the command."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import conftest
from conftest import BUILD, ROOT

IN_THIS_PROCESS = True
MPIS = [name for name in conftest.MPIS if (BUILD / f"tests/mpiio/cache_job_{name}").exists()]
TESTS = 5  # that have a job
needs_job = pytest.mark.skipif(not MPIS, reason="cache_job is not built (CLI11 or MPI is missing)")


@dataclass
class Job:
    """A job on pretended nodes, two ranks, that is killed while it writes."""

    place: Path
    mpi: str
    nodes: int

    @property
    def file(self) -> Path:
        return self.place / "file"

    @property
    def pool(self) -> Path:
        return self.place / "pool"

    def run(self, *words: object, ranks: int = 2) -> subprocess.CompletedProcess:
        """The job with these words."""
        program = BUILD / f"tests/mpiio/cache_job_{self.mpi}"
        shape = ["--file", self.file, "--pool", self.pool, "--ranks", 2, "--nodes", self.nodes,
                 "--writes", 100, "--seed", 3, "--log", self.place / "log"]
        launch = [ROOT / "tools/mpirun.sh", os.environ[f"PERDURE_TEST_MPIEXEC_{self.mpi}"], ranks]
        mpiexec = [] if "--make" in words else launch
        command = [str(word) for word in (*mpiexec, program, *words, *shape)]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    def die(self) -> None:
        """Runs it until its death, in its second half of writes."""
        self.pool.mkdir()
        assert self.run("--make").returncode == 0
        assert self.run("--kill-all", "--kill-stage", 3, "--kill-ns", 100000).returncode != 0
        assert self.parts()

    def parts(self) -> list[Path]:
        return sorted(self.pool.rglob("*.part"))

    def reopen(self) -> subprocess.CompletedProcess:
        (self.place / "log").unlink()
        return self.run("--reopen")


SHAPES = [(mpi, nodes) for mpi in MPIS for nodes in (1, 2)]


@pytest.fixture(scope="module")
def dead_jobs(tmp_path_factory):
    """By shape, jobs that died a while ago, one for each test."""
    jobs = {
        shape: [Job(tmp_path_factory.mktemp("job"), *shape) for _ in range(TESTS)]
        for shape in SHAPES
    }
    for job in itertools.chain(*jobs.values()):
        job.die()
    time.sleep(1.5)  # whatever they had begun, its times are past
    return jobs


@pytest.fixture(params=SHAPES, ids=lambda shape: f"{shape[0]}-{shape[1]}")
def job(request, dead_jobs):
    """A job that died."""
    return dead_jobs[request.param].pop()


def change_a_byte(file: Path) -> bytes:
    """Changes a byte and puts the time of modification back, as `cp -p` would."""
    was = file.stat()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    with file.open("r+b") as opened:
        opened.write(content)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    return bytes(content)


@needs_job
def test_a_file_that_nobody_changed_is_recovered_by_the_next_job(job):
    ran = job.reopen()
    assert ran.returncode == 0, ran.stderr
    assert not job.parts()


@needs_job
def test_a_changed_file_is_refused_by_the_next_job_and_kept(job, perdure):
    content, parts = change_a_byte(job.file), job.parts()
    listed = json.loads(perdure("cache", "ls", "--json", job.pool).out)["parts"]
    assert [part["file_changed"] for part in listed] == [True] * job.nodes
    ran = job.reopen()
    assert ran.returncode != 0
    said = ran.stdout + ran.stderr
    assert "was changed at" in said and "--overwrite-file" in said, said
    assert job.file.read_bytes() == content
    assert job.parts() == parts
    ran = perdure("cache", "recover", job.pool)
    assert ran.code == 1 and ran.err.count("was changed at") == 1
    assert job.file.read_bytes() == content and job.parts() == parts


@needs_job
def test_keep_file_removes_the_part(job, perdure):
    content = change_a_byte(job.file)
    ran = perdure("cache", "recover", "--file", job.file, "--keep-file", job.pool)
    assert ran.code == 0, ran.err
    assert job.file.read_bytes() == content and not job.parts()
    assert job.reopen().returncode == 0


@needs_job
def test_what_the_job_had_is_the_same_in_a_new_file_and_in_the_old_one(job, perdure):
    """The byte that was changed is one that the job had left alone."""
    change_a_byte(job.file)
    kept = job.file.read_bytes()
    new = job.place / "new"
    # The parts are needed twice.
    copies = {part: part.with_suffix(".copy") for part in job.parts()}
    for part, copy in copies.items():
        subprocess.run(["cp", "--sparse=always", part, copy], check=True)
    assert perdure("cache", "recover", "--file", job.file, "--to", new, job.pool).code == 0
    assert job.file.read_bytes() == kept and not job.parts()
    for part, copy in copies.items():
        copy.rename(part)
    ran = perdure("cache", "recover", "--file", job.file, "--overwrite-file", job.pool)
    assert ran.code == 0, ran.err
    assert new.stat().st_size == job.file.stat().st_size


@needs_job
def test_a_renamed_file_is_recovered_by_to(job, perdure):
    moved = job.place / "moved"
    job.file.rename(moved)
    ran = perdure("cache", "recover", "--file", job.file, job.pool)
    assert ran.code == 1
    ran = perdure("cache", "recover", "--file", job.file, "--to", moved, job.pool)
    assert ran.code == 0, ran.err
    assert not job.parts()


def test_the_ways_out_need_a_file_and_exclude_each_other(perdure, tmp_path):
    for words in (["--keep-file"], ["--overwrite-file"], ["--to", "x"]):
        assert perdure("cache", "recover", *words, tmp_path).code == 2
    both = ["--file", "a", "--keep-file", "--to", "x"]
    assert perdure("cache", "recover", *both, tmp_path).code == 2
