"""Reads and checks profiles: what a device does at each CPU frequency and number of writers.

The form is in docs/energy_plan.md. A profile is untrusted until it is read here: every number is
finite and of the right sign, names are known, the grid is not empty. Unknown keys are ignored,
newer schemas refused. Quantities that were not measured are None, never 0.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perdure.energy.quantities import Wrong, is_number
from perdure.files import read_text

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
    created: str | None = None

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
    document = read_document(file, "profile")
    return profile_of(document, str(file))


def read_document(file: Path, what: str) -> dict:
    """A JSON object from a file. Raises Wrong if it can't be read, is cut short or is no object."""
    try:
        text = read_text(file)
    except OSError as failure:
        raise Wrong(f"{file}: {failure.strerror or failure}") from None
    except UnicodeDecodeError:
        raise Wrong(f"{file}: no {what}: it is not text") from None
    if not text.strip():
        raise Wrong(f"{file}: the {what} is empty")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as wrong:  # JSONDecodeError, or a number of 5000 digits
        at = f" at line {wrong.lineno}" if isinstance(wrong, json.JSONDecodeError) else ""
        raise Wrong(
            f"{file}: damaged or cut short: no valid JSON{at}; write it anew or take a copy"
        ) from None
    if not isinstance(document, dict):
        raise Wrong(f"{file}: no {what}: the outermost value must be an object")
    return document


def check_kind(document: dict, source: str, kind: str, schema: int) -> None:
    """Raises Wrong where a document is of another kind or of a newer schema."""
    if document.get("kind") != kind:
        raise Wrong(f"{source}: kind is {document.get('kind')!r}, where '{kind}' was expected")
    found = document.get("schema")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise Wrong(f"{source}: schema is {found!r}, where a whole number was expected")
    if found > schema:
        raise Wrong(
            f"{source}: schema {found} is newer than {schema}, the newest that this perdure "
            "reads; update perdure, or write the file with an older one"
        )


def profile_of(document: dict, source: str) -> Profile:
    """The profile in a JSON object. Raises Wrong."""
    check_kind(document, source, KIND, SCHEMA)
    points = document.get("points")
    if not isinstance(points, list):
        raise Wrong(f"{source}: no list 'points'; the file is cut short or no profile")
    if not points:
        raise Wrong(f"{source}: the grid is empty: no point was measured; run the profile again")
    fingerprint = document.get("fingerprint")
    if not isinstance(fingerprint, dict):
        raise Wrong(f"{source}: no 'fingerprint'; the file is cut short or no profile")
    created = document.get("created")
    read = tuple(_point(point, f"{source}: point {i}") for i, point in enumerate(points))
    known = created if isinstance(created, str) else None
    return Profile(read, fingerprint, source, known)


def _number(value: object, where: str, least: float = 0.0, above: bool = False) -> float:
    if not is_number(value) or value < least or (above and value == least):
        bound = "more than" if above else "at least"
        raise Wrong(f"{where} is {value!r}; it must be a number, {bound} {least:g}")
    return float(value)


def _whole(value: object, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise Wrong(f"{where} is {value!r}; it must be a whole number, at least 1")
    return value


def _quantity(value: object, where: str, above: bool) -> Quantity:
    if not isinstance(value, dict):
        raise Wrong(f"{where} is {value!r}; it must be an object with mean, sd, n, low, high")
    mean = _number(value.get("mean"), f"{where}.mean", above=above)
    ends = []
    for name in ("low", "high"):
        end = value.get(name)
        # One repetition has no interval.
        ends.append(mean if end is None else _number(end, f"{where}.{name}", least=-math.inf))
    if not ends[0] <= mean <= ends[1]:
        raise Wrong(f"{where}: mean {mean:g} is not between low {ends[0]:g} and high {ends[1]:g}")
    return Quantity(mean, ends[0], ends[1], _whole(value.get("n", 1), f"{where}.n"))


def _maybe(value: object, where: str) -> Quantity | None:
    return None if value is None else _quantity(value, where, above=True)


def _point(value: object, where: str) -> Point:
    if not isinstance(value, dict):
        raise Wrong(f"{where} is {value!r}; it must be an object")
    op = value.get("op")
    if op not in OPERATIONS:
        raise Wrong(f"{where}: op is {op!r}; it must be read or write")
    freq = value.get("freq_kHz")
    if freq is not None:
        freq = _whole(freq, f"{where}.freq_kHz")
    return Point(
        op=op,
        setting=Setting(freq, _whole(value.get("writers"), f"{where}.writers")),
        bandwidth_MBps=_quantity(value.get("bandwidth_MBps"), f"{where}.bandwidth_MBps", True),
        power_W=_maybe(value.get("power_W"), f"{where}.power_W"),
        energy_J_per_MB=_maybe(value.get("energy_J_per_MB"), f"{where}.energy_J_per_MB"),
        settled=value.get("settled") is not False,
    )


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
