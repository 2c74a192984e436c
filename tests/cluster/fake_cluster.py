# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm of fake nodes on one machine, for the tests of lost nodes.

    python tests/cluster/fake_cluster.py 4        starts 4 nodes and a shell from which to use them

The nodes are those of hosts.py: namespaces, of which nothing is left when the first process of
the switch ends. munged, slurmctld, srun and sbatch run at the switch, and a slurmd on each node.

Needs root, and Debian's packages of `tools/bootstrap.sh --cluster`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import hosts
from hosts import Hosts, until

PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", *hosts.PROGRAMS)
_CONFIGURATION = """\
ClusterName=perdure
SlurmctldHost=switch(10.77.0.254)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.sock
CredType=cred/munge
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool.%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd.%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
SlurmdTimeout={slurmd_timeout}
KillWait=3
MessageTimeout=10
InactiveLimit=0
MpiDefault=none
{hooks}{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP MaxTime=60
"""


def why_not() -> str | None:
    """Why there can be no cluster here, in a sentence; None if there can."""
    return hosts.why_not(PROGRAMS)


class Cluster(Hosts):
    """`nodes` nodes, named n0, n1 and so on; use it in a `with` statement.

    `slurmd_timeout` is after how many seconds Slurm itself notices that a node is lost. `hooks` are
    scripts that it runs: {"Prolog": text}, in which {cluster} stands for the cluster's directory.
    """

    prefix = "perdure-cluster-"

    def __init__(
        self, nodes: int = 4, slurmd_timeout: int = 300, hooks: dict[str, str] | None = None
    ):
        super().__init__(nodes)
        self._slurmd_timeout = slurmd_timeout
        self._hooks = hooks or {}

    def run(
        self, *words: object, limit_s: float = 60.0, environment: dict[str, str] | None = None
    ) -> str:
        """What a command prints that runs where a user logs in. Raises CalledProcessError."""
        command = self._holders["switch"].enter("--all")
        done = subprocess.run(
            [*command, *(str(word) for word in words)],
            env={**os.environ, **self.environment, **(environment or {})},
            stdout=subprocess.PIPE, text=True, timeout=limit_s, check=True, cwd=self.root,
        )  # fmt: skip
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        """What a user's shell has. Open MPI names its directories in TMPDIR by pid, which nodes
        have in common, as they have the machine's /tmp."""
        return {"SLURM_CONF": str(self.root / "slurm.conf"), "TMPDIR": "/dev/shm"}

    def tell_losses(self) -> None:
        """What an administrator does, or Slurm itself after its SlurmdTimeout."""
        lost = [node for node in self.nodes if not self.is_up(node)]
        if lost:
            names = f"nodename={','.join(lost)}"
            self.run("scontrol", "update", names, "state=down", "reason=lost")

    def wait_for_nodes(self, state: str, count: int) -> None:
        """Until so many nodes are in a state of sinfo's."""
        until(lambda: self._nodes_in(state) == count)

    def _nodes_in(self, state: str) -> int:
        try:
            return int(self.run("sinfo", "-h", "-t", state, "-o", "%D").strip() or 0)
        except subprocess.CalledProcessError:
            return 0  # slurmctld starts

    def _start(self) -> None:
        (self.root / "state").mkdir()
        for node in self.nodes:
            (self.root / f"spool.{node}").mkdir()
        self._write_configuration()
        super()._start()
        self.wait_for_nodes("idle", len(self.nodes))

    def _daemons(self, name: str) -> list[list]:
        root = self.root
        if name != "switch":
            return [["slurmd", "-N", name, "-f", root / "slurm.conf"]]
        munged = ["munged", f"--key-file={root}/munge.key", f"--socket={root}/munge.sock",
                  f"--pid-file={root}/munged.pid", f"--log-file={root}/munged.log",
                  f"--seed-file={root}/munged.seed"]  # fmt: skip
        return [munged, ["slurmctld", "-f", root / "slurm.conf"]]

    def _write_configuration(self) -> None:
        nodes = ""
        for node in self.nodes:
            nodes += f"NodeName={node} NodeAddr={self.address(node)} CPUs=2 RealMemory=1000\n"
        text = _CONFIGURATION.format(
            root=self.root, nodes=nodes, slurmd_timeout=self._slurmd_timeout,
            hooks="".join(f"{name}={self.root}/{name}\n" for name in self._hooks),
        )  # fmt: skip
        for name, script in self._hooks.items():
            (self.root / name).write_text(script.replace("{cluster}", str(self.root)))
            (self.root / name).chmod(0o755)
        (self.root / "slurm.conf").write_text(text)
        (self.root / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.root / "mpi.conf").write_text("PMIxCliTmpDirBase=/dev/shm\n")
        (self.root / "munge.key").write_bytes(os.urandom(1024))
        (self.root / "munge.key").chmod(0o400)


def main(words: list[str]) -> None:
    if len(words) == 1 and words[0].isdecimal():
        _shell(int(words[0]))
    else:
        sys.exit(__doc__)


def _shell(nodes: int) -> None:
    if (why := why_not()) is not None:
        sys.exit(f"fake_cluster: {why}")
    with Cluster(nodes) as cluster:
        print(f"{nodes} nodes; their own memory is {cluster.nvm}; `exit` puts all of it away")
        command = [*cluster._holders["switch"].enter("--all"), "bash"]
        subprocess.run(command, env={**os.environ, **cluster.environment}, check=False)


if __name__ == "__main__":
    main(sys.argv[1:])
