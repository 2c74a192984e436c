# SPDX-License-Identifier: BSD-3-Clause
"""Names of the programs that start MPI ranks, and of the variables by which they tell ranks."""

from __future__ import annotations

LAUNCHERS = ("mpiexec", "mpirun", "srun", "prterun", "orterun", "jsrun", "aprun", "ccc_mprun")
# They stay between a launcher and its ranks, some of them longer than either. 15 characters each.
_DAEMONS = ("hydra_pmi_proxy", "hydra_bstrap_pr", "pmi_proxy", "orted", "prted", "prte", "palsd")
_RANK_NAMES = (
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "PALS_RANKID",
    "FLUX_TASK_RANK",
    "JSM_NAMESPACE_RANK",
)
# (ranks of the job, how many of them on this machine)
_SIZE_NAMES = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_SIZE", "MPI_LOCALNRANKS"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"),
)


def is_launcher(name: str) -> bool:
    """Whether a program of this name starts ranks and ends with them: mpiexec, mpirun.openmpi."""
    return any(name == known or name.startswith(known + ".") for known in LAUNCHERS)


def is_launcher_or_daemon(name: str) -> bool:
    """Whether a program of this name does nothing but start ranks and wait for them."""
    return is_launcher(name) or name in _DAEMONS


def rank_variables(environment: dict[str, str]) -> dict[str, str]:
    """The variables by which a launcher tells a process that it is a rank."""
    return {name: environment[name] for name in _RANK_NAMES if name in environment}


def rank_number(variables: dict[str, str]) -> str:
    """The number that `variables` tell, for a sentence."""
    number = next(iter(variables.values()), "")
    return number if number.isdecimal() and len(number) < 10 else "?"


def world_size(environment: dict[str, str]) -> tuple[int, bool]:
    """How many ranks a rank's job has (0: not known), and whether all are on this machine."""
    for name, name_here in _SIZE_NAMES:
        size = environment.get(name, "")
        if size.isdecimal():
            return int(size), environment.get(name_here) == size
    return 0, False
