# SPDX-License-Identifier: BSD-3-Clause
"""`perdure energy profile DEVICE_OR_PATH`, and `profile show|check|merge|plot`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from perdure.core import load_core
from perdure.energy.documents import read_document, write_document
from perdure.energy.output import warn
from perdure.energy.probe import LOAD_MS
from perdure.energy.profile.file import (
    OPERATIONS,
    check_machine,
    profile_of,
    read_profile,
)
from perdure.energy.profile.measuring import SampleStore, Target
from perdure.energy.profile.plot import draw_profile
from perdure.energy.profile.profiling import (
    WRITERS,
    Wish,
    check_free,
    clocks_of,
    count_samples,
    default_file,
    make_profile,
    merge_profiles,
    sample_bytes_of,
    wear_text,
)
from perdure.energy.quantities import Wrong, parse_size
from perdure.exit_codes import FAILED
from perdure.failures import Stopped
from perdure.option_groups import by_default, output_file, picture_file
from perdure.progress import progress
from perdure.screen import console, say
from perdure.tables import table

app = typer.Typer(
    help="Measure a device: throughput, power and joules per MB over clocks and writers. "
    "`perdure energy profile DIR` measures; the other commands look at profiles.",
    no_args_is_help=True,
    cls=by_default("run"),
)
File = Annotated[Path, typer.Argument(metavar="PROFILE", help="A file that `perdure energy "
                                      "profile` wrote.")]


def parse_writers(text: str) -> tuple[int, ...]:
    """Numbers of processes, ascending. Raises Wrong."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and 1 <= int(word) <= 1024 for word in words):
        raise Wrong(f"'{text}' is no list of numbers of writers from 1 to 1024; write it as 1,2,4")
    return tuple(sorted({int(word) for word in words}))


def parse_ops(text: str) -> tuple[str, ...]:
    """read, write, or both. Raises Wrong."""
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    if not wanted or any(word not in OPERATIONS for word in wanted):
        raise Wrong(f"'{text}' is none of read, write and read,write")
    return tuple(op for op in OPERATIONS if op in wanted)


def _confirm(target: Target, wish: Wish, yes: bool) -> None:
    """Says what is going to be written, and asks; memory does not wear."""
    if target.io_mode == "memory" or "write" not in wish.ops:
        return
    say(f"perdure: {wear_text(wish.max_bytes, target.capacity_bytes())}", err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise Wrong("nothing was written: nobody can be asked here; say --yes to write so much")
    if not typer.confirm("Measure?", err=True):
        raise typer.Exit(FAILED)


@app.command("run", no_args_is_help=True)
def run(
    path: Annotated[
        Path, typer.Argument(metavar="DIR|DEVICE", help="A directory on the device, or, with "
                             "--destroy, an unused block device.")
    ],
    output: Annotated[
        Path | None, output_file(
            "-o", "--output", help="The new profile.  [default: perdure-energy-DEVICE.json]")
    ] = None,
    ops: Annotated[str, typer.Option("--op", metavar="read|write,…", help="What is measured: read, "
                                     "write, or both.")] =
    "read,write",
    writers: Annotated[str, typer.Option(metavar="N,…", help="Numbers of processes that work "
                                         "at a time.")] =
    ",".join(map(str, WRITERS)),
    repeats: Annotated[int, typer.Option(metavar="N", min=1, max=100,
        help="How often each point is measured.")] = 3,
    max_bytes: Annotated[str, typer.Option(metavar="SIZE", help="Write at most so much, in all.")] =
    "8GiB",
    grid: Annotated[
        bool, typer.Option("--grid", help="Measure all clocks with all numbers of writers.")
    ] = False,
    buffered: Annotated[
        bool, typer.Option("--buffered", help="Write through the page cache, with fsync, as "
                           "pools are written.")
    ] = False,
    destroy: Annotated[
        bool, typer.Option("--destroy", help="Write over a block device.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Write the samples without asking first.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as JSON.")] = False,
) -> None:
    """Measure reading and writing, and write a profile.

    Without a meter, energy is null; without permission to set the clock, it is left alone. Stopped
    by Ctrl-C, the same command goes on.

    Example: perdure energy profile /scratch --max-bytes 2GiB --yes -o scratch.json
    """
    core = load_core()
    wish = Wish(parse_ops(ops), parse_writers(writers), repeats, grid,
                int(parse_size(max_bytes)))
    policies = core.energy_policies()
    clocks = clocks_of(policies)
    target = Target(path, sample_bytes_of(wish, clocks), buffered, destroy)
    check_free(target, wish)
    _confirm(target, wish, yes)
    file = output or default_file(target.storage)
    document = _measure(core, target, wish, policies, file)
    write_document(document, file)
    if as_json:
        print(json.dumps(document, indent=1))
    else:
        _show(document)
        say(f"perdure: profile: {file}", err=True)


def _measure(core: Any, target: Target, wish: Wish, policies: list[dict], file: Path) -> dict:
    clocks = clocks_of(policies)
    _rows, total = core.energy_meters(LOAD_MS)
    if total is None:
        warn("no meter works here, so energy stays unknown; `perdure energy probe` says why")
    if not clocks:
        warn(f"the clock is left alone: {core.energy_why_not() or 'its steps are not known'}")
    parameters = {
        "path": str(target.path.resolve()), "ops": list(wish.ops), "writers": list(wish.writers),
        "repeats": wish.repeats, "grid": wish.grid, "io_mode": target.io_mode,
        "sample_bytes": target.sample_bytes,
    }
    store = SampleStore(file.with_name(file.name + ".part"), parameters)
    if store.samples:
        warn(f"goes on after {len(store.samples)} samples of {store.file}")
    try:
        with target, progress("measuring", count_samples(wish, clocks)) as advance:
            document = make_profile(target, total, wish, clocks, policies, store, advance)
    except KeyboardInterrupt:
        raise Stopped(
            f"stopped after {len(store.samples)} samples; the same command goes on"
        ) from None
    except Wrong:
        if not store.samples:
            store.remove()
        raise
    store.remove()
    return document


def _quantity_text(value: dict | None, digits: str = ".4g") -> str:
    if value is None:
        return "not known"
    if value["low"] is None:
        return f"{value['mean']:{digits}}"
    return f"{value['mean']:{digits}} ± {value['mean'] - value['low']:.2g}"


def _show(document: dict) -> None:
    fingerprint = document["fingerprint"]
    device = fingerprint.get("device") or {}
    meter = fingerprint.get("meter")
    made = table("op", "clock", "writers", "MB/s", "W", "J/MB", "CPU s/GB", "", left=("op", ""),
                 title=f"{device.get('name')} {device.get('model') or ''} "
                 f"({fingerprint.get('io_mode')}), "
                 + (f"meter {meter['name']}" if meter else "no meter"))
    for point in document["points"]:
        khz = point["freq_kHz"]
        made.add_row(
            point["op"], "as it is" if khz is None else f"{khz / 1e6:.4g} GHz",
            str(point["writers"]), _quantity_text(point["bandwidth_MBps"]),
            _quantity_text(point["power_W"]), _quantity_text(point["energy_J_per_MB"]),
            _quantity_text(point.get("cpu_s_per_GB")), "" if point["settled"] else "not settled",
        )
    out = console()
    out.print(made)
    idle = document.get("idle_power_W")
    if idle:
        out.print(f"idle: {idle['before']['mean']:.4g} W before, {idle['after']['mean']:.4g} W "
                  "after")


def _read(file: Path) -> dict:
    """A profile's document, checked. Raises Wrong."""
    document = read_document(file, "profile")
    profile_of(document, str(file))
    return document


@app.command("show", no_args_is_help=True)
def show(
    file: File, as_json: Annotated[bool, typer.Option("--json", help="Print the profile as it is"
                                                      " in the file.")] = False
) -> None:
    """Print a profile as a table.

    Example: perdure energy profile show scratch.json
    """
    document = _read(file)
    if as_json:
        print(json.dumps(document, indent=1))
    else:
        _show(document)


@app.command("check", no_args_is_help=True)
def check(
    file: File,
    other_machine: Annotated[
        bool, typer.Option("--other-machine", help="Take a profile that was measured on another "
                           "machine.")
    ] = False,
) -> None:
    """Check that a profile is whole and of this machine, and say what would be applied.

    Example: perdure energy profile check scratch.json
    """
    core = load_core()
    profile = read_profile(file)
    check_machine(profile, other_machine, warn)
    for op in OPERATIONS:
        try:
            khz, writers, device = core.energy_best_settings(str(file), op)
        except core.Error as failure:
            say(f"{op}: {failure}")
            continue
        clock = "the clock as it is" if khz is None else f"at most {khz / 1e6:.4g} GHz"
        say(f"{op} on {device}: {writers} at a time, {clock}")


@app.command("merge", no_args_is_help=True)
def merge(
    files: Annotated[list[Path], typer.Argument(metavar="PROFILE…", help="Two profiles or "
                                                "more.")],
    output: Annotated[Path, output_file("-o", "--output", help="The file that gets the merged "
                                        "profile.")],
) -> None:
    """Make one profile of several of the same device; a point in two is the newer one's.

    Example: perdure energy profile merge monday.json tuesday.json -o both.json
    """
    document = merge_profiles([_read(file) for file in files], [str(file) for file in files])
    profile_of(document, "the merged profile")
    write_document(document, output)


@app.command("plot", no_args_is_help=True)
def plot(
    file: File,
    output: Annotated[
        Path, picture_file("-o", "--output", help="The file that gets the picture")
    ],
) -> None:
    """Draw throughput, power and energy against writers, with their confidence.

    Example: perdure energy profile plot scratch.json -o scratch.png
    """
    document = _read(file)
    try:
        draw_profile(document, output)
    except (ValueError, KeyError, TypeError) as failure:
        raise Wrong(f"{output}: not drawn: {failure}") from None
