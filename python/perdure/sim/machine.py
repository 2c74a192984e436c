# SPDX-License-Identifier: BSD-3-Clause
"""What a trace is replayed on: devices, and how the command line names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perdure.core import load_core
from perdure.failures import Wrong

DEFAULT_PRESET = "hosogaya2008"


@dataclass(frozen=True)
class Options:
    """How a trace is read and what its accesses cost."""

    devices: Any
    clean: bool = False  # a first touch is read from swap, and has a replica there
    region: str = ""
    compute_ns: float | None = None


def devices_named(
    preset: str, dram: str | None, mram: str | None, flash: str | None, mix_assemblies: bool
) -> Any:
    """The memory models of a preset, each replaced by the one that is named. Raises _core.Error."""
    core = load_core()
    presets = {each.name: each for each in core.device_presets()}
    if preset not in presets:
        raise Wrong(f"there is no preset '{preset}'; there are {', '.join(presets)}")
    chosen = presets[preset]
    return core.devices_of(
        dram or chosen.dram, mram or chosen.mram, flash or chosen.flash, mix_assemblies
    )
