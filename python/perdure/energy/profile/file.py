# SPDX-License-Identifier: BSD-3-Clause
"""Reads and checks profiles: what a device does at each CPU frequency and number of writers.

The form is in docs/energy_plan.md. A profile is untrusted until it is read here: every number is
finite and of the right sign, names are known, the grid is not empty. Quantities that were not
measured are None, never 0.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.energy.documents import Section, read_document
from perdure.energy.quantities import Wrong

SCHEMA = 1
KIND = "perdure-energy-profile"
OPERATIONS = ("read", "write")


@dataclass(frozen=True)
class Quantity:
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float
    n: int = 1

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return 0.5 * (self.high - self.low)


@dataclass(frozen=True)
class Setting:
    """What can be chosen for an operation; a frequency of None leaves it alone."""

    freq_kHz: int | None
    writers: int

    def text(self) -> str:
        """As "2 writers at 1.4 GHz"."""
        writers = f"{self.writers} writer{'s' if self.writers != 1 else ''}"
        return writers if self.freq_kHz is None else f"{writers} at {self.freq_kHz / 1e6:.4g} GHz"


@dataclass(frozen=True)
class Point:
    """One operation at one setting. Bandwidth in MB/s (10^6 bytes)."""

    op: str
    setting: Setting
    bandwidth_MBps: Quantity
    power_W: Quantity | None
    energy_J_per_MB: Quantity | None
    settled: bool = True


@dataclass(frozen=True)
class Profile:
    """The points of a device, and where they were measured."""

    points: tuple[Point, ...]
    fingerprint: dict
    source: str

    def of(self, op: str) -> list[Point]:
        """Its points of one operation. Raises Wrong where there are none."""
        found = [point for point in self.points if point.op == op]
        if not found:
            raise Wrong(
                f"{self.source}: no point for '{op}'; measure with perdure energy profile, or "
                f"give --{op}-bandwidth or --{op}-time"
            )
        return found

    @property
    def scope(self) -> str | None:
        """What its meter sees: "node", "package", or None without a meter."""
        meter = self.fingerprint.get("meter")
        return meter.get("scope") if isinstance(meter, dict) else None


def read_profile(file: Path) -> Profile:
    """The profile in a file. Raises Wrong with file, place and remedy."""
    return profile_of(read_document(file, "profile"), str(file))


def profile_of(document: dict[str, Any], source: str) -> Profile:
    """The profile in a JSON object. Raises Wrong."""
    whole = Section(f"{source}: ", document)
    whole.check_kind(KIND, SCHEMA)
    points, fingerprint = document.get("points"), document.get("fingerprint")
    if not isinstance(points, list):
        raise Wrong(f"{source}: no list 'points'; the file is cut short or no profile")
    if not points:
        raise Wrong(f"{source}: the grid is empty: no point was measured; run the profile again")
    if not isinstance(fingerprint, dict):
        raise Wrong(f"{source}: no 'fingerprint'; the file is cut short or no profile")
    return Profile(tuple(_point(Section(f"{source}: point {i}.", point))
                         for i, point in enumerate(points)), fingerprint, source)


def setting_of(section: Section) -> Setting:
    """The setting in a point, or in a section of a plan."""
    clock = section.whole("freq_kHz") if section.has("freq_kHz") else None
    return Setting(clock, section.whole("writers"))


def _point(section: Section) -> Point:
    return Point(
        op=section.word("op", OPERATIONS),
        setting=setting_of(section),
        bandwidth_MBps=_quantity(section.section("bandwidth_MBps")),
        power_W=_maybe(section, "power_W"),
        energy_J_per_MB=_maybe(section, "energy_J_per_MB"),
        settled=section.values.get("settled") is not False,
    )


def _maybe(section: Section, key: str) -> Quantity | None:
    return _quantity(section.section(key)) if section.has(key) else None


def _quantity(section: Section) -> Quantity:
    mean = section.number("mean", above=True)
    # One repetition has no interval.
    low = section.number("low", -math.inf) if section.has("low") else mean
    high = section.number("high", -math.inf) if section.has("high") else mean
    if not low <= mean <= high:
        raise Wrong(f"{section.place}mean {mean:g} is not between low {low:g} and high {high:g}")
    return Quantity(mean, low, high, section.whole("n") if "n" in section.values else 1)


def machine_here() -> dict:
    """The part of a fingerprint that names this machine; null for what it does not tell."""
    model = None
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Model")):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {"cpu_model": model, "cpus": os.cpu_count(), "kernel": platform.release()}


def differences(fingerprint: dict, here: dict) -> list[str]:
    """Where a profile's machine is another one: sentences. A kernel is only worth a warning."""
    found = []
    for key in ("cpu_model", "cpus"):
        there = fingerprint.get(key)
        if there is not None and here.get(key) is not None and there != here[key]:
            found.append(f"{key} was {there!r}, is {here[key]!r}")
    return found


def check_machine(profile: Profile, other_machine: bool, warn: Callable[[str], None]) -> None:
    """Raises Wrong if a profile is of another machine and that was not asked for."""
    here = machine_here()
    found = differences(profile.fingerprint, here)
    if found and not other_machine:
        raise Wrong(
            f"{profile.source} was measured on another machine ({'; '.join(found)}); measure here, "
            "or say --other-machine to plan for that one"
        )
    if found:
        warn(f"{profile.source} is of another machine: {'; '.join(found)}")
    kernel = profile.fingerprint.get("kernel")
    if not found and kernel is not None and kernel != here["kernel"]:
        warn(f"{profile.source} was measured with kernel {kernel}, this is {here['kernel']}")
    rough = sum(not point.settled for point in profile.points)
    if rough:
        warn(f"{profile.source}: {rough} of {len(profile.points)} points did not settle")
