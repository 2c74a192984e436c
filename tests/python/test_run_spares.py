# SPDX-License-Identifier: BSD-3-Clause
"""`perdure run --spares` and `--requeue`, and the end that SIGUSR1 asks for.

Method: the real command in an allocation of stand-ins: scripts with the names of Slurm's, PBS's and
Flux's commands answer what the test has written down, and a node is a socket of the test's. The
rank is a real program of the library (programs/counter.c). tests/cluster has the real Slurm.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, wait_until
from perdure.run.allocation import Slurm, this_allocation
from perdure.run.node_watch import NodeWatch
from perdure.run.page import RunPage
from perdure.run.placement import NoPlace, placed

COUNTER = BUILD / "tests/python/counter"
SCONTROL = """#!/bin/sh
cd {folder}
case "$1 $2" in
  "show hostnames") seq -f n%.0f 0 3 ;;
  "show node") cat nodes ;;
  "show config") echo "SlurmdPort             = 6818" ;;
  "requeue 7") touch requeued ;;
  *) echo "scontrol: error: $*" >&2; exit 1 ;;
esac
"""
SRUN = """#!/bin/sh
echo "$@" >> {folder}/started
until [ "$1" = -- ]; do shift; done; shift
if [ -e {folder}/script ]; then . {folder}/script; fi
exec "$@"
"""


class FakeSlurm:
    """An allocation of the nodes n0 to n3."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._sockets = {f"n{number}": socket.create_server(("127.0.0.1", 0)) for number in
                         range(4)}  # fmt: skip
        ports = {node: held.getsockname()[1] for node, held in self._sockets.items()}
        self._lines = {node: f"NodeName={node} NodeAddr=127.0.0.1 Port={port} State="
                       for node, port in ports.items()}  # fmt: skip
        self.tell()
        self.command("scontrol", SCONTROL)
        self.command("srun", SRUN)
        self.command("squeue", "#!/bin/sh\n")

    def command(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text.replace("{folder}", str(self.folder)))
        path.chmod(0o700)

    def tell(self, **states: str) -> None:
        lines = (line + states.get(node, "ALLOCATED") for node, line in self._lines.items())
        (self.folder / "nodes").write_text("\n".join(lines) + "\n")

    def first_attempt(self, script: str) -> None:
        """What srun does instead of starting the rank, the first time."""
        (self.folder / "script").write_text(f"rm {self.folder}/script\n{script}\n")

    def down_later(self, *nodes: str) -> str:
        """A line of a script that makes Slurm call nodes down."""
        words = " ".join(f"-e '/NodeName={node} /s/ALLOCATED/DOWN/'" for node in nodes)
        return f"sed -i {words} {self.folder}/nodes"

    def dies_silently(self, node: str) -> None:
        self._sockets[node].close()

    def close(self) -> None:
        for held in self._sockets.values():
            held.close()

    @property
    def chosen(self) -> list[str]:
        """The nodes of each attempt."""
        lines = (self.folder / "started").read_text().splitlines()
        return [line.split("--nodelist=")[1].split()[0] for line in lines]

    @property
    def requeued(self) -> bool:
        return (self.folder / "requeued").exists()


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    folder = tmp_path / "slurm"
    folder.mkdir()
    fake = FakeSlurm(folder)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0-3]")
    for variable in ("PBS_NODEFILE", "FLUX_URI"):
        monkeypatch.delenv(variable, raising=False)
    yield fake
    fake.close()


def job(tmp_path: Path, iterations: int = 20) -> list:
    return ["srun", "--", COUNTER, tmp_path / "pool", iterations]


def test_levels_that_are_asked_for_are_shown(perdure, slurm, tmp_path, monkeypatch):
    assert "levels: a copy of every 10th" in perdure.run(["--spares", 1], job(tmp_path)).err
    monkeypatch.setenv("PERDURE_LEVELS", "redundancy=off;every=5")
    ran = perdure.run(["--spares", 1], job(tmp_path))
    assert ran.statistics["levels"] == "redundancy=off;every=5"
    assert "levels: redundancy=off;every=5" in ran.err


