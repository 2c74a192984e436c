# SPDX-License-Identifier: BSD-3-Clause
"""The verb `perdure cache predict`."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from perdure.cache.calibrate import calibrate, default_file, file_system_rate, load, store
from perdure.cache.darshan_log import read_log
from perdure.cache.predict import (
    LINKS,
    Machine,
    Prediction,
    Target,
    advice,
    by_file,
    predict,
)
from perdure.cache.record import NoRecord, Run, read_records
from perdure.core import load_core
from perdure.documents import print_json
from perdure.failures import Wrong
from perdure.option_groups import AsJson
from perdure.screen import console
from perdure.tables import table
from perdure.units import bytes_text, parse_bandwidth, parse_time, seconds_text

_DARSHAN = ".darshan"


def predict_command(
    records: Annotated[
        list[Path],
        typer.Argument(metavar="RECORD…", help="The files of PERDURE_RECORD, one a rank, or "
                       "Darshan logs."),
    ],
    device: Annotated[
        str, typer.Option(metavar="NAME", help="The memory that holds the parts; `perdure "
                          "devices` lists the names.")
    ] = "dram",
    nodes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Predict a run on this many nodes.  [default: the "
                     "record's]", show_default=False)
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(metavar="NAME|RATE,TIME", help="The network between nodes: "
                     f"{', '.join(LINKS)}, or bandwidth and latency."),
    ] = None,
    backing: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Bandwidth of the file system, as 2GB/s.  [default: "
                     "measured]",
                     show_default=False),
    ] = None,
    stock_latency: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time of an access without the cache; a record of a "
                     "cached run lacks it."),
    ] = None,
    calibrate_now: Annotated[
        Path | None,
        typer.Option("--calibrate", metavar="DIR", help="First measure what the cache costs on "
                     "this machine, with files in DIR, and keep it for later."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the time of a recorded run with its files cached, and without.

    Example: PERDURE_RECORD=/tmp/run perdure run -- mpiexec …; perdure cache predict /tmp/run
    """
    latency_s = None if stock_latency is None else parse_time(stock_latency)
    given = None if backing is None else parse_bandwidth(backing)
    target = _target(device, link)
    run = _read(records)
    machine = _machine(calibrate_now, run)
    uses = [replace(use, nodes=nodes or use.nodes) for use in run.files]
    if link is None and any(use.nodes > 1 for use in uses):
        raise NoRecord("the run is on several nodes; say what is between them with --link")
    if stock_latency is None and any(use.cached for use in uses):
        raise NoRecord("the run was cached: say --stock-latency, or record one that was not")
    rate, whence = file_system_rate(given, machine, run)
    found = by_file(predict(use, machine, target, rate, latency_s) for use in uses)
    last_use = {use.path: use for use in uses}
    lines = [(one, advice(one, last_use[one.path])) for one in found]
    about = {"device": device, "backing_bytes_per_s": rate, "backing_from": whence}
    (_print_json if as_json else _print_table)(lines, run, about)


def _machine(directory: Path | None, run: Run) -> Machine:
    if directory is None:
        return load(default_file())
    on_node = max((use.ranks // use.nodes for use in run.files), default=1)
    machine = calibrate(directory, ranks=max(min(on_node, os.cpu_count() or 1), 1))
    store(machine, default_file())
    return machine


def _read(records: list[Path]) -> Run:
    logs = [path for path in records if path.suffix == _DARSHAN]
    if not logs:
        return _with_files(read_records(records))
    if len(records) > 1:
        raise NoRecord("one Darshan log at a time")
    return read_log(logs[0])


def _with_files(run: Run) -> Run:
    if not run.files:
        raise NoRecord("the record has windows, and no files")
    return run


def _target(device: str, link: str | None) -> Target:
    rows = {row.name: row for row in load_core().device_table()}
    if device not in rows:
        raise NoRecord(f"there is no device {device}; `perdure devices` lists them")
    row = rows[device]
    bandwidth, latency = 0.0, 0.0
    if link is not None:
        rate, comma, wait = link.partition(",")
        if link not in LINKS and not comma:
            raise Wrong(f"--link {link} is none of {', '.join(LINKS)}, nor as 12GB/s,1us")
        bandwidth, latency = LINKS.get(link) or (parse_bandwidth(rate), parse_time(wait))
    return Target(
        (row.read_latency_ns or 0) * 1e-9,
        (row.write_latency_ns or 0) * 1e-9,
        (row.read_gb_per_s or 0) * 1e9,
        (row.write_gb_per_s or 0) * 1e9,
        bandwidth,
        latency,
    )


def _run_with(lines: list[tuple[Prediction, str]], run: Run) -> float | None:
    """The run's time with the cache, in seconds; of a cached record, without it."""
    if run.run_s is None:
        return None
    sign = 1 if any(one.cached for one, _ in lines) else -1
    return max(run.run_s + sign * sum(one.saved_s for one, _ in lines), 0.0)


def _print_json(lines: list[tuple[Prediction, str]], run: Run, about: dict) -> None:
    files = [
        {
            **asdict(one),
            "with_s": one.with_s,
            "saved_s": one.saved_s,
            "break_even_calls": one.break_even_calls,
            "advice": text,
        }
        for one, text in lines
    ]
    other = {"run_s": run.run_s, "predicted_run_s": _run_with(lines, run)}
    print_json("cache-predict", {**about, **other, "files": files})


def _more_text(one: Prediction) -> str:
    if one.break_even_calls is None:
        return "never"
    more = one.break_even_calls - one.calls
    return "paid" if more <= 0 else f"{more:.0f} more"


def _print_table(lines: list[tuple[Prediction, str]], run: Run, about: dict) -> None:
    made = table("file", "calls", "without", "with cache", "saved", "break-even", "advice",
                 left=("file", "advice"))
    for one, text in lines:
        saved = "-" * (one.saved_s < 0) + seconds_text(abs(one.saved_s))
        times = seconds_text(one.without_s), seconds_text(one.with_s)
        made.add_row(one.path, str(one.calls), *times, saved, _more_text(one), text)
    out = console()
    out.print(made)
    rate = bytes_text(about["backing_bytes_per_s"])
    out.print(f"parts on {about['device']}; file system: {rate}/s, {about['backing_from']}")
    predicted = _run_with(lines, run)
    if predicted is not None and run.run_s is not None:
        out.print(f"whole run: {seconds_text(run.run_s)}, other way: {seconds_text(predicted)}")
    waits = sum(use.nonblocking for use in run.files)
    if waits:
        out.print(f"{waits} nonblocking accesses: their waits were not recorded")
