# SPDX-License-Identifier: BSD-3-Clause
"""The command `perdure`: one verb per module, put together here."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

from perdure.failures import Wrong
from perdure.verbs import Verb, Verbs, verbs_command

ABOUT = "Persistence for HPC applications on non-volatile memory."
# Everything from the first word of the job on belongs to the job.
_JOB = {"context_settings": {"allow_interspersed_args": False}, "no_args_is_help": True}
_JOBS, _DATA, _COST, _BUILD = "Jobs", "What jobs keep", "Time and energy", "Programs"
_ABOUT_IT = "This command"
_LEFT_ALONE = ("config", "doctor", "help", "version")  # they say what is wrong with a file
VERBS = {
    "run": Verb(
        "perdure.run.command", "run", _JOBS, "Run a job, and start it again after a failure.",
        "perdure run --restarts 5 -- mpiexec -n 4 ./solver", _JOB),
    "report": Verb(
        "perdure.report.command", "report", _JOBS, "What a job did, on one page.",
        "perdure report run.json"),
    "advise": Verb(
        "perdure.advise.command", "advise", _JOBS, "What to protect of a program, and how.",
        "perdure advise -- mpiexec -n 4 ./solver", _JOB),
    "pool": Verb(
        "perdure.pool.command", "app", _DATA, "Look at pools, check, drain and remove them.",
        "perdure pool ls /mnt/pmem"),
    "cache": Verb(
        "perdure.cache.command", "app", _DATA, "Save what a crash left of cached files.",
        "perdure cache recover /mnt/pmem/cache"),
    "ipv": Verb(
        "perdure.ipv.app", "app", _COST, "What a loop must save: in-place versioning.",
        "perdure ipv record -- ./heat"),
    "trace": Verb(
        "perdure.trace.command", "app", _COST, "Record which memory a program accesses.",
        "perdure trace -o cg.ptrace -- ./cg.B"),
    "sim": Verb(
        "perdure.sim.app", "app", _COST, "Replay a trace on memory that does not exist yet.",
        "perdure sim run cg.ptrace --dram 64MiB --mram 128MiB"),
    "energy": Verb(
        "perdure.energy.app", "app", _COST, "How often to checkpoint, and at which clock.",
        "perdure energy plan --write-time 130s --read-time 90s --mtbf 14.66h"),
    "devices": Verb(
        "perdure.devices", "devices", _COST, "The memory models to emulate or to plan with.",
        "perdure devices --json"),
    "config": Verb(
        "perdure.config", "app", _BUILD, "With which flags programs are built, and settings.",
        "perdure config --mpi mpich --cflags --libs"),
    "doctor": Verb(
        "perdure.doctor.command", "doctor", _ABOUT_IT, "What it will do here, and what to improve.",
        "perdure doctor /mnt/pmem"),
    "help": Verb(
        "perdure.about", "show_help", _ABOUT_IT, "What a verb does, and its options.",
        "perdure help pool ls"),
    "version": Verb(
        "perdure.about", "show_version", _ABOUT_IT, "Which Perdure this is.",
        "perdure version"),
}  # fmt: skip


def _print_version(wanted: bool) -> None:
    if wanted:
        from perdure.about import version_text

        print(version_text())
        raise typer.Exit


def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True,
                     help="Print the version and end."),
    ] = False,
) -> None:
    """Persistence for HPC applications on non-volatile memory."""


def command_line(verbs: Mapping[str, Verb] = VERBS) -> Verbs:
    """The command, whose verbs are imported when they are used."""
    made = verbs_command(verbs, _options, ABOUT)
    made.before = _follow_settings
    return made


def _follow_settings(words: list[str]) -> None:
    """Files of settings hold for the verb and what it starts. A wrong one leaves help as it is."""
    if not words or words[0].startswith("-") or words[0] in _LEFT_ALONE:
        return
    from perdure.settings.files import apply_files

    try:
        apply_files()
    except Wrong:
        if not {"-h", "--help"} & {*words}:
            raise


def main(verbs: Mapping[str, Verb] = VERBS) -> None:
    """The whole command, after start.py."""
    if "_PERDURE_COMPLETE" in os.environ:  # a shell asks what could come next
        from typer.completion import completion_init

        completion_init()
    command_line(verbs)(sys.argv[1:], prog_name="perdure")
