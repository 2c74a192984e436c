"""The command `perdure`: one verb per module, put together here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from perdure.bench.command import bench
from perdure.cache.command import app as cache
from perdure.demo.command import demo
from perdure.devices import devices
from perdure.energy.app import app as energy
from perdure.ipv.command import app as ipv
from perdure.pool.command import app as pool
from perdure.run.command import run
from perdure.sim.command import app as sim
from perdure.sim.report_command import report as sim_report
from perdure.trace.command import app as trace

app = typer.Typer(
    help="Persistence for HPC applications on non-volatile memory.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
# Everything from the first word of the job on belongs to the job.
app.command("run", context_settings={"allow_interspersed_args": False}, no_args_is_help=True)(run)
app.add_typer(pool, name="pool")
app.add_typer(cache, name="cache")
sim.command("report", no_args_is_help=True)(sim_report)
app.add_typer(ipv, name="ipv")
app.add_typer(sim, name="sim")
app.add_typer(trace, name="trace")
app.add_typer(energy, name="energy")
app.command("demo")(demo)
app.command("devices")(devices)
app.command("bench", no_args_is_help=True)(bench)


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            print(f"perdure {version('perdure')}")
        except PackageNotFoundError:
            print("perdure (not installed)")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it and end."),
    ] = False,
) -> None:
    """Persistence for HPC applications on non-volatile memory."""


def main() -> None:
    """Entry point of the console script."""
    app(prog_name="perdure")