def test_lost_node_is_left_out_and_a_spare_takes_its_place(perdure, slurm, tmp_path):
    slurm.first_attempt(slurm.down_later("n1") + "\nkill -9 $$")
    ran = perdure.run(["--spares", 1], job(tmp_path))
    assert ran.code == 0 and ran.out == b"counted to 20\n"
    assert slurm.chosen == ["n0,n1,n2", "n0,n2,n3"]
    first, second = ran.statistics["attempts"]
    assert (first["lost"], second["lost"]) == ([], ["n1"])
    assert second["nodes"] == ["n0", "n2", "n3"]
    assert "attempt 2 runs on n0, n2, n3; lost: n1" in ran.err
    assert not list(tmp_path.glob("perdure-run-*"))


def test_node_that_does_not_answer_is_lost_before_slurm_knows(perdure, slurm, tmp_path):
    slurm.dies_silently("n0")
    ran = perdure.run(["--spares", 1], job(tmp_path))
    assert ran.code == 0 and slurm.chosen == ["n1,n2,n3"]


@pytest.mark.parametrize(
    "state, lost",
    [("ALLOCATED", False), ("MIXED+DRAIN", False), ("IDLE*", True), ("DOWN*+DRAIN", True),
     ("ALLOCATED+NOT_RESPONDING", True), ("FAILING", True), ("MIXED+CLOUD", False)],
)  # fmt: skip
def test_states_of_slurm_are_understood(slurm, state, lost):
    slurm.tell(n2=state)
    assert Slurm().usable(4)[1] == ({"n2"} if lost else set())


def test_node_lost_during_an_attempt_is_noticed_only_while_nothing_progresses(slurm):
    slurm.dies_silently("n1")
    page = RunPage(*(0,) * 14)

    def watch(nodes: list[str], pages) -> set[str]:
        """What is found within so many looks, one a second of the attempt's clock."""
        watched = NodeWatch(Slurm(), nodes)
        for second in range(12):
            found = watched.lost(pages(second), float(second))
            while not found and watched._answer is not None and not watched._answer.done():
                time.sleep(0.01)
            if found:
                return found
        return set()

    assert watch(["n0", "n1"], lambda second: [page]) == {"n1"}
    assert watch(["n0", "n2"], lambda second: [page]) == set()
    assert watch(["n0", "n1"], lambda second: [replace(page, commits=second)]) == set()


def test_attempt_that_waits_for_a_lost_node_is_ended_and_another_one_takes_its_place(
    perdure, slurm, tmp_path
):
    slurm.first_attempt(slurm.down_later("n1") + "\nsleep 600")
    ran = perdure.run(["--spares", 1], job(tmp_path))
    first, second = ran.statistics["attempts"]
    assert (first["ended"], first["why"], first["exit_code"]) == ("lost", "lost: n1", 124)
    assert ran.code == 0 and second["nodes"] == ["n0", "n2", "n3"]


def test_node_that_is_drained_is_taken_last(slurm):
    slurm.tell(n1="MIXED+DRAIN")
    assert Slurm().usable(3)[0] == ["n0", "n2", "n3"]
    assert Slurm().usable(4)[0] == ["n0", "n1", "n2", "n3"]


def test_job_without_enough_nodes_goes_back_into_the_queue(perdure, slurm, tmp_path):
    slurm.first_attempt(slurm.down_later("n1", "n2") + "\nexit 9")
    ran = perdure.run(["--spares", 1, "--requeue"], job(tmp_path))
    assert slurm.requeued and ran.statistics["requeued"] and ran.code == 9
    assert "2 nodes are left and the job needs 3; lost: n1, n2" in ran.err


def test_job_without_enough_nodes_ends_if_it_may_not_be_requeued(perdure, slurm, tmp_path):
    slurm.first_attempt(slurm.down_later("n1", "n2") + "\nexit 9")
    ran = perdure.run(["--spares", 1], job(tmp_path))
    assert ran.code == 9 and len(ran.statistics["attempts"]) == 1 and not slurm.requeued


def test_program_that_fails_on_whole_nodes_does_not_go_back_into_the_queue(
    perdure, slurm, tmp_path
):
    slurm.first_attempt("exit 3")
    ran = perdure.run(["--requeue"], job(tmp_path))
    assert ran.code == 3 and not slurm.requeued and not ran.statistics["requeued"]
    assert "no node is lost" in ran.err


