# SPDX-License-Identifier: BSD-3-Clause
"""Lost nodes under a real Slurm: a job goes on at a spare node, from the queue, or from the file
system, and ends with the bits of an undisturbed run.

Method: fake_cluster.py, four nodes. A node is killed, all of its processes at once, and its
memory, where the pool is, is emptied.
"""

from __future__ import annotations

import array
import functools
import json
import os
import re
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest
from fake_cluster import Cluster, until, why_not
from jobs import MPICH, MPIS, ROOT, Job, Mpi, hash_in, undisturbed

PERDURE = ROOT / "perdure"
ARGUMENTS = {
    "hpccg": (16, 16, 16, "--iterations", 100),
    "pagerank": ("--rmat", 12, "--iterations", 100),
}
PLASMA = ("--cells", 60, "--particles", 6000, "--steps", 150)
POOL_JOB = MPICH.program("tests/mpiio", "pool_job")
POOL_JOB_STEPS = 200
PLAIN = {mpi: mpi.program("tests/preload", "preload_plain", ".") for mpi in MPIS}


def app(program: str, mpi: Mpi = MPICH) -> list:
    return [mpi.program(f"apps/{program}", program), *ARGUMENTS[program]]


def reason_to_skip() -> str | None:
    needed = [*(app(program, mpi)[0] for program in ARGUMENTS for mpi in MPIS), POOL_JOB]
    needed += [*PLAIN.values(), MPICH.program("apps/plasma", "plasma")]
    needed += [mpi.program_mpiexec for mpi in MPIS]
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
def answer(tmp_path_factory):
    """The hash of a program's undisturbed answer."""
    folder = tmp_path_factory.mktemp("undisturbed")
    return functools.cache(lambda program, mpi=MPICH: undisturbed(folder, mpi, app(program, mpi)))


def submit(
    cluster: Cluster,
    options: list,
    run_options: str,
    launcher: str = MPICH.srun,
    program: str = "hpccg",
    levels: str = "",
    mpi: Mpi = MPICH,
    pool: str = "pool",
) -> Job:
    command = [*app(program, mpi), "--protect", "copy", "--pool", cluster.nvm / pool]
    words = " ".join(str(word) for word in command)
    script = (
        f"#!/bin/bash\ncd {cluster.root}\n"
        f"exec {PERDURE} run --json statistics.json {run_options} -- {launcher} {words}\n"
    )
    environment = {"PERDURE_LEVELS": levels} if levels else {}
    return Job(cluster, options, script, environment, mpi)


def script_of_manual(number: int) -> str:
    """A script of the page about clusters, by its number there."""
    page = (ROOT / "docs/cluster.md").read_text()
    found = re.findall(r"^    #!/bin/bash\n(?:    .*\n)+", page, re.M)
    return textwrap.dedent(found[number])


def lose(cluster: Cluster, node: str) -> None:
    cluster.node_kill(node)
    cluster.node_wipe(node)


@pytest.mark.parametrize("launcher", ["srun", "mpiexec"])
@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
@pytest.mark.parametrize("program", ARGUMENTS)
def test_job_goes_on_at_a_spare_node_when_a_node_is_lost_with_its_pool(
    cluster, answer, program, mpi, launcher
):
    words = getattr(mpi, launcher)
    job = submit(cluster, ["-N4", "--no-kill"], "--spares 1", words, program, mpi=mpi)
    job.wait_for_version(45)
    lose(cluster, "n1")
    job.wait()
    assert hash_in(job.output) == answer(program, mpi), job.output
    first, second = job.statistics["attempts"]
    assert first["nodes"] == ["n0", "n1", "n2"] and second["nodes"] == ["n0", "n2", "n3"]
    assert second["lost"] == ["n1"] and second["ranks_reporting"] == 3
    assert second["restored_version"] >= 30 and "was brought back" in job.output
    assert job.statistics["exit_code"] == 0 and job.statistics["completed"]


def test_job_that_lost_all_its_nodes_goes_on_from_the_file_system_on_nodes_that_never_saw_it(
    cluster, answer
):
    levels = f"redundancy=off;every=10;drain={cluster.root}/levels"
    job = submit(cluster, ["-N2", "-n3", "--no-kill", "--requeue"], "--requeue", levels=levels)
    job.wait_for_version(65)
    for node in ("n0", "n1"):  # n0 has the batch script and `perdure run`
        lose(cluster, node)
    cluster.tell_losses()
    job.wait()
    assert hash_in(job.output) == answer("hpccg"), job.output
    assert f"was brought back from {cluster.root}/levels" in job.output
    attempt, = job.statistics["attempts"]
    assert attempt["restored_version"] >= 30 and attempt["nodes"] == ["n2", "n3"]


