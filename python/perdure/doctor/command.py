# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure doctor`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from perdure.doctor.check import PROBLEM, Check
from perdure.doctor.machine import Machine
from perdure.doctor.view import Report, report_json
from perdure.documents import print_json
from perdure.exit_codes import DONE, FAILED
from perdure.failures import Failed, Wrong
from perdure.option_groups import AsJson
from perdure.screen import console
from perdure.settings.files import apply_files


def doctor(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="The directory where pools are to be.  [default: .]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what Perdure will do here, what to improve, and the command for it.

    Of a directory for pools, this node, its MPI and its scheduler. To know what a pool would lie
    on, a file of 64 KiB is made in the directory as a pool's are, and removed again. Nothing else
    is changed, and compilers and launchers are only asked which they are.

    Ends with 1 if there is a problem; notes are none.

    Example: perdure doctor /mnt/pmem
    """
    place = Path() if path is None else path
    if not place.is_dir():
        raise Wrong(f"{place} is no directory; make it, or name the one in which pools are to be")
    with suppress(Wrong, Failed, OSError):  # a wrong file is one of the checks
        apply_files()
    parts = examined(Machine(), place)
    if as_json:
        print_json("doctor", report_json(place, parts))
    else:
        console().print(Report(place, parts))
    found = {check.mark for checks in parts.values() for check in checks}
    raise typer.Exit(FAILED if PROBLEM in found else DONE)


def examined(machine: Machine, place: Path) -> dict[str, list[Check]]:
    """All checks by their part. Those of MPI wait for other programs."""
    from perdure.doctor.cleaners import cleaner_check
    from perdure.doctor.jobs import job_checks
    from perdure.doctor.mpi import mpi_checks
    from perdure.doctor.node import node_checks
    from perdure.doctor.place import place_checks

    return {
        "The directory": [*place_checks(machine, place), cleaner_check(machine, place)],
        "This node": node_checks(machine),
        "MPI": mpi_checks(machine),
        "Jobs": job_checks(machine),
    }
