# SPDX-License-Identifier: BSD-3-Clause
"""Several hosts on one machine, of namespaces: for tests that lose hosts, links and clocks.

    python tests/cluster/hosts.py 6        makes 6 hosts, and a shell at the switch between them

The switch is a PID namespace with a network, host name and mounts of its own, in which a bridge and
the hosts are; a host is another one inside it, with its own /dev/shm and one cable to the bridge.
So nothing of the machine's own network or file systems changes, and when the first process of the
switch ends, however it ends, the kernel ends every process and drops every mount. The hosts share
the machine's files, as if these were a parallel file system. `nvm` is the exception: under that
path each host has a directory of its own on a tmpfs of the switch, which outlives the host's
processes, as persistent memory does. All addresses are of these networks: 10.77.0.0/24.

Needs root. fake_cluster.py puts a Slurm on top.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = ("ip", "unshare", "nsenter", "setpriv")
_START_S = 60.0
_NAMESPACES = ("--mount", "--net", "--uts", "--ipc", "--pid")
# What a launcher of MPI calls as ssh, at the switch: OPTION… HOST WORD…
_ENTER = """\
#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
[ ! -e "{root}/clock.$host" ] || export HOSTS_CLOCK_S="$(cat "{root}/clock.$host")"
exec nsenter --target "$(cat "{root}/pid.$host")" --all -- sh -c "$*"
"""


def why_not(programs: tuple[str, ...] = PROGRAMS) -> str | None:
    """Why there can be no hosts here, in a sentence; None if there can."""
    missing = [name for name in programs if shutil.which(name) is None]
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


class Hosts:
    """`nodes` hosts, named n0, n1 and so on; use it in a `with` statement."""

    prefix = "perdure-hosts-"

    def __init__(self, nodes: int = 4):
        _remove_stale(self.prefix)
        self.nodes = [f"n{number}" for number in range(nodes)]
        self.root = Path(tempfile.mkdtemp(prefix=self.prefix))
        self._lock = _locked(self.root)
        self.nvm = self.root / "nvm"
        self._holders: dict[str, _Holder] = {}

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all that runs on the hosts and removes their files."""
        if "switch" in self._holders:
            self._holders.pop("switch").kill()
        self._holders.clear()
        shutil.rmtree(self.root, ignore_errors=True)
        os.close(self._lock)

    def popen(self, words: list, environment: dict[str, str], output: Path) -> subprocess.Popen:
        """Starts a command where a user logs in, in a process group of its own."""
        command = [*self._holders["switch"].enter("--all"), *(str(word) for word in words)]
        with output.open("ab") as file:
            return subprocess.Popen(
                command, env={**os.environ, **environment}, cwd=self.root, stdin=subprocess.DEVNULL,
                stdout=file, stderr=file, start_new_session=True,
            )  # fmt: skip

    @property
    def enter_script(self) -> Path:
        """What a launcher takes for ssh."""
        return self.root / "enter"

    def address(self, node: str) -> str:
        return f"10.77.0.{self.nodes.index(node) + 1}"

    def is_up(self, node: str) -> bool:
        return node in self._holders

    def node_kill(self, node: str) -> None:
        """A loss of power: every process of the node ends at once."""
        self._holders.pop(node).kill()
        # The kernel does so with the node's namespace, but not at once.
        name = f"v{self.nodes.index(node)}"
        self._holders["switch"].succeeds("--net", "ip", "link", "del", name)

    def node_wipe(self, node: str) -> None:
        """What the node had in its memory is gone; the node may run."""
        for file in self.memory(node).iterdir():
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink()

    def memories_wipe(self) -> None:
        for node in self.nodes:
            self.node_wipe(node)

    def memory(self, node: str) -> Path:
        """A node's directory as this process sees it, whether the node is up or not."""
        return self._memory / node

    def processes(self, node: str) -> list[int]:
        """All but the first one, which holds the namespaces."""
        first = self._holders[node].pid
        space = Path(f"/proc/{first}/ns/pid").readlink()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(process.name) != first and (process / "ns/pid").readlink() == space:
                    found.append(int(process.name))
        return found

    def signal(self, node: str, number: signal.Signals) -> None:
        """To every process of the node."""
        for process in self.processes(node):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def pause(self, node: str) -> None:
        """Its processes stand still until signal(node, SIGCONT). Not those that enter_script
        started themselves: nsenter waits for them, and would stop as well, and for good."""
        for process in self.processes(node):
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{process}/status").read_text()
                parent = int(next(line for line in status.splitlines() if "PPid" in line)[5:])
                if parent in (self._holders[node].pid, *self.processes(node)):
                    os.kill(process, signal.SIGSTOP)

    def link(self, node: str, state: str) -> None:
        """ "down" cuts the node's cable, "up" connects it again."""
        name = f"v{self.nodes.index(node)}"
        self._holders["switch"].call("--net", "ip", "link", "set", name, state)

    def clock(self, node: str, seconds: int) -> None:
        """By how much the clock is wrong of what enter_script starts there, if
        libhosts_clock_shift.so is preloaded."""
        (self.root / f"clock.{node}").write_text(str(seconds))

    def node_up(self, node: str) -> None:
        """Starts a node, with the memory that it had."""
        switch, number = self._holders["switch"], self.nodes.index(node)
        (self._memory / node).mkdir(exist_ok=True)
        (self.root / f"{node}.up").unlink(missing_ok=True)
        self._write_commands(node)
        work = [sys.executable, __file__, "--node", node, str(self.root)]
        holder = _Holder(switch.enter("--all"), work, self.root / f"{node}.out")
        self._holders[node] = holder
        (self.root / f"pid.{node}").write_text(holder.pid_in_switch)
        # A machine that starts again has the address it had: others may still send to it.
        switch.call("--net", "ip", "link", "add", "name", f"v{number}", "type", "veth",
                    "peer", "name", "eth0", "address", f"02:00:00:00:00:{number + 1:02x}",
                    "netns", holder.pid)  # fmt: skip
        switch.call("--net", "ip", "link", "set", f"v{number}", "master", "sw0", "up")
        holder.call("--net", "ip", "addr", "add", f"{self.address(node)}/24", "dev", "eth0")
        for device in ("eth0", "lo"):
            holder.call("--net", "ip", "link", "set", device, "up")
        holder.go()
        until(lambda: (self.root / f"{node}.up").exists())

    def path_on(self, node: str, path: str) -> Path:
        """A file of a node as this process sees it."""
        return Path(f"/proc/{self._holders[node].pid}/root{path}")

    @property
    def _memory(self) -> Path:
        """The nodes' directories as this process sees them, through the switch's mounts."""
        return self.path_on("switch", f"{self.root}/memory")

    def _start(self) -> None:
        self.root.chmod(0o755)
        for name in ("nvm", "memory"):
            (self.root / name).mkdir()
        lines = [f"{self.address(node)} {node}" for node in self.nodes]
        text = "\n".join(["127.0.0.1 localhost", "10.77.0.254 switch", *lines])
        (self.root / "hosts").write_text(text + "\n")
        self.enter_script.write_text(_ENTER.format(root=self.root))
        self.enter_script.chmod(0o755)
        self._write_commands("switch")
        work = [sys.executable, __file__, "--switch", str(self.root)]
        switch = _Holder([], work, self.root / "switch.out")
        self._holders["switch"] = switch
        # An address of its own: a bridge without one takes another as hosts come and go.
        switch.call("--net", "ip", "link", "add", "name", "sw0", "address", "02:00:00:00:00:fe",
                    "type", "bridge")  # fmt: skip
        switch.call("--net", "ip", "addr", "add", "10.77.0.254/24", "dev", "sw0")
        for device in ("sw0", "lo"):
            switch.call("--net", "ip", "link", "set", device, "up")
        switch.go()
        until(lambda: (self.root / "switch.up").exists())
        for node in self.nodes:
            self.node_up(node)

    def _daemons(self, _name: str) -> list[list]:
        """Commands that the first process of the switch, or of a node, starts."""
        return []

    def _write_commands(self, name: str) -> None:
        commands = [[str(word) for word in command] for command in self._daemons(name)]
        (self.root / f"{name}.daemons").write_text(json.dumps(commands))


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

    @property
    def pid_in_switch(self) -> str:
        """Of a node's holder, as processes at the switch count them."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("NSpid:"))
        return line.split()[-2]

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


def _remove_stale(prefix: str) -> None:
    """The directories of hosts that were killed."""
    for root in Path(tempfile.gettempdir()).glob(prefix + "*"):
        with contextlib.suppress(OSError):  # in use, or not ours
            lock = _locked(root)
            if time.time() - root.stat().st_mtime > 1.0:  # else it may be about to be locked
                shutil.rmtree(root, ignore_errors=True)
            os.close(lock)


def _only_child(parent: int) -> int | None:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(children[0]) if children else None


def until(condition, limit_s: float = _START_S):
    """What `condition()` returns, once that is something."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the hosts did not get there within {limit_s:.0f} s")
        time.sleep(0.05)
    return found