def test_script_of_the_manual_goes_on_when_a_node_is_lost(cluster, answer):
    solver = cluster.root / "solver"
    words = [*app("hpccg"), "--protect", "copy", "--pool", cluster.nvm / "pool"]
    solver.write_text("#!/bin/sh\nexec " + " ".join(str(word) for word in words) + "\n")
    solver.chmod(0o700)
    path = {"PATH": f"{ROOT}:{os.environ['PATH']}"}
    job = Job(cluster, ["-D", cluster.root], script_of_manual(0), path)
    job.wait_for_version(45)
    lose(cluster, "n1")
    job.wait()
    assert hash_in(job.output) == answer("hpccg"), job.output
    assert [attempt["lost"] for attempt in job.statistics["attempts"]] == [[], ["n1"]]


def plasma() -> list:
    return [MPICH.program("apps/plasma", "plasma"), *PLASMA]


def submit_for_any_number_of_ranks(cluster: Cluster, options: list, run_options: str) -> Job:
    words = " ".join(str(word) for word in (*plasma(), "--pool", cluster.nvm / "pool"))
    run_options += " --json statistics.json --ranks-per-node 1 --min-nodes 2"
    script = (
        f"#!/bin/bash\ncd {cluster.root}\n"
        f"exec {PERDURE} run {run_options} -- srun --mpi=pmi2 {words}\n"
    )
    levels = {"PERDURE_LEVELS": f"redundancy=partner;every=5;drain={cluster.root}/levels"}
    return Job(cluster, options, script, levels)


def test_program_for_any_number_of_ranks_goes_on_with_the_nodes_that_are_left(cluster, tmp_path):
    job = submit_for_any_number_of_ranks(cluster, ["-N3", "-w", "n0,n1,n2", "--no-kill"], "")
    job.wait_for_version(45)
    lose(cluster, "n1")
    job.wait()
    assert hash_in(job.output) == undisturbed(tmp_path, MPICH, plasma()), job.output
    first, second = job.statistics["attempts"]
    assert first["nodes"] == ["n0", "n1", "n2"] and second["nodes"] == ["n0", "n2"]
    assert second["lost"] == ["n1"] and second["ranks_reporting"] == 2
    assert second["restored_version"] >= 30 and job.statistics["completed"]


def test_program_for_any_number_of_ranks_goes_on_from_the_queue_with_fewer_nodes(
    cluster, tmp_path
):
    cluster.run("scontrol", "update", "nodename=n3", "state=drain", "reason=held")
    job = submit_for_any_number_of_ranks(cluster, ["-N2-3", "--no-kill", "--requeue"], "--requeue")
    job.wait_for_version(45)
    for node in ("n1", "n2"):  # one is left, and two are needed
        lose(cluster, node)
    cluster.tell_losses()
    cluster.run("scontrol", "update", "nodename=n3", "state=resume")
    job.wait()
    assert hash_in(job.output) == undisturbed(tmp_path, MPICH, plasma()), job.output
    assert "the job goes back into the queue" in job.output
    attempt, = job.statistics["attempts"]
    assert attempt["nodes"] == ["n0", "n3"] and attempt["ranks_reporting"] == 2
    assert attempt["restored_version"] >= 30 and job.statistics["completed"]
    assert job.facts()["Restarts"] == "1" and job.facts()["JobState"] == "COMPLETED"


def test_job_without_a_spare_goes_on_from_the_queue(cluster, answer):
    job = submit(cluster, ["-N3", "--no-kill", "--requeue"], "--requeue")
    job.wait_for_version(45)
    lose(cluster, "n1")
    cluster.tell_losses()
    job.wait()
    assert hash_in(job.output) == answer("hpccg"), job.output
    assert "the job goes back into the queue" in job.output
    attempt, = job.statistics["attempts"]
    assert attempt["nodes"] == ["n0", "n2", "n3"] and attempt["restored_version"] >= 30
    assert job.facts()["Restarts"] == "1" and job.facts()["JobState"] == "COMPLETED"


