# SPDX-License-Identifier: BSD-3-Clause
"""The node's part of `perdure bench energy`: kills at every write of a cap, and what a token costs.

The cap runs on the fake machine of the tests (src/energy/fake), under which each write, fsync,
rename, unlink, mkdir and rmdir is counted; run k is killed in place of call k, or half way through
it.
Then the stale cap is restored as the next start would, and the machine compared with what it was.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from perdure.programs import ProgramFailed, build_trees, find_program
from perdure.progress import progress
from perdure_bench.facts import Fact, run_program

SUMMARY = "caps of the clock killed at every write; the cost of a writer token"
KINDS = ("intel_pstate", "acpi-cpufreq", "amd-pstate-epp")
_POLICIES = "sys/devices/system/cpu/cpufreq"


def find_fake() -> tuple[Path, Path]:
    """The library that makes files behave as the kernel's, and the program that makes its trees.

    Raises ProgramFailed where they were not built.
    """
    for tree in build_trees():
        library = tree / "src/energy/libperdure_fake_sysfs.so"
        program = tree / "src/energy/fake_sysfs_tree"
        if library.exists() and program.exists():
            return library, program
    raise ProgramFailed("the fake machine of the tests was not built; configure with tests")


def limits_of(root: Path) -> dict[str, str]:
    """Both limits of every policy, by path."""
    folder = root / _POLICIES
    return {
        str(path.relative_to(root)): path.read_text().strip()
        for name in ("scaling_min_freq", "scaling_max_freq")
        for path in sorted(folder.glob(f"policy*/{name}"))
    }


class FakeMachine:
    """A fake machine in a folder, and programs that run on it."""

    def __init__(self, root: Path, kind: str, *behaviour: str):
        self.root = root
        self.preloaded, make = find_fake()
        subprocess.run([make, root, kind, *behaviour], check=True)
        for policy in (root / _POLICIES).glob("policy*"):  # so that a cap has to lower min as well
            (policy / "scaling_min_freq").write_text("1200000\n")

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **os.environ,
            "LD_PRELOAD": str(self.preloaded),
            "PERDURE_SYSFS_ROOT": str(self.root),
            "PERDURE_KEEPER": "off",
            **more,
        }

    def run(self, *words: object, **more: str) -> int:
        """The exit code of a program on this machine; negative: the signal that ended it."""
        command = [str(word) for word in words]
        return subprocess.run(command, env=self.environment(**more), check=False).returncode


def sweep_kills(kind: str, folder: Path, some: int | None = None) -> dict[str, int]:
    """Kills a cap at every one of its writes, or at `some` that are drawn: how many kills, how many
    machines left wrong."""
    program = find_program("bench_energy_node")
    counted = folder / "count"
    whole = FakeMachine(folder / "whole", kind)
    before = limits_of(whole.root)
    cap = (program, "cap", "--khz", "1000000")
    if whole.run(*cap, PERDURE_FAKE_COUNT=str(counted)) != 0 or limits_of(whole.root) != before:
        raise ProgramFailed(f"a cap that nobody kills does not work on {kind}")
    calls = int(counted.read_text())
    kills = wrong = 0
    every = range(1, calls + 1)
    for call in every if some is None else random.sample(every, some):
        for half in ("", ":half"):
            machine = FakeMachine(folder / f"{call}{half[1:]}", kind)
            before = limits_of(machine.root)
            ended = machine.run(*cap, PERDURE_FAKE_KILL=f"{call}{half}")
            kills += ended == -signal.SIGKILL
            machine.run(program, "stale")
            left = list((machine.root / "run/perdure-energy").glob("*"))
            wrong += limits_of(machine.root) != before or bool(left)
    return {"calls": calls, "kills": kills, "wrong": wrong}


def measure_kills(kinds: tuple[str, ...]) -> Iterator[Fact]:
    """A fact for the kills and one for the wrong machines, for each kind."""
    with progress("kills", len(kinds)) as advance:
        for kind in kinds:
            with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
                found = sweep_kills(kind, Path(folder))
            case = f"restore-{kind}"
            yield Fact("energy", case, "kills", found["kills"], "", more={"calls": found["calls"]})
            yield Fact("energy", case, "wrong", found["wrong"], "", target=0,
                       holds=found["wrong"] == 0)  # fmt: skip
            advance()


def measure(quick: bool) -> Iterator[Fact]:
    """The facts, as they come; `quick` is a check within a minute. Raises ProgramFailed."""
    yield from measure_kills(KINDS[:1] if quick else KINDS)
    yield from run_program("bench_energy_node", ["token-cost"])
