# SPDX-License-Identifier: BSD-3-Clause
"""Checks of how jobs are started: the scheduler, and variables that nobody reads."""

from __future__ import annotations

import os
import re
import shlex

from perdure.doctor.check import NOTE, OK, PROBLEM, Check
from perdure.doctor.machine import Machine
from perdure.ending import os_text
from perdure.failures import Failed, Wrong
from perdure.run.allocation import Allocation, NoAllocation, this_allocation
from perdure.screen import some_of
from perdure.settings.files import settings_of_files


def job_checks(machine: Machine) -> list[Check]:
    """All of them."""
    return [_scheduler(machine), _variables(machine), _settings()]


def _scheduler(machine: Machine) -> Check:
    sinfo = machine.program("sinfo")
    version = (machine.says(sinfo, "--version") or "").strip() if sinfo else ""
    installed = re.fullmatch(r"slurm(?:-wlm)? \S{1,40}", version)
    name = f"Slurm {version.split()[1]}" if installed else "Slurm" if sinfo else ""
    try:
        allocation = this_allocation()
    except NoAllocation:
        does = "--spares and --requeue need one"
        found = f"{name}, but no job of it" if name else "none, and no job"
        return Check("scheduler", OK, found, does, facts={"in_job": False, "slurm": version})
    facts = {"in_job": True, "slurm": version, "scheduler": allocation.name}
    if allocation.name != "Slurm":
        return Check("scheduler", OK, f"in a job of {allocation.name}", "--spares finds its nodes; "
                     "--requeue is Slurm's", facts=facts)
    return _slurm_job(machine, allocation, name or "Slurm", facts)


def _slurm_job(machine: Machine, allocation: Allocation, name: str, facts: dict) -> Check:
    job = os.environ["SLURM_JOB_ID"]
    said = machine.says("scontrol", "show", "job", job, "--oneliner") if job.isdecimal() else None
    requeue = re.search(r"\bRequeue=(\d)\b", said or "")
    facts["requeue"] = None if requeue is None else requeue[1] == "1"
    found = f"in job {job} of {name}"
    if requeue is None:
        return Check("scheduler", NOTE, f"{found}, of which scontrol says nothing",
                     "--spares and --requeue can't be used", "ask Slurm what is wrong",
                     f"scontrol show job {shlex.quote(job)}", facts)
    if requeue[1] != "1":
        return Check("scheduler", NOTE, f"{found}, not to be requeued", "--spares works, --requeue "
                     "is refused", "submit it so that it may be", "sbatch --requeue job.sh", facts)
    return Check("scheduler", OK, found, "--spares and --requeue work", facts=facts)


def _settings() -> Check:
    """The files that `perdure` follows for what it starts."""
    try:
        found = settings_of_files()
    except (Wrong, Failed, OSError) as wrong:
        said = os_text(wrong) if isinstance(wrong, OSError) else str(wrong)
        return Check("settings", PROBLEM, said, "no verb works until it is right",
                     "put the file right, or move it away", "perdure config show",
                     {"settings": None})
    files = list(dict.fromkeys(str(setting.file) for setting in found.values()))
    facts = {"settings": sorted(found), "files": files}
    if not found:
        return Check("settings", OK, "no file", "defaults and variables hold", facts=facts)
    return Check("settings", OK, f"{len(found)} in {some_of(files, 2)}",
                 "they hold for what `perdure` starts", facts=facts)


def _variables(machine: Machine) -> Check:
    given = sorted(name for name in os.environ if name.startswith("PERDURE_"))
    unknown = [name for name in given if not machine.core.is_known_variable(name)]
    facts = {"set": given, "unknown": unknown}
    if unknown:
        like = machine.core.variable_like(unknown[0])
        meant = f", where {like} may be meant" if like else ""
        found = f"{some_of(unknown, 3)} is set{meant}"
        return Check("variables", PROBLEM, found, "nobody reads it",
                     "take it away, or write it right", f"unset {shlex.quote(unknown[0])}", facts)
    return Check("variables", OK, some_of(given, 4) or "none of PERDURE_* is set",
                 "each is read" if given else "defaults hold", facts=facts)
