# SPDX-License-Identifier: BSD-3-Clause
"""The commands of `perdure energy` that touch this node: probe, profile, apply, restore, run."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Annotated, Any

import typer

from perdure import units
from perdure.core import load_core
from perdure.documents import json_text, print_json
from perdure.energy.output import warn
from perdure.energy.probe import probe_node, rows_of
from perdure.energy.profile.file import OPERATIONS, check_machine, read_profile
from perdure.energy.quantities import Wrong
from perdure.exit_codes import FAILED, SIGNALLED
from perdure.failures import NotExecutable
from perdure.files import write_text
from perdure.option_groups import AsJson, output_file
from perdure.programs import program_path, shell_code, wait_for
from perdure.screen import console
from perdure.tables import table

_CLOCKS = {"kHz": 1, "MHz": 1_000, "GHz": 1_000_000}
Freq = Annotated[
    str | None, typer.Option(metavar="CLOCK", help="Let the processor run at most so fast, as "
                             "1.4GHz.",
                             show_default=False)
]


def parse_clock(text: str) -> int:
    """kHz of "1.4GHz", "1400MHz". Raises Wrong."""
    for unit, factor in _CLOCKS.items():
        if text.strip().endswith(unit):
            try:
                khz = float(text.strip()[: -len(unit)]) * factor
            except ValueError:
                break
            if 1e4 <= khz <= 1e8:
                return round(khz)
            raise Wrong(f"'{text}' is no clock from 10 MHz to 100 GHz")
    raise Wrong(f"'{text}' is no clock; write it as 1.4GHz or 1400MHz")


def probe(as_json: AsJson = False) -> None:
    """Say what can be read and set on this node: meters, clocks, boost, drives.

    A meter counts as alive only if it moves under load; the processors are busy for 0.3 s.

    Example: perdure energy probe --json
    """
    found = probe_node()
    if as_json:
        print_json("energy-probe", found)
        return
    made = table("what", "name", "state", "reason", "remedy",
                 left=("what", "name", "state", "reason", "remedy"))
    for row in rows_of(found):
        made.add_row(*row)
    out = console()
    out.print(made)
    energy = found["energy"]
    out.print("energy: not known, as no meter is alive" if energy is None else
              f"energy: {energy['name']}, of the {energy['scope']}")
    if found["frequency"]["caps"] is None:
        warn(f"who caps the clock is not known: {found['frequency']['caps_reason']}")
    for cap in found["frequency"]["caps"] or []:
        holder = "until restored" if cap["lasting"] else f"by process {cap['pid']}" + (
            "" if cap["alive"] else ", which has ended: perdure energy restore --stale")
        out.print(f"{cap['policy']} is capped at {cap['cap_kHz'] // 1000} MHz {holder}")


def _tell_report(report: dict, as_json: bool) -> None:
    if as_json:
        print_json("energy-caps", report)
    elif report["policies"]:
        made = table("policy", "requested MHz", "applied MHz", "effective MHz", "",
                     left=("policy", ""))
        for row in report["policies"]:
            clocks = (row["requested_kHz"] or None, row["applied_kHz"], row["effective_kHz"])
            made.add_row(row["policy"], *("-" if khz is None else f"{khz / 1000:g}"
                                          for khz in clocks), row["reason"])
        console().print(made)
    if report["not_applied"]:
        warn(f"not applied: {report['not_applied']}")
    if report["boost"]:
        warn(report["boost"])


def apply(
    freq: Annotated[str, typer.Option("--freq", metavar="CLOCK", help="Let the processor run at "
                                      "most so fast, as 1.4GHz.")],
    pid: Annotated[
        int | None,
        typer.Option(metavar="PID", min=1, help="Keep the clock as long as this process lives.  "
                     "[default: until `perdure energy restore`]",
                     show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Cap the clock of this node.

    Ends with 0 where that can't be done, and says why.

    Example: perdure energy apply --freq 1.4GHz --pid $$
    """
    core = load_core()
    _tell_report(core.energy_cap(parse_clock(freq), pid), as_json)