def job_with_a_cached_file(cluster: Cluster) -> Job:
    """Put back into the queue by the loss of n1, to which it goes back."""
    shared = cluster.root / "shared"
    shared.mkdir(mode=0o700)
    program = f"{POOL_JOB} {cluster.nvm} 5 {POOL_JOB_STEPS} 1"
    script = f"#!/bin/bash\ncd {cluster.root}\n"
    script += f"exec {PERDURE} run --json statistics.json --requeue -- {MPICH.srun} {program}\n"
    options = ["-N3", "-w", "n0,n1,n2", "--no-kill", "--requeue"]
    job = Job(cluster, options, script, {"POOL_JOB_SHARED": str(shared)})
    job.wait_for_version(POOL_JOB_STEPS // 4)
    cluster.node_kill("n1")
    cluster.tell_losses()
    job.wait_for_output("goes back into the queue")  # which it does only while the node is lost
    return job


def test_job_with_a_cached_file_goes_on_when_its_node_comes_back_with_its_memory(cluster):
    job = job_with_a_cached_file(cluster)
    cluster.node_up("n1")
    job.wait()
    attempt, = job.statistics["attempts"]
    assert attempt["nodes"] == ["n0", "n1", "n2"], job.output
    assert attempt["restored_version"] >= POOL_JOB_STEPS // 4, job.output
    assert job.facts()["Restarts"] == "1" and job.facts()["JobState"] == "COMPLETED"
    assert job.statistics["exit_code"] == 0, job.output  # the program has compared all that it has


def test_job_with_a_cached_file_goes_on_at_a_spare_node_without_the_memory_of_the_lost_one(cluster):
    shared = cluster.root / "shared"
    shared.mkdir(mode=0o700)
    program = f"{POOL_JOB} {cluster.nvm} 5 {POOL_JOB_STEPS} 1"
    script = f"#!/bin/bash\ncd {cluster.root}\n"
    script += f"exec {PERDURE} run --json statistics.json --spares 1 -- {MPICH.srun} {program}\n"
    environment = {
        "POOL_JOB_SHARED": str(shared),
        "POOL_JOB_MAY_GO_BACK": "1",
        "PERDURE_LEVELS": "redundancy=partner;every=10",
    }
    job = Job(cluster, ["-N4", "--no-kill"], script, environment)
    job.wait_for_version(POOL_JOB_STEPS // 4)
    lose(cluster, "n1")
    job.wait()
    first, second = job.statistics["attempts"]
    assert first["nodes"] == ["n0", "n1", "n2"] and second["nodes"] == ["n0", "n2", "n3"]
    assert second["restored_version"] >= POOL_JOB_STEPS // 4 - 20, job.output
    assert "was brought back from images" in job.output
    assert job.statistics["exit_code"] == 0, job.output  # the program has compared all that it has


def test_job_with_a_cached_file_is_refused_when_its_node_comes_back_without_its_memory(cluster):
    job = job_with_a_cached_file(cluster)
    cluster.node_wipe("n1")
    cluster.node_up("n1")
    job.wait()
    assert "these have a file of the pool on some node: 0, 2;" in job.output
    assert "not put back into the queue: no node is lost" in job.output
    assert job.facts()["Restarts"] == "1" and job.facts()["JobState"] == "FAILED"


@pytest.mark.parametrize("mpi", MPIS, ids=lambda mpi: mpi.name)
def test_program_that_knows_nothing_of_the_cache_has_its_file_in_it_under_srun(cluster, mpi):
    shared = cluster.root / "shared"
    shared.mkdir(mode=0o700)
    file = shared / "values.dat"
    script = f"#!/bin/bash\ncd {cluster.root}\nexec {PERDURE} run --json statistics.json "
    script += f"--cache '*.dat' --cache-options block=4k -- {mpi.srun} {PLAIN[mpi]} {file}\n"
    reports = {"PERDURE_CACHE_REPORT": str(shared / "report")}
    job = Job(cluster, ["-N3"], script, reports, mpi)
    job.wait()
    assert job.statistics["exit_code"] == 0, job.output
    assert job.facts()["JobState"] == "COMPLETED"
    assert "right 303\n" in job.output  # 100 of rank 0 + 101 + 102
    values = array.array("i", file.read_bytes())
    assert list(values) == [10 * rank + number for number in range(4) for rank in range(3)]
    made = [json.loads(report.read_text()) for report in sorted(shared.glob("report*"))]
    assert [report["rank"] for report in made] == [0, 1, 2], made
    for report in made:
        assert report["file"] == str(file) and report["cached"] and report["nodes"] == 3
        assert (report["remote_bytes"] > 0) == (report["rank"] > 0)  # one block, which n0 keeps


def test_signal_of_slurm_before_the_end_of_the_time_ends_the_job_with_0_and_all_of_it_drained(
    cluster, answer
):
    levels = f"redundancy=off;every=10;drain={cluster.root}/levels"
    job = submit(cluster, ["-N3", "--signal=B:USR1@55", "--time=1"], "--spares 0", levels=levels)
    job.wait_for_version(20)
    job.signal_ranks(signal.SIGSTOP)  # else they might be done before Slurm looks at its clock
    job.wait_for_output("SIGUSR1: the ranks are asked to end")
    job.signal_ranks(signal.SIGCONT)
    job.wait()
    assert job.facts()["JobState"] == "COMPLETED" and job.facts()["ExitCode"] == "0:0", job.output
    attempt, = job.statistics["attempts"]
    assert 20 <= attempt["version"] < 100
    cluster.memories_wipe()
    job = submit(cluster, ["-N3"], "--spares 0", levels=levels)
    job.wait()
    assert job.statistics["attempts"][0]["restored_version"] == attempt["version"], job.output
    assert hash_in(job.output.split("was brought back")[1]) == answer("hpccg"), job.output


def test_job_that_was_asked_to_end_goes_on_from_the_queue(cluster, answer):
    job = submit(cluster, ["-N3"], "--requeue")
    job.wait_for_version(20)
    cluster.run("scancel", "--batch", "--signal=USR1", job.id)
    job.wait()
    assert "SIGUSR1: the ranks are asked to end" in job.output
    assert hash_in(job.output.split("goes back into the queue")[1]) == answer("hpccg"), job.output
    assert job.statistics["attempts"][0]["restored_version"] >= 20
    assert job.facts()["Restarts"] == "1" and job.facts()["JobState"] == "COMPLETED"


def test_prolog_and_epilog_of_the_manual_save_what_a_cancelled_job_had(answer):
    places = {"/mnt/pmem": "{cluster}/nvm", "/scratch/$SLURM_JOB_USER": "{cluster}",
              "/opt/perdure/bin": str(ROOT)}  # fmt: skip
    scripts = [script_of_manual(number) for number in (1, 2)]
    for place, here in places.items():
        scripts = [script.replace(place, here) for script in scripts]
    keep_output = "#!/bin/bash\nexec >>{cluster}/hooks.out 2>&1\n"
    hooks = {"Prolog": keep_output + scripts[0], "Epilog": keep_output + scripts[1]}
    with Cluster(4, hooks=hooks) as cluster:
        job = submit(cluster, ["-N3"], "--spares 0", levels="redundancy=off",
                     pool="$SLURM_JOB_ID/solver")  # fmt: skip
        job.wait_for_version(20)
        cluster.run("scancel", job.id)
        job.wait()
        cluster.memories_wipe()
        levels = f"redundancy=off;drain={cluster.root}/levels"
        job = submit(cluster, ["-N3"], "--spares 0", levels=levels, pool="$SLURM_JOB_ID/solver")
        job.wait()
        hooks_said = (cluster.root / "hooks.out").read_text()
        assert f"was brought back from {cluster.root}/levels" in job.output, hooks_said
        assert hash_in(job.output) == answer("hpccg"), job.output
        assert job.statistics["attempts"][0]["restored_version"] >= 20
        states = cluster.run("sinfo", "-h", "-o", "%T %D").split()
        assert states == ["idle", "4"]  # Slurm drains a node whose prolog or epilog fails


def test_ctrl_c_in_an_allocation_ends_the_ranks_on_all_nodes(cluster):
    job = submit(cluster, ["-N3", "--no-kill"], "--spares 0")
    job.wait_for_version(5)
    cluster.run("scancel", "--batch", "--signal=INT", job.id)
    job.wait()
    for node in cluster.nodes:
        assert "hpccg" not in cluster.run("srun", "-N1", "-w", node, "ps", "-e")
    assert not list(cluster.root.glob("perdure-run-*"))


@pytest.mark.parametrize("number", ["INT", "TERM", "KILL"])
def test_nothing_of_a_cluster_is_left_when_its_tests_are_ended(number):
    script = f"import signal, sys, time; sys.path.insert(0, {str(ROOT / 'tests/cluster')!r})\n"
    # A shell that runs its tests in the background lets them ignore SIGINT.
    script += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    script += "from fake_cluster import Cluster\n"
    script += "with Cluster(2) as made:\n  print(made.root, flush=True); time.sleep(600)\n"
    with subprocess.Popen([ROOT / ".venv/bin/python", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as started:  # fmt: skip
        root = started.stdout.readline().strip()
        assert root.startswith("/") and "slurmd" in processes_of(root)
        started.send_signal(getattr(signal, "SIG" + number))
    until(lambda: processes_of(root) == "")  # the kernel takes the namespaces apart
    assert root not in Path("/proc/self/mounts").read_text()
    if number != "INT":
        time.sleep(1)
        Cluster(1).close()  # removes the files of killed ones
    assert not Path(root).exists()


def processes_of(root: str) -> str:
    words = ["pgrep", "-a", "-f", root]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout
