# SPDX-License-Identifier: BSD-3-Clause
"""The options of `perdure sim` that commands share, and how commands end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from perdure.option_groups import picture_file
from perdure.screen import say
from perdure.sim.machine import DEFAULT_PRESET, Options, devices_named
from perdure.sim.quantities import parse_budget, parse_options
from perdure.units import parse_size, parse_time

Trace = Annotated[Path, typer.Argument(metavar="TRACE", help="What `perdure trace` recorded.")]
PolicyValues = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the policy; may be "
                 "repeated."),
]
Plot = Annotated[
    Path | None,
    picture_file("--plot", help="Draw a picture of the result"),
]


@dataclass(frozen=True)
class MachineOptions:
    """What a trace is replayed on, and how it is read."""

    preset: Annotated[
        str,
        typer.Option(metavar="NAME", help="Memory models that go together; see `perdure sim "
                     "policies`."),
    ] = DEFAULT_PRESET
    dram_part: Annotated[
        str | None,
        typer.Option(metavar="DEVICE", show_default=False,
                     help="The memory model of DRAM, instead of the preset's; see `perdure "
                     "devices`."),
    ] = None
    mram_part: Annotated[
        str | None,
        typer.Option(metavar="DEVICE", help="The memory model of MRAM, instead of the preset's.",
                     show_default=False),
    ] = None
    flash_part: Annotated[
        str | None,
        typer.Option(metavar="DEVICE", help="The memory model of flash, instead of the preset's.",
                     show_default=False),
    ] = None
    mix_assemblies: Annotated[
        bool,
        typer.Option("--mix-assemblies", help="Allow numbers of chips beside those of modules."),
    ] = False
    first_touch_clean: Annotated[
        bool,
        typer.Option("--first-touch-clean", help="Pages come from a file in flash: first touches "
                     "read it, clean ones cost no write."),
    ] = False
    region: Annotated[
        str,
        typer.Option(metavar="NAME", help="Take only what was recorded in this region of "
                     "interest."),
    ] = ""
    compute: Annotated[
        str | None,
        typer.Option(metavar="TIME", show_default=False,
                     help="Computation besides memory.  [default: the trace's]"),
    ] = None

    def options(self) -> Options:
        """What they come to; warnings are said. Raises ValueError or _core.Error."""
        devices = devices_named(
            self.preset, self.dram_part, self.mram_part, self.flash_part, self.mix_assemblies
        )
        if self.dram_part or self.mram_part or self.flash_part:  # not what a preset is known for
            for warning in devices.warnings:
                say(f"perdure: note: {warning}", err=True)
        compute_ns = None if self.compute is None else parse_time(self.compute) * 1e9
        return Options(devices, self.first_touch_clean, self.region, compute_ns)


@dataclass(frozen=True)
class GridOptions:
    """Which capacities are looked at, and with which options of the policy."""

    mram: Annotated[
        str, typer.Option(metavar="SIZE,…", help="Capacities of MRAM that are tried, besides "
                          "none.")
    ] = "64MiB,128MiB,256MiB"
    option: PolicyValues = None
    step: Annotated[
        str | None,
        typer.Option(metavar="SIZE", show_default=False,
                     help="The step between capacities of DRAM that are tried.  [default: a 64th"
                          " of the program's]"),
    ] = None

    def capacities(self) -> list[int]:
        """Of MRAM, in bytes."""
        return [parse_size(word) for word in self.mram.split(",") if word.strip()]

    def values(self) -> dict[str, str]:
        """Options of the policy."""
        return parse_options(self.option)

    def step_bytes(self) -> int | None:
        """Between capacities of DRAM; None for the default."""
        return parse_size(self.step) if self.step else None


@dataclass(frozen=True)
class GoalOptions:
    """Which machine is the best one, and what it is compared with."""

    budget: Annotated[
        str, typer.Option(metavar="slowdown=P%", help="How much slower than without swapping the"
                          " program may be.")
    ] = "slowdown=20%"
    typical: Annotated[
        str, typer.Option(metavar="SIZE", help="DRAM of a usual machine, to compare with.")
    ] = "1GiB"

    def share(self) -> float:
        """The slowdown that is allowed."""
        return parse_budget(self.budget)

    def typical_bytes(self) -> int:
        """DRAM of a usual machine."""
        return parse_size(self.typical)