def restore(
    stale: Annotated[
        bool, typer.Option("--stale", help="Restore only what processes left behind that have "
                           "ended, as in a job's prologue or epilogue.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take away the caps of `apply`, and of processes that have ended.

    Nothing is restored that somebody else has changed since. Ends with 1 if a clock that this
    machine had before could not be set again, or if what is in the directory of the caps can't be
    believed; never waits for longer than ten seconds.

    Example: perdure energy restore --stale
    """
    core = load_core()
    report = core.energy_restore_stale() if stale else core.energy_release()
    removed = core.energy_remove_tokens()
    _tell_report(report, as_json)
    if removed:
        warn(f"{removed} files of writer tokens that nobody used were removed")
    if report["failed"]:
        raise typer.Exit(FAILED)


def _settings(
    profile_file: Path | None, op: str, path: Path | None, freq: str | None, writers: int | None,
    other_machine: bool,
) -> tuple[int | None, int]:
    """(kHz or None, writers) of the profile or the options. Raises Wrong."""
    if profile_file is None:
        if freq is None and writers is None:
            raise Wrong("nothing to apply: give --profile, --freq or --writers")
        return (None if freq is None else parse_clock(freq)), writers or 0
    if freq is not None or writers is not None:
        raise Wrong("--profile says the clock and the writers; leave --freq and --writers out")
    if path is None:
        raise Wrong("--profile needs --path: where is read or written")
    core = load_core()
    check_machine(read_profile(profile_file), other_machine, warn)
    khz, best, device = core.energy_best_settings(str(profile_file), op)
    there = core.energy_storage(str(path))["name"]
    if device != there:
        raise Wrong(f"{profile_file} is a profile of {device}, and {path} lies on {there}; measure "
                    "that one")
    return khz, best


def run(
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="The command to run, with "
                                                 "its arguments.")],
    profile_file: Annotated[
        Path | None, typer.Option("--profile", metavar="PROFILE", help="The profile whose clock "
                                  "is applied, by --op and "
                                  "--path.",
                                  show_default=False)
    ] = None,
    op: Annotated[
        str, typer.Option(metavar="read|write", help="Whether CMD reads or writes.")
    ] = "write",
    path: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The path that CMD reads or writes, which"
                                  " names the device.  [default: here]",
                                  show_default=False)
    ] = None,
    freq: Freq = None,
    writers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=4096, help="Let at most N such commands at a time "
                     "run on this node and device.",
                     show_default=False)
    ] = None,
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="Wait at most so long for a turn, then go ahead.")
    ] = "1h",
    other_machine: Annotated[
        bool, typer.Option("--other-machine", help="Apply a profile of another machine.")
    ] = False,
    json_file: Annotated[
        Path | None, output_file("--json", help="Write what was applied to this file, as JSON.")
    ] = None,
) -> None:
    """Run a command with the clock capped and its writers limited; restore when it ends.

    Ends with the command's exit code, or 128 + signal. Where nothing can be applied it runs all
    the same, and that is said.

    Example: perdure energy run --freq 1.4GHz --writers 2 -- tar cf /scratch/x.tar data
    """
    if op not in OPERATIONS:
        raise Wrong(f"--op is '{op}'; it is read or write")
    khz, limit = _settings(profile_file, op, path, freq, writers, other_machine)
    core = load_core()
    wait_ms = int(units.parse_time(timeout) * 1000)
    session = core.energy_session(str(path or Path.cwd()), khz, limit, wait_ms)
    code = _run_within(session, op, command)
    facts = session.facts()
    if facts["not_applied"]:
        warn(f"not applied: {facts['not_applied']}")
    if facts["went_ahead"]:
        warn(f"went ahead without a token: {facts['went_ahead_because']}")
    if json_file is not None:
        write_text(json_file, json_text("energy-run", facts) + "\n")
    raise typer.Exit(code)


def _run_within(session: Any, op: str, command: list[str]) -> int:
    """The command's exit code. SIGTERM and SIGHUP go on to it; Ctrl-C reaches it by itself."""
    child: subprocess.Popen | None = None
    early: list[int] = []

    def pass_on(number: int, _frame: object) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    for stopping in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stopping, pass_on)
    try:
        session.acquire(op)
        if early:
            return SIGNALLED + early[0]
        program = program_path(command[0])
        try:
            child = subprocess.Popen(command, executable=program)  # noqa: S603
        except OSError as failure:
            raise NotExecutable(f"{command[0]}: {failure.strerror}") from None
        for number in early:  # that came while it was started
            child.send_signal(number)
        return shell_code(wait_for(child))
    finally:
        session.release()
