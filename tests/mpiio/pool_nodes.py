# SPDX-License-Identifier: BSD-3-Clause
"""Takes pretended nodes from pool_job, whose versions are kept on levels, and starts it again.

    pool_nodes.py MPIEXEC PROGRAM [--trials N] [--seed S]

A rank for each node, and spare nodes. A trial kills one rank or all of them, mostly loses a node
with pool and part, reads with `perdure pool verify` which version is to be had now, and starts the
job on the other nodes and a spare. That start must find this very version, in window, array and
file, byte for byte (pool_job compares them), and the last one ends with the file that all steps
make. Before the trials come jobs that always do the same: a node is lost after the commit of step
20, so what its image has of the file is measured. Exit code 0: all was right.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PERDURE = TOOLS.parent / "perdure"
STEPS, EVERY = 24, 4
LIMIT_S = 120


class Campaign:
    """Draws trials; `kills` counts the jobs that were killed, `lost` the nodes."""

    def __init__(self, options):
        self._options, self._draw = options, random.Random(options.seed)
        self._step_s = 0.004  # of one step, as the last attempt said
        self.kills = self.lost = 0

    def _run(self, place: Path, seed: int, nodes: list[int], levels: str, *kill):
        (place / "shared").mkdir(mode=0o700, exist_ok=True)
        self._seen(place, begins=True)
        for node in nodes:
            (place / f"node-{node}").mkdir(mode=0o700, exist_ok=True)
        command = [TOOLS / "mpirun.sh", self._options.mpiexec, len(nodes), self._options.program]
        command += [place, seed, STEPS, len(nodes), *kill]
        surroundings = {
            **os.environ,
            "PERDURE_MPI_TIMEOUT": str(LIMIT_S),
            "PERDURE_LEVELS": levels,
            "POOL_JOB_NODES": " ".join(map(str, nodes)),
            "POOL_JOB_SHARED": str(place / "shared"),
        }
        return subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, env=surroundings,
            timeout=LIMIT_S + 30, check=False,
        )  # fmt: skip

    def _seen(self, place: Path, *, begins=False) -> tuple[int, int | None]:
        """The newest step that a rank saw committed, and the one that the last start began with."""
        if not (path := place / "shared/seen").exists():
            return 0, None
        with path.open("r+b") as file:
            committed, began = struct.unpack("<2Q", file.read(16))  # Seen of pool_job.cpp
            if begins:
                file.seek(8)
                file.write(bytes(8))
        return committed, began - 1 if began else None

    def _verified(self, place: Path, levels: str) -> tuple[str, int]:
        """Where a restart finds which version, as the files say."""
        words = [PERDURE, "pool", "verify", "--json", *sorted(place.glob("node-*/pool"))]
        if "drain=" in levels:
            words += ["--drain", place / "drain"]
        done = subprocess.run(
            [str(word) for word in words], capture_output=True, text=True, check=False
        )
        now = json.loads(done.stdout)["restart"]["now"]
        return (now["from"], now["version"]) if now else ("none", 0)

    def trial(self, place: Path, number: int) -> str:
        """What was wrong."""
        draw, ranks = self._draw, 2 + number % 2
        levels = f"redundancy=partner;every={EVERY};patience=60s"
        if number % 4 == 3:
            levels = f"redundancy=off;every={EVERY};drain={place}/drain;patience=60s"
            (place / "drain").mkdir(mode=0o700)
        seed, nodes = draw.getrandbits(30), list(range(ranks))
        for _ in range(draw.choice((1, 2))):
            victim = draw.choice((-1, *range(ranks)))
            when_ns = int(draw.uniform(0, 3 * self._step_s) * 1e9)
            done = self._run(place, seed, nodes, levels, victim, draw.randrange(STEPS), when_ns)
            committed, began = self._seen(place)
            if done.returncode in (4, 5) or began is None:
                return f"after {self.kills} kills: {done.stdout}{done.stderr}"
            self.kills += done.returncode != 0
            if draw.random() < 0.8:
                self._lose(place, draw.choice(nodes), nodes)
            level, version = self._verified(place, levels)
            if level == "none":
                return self._is_refused_or_begins(place, seed, nodes, levels, committed)
            said = self._starts_at(place, seed, nodes, levels, version)
            if said:
                return said
        return self._ends(place, seed, nodes, levels)

    def _lose(self, place: Path, node: int, nodes: list[int]) -> None:
        """The node with all that it has; a spare takes its place, and ranks may change places."""
        shutil.rmtree(place / f"node-{node}")
        (place / "shared/seen").unlink()  # versions were lost with it
        self.lost += 1
        nodes[nodes.index(node)] = max(nodes) + 1
        if self._draw.random() < 0.3:
            nodes.reverse()

    def _is_refused_or_begins(self, place, seed, nodes, levels, committed: int) -> str:
        """A job that was killed before its first commit has nothing to be refused for."""
        done = self._run(place, seed, nodes, levels)
        if done.returncode != 0 and "can be brought back" in done.stdout + done.stderr:
            return ""
        if done.returncode == 0 and self._seen(place)[1] == 0 and committed == 0:
            return ""
        return f"step {committed} is lost, and this was not refused: {done.stdout}"

    def _starts_at(self, place, seed, nodes, levels, version) -> str:
        """Killed soon after it began."""
        done = self._run(place, seed, nodes, levels, -1, 1, 0)
        if self._seen(place)[1] != version or done.returncode in (4, 5):
            return f"expected version {version}: {done.returncode} {done.stdout}{done.stderr}"
        return ""

    def _ends(self, place, seed, nodes, levels) -> str:
        done = self._run(place, seed, nodes, levels)
        if done.returncode != 0:
            return f"the last attempt ended with {done.returncode}: {done.stdout}{done.stderr}"
        took_ns = re.search(r"(\d+) ns a step", done.stdout)
        self._step_s = int(took_ns.group(1)) * 1e-9 if took_ns else self._step_s
        left = [str(path) for path in place.rglob("*.part*")]
        return f"left behind: {left}" if left else ""

    def same_each_time(self, place: Path) -> str:
        """What was wrong."""
        levels = f"redundancy=partner;every={EVERY};patience=60s"
        done = self._run(place, 4, [0, 1], levels, -1, 21, 0)
        if done.returncode in (0, 4, 5):
            return f"the job to be killed ended with {done.returncode}: {done.stderr}"
        size = (place / "shared/file").stat().st_size
        for path in sorted(place.glob("node-*/pool/image-*.[0-9]")):
            head = path.read_bytes()[:208]  # sealed_format.hpp
            if len(head) == 208 and head[:8] != bytes(8):
                version, _, payload = struct.unpack("<3Q", head[176:200])
                print(f"{path.name}: version {version}, {payload} bytes; the file: {size} by now")
        self._lose(place, 1, nodes := [0, 1])
        level, version = self._verified(place, levels)
        if level != "nodes" or version < EVERY:
            return f"verify says {level} {version}"
        return self._starts_at(place, 4, nodes, levels, version) or self._ends(
            place, 4, nodes, levels
        )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("mpiexec")
    parser.add_argument("program")
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(30))
    options = parser.parse_args()
    print(f"--seed {options.seed}", flush=True)
    campaign = Campaign(options)
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="perdure-nodes-", dir=parent) as scratch:
        for number in range(options.trials + 1):
            place = Path(scratch) / "trial"
            place.mkdir(mode=0o700)
            wrong = campaign.trial(place, number) if number else campaign.same_each_time(place)
            if wrong:
                print(f"trial {number}: {wrong}")
                return 1
            shutil.rmtree(place)
    print(f"{options.trials} trials, {campaign.kills} jobs killed, {campaign.lost} nodes lost")
    return 0 if campaign.kills > 0 and campaign.lost > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
