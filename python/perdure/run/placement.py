# SPDX-License-Identifier: BSD-3-Clause
"""How each launcher learns on which nodes to start the ranks."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from perdure.files import write_text
from perdure.run.launchers import is_launcher
from perdure.run.processes import RUN_DIRECTORY_NAME

_ASK_S = 30.0
_RANKS = re.compile(r"-n\d*|-np|--np|--ntasks(=.*)?")


class NoPlace(ValueError):
    """A command whose nodes can't be chosen; the text is a sentence."""


def check_launcher(command: list[str]) -> None:
    """Raises NoPlace."""
    name = Path(command[0]).name
    if name == "srun" or _is_mpiexec(name) or (name == "flux" and command[1:2] == ["run"]):
        return
    raise NoPlace(
        f"'{name}' is no launcher whose nodes can be chosen: the command must begin with srun, "
        "mpiexec, mpirun or flux run"
    )


def check_no_ranks(command: list[str]) -> None:
    """Raises NoPlace if the command says how many ranks it starts, before its program."""
    for word in command[1:]:
        if _RANKS.fullmatch(word):
            raise NoPlace(
                f"'{word}' of the command says how many ranks there are, and --ranks-per-node does "
                "too: leave it out"
            )
        if word == "--" or not word.startswith("-"):
            return


def placed(
    command: list[str],
    nodes: list[str],
    attempt: str,
    environment: dict,
    ranks_per_node: int | None = None,
) -> list[str]:
    """The command with the options that make it start on `nodes`, under the name `attempt`, with as
    many ranks as it says, or `ranks_per_node` on each.

    They come first, so that the user's own, which follow, count. Raises NoPlace.
    """
    check_launcher(command)
    name = Path(command[0]).name
    ranks = [] if ranks_per_node is None else ["-n", str(ranks_per_node * len(nodes))]
    if name == "srun":
        words = [f"--nodes={len(nodes)}", f"--nodelist={','.join(nodes)}",
                 f"--job-name={attempt}", "--kill-on-bad-exit=1"]  # fmt: skip
        if ranks:
            words += [f"--ntasks={ranks[1]}", f"--ntasks-per-node={ranks_per_node}"]
        return [command[0], *words, *command[1:]]
    if name == "flux":
        words = [f"--nodes={len(nodes)}", f"--requires=hosts:{','.join(nodes)}"]
        return [*command[:2], *words, *ranks, *command[2:]]
    own = _mpiexec_words(command[0], nodes, environment, ranks_per_node)
    return [command[0], *own, *ranks, *command[1:]]


def _is_mpiexec(name: str) -> bool:
    return is_launcher(name) and name.startswith(("mpiexec", "mpirun"))


def _mpiexec_words(
    program: str, nodes: list[str], environment: dict, ranks_per_node: int | None
) -> list[str]:
    """Hydra (MPICH, Intel MPI) passes on all of the environment, Open MPI what it is asked to.

    Open MPI gets a file: with --host it counts one slot of each node, and of "node:*" none.
    """
    if not _is_open_mpi(program):
        each = [] if ranks_per_node is None else ["-ppn", str(ranks_per_node)]
        return ["-hosts", ",".join(nodes), *each]
    hosts = Path(environment[RUN_DIRECTORY_NAME]) / "hosts"
    slots = "" if ranks_per_node is None else f" slots={ranks_per_node}"
    write_text(hosts, "".join(f"{node}{slots}\n" for node in nodes))
    names = [name for name in sorted({**os.environ, **environment}) if name.startswith("PERDURE_")]
    passed = [word for name in names for word in ("-x", name)]
    return ["--hostfile", str(hosts), *passed]


def _is_open_mpi(program: str) -> bool:
    try:
        answer = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_ASK_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False  # the attempt will say what is wrong with it
    return any(word in answer for word in ("Open MPI", "OpenRTE", "PRRTE", "prte"))