def test_exit_code_0_is_no_success_before_every_rank_has_closed_its_pool(
    perdure, slurm, tmp_path
):
    slurm.first_attempt('PERDURE_KILL=rank=0,iteration=5,point=data "$@"; exit 0')
    ran = perdure.run(["--spares", 1], job(tmp_path))
    first, second = ran.statistics["attempts"]
    assert first["ended"] == "unclosed" and first["exit_code"] == 123
    assert "of 1 ranks these have not closed their pool: 0" in first["why"]
    assert second["restored_version"] == 4 and ran.code == 0 and slurm.chosen[1] == "n0,n1,n2"


def test_what_an_attempt_left_on_other_nodes_is_cancelled(perdure, slurm, tmp_path):
    slurm.command("squeue", '#!/bin/sh\ncd {folder}; [ -e cancelled ] || printf "7.batch sh\\n7.4 '
                  'other\\n7.5 perdure-1\\n"\n')  # fmt: skip
    slurm.command("scancel", '#!/bin/sh\necho "$@" > {folder}/cancelled\n')
    slurm.first_attempt("exit 1")
    assert perdure.run(["--spares", 1], job(tmp_path)).code == 0
    assert (slurm.folder / "cancelled").read_text() == "--signal=KILL 7.5\n"


def ended_by_sigusr1(perdure, tmp_path: Path, options: list, command: list) -> dict:
    """Statistics of a run that would take hours."""
    statistics = tmp_path / "statistics.json"
    words = ["run", "--json", statistics, *options, "--", *command]
    with perdure.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        wait_until(lambda: list((tmp_path / "pool").glob("rank-00000")))
        run.send_signal(signal.SIGUSR1)
        out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    found = json.loads(statistics.read_text())
    assert b"SIGUSR1: the ranks are asked to end" in err
    assert out == b"counted to %d\n" % found["attempts"][0]["version"]
    return found


def test_sigusr1_makes_the_job_commit_once_more_and_end(perdure, tmp_path):
    found = ended_by_sigusr1(perdure, tmp_path, [], [COUNTER, tmp_path / "pool", 10**15])
    assert found["completed"] and found["attempts"][0]["asked_to_end"] and not found["requeued"]
    again = perdure.run([], [COUNTER, tmp_path / "pool", 1])
    assert again.statistics["attempts"][0]["restored_version"] == found["attempts"][0]["version"]


def test_job_that_sigusr1_ended_early_goes_back_into_the_queue(perdure, slurm, tmp_path):
    found = ended_by_sigusr1(perdure, tmp_path, ["--requeue"], job(tmp_path, 10**15))
    assert found["requeued"] and slurm.requeued and found["attempts"][0]["nodes"] == [
        "n0", "n1", "n2", "n3",
    ]  # fmt: skip


def unwrapped(text: str) -> str:
    """A sentence that was broken into the lines of a box."""
    return " ".join(text.replace("│", " ").split())


def test_senseless_requests_are_refused_before_the_job_starts(perdure, slurm, monkeypatch):
    too_many = perdure("run", "--spares", 4, "--", "srun", "true")
    assert too_many.code == 2 and "leaves none beside 4 spares" in unwrapped(too_many.err)
    no_launcher = perdure("run", "--spares", 1, "--", "sh", "-c", "srun true")
    assert no_launcher.code == 2 and "'sh' is no launcher" in unwrapped(no_launcher.err)
    monkeypatch.delenv("SLURM_JOB_ID")
    outside = perdure("run", "--requeue", "--", "srun", "true")
    assert outside.code == 2 and "this is no job of a scheduler" in unwrapped(outside.err)


def test_scheduler_that_does_not_answer_is_named(perdure, slurm):
    slurm.command("scontrol", "#!/bin/sh\necho 'slurm_load_node: Unable to contact' >&2; exit 1\n")
    ran = perdure("run", "--spares", 1, "--", "srun", "true")
    assert ran.code == 2 and "Unable to contact" in unwrapped(ran.err)


