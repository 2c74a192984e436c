"""Lost nodes under a real Slurm: a job goes on at a spare node, from the queue, or from the file
system, and ends with the bits of an undisturbed run.

Method: fake_cluster.py, four nodes. A node is killed, all of its processes at once, and its
memory, where the pool is, is emptied.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import textwrap
import time
from pathlib import Path

import pytest
from fake_cluster import Cluster, why_not
from jobs import HPCCG, MPICH, PAGERANK, POOL_JOB, ROOT, Job, hash_in, undisturbed

PERDURE = ROOT / "perdure"
SOLVER = [HPCCG, 16, 16, 16, "--iterations", 150]
RANKER = [PAGERANK, "--rmat", 12, "--iterations", 150]
SRUN = "srun --mpi=pmi2 -n 3"
POOL_JOB_STEPS = 200
MPIEXEC = f"{MPICH}/bin/mpiexec -n 3 -ppn 1"


def reason_to_skip() -> str | None:
    needed = (MPICH / "bin/mpiexec", HPCCG, PAGERANK, POOL_JOB)
    missing = [str(path) for path in needed if not path.exists()]
    if missing:
        return f"there is no {', '.join(missing)}: run tools/bootstrap.sh --cluster, then build"
    return why_not()


REASON = reason_to_skip()
pytestmark = pytest.mark.skipif(REASON is not None, reason=REASON or "")


@pytest.fixture
def cluster():
    with Cluster(4) as made:
        yield made


@pytest.fixture(scope="module")
def answers(tmp_path_factory) -> dict[Path, str]:
    """The hash of each program's undisturbed answer."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return {words[0]: undisturbed(folder, words) for words in (SOLVER, RANKER)}


def submit(
    cluster: Cluster,
    options: list,
    run_options: str,
    launcher: str,
    program: list,
    levels: str = "",
) -> Job:
    protection = ["--protect", "copy", "--pool", cluster.nvm / "pool"]
    words = " ".join(str(word) for word in [*program, *protection])
    script = (
        f"#!/bin/bash\ncd {cluster.root}\n"
        f"exec {PERDURE} run --json statistics.json {run_options} -- {launcher} {words}\n"
    )
    environment = {"PERDURE_LEVELS": levels} if levels else {}
    return Job(cluster, options, script, environment)


def lose(cluster: Cluster, node: str) -> None:
    cluster.node_kill(node)
    cluster.node_wipe(node)


@pytest.mark.parametrize("launcher", [SRUN, MPIEXEC], ids=["srun", "mpiexec"])
@pytest.mark.parametrize("program", [SOLVER, RANKER], ids=["hpccg", "pagerank"])
def test_job_goes_on_at_a_spare_node_when_a_node_is_lost_with_its_pool(
    cluster, answers, program, launcher
):
    job = submit(cluster, ["-N4", "--no-kill"], "--spares 1", launcher, program)
    job.wait_for_version(45)
    lose(cluster, "n1")
    job.wait()
    assert hash_in(job.output) == answers[program[0]], job.output
    first, second = job.statistics["attempts"]
    assert first["nodes"] == ["n0", "n1", "n2"] and second["nodes"] == ["n0", "n2", "n3"]
    assert second["lost"] == ["n1"] and second["ranks_reporting"] == 3
    assert second["restored_version"] >= 30 and "was brought back" in job.output
    assert job.statistics["exit_code"] == 0 and job.statistics["completed"]


def test_job_goes_on_from_the_file_system_alone(cluster, answers):
    levels = f"redundancy=off;every=10;drain={cluster.root}/levels"
    job = submit(cluster, ["-N4", "--no-kill"], "--spares 1", SRUN, SOLVER, levels)
    job.wait_for_version(65)
    lose(cluster, "n2")
    job.wait()
    assert hash_in(job.output) == answers[HPCCG], job.output
    assert f"was brought back from {cluster.root}/levels" in job.output
    second = job.statistics["attempts"][1]
    assert second["restored_version"] >= 30 and second["nodes"] == ["n0", "n1", "n3"]


