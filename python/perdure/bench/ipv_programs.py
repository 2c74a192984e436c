"""The programs of `perdure bench ipv`: what a persistent version of each iteration costs them.

Figures 2, 3, 4, 6, 7, 12 and 13 of the paper on in-place versioning. A round runs every way to
protect a program once, in a new random order; a ratio compares runs of one round.

    overhead_ratio     time of the loop over that of the program without protection, compiled by the
                       same compiler; case PROGRAM is in-place versioning as it comes, with an idle
                       core, on NVM of 1/8 of DRAM's bandwidth; the other cases name the way
    persist_ms         an iteration is kept waiting so long for its version, seen inside the program
    iteration_ms       of the unprotected program

Ways: disk, a file a version, synced, on a disk; block, the same on memory; clflush, a copy that is
flushed line by line; par-clflush, by two threads; bypass, a copy past the caches; ipv, in-place
versioning that chooses its tier itself; ipv-alone, the same without a helper thread; and the
single tiers. 1/8 and 1/32: a write takes as long as that bandwidth allows, by waiting for it. The
program's own loads and stores are at DRAM's speed, whatever the way.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from perdure.bench.facts import Fact
from perdure.bench.programs import BenchFailed, find_program

_LIMIT_S = 600
_SEED = 21
DRAM, EIGHTH, THIRTY_SECOND = "dram", "dram-1/8", "dram-1/32"


@dataclass(frozen=True)
class Program:
    """A program, and how much of it is run: enough iterations for a choice of tiers to settle."""

    name: str
    stem: str
    size: tuple[str, ...]
    quick: tuple[str, ...]


def _npb(name: str, iterations: int, quick: int) -> Program:
    return Program(
        name,
        f"npb_{name}",
        ("--class", "A", "--iterations", str(iterations)),
        ("--class", "S", "--iterations", str(quick)),
    )


PROGRAMS = (
    _npb("cg", 40, 15),
    _npb("mg", 30, 20),
    _npb("ft", 20, 15),
    _npb("bt", 30, 20),
    _npb("sp", 40, 20),
    _npb("lu", 40, 20),
    Program("eddy", "eddy", ("--n", "256", "--steps", "60"), ("--n", "64", "--steps", "20")),
)


@dataclass(frozen=True)
class Way:
    """A way to protect a program."""

    name: str
    options: tuple[str, ...]
    transformed: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    on_disk: bool = False
    emulations: tuple[str, ...] = (DRAM, EIGHTH, THIRTY_SECOND)


def _ipv(name: str, tier: str, helper: str, *emulations: str) -> Way:
    settings = {"PERDURE_IPV": f"helper={helper}"}
    options = ("--protect", "ipv", "--tier", tier)
    return Way(name, options, True, settings, emulations=emulations or (EIGHTH,))


_CLFLUSH = {"PERDURE_FLUSH": "clflush"}
NATIVE = Way("native", ("--protect", "none"), emulations=(DRAM,))
WAYS = (
    Way("disk", ("--protect", "disk"), on_disk=True, emulations=(DRAM,)),
    Way("block", ("--protect", "disk"), emulations=(DRAM,)),
    Way("clflush", ("--protect", "flush"), environment=_CLFLUSH,
        emulations=(EIGHTH, THIRTY_SECOND)),
    Way("par-clflush", ("--protect", "flush", "--threads", "2"), environment=_CLFLUSH,
        emulations=(EIGHTH,)),
    Way("bypass", ("--protect", "ipv", "--tier", "copy"),
        environment={"PERDURE_IPV": "helper=off"}),
    _ipv("ipv", "auto", "on", DRAM, EIGHTH, THIRTY_SECOND),
    _ipv("ipv-alone", "auto", "off", EIGHTH, THIRTY_SECOND),
    _ipv("version", "version", "off"),
    _ipv("version-helper", "version", "on"),
    _ipv("stream", "stream", "off"),
    _ipv("swap", "swap", "off"),
    _ipv("copy-helper", "copy", "on"),
    _ipv("fused", "fused", "off"),
)
QUICK_WAYS = ("clflush", "bypass", "ipv", "ipv-alone")


def runs(quick: bool) -> int:
    """How many programs will be run, for a progress bar."""
    return len(PROGRAMS) * _rounds(quick) * len(_pairs(quick))


def _rounds(quick: bool) -> int:
    return 2 if quick else 5


def _pairs(quick: bool) -> list[tuple[Way, str]]:
    ways = [way for way in WAYS if not quick or way.name in QUICK_WAYS]
    pairs = [(way, emulation) for way in ways for emulation in way.emulations]
    if quick:
        pairs = [(way, emulation) for way, emulation in pairs if emulation == EIGHTH]
    return [(NATIVE, DRAM), *pairs]


def measure_programs(
    quick: bool, pools: Path, disk: Path, advance: Callable[[], None]
) -> Iterator[Fact]:
    """The facts, a program at a time. Raises BenchFailed."""
    order = random.Random(_SEED)
    main: dict[str, list[float]] = {"": [], "-alone": []}
    for program in PROGRAMS:
        pairs = _pairs(quick)
        rounds = []
        for _ in range(_rounds(quick)):
            ran = {}
            for way, emulation in order.sample(pairs, len(pairs)):
                ran[way.name, emulation] = _run(program, way, emulation, quick, pools, disk)
                advance()
            rounds.append(ran)
        yield from _facts(program, rounds, quick, main)
    for suffix, target in (("", 1.02), ("-alone", 1.04)):
        mean = statistics.fmean(main[suffix])
        claimed = None if quick else target
        holds = None if claimed is None else mean <= claimed
        case = f"average{suffix}"
        more = {"emulated": EIGHTH, "programs": len(main[suffix])}
        yield Fact("ipv", case, "overhead_ratio", mean, "", None, None, 1, claimed, holds, more)


def _run(
    program: Program, way: Way, emulation: str, quick: bool, pools: Path, disk: Path
) -> dict[str, float]:
    variant = "ipv" if way.transformed else "clang"
    path = find_program(f"{program.stem}_{variant}", "apps")
    pool = (disk if way.on_disk else pools) / "pool"
    words = [path, *(program.quick if quick else program.size), *way.options, "--json"]
    if way is not NATIVE:
        words += ["--pool", pool]
    if emulation != DRAM:
        words += ["--emulate", emulation, "--real-delay"]
    report = pools / "report.json"
    if "ipv" in way.options:
        words += ["--ipv-report", report]
    try:
        done = subprocess.run(
            [str(word) for word in words],
            capture_output=True,
            text=True,
            env={**os.environ, **way.environment},
            timeout=_LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            raise BenchFailed(f"{path.name} {way.name}: {done.returncode}: {done.stderr[-300:]}")
        facts = json.loads(done.stdout.splitlines()[-1])
        tiers = _tiers(report) if "ipv" in way.options else {}
    except subprocess.TimeoutExpired:
        raise BenchFailed(f"{path.name} {way.name}: not done after {_LIMIT_S} s") from None
    finally:
        shutil.rmtree(pool, ignore_errors=True)
        report.unlink(missing_ok=True)
    return {**facts, "tiers": tiers}


def _tiers(report: Path) -> dict[str, str]:
    """The tier that each object ended in."""
    told = json.loads(report.read_text(encoding="utf-8"))
    return {item["name"]: item["tier"] for item in told["objects"]}


def _spread(values: list[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        return values[0], values[0], values[0]
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def _facts(
    program: Program, rounds: list[dict], quick: bool, main: dict[str, list[float]]
) -> Iterator[Fact]:
    native = [ran["native", DRAM] for ran in rounds]
    about = {"options": " ".join(program.quick if quick else program.size)}
    for way, emulation in _pairs(quick):
        if way is NATIVE:
            times = [1e3 * ran["loop_s"] / ran["iterations"] for ran in native]
            middle, low, high = _spread(times)
            yield Fact("ipv", f"{program.name}-native", "iteration_ms", middle, "ms", low, high,
                       len(times), more=about)
            continue
        ran = [around[way.name, emulation] for around in rounds]
        more = about | {"way": way.name, "emulated": emulation, "state_mb":
                        ran[0]["state_bytes"] / 1e6}
        if ran[0]["tiers"]:
            more["tiers"] = ran[-1]["tiers"]
        case, target = _case(program, way, emulation, quick)
        ratios = [a["loop_s"] / b["loop_s"] for a, b in zip(ran, native, strict=True)]
        middle, low, high = _spread(ratios)
        if case in (program.name, f"{program.name}-alone"):
            main["" if case == program.name else "-alone"].append(middle)
        holds = None if target is None else middle <= target
        yield Fact("ipv", case, "overhead_ratio", middle, "", low, high, len(ratios), target, holds,
                   more)
        waits = [1e3 * a["persist_s"] / a["iterations"] for a in ran]
        middle, low, high = _spread(waits)
        yield Fact("ipv", case, "persist_ms", middle, "ms", low, high, len(waits), more=more)


def _case(program: Program, way: Way, emulation: str, quick: bool) -> tuple[str, float | None]:
    """The name that others read, and what is claimed there."""
    if emulation == EIGHTH and way.name == "ipv":
        return program.name, None if quick else 1.05
    if emulation == EIGHTH and way.name == "ipv-alone":
        return f"{program.name}-alone", None
    return f"{program.name}-{way.name}-{emulation}", None