def test_scheduler_that_does_not_answer_for_a_moment_is_asked_again(perdure, slurm, tmp_path):
    slurm.first_attempt(slurm.down_later("n1") + "\nkill -9 $$")
    for name, answer in (("squeue", ""), ("scontrol", SCONTROL.removeprefix("#!/bin/sh\n"))):
        slurm.command(name, f"""#!/bin/sh
if [ -e {{folder}}/started ] && mkdir {{folder}}/{name}.failed 2>/dev/null; then
  echo '{name} error: Unable to contact slurm controller' >&2; exit 1
fi
{answer}""")
    ran = perdure.run(["--spares", 1], job(tmp_path))
    assert ran.code == 0 and slurm.chosen == ["n0,n1,n2", "n0,n2,n3"], ran.err
    assert "Unable to contact slurm controller; asking again for 3 min" in unwrapped(ran.err)
    assert (slurm.folder / "squeue.failed").exists() and (slurm.folder / "scontrol.failed").exists()


def test_each_launcher_is_told_its_nodes_in_its_own_way(slurm, tmp_path):
    nodes, environment = ["n0", "n2"], {"PERDURE_RUN_DIR": str(tmp_path)}
    slurm.command("mpiexec", "#!/bin/sh\necho 'HYDRA build details:'\n")
    slurm.command("mpirun", "#!/bin/sh\necho 'mpirun (Open MPI) 5.0.11'\n")
    hydra = placed(["mpiexec", "-n", "2", "a"], nodes, "perdure-1", environment)
    assert hydra == ["mpiexec", "-hosts", "n0,n2", "-n", "2", "a"]
    open_mpi = placed(["mpirun", "-n", "2", "a"], nodes, "perdure-1", environment)
    assert open_mpi[:2] == ["mpirun", "--hostfile"] and open_mpi[-3:] == ["-n", "2", "a"]
    assert Path(open_mpi[2]).read_text() == "n0\nn2\n"
    assert "-x PERDURE_RUN_DIR" in " ".join(open_mpi)
    flux = placed(["flux", "run", "-n", "2", "a"], nodes, "perdure-1", environment)
    assert flux == ["flux", "run", "--nodes=2", "--requires=hosts:n0,n2", "-n", "2", "a"]
    with pytest.raises(NoPlace):
        placed(["flux", "submit", "a"], nodes, "perdure-1", environment)


def test_each_launcher_is_told_how_many_ranks_its_nodes_have(slurm, tmp_path):
    nodes, environment = ["n0", "n2"], {"PERDURE_RUN_DIR": str(tmp_path)}
    slurm.command("mpiexec", "#!/bin/sh\necho 'HYDRA build details:'\n")
    slurm.command("mpirun", "#!/bin/sh\necho 'mpirun (Open MPI) 5.0.11'\n")
    hydra = placed(["mpiexec", "a"], nodes, "perdure-1", environment, 3)
    assert hydra == ["mpiexec", "-hosts", "n0,n2", "-ppn", "3", "-n", "6", "a"]
    open_mpi = placed(["mpirun", "a"], nodes, "perdure-1", environment, 3)
    assert open_mpi[-3:] == ["-n", "6", "a"]
    assert Path(open_mpi[2]).read_text() == "n0 slots=3\nn2 slots=3\n"
    flux = placed(["flux", "run", "a"], nodes, "perdure-1", environment, 3)
    assert flux == ["flux", "run", "--nodes=2", "--requires=hosts:n0,n2", "-n", "6", "a"]
    srun = placed(["srun", "a"], nodes, "perdure-1", environment, 3)
    assert srun[-3:] == ["--ntasks=6", "--ntasks-per-node=3", "a"]


SRUN_OF_RANKS = f"""#!/bin/sh
echo "$@" >> {{folder}}/started
for word; do case "$word" in --ntasks=*) ranks=${{word#--ntasks=}} ;; esac; done
until [ "$1" = -- ]; do shift; done; shift
if [ -e {{folder}}/script ]; then . {{folder}}/script; fi
exec {ROOT}/tools/mpirun.sh {{launcher}} $ranks "$@"
"""


@pytest.fixture
def divided(slurm, tmp_path):
    """A program that goes on with any number of ranks, which srun starts as it is asked to."""
    found = sorted((BUILD / "tests/ranks").glob("divide_*"))
    if not found:
        pytest.skip("no MPI: there is no tests/ranks/divide")
    launcher = os.environ[f"PERDURE_TEST_MPIEXEC_{found[0].name.removeprefix('divide_')}"]
    slurm.command("srun", SRUN_OF_RANKS.replace("{launcher}", launcher))
    return ["srun", "--", found[0], tmp_path / "pool", 3]