def _hold(name: str, root: Path) -> None:
    """The first process of the switch or of a node: host name, mounts, daemons."""
    sys.stdin.readline()
    _call("hostname", name)
    if name == "switch":
        _call("mount", "-t", "tmpfs", "-o", "size=2g", "memory", root / "memory")
        _call("mount", "-t", "tmpfs", "-o", "size=64m", "shm", "/dev/shm")
    else:
        _call("mount", "-t", "tmpfs", "-o", "size=256m", "shm", "/dev/shm")
        _call("mount", "--bind", root / "memory" / name, root / "nvm")
    _call("mount", "--bind", root / "hosts", "/etc/hosts")
    for command in json.loads((root / f"{name}.daemons").read_text()):
        _call(*command)
    (root / f"{name}.up").touch()
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
        _hold("switch", Path(words[1]))
    elif words[:1] == ["--node"]:
        _hold(words[1], Path(words[2]))
    elif len(words) == 1 and words[0].isdecimal():
        _shell(int(words[0]))
    else:
        sys.exit(__doc__)


def _shell(nodes: int) -> None:
    if (why := why_not()) is not None:
        sys.exit(f"hosts: {why}")
    with Hosts(nodes) as hosts:
        print(f"{', '.join(hosts.nodes)}; pools in {hosts.nvm}; enter one with")
        print(f"    {hosts.enter_script} n0 COMMAND…")
        command = hosts._holders["switch"].enter("--all")
        subprocess.run([*command, os.environ.get("SHELL", "/bin/sh")], check=False)


if __name__ == "__main__":
    main(sys.argv[1:])