def test_script_of_the_manual_goes_on_when_a_node_is_lost(cluster, answers):
    page = (ROOT / "docs/cluster.md").read_text()
    script = re.search(r"^    #!/bin/bash\n(?:    .*\n)+", page, re.M)[0]
    solver = cluster.root / "solver"
    words = [*SOLVER, "--protect", "copy", "--pool", cluster.nvm / "pool"]
    solver.write_text("#!/bin/sh\nexec " + " ".join(str(word) for word in words) + "\n")
    solver.chmod(0o700)
    path = {"PATH": f"{ROOT}:{os.environ['PATH']}"}
    job = Job(cluster, ["-D", cluster.root], textwrap.dedent(script), path)
    job.wait_for_version(45)
    lose(cluster, "n1")
    job.wait()
    assert hash_in(job.output) == answers[HPCCG], job.output
    assert [attempt["lost"] for attempt in job.statistics["attempts"]] == [[], ["n1"]]


def test_job_without_a_spare_goes_on_from_the_queue(cluster, answers):
    job = submit(cluster, ["-N3", "--no-kill", "--requeue"], "--requeue", SRUN, SOLVER)
    job.wait_for_version(45)
    lose(cluster, "n1")
    cluster.tell_losses()
    job.wait()
    assert hash_in(job.output) == answers[HPCCG], job.output
    assert "the job goes back into the queue" in job.output
    attempt, = job.statistics["attempts"]
    assert attempt["nodes"] == ["n0", "n2", "n3"] and attempt["restored_version"] >= 30
    assert job.facts()["Restarts"] == "1" and job.facts()["JobState"] == "COMPLETED"


def test_job_with_a_cached_file_goes_on_when_its_node_comes_back_with_its_memory(cluster):
    shared = cluster.root / "shared"
    shared.mkdir(mode=0o700)
    program = f"{POOL_JOB} {cluster.nvm} 5 {POOL_JOB_STEPS} 1"
    script = f"#!/bin/bash\ncd {cluster.root}\n"
    script += f"exec {PERDURE} run --json statistics.json --requeue -- {SRUN} {program}\n"
    options = ["-N3", "-w", "n0,n1,n2", "--no-kill", "--requeue"]
    job = Job(cluster, options, script, {"POOL_JOB_SHARED": str(shared)})
    job.wait_for_version(POOL_JOB_STEPS // 4)
    cluster.node_kill("n1")
    cluster.tell_losses()
    time.sleep(1)
    cluster.node_up("n1")
    job.wait()
    attempt, = job.statistics["attempts"]
    assert attempt["nodes"] == ["n0", "n1", "n2"], job.output
    assert attempt["restored_version"] >= POOL_JOB_STEPS // 4
    assert job.facts()["Restarts"] == "1" and job.facts()["JobState"] == "COMPLETED"
    assert job.statistics["exit_code"] == 0, job.output  # the program has compared all that it has


def test_signal_before_the_end_of_the_time_makes_a_last_commit_and_the_next_job_goes_on(
    cluster, answers
):
    job = submit(cluster, ["-N3", "--signal=B:USR1@50", "--time=1"], "--requeue", SRUN, SOLVER)
    job.wait_for_version(20)
    cluster.run("scancel", "--batch", "--signal=USR1", job.id)
    job.wait()
    assert "SIGUSR1: the ranks are asked to end" in job.output
    assert hash_in(job.output.split("goes back into the queue")[1]) == answers[HPCCG], job.output
    assert job.statistics["attempts"][0]["restored_version"] >= 20
    assert job.facts()["Restarts"] == "1" and job.facts()["JobState"] == "COMPLETED"


def test_ctrl_c_in_an_allocation_ends_the_ranks_on_all_nodes(cluster):
    job = submit(cluster, ["-N3", "--no-kill"], "--spares 0", SRUN, SOLVER)
    job.wait_for_version(5)
    cluster.run("scancel", "--batch", "--signal=INT", job.id)
    job.wait()
    for node in cluster.nodes:
        assert "hpccg" not in cluster.run("srun", "-N1", "-w", node, "ps", "-e")
    assert not list(cluster.root.glob("perdure-run-*"))


def test_nothing_of_a_cluster_is_left_when_it_is_killed(tmp_path):
    script = f"import sys, time; sys.path.insert(0, {str(ROOT / 'tests/cluster')!r})\n"
    script += "from fake_cluster import Cluster\n"
    script += "made = Cluster(2).__enter__(); print(made.root, flush=True); time.sleep(600)\n"
    with subprocess.Popen([ROOT / ".venv/bin/python", "-c", script], stdout=subprocess.PIPE,
                          text=True) as started:  # fmt: skip
        root = started.stdout.readline().strip()
        assert root.startswith("/")
        started.kill()
    listed = subprocess.run(["pgrep", "-f", root], capture_output=True, text=True, check=False)
    assert root not in Path("/proc/self/mounts").read_text()
    assert listed.stdout == ""
    shutil.rmtree(root)