def test_job_goes_on_with_the_nodes_that_are_left_and_fewer_ranks(perdure, slurm, divided):
    die = "PERDURE_KILL=rank=1,iteration=2,point=data; export PERDURE_KILL"
    slurm.first_attempt(slurm.down_later("n1", "n2") + "\n" + die)
    ran = perdure.run(["--ranks-per-node", 1, "--min-nodes", 2], divided)
    assert ran.code == 0, ran.err
    assert slurm.chosen == ["n0,n1,n2,n3", "n0,n3"]
    first, second = ran.statistics["attempts"]
    assert (first["ranks"], second["ranks"], second["restored_version"]) == (4, 2, 1)
    assert "the job goes on with 2 of 4 nodes, and fewer ranks" in ran.err
    assert b"wrong" not in ran.out


def test_requeued_job_goes_on_with_the_fewer_nodes_that_it_gets(
    perdure, slurm, divided, monkeypatch
):
    die = "PERDURE_KILL=rank=1,iteration=2,point=data; export PERDURE_KILL"
    slurm.first_attempt(slurm.down_later("n1", "n2") + "\n" + die)
    options = ["--ranks-per-node", 1, "--min-nodes", 3, "--requeue"]
    ran = perdure.run(options, divided)
    assert slurm.requeued and ran.statistics["requeued"] and ran.code != 0
    assert "2 nodes are left and the job needs 3; lost: n1, n2" in ran.err
    slurm.tell()
    slurm.command("scontrol", SCONTROL.replace("seq -f n%.0f 0 3", "echo n0 n2 n3"))
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[0,2-3]")
    again = perdure.run(options, divided)
    assert again.code == 0, again.err
    assert slurm.chosen[-1] == "n0,n2,n3"
    assert again.statistics["attempts"][0]["ranks"] == 3
    assert again.statistics["attempts"][0]["restored_version"] == 1


def test_senseless_numbers_of_ranks_are_refused(perdure, slurm):
    both = perdure("run", "--ranks-per-node", 2, "--", "srun", "-n", "4", "true")
    assert both.code == 2 and "'-n' of the command says how many ranks" in unwrapped(both.err)
    few = perdure("run", "--ranks-per-node", 2, "--min-nodes", 5, "--", "srun", "true")
    assert few.code == 2 and "--min-nodes asks for 5" in unwrapped(few.err)
    alone = perdure("run", "--min-nodes", 2, "--", "srun", "true")
    assert alone.code == 2 and "is for --ranks-per-node" in unwrapped(alone.err)


def test_nodes_of_pbs_are_those_of_its_file_and_lost_ones_those_it_calls_down(
    perdure, slurm, tmp_path, monkeypatch
):
    (tmp_path / "nodefile").write_text("n0.site\nn0.site\nn1.site\nn2.site\n")
    monkeypatch.setenv("PBS_NODEFILE", str(tmp_path / "nodefile"))
    states = {"n0": "job-busy", "n1": "job-busy,state-unknown,down", "n2": "free"}
    text = json.dumps({"nodes": {node: {"state": state} for node, state in states.items()}})
    slurm.command("pbsnodes", f"#!/bin/sh\necho '{text}'\n")
    monkeypatch.delenv("SLURM_JOB_ID")
    assert this_allocation().usable(2) == (["n0.site", "n2.site"], {"n1.site"})
    ran = perdure("run", "--requeue", "--", "srun", "--", "false")
    assert "PBS lets no job put itself back into the queue" in ran.err


def test_nodes_of_flux_are_those_of_the_innermost_instance(slurm, monkeypatch):
    monkeypatch.setenv("FLUX_URI", "local:///run/flux/local")
    slurm.command("flux", """#!/bin/sh
case "$*" in
  "hostlist --expand instance") echo n0 n1 n2 ;;
  "hostlist --expand n[1-2]") echo n1 n2 ;;
  "resource list -n -s down -o {nodelist}") echo "n[1-2]" ;;
  *) exit 1 ;;
esac
""")
    assert this_allocation().usable(2) == (["n0"], {"n1", "n2"})
