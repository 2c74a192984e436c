# SPDX-License-Identifier: BSD-3-Clause
"""A Slurm of fake nodes on one machine, for the tests of lost nodes.

    python tests/cluster/fake_cluster.py 4        starts 4 nodes and a shell from which to use them

The cluster is a PID namespace with a network, host name and mounts of its own, in which munged,
slurmctld, srun and sbatch run; a node is another one inside it. So nothing of the machine's own
network or file systems changes, and when the cluster's first process ends, however it ends, the
kernel ends every process and drops every mount. The nodes share the machine's files, as if these
were a parallel file system. `nvm` is the exception: under that path each node has a directory of
its own on a tmpfs of the cluster, which outlives the node's processes, as persistent memory does.

Needs root, and Debian's packages of `tools/bootstrap.sh --cluster`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "ip", "unshare", "nsenter", "setpriv")
_START_S = 60.0
_PREFIX = "perdure-cluster-"
_NAMESPACES = ("--mount", "--net", "--uts", "--ipc", "--pid")
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
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"there is no {', '.join(missing)}: run tools/bootstrap.sh --cluster"
    if os.geteuid() != 0:
        return "fake nodes need root, for namespaces with a network of their own"
    tried = subprocess.run(
        ["unshare", *_NAMESPACES, "--fork", "ip", "link", "add", "name", "sw0", "type", "bridge"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if tried.returncode != 0:
        return "namespaces can't be made here: " + tried.stderr.strip()
    return None


class Cluster:
    """`nodes` nodes, named n0, n1 and so on; use it in a `with` statement.

    `slurmd_timeout` is after how many seconds Slurm itself notices that a node is lost. `hooks` are
    scripts that it runs: {"Prolog": text}, in which {cluster} stands for the cluster's directory.
    """

    def __init__(
        self, nodes: int = 4, slurmd_timeout: int = 300, hooks: dict[str, str] | None = None
    ):
        _remove_stale()
        self.nodes = [f"n{number}" for number in range(nodes)]
        self.root = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = _locked(self.root)
        self.nvm = self.root / "nvm"
        self._slurmd_timeout = slurmd_timeout
        self._hooks = hooks or {}
        self._holders: dict[str, _Holder] = {}

    def __enter__(self) -> Cluster:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all that runs in the cluster and removes its files."""
        if "switch" in self._holders:
            self._holders.pop("switch").kill()
        self._holders.clear()
        shutil.rmtree(self.root, ignore_errors=True)
        os.close(self._lock)

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

    def node_kill(self, node: str) -> None:
        """A loss of power: every process of the node ends at once."""
        self._holders.pop(node).kill()

    def node_wipe(self, node: str) -> None:
        """What the node had in its memory is gone."""
        place = self._memory / node
        shutil.rmtree(place)
        place.mkdir()

    def memories_wipe(self) -> None:
        """What all nodes had in their memory is gone, while they run."""
        for file in self._memory.glob("*/*"):
            shutil.rmtree(file)

    def node_up(self, node: str) -> None:
        """Starts a node, with the memory that it had."""
        switch, number = self._holders["switch"], self.nodes.index(node)
        (self._memory / node).mkdir(exist_ok=True)
        (self.root / f"spool.{node}").mkdir(exist_ok=True)
        work = [sys.executable, __file__, "--node", node, str(self.root)]
        holder = _Holder(switch.enter("--all"), work, self.root / f"{node}.out")
        self._holders[node] = holder
        # The kernel takes the other end away with the node's namespace, but not at once.
        until(lambda: switch.succeeds("--net", "ip", "link", "add", "name", f"v{number}", "type",
                                       "veth", "peer", "name", "eth0", "netns", holder.pid))
        switch.call("--net", "ip", "link", "set", f"v{number}", "master", "sw0", "up")
        address = f"10.77.0.{number + 1}/24"
        holder.call("--net", "ip", "addr", "add", address, "dev", "eth0")
        for device in ("eth0", "lo"):
            holder.call("--net", "ip", "link", "set", device, "up")
        holder.go()

    def path_on(self, node: str, path: str) -> Path:
        """A file of a node as this process sees it."""
        return Path(f"/proc/{self._holders[node].pid}/root{path}")

    def tell_losses(self) -> None:
        """What an administrator does, or Slurm itself after its SlurmdTimeout."""
        lost = [node for node in self.nodes if node not in self._holders]
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

    @property
    def _memory(self) -> Path:
        """The nodes' directories as this process sees them, through the cluster's mounts."""
        return self.path_on("switch", f"{self.root}/memory")

    def _start(self) -> None:
        self.root.chmod(0o755)
        for name in ("state", "nvm", "memory"):
            (self.root / name).mkdir()
        self._write_configuration()
        work = [sys.executable, __file__, "--switch", str(self.root)]
        switch = _Holder([], work, self.root / "switch.out")
        self._holders["switch"] = switch
        switch.call("--net", "ip", "link", "add", "name", "sw0", "type", "bridge")
        switch.call("--net", "ip", "addr", "add", "10.77.0.254/24", "dev", "sw0")
        for device in ("sw0", "lo"):
            switch.call("--net", "ip", "link", "set", device, "up")
        switch.go()
        until(lambda: (self.root / "munge.sock").exists())
        for node in self.nodes:
            self.node_up(node)
        self.wait_for_nodes("idle", len(self.nodes))

    def _write_configuration(self) -> None:
        hosts = "127.0.0.1 localhost\n10.77.0.254 switch\n"
        nodes = ""
        for number, node in enumerate(self.nodes):
            address = f"10.77.0.{number + 1}"
            hosts += f"{address} {node}\n"
            nodes += f"NodeName={node} NodeAddr={address} CPUs=2 RealMemory=1000\n"
        text = _CONFIGURATION.format(
            root=self.root, nodes=nodes, slurmd_timeout=self._slurmd_timeout,
            hooks="".join(f"{name}={self.root}/{name}\n" for name in self._hooks),
        )  # fmt: skip
        for name, script in self._hooks.items():
            (self.root / name).write_text(script.replace("{cluster}", str(self.root)))
            (self.root / name).chmod(0o755)
        (self.root / "hosts").write_text(hosts)
        (self.root / "slurm.conf").write_text(text)
        (self.root / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.root / "mpi.conf").write_text("PMIxCliTmpDirBase=/dev/shm\n")
        (self.root / "munge.key").write_bytes(os.urandom(1024))
        (self.root / "munge.key").chmod(0o400)


class _Holder:
    """The first process of a set of namespaces: with it all others of them end."""

    def __init__(self, before: list[str], work: list[str], output: Path):
        """`before` enters what is around it; `work` waits for go() before it does anything."""
        unshare = ["setpriv", "--pdeathsig", "KILL", "unshare", *_NAMESPACES, "--propagation",
                   "private", "--mount-proc", "--fork", "--kill-child", "--", *work]  # fmt: skip
        with output.open("ab") as file:
            self._command = subprocess.Popen(
                [*before, *unshare], stdin=subprocess.PIPE, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
        self._output = output
        self.pid = self._find(len([*before]) > 0)

    def _find(self, nested: bool) -> int:
        """The pid of the worker, as this process counts them: below unshare, below nsenter."""
        found = self._command.pid
        for _ in range(2 if nested else 1):
            found = until(lambda parent=found: _only_child(parent))
        return found

    def go(self) -> None:
        assert self._command.stdin is not None
        self._command.stdin.write(b"go\n")
        self._command.stdin.flush()

    def enter(self, *which: str) -> list[str]:
        """The beginning of a command that is to run in some of the namespaces."""
        return ["nsenter", "--target", str(self.pid), *which, "--"]

    def call(self, which: str, *words: object) -> None:
        command = [*self.enter(which), *(str(word) for word in words)]
        subprocess.run(command, check=True)

    def succeeds(self, which: str, *words: object) -> bool:
        command = [*self.enter(which), *(str(word) for word in words)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._command.kill()
        self._command.wait()
        assert self._command.stdin is not None
        self._command.stdin.close()


def _locked(root: Path) -> int:
    """Until it is closed, or this process ends, nobody takes the directory away."""
    lock = os.open(root, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def _remove_stale() -> None:
    """The directories of clusters that were killed."""
    for root in Path(tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):  # in use, or not ours
            lock = _locked(root)
            if time.time() - root.stat().st_mtime > 1.0:  # else it may be about to be locked
                shutil.rmtree(root, ignore_errors=True)
            os.close(lock)


def _only_child(parent: int) -> int | None:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(children[0]) if children else None


def until(condition):
    """What `condition()` returns, once that is something."""
    deadline = time.monotonic() + _START_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the cluster did not get there within {_START_S:.0f} s")
        time.sleep(0.05)
    return found


def _hold_switch(root: Path) -> None:
    """The cluster's first process: the memory of the nodes, munged, slurmctld."""
    sys.stdin.readline()
    _call("hostname", "switch")
    _call("mount", "-t", "tmpfs", "-o", "size=2g", "memory", root / "memory")
    _call("mount", "-t", "tmpfs", "-o", "size=64m", "shm", "/dev/shm")
    _call("mount", "--bind", root / "hosts", "/etc/hosts")
    _call("munged", f"--key-file={root}/munge.key", f"--socket={root}/munge.sock",
          f"--pid-file={root}/munged.pid", f"--log-file={root}/munged.log",
          f"--seed-file={root}/munged.seed")  # fmt: skip
    _call("slurmctld", "-f", root / "slurm.conf")
    _reap()


def _hold_node(node: str, root: Path) -> None:
    """A node's first process: its memory, its host name, slurmd."""
    sys.stdin.readline()
    _call("hostname", node)
    _call("mount", "-t", "tmpfs", "-o", "size=256m", "shm", "/dev/shm")
    _call("mount", "--bind", root / "hosts", "/etc/hosts")
    _call("mount", "--bind", root / "memory" / node, root / "nvm")
    _call("slurmd", "-N", node, "-f", root / "slurm.conf")
    _reap()


def _call(*words: object) -> None:
    subprocess.run([str(word) for word in words], check=True)


def _reap() -> None:
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.2)


def main(words: list[str]) -> None:
    if words[:1] == ["--switch"]:
        _hold_switch(Path(words[1]))
    elif words[:1] == ["--node"]:
        _hold_node(words[1], Path(words[2]))
    elif len(words) == 1 and words[0].isdecimal():
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
