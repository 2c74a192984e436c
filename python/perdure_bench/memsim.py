# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench memsim`: the paging paper's evaluation, with traces of real programs.

CG (class B), MG (class A) and SP (class B) of the NAS benchmarks with five iterations, and HPL
(N = 8192), built with perdure-clang++ --trace, recorded beyond the paper's cache (1 MB,
direct-mapped), and replayed on its devices (preset hosogaya2008). --quick has classes S and W.

    footprint_mb      pages that the program touched, in 10^6 bytes; `paper_mb` is the paper's
    misses            of the cache: the accesses of the memory
    compute_s         the CPU time of the program
    hot_share         of the accesses, on the hottest `pages_share` of the pages (Figure 4)
    time_s, energy_j  PROGRAM-typical: 1 GiB of DRAM; PROGRAM-fits: DRAM that just holds it;
                      PROGRAM-paper: 128 MiB of MRAM and 64 MiB of DRAM, low_power
    energy_ratio, time_ratio   PROGRAM-paper, and PROGRAM-best: the point with least energy that is
                      at most 20 % slower than without swapping, over 1 GiB of DRAM (paper: CG 0.25
                      at 1.17)
                      PROGRAM-best says why energy is least there
    notches           local minima of energy over DRAM alone; cg-npb33 is CG whose matrix generator
                      has the small scratch memory of NPB 3.3, cg-1 and cg-20 run 1 and 20
                      iterations instead of five, hpl-256 has panels of 256 columns instead of 128;
                      -ddr4 has the DRAM of today
    notch_energy_ratio  energy at the least of them over that at the largest
    cg-for-CLAIM      the computation that gives what the paper says of CG, each alone: 33 J with
                      1 GiB, 25 % of the energy, 117 % of the time; and the others then
    worst_time_ratio  of a policy over lru, over all capacities of DRAM beside `mram_mib` of MRAM
                      (Figure 3; paper: MRAM-fixed 1.6 on MG), and at which, `dram_mib`
    accesses_per_s, records_per_s, bytes_per_page   of the simulator (bench/memsim.cpp)
    slowdown          of recording (perdure bench record)

Time is memory delay by the model and, as computation, the CPU time of the program, built without
--trace, on this machine, which has the time of its own caches and memory in it.

With --directory the traces are kept there, and those that are there are not recorded again: a run
that was stopped goes on. Recording takes about as long as the rest.
"""

from __future__ import annotations

import json
import resource
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perdure.core import load_core
from perdure.programs import CLONE, ProgramFailed, find_program, output_of, run_lines
from perdure.progress import progress
from perdure.sim.locality import concentration_of
from perdure.sim.machine import DEFAULT_PRESET, Options, devices_named
from perdure.sim.optimise import Optimum, local_minima, optimise
from perdure.sim.sweep import KnownPoint, Study, known_points
from perdure.trace.record import run_recorded
from perdure.watching import Watch, watching
from perdure_bench import record
from perdure_bench.facts import Fact, read_facts

SUMMARY = "time and energy of programs on memory that does not exist"
MIB = 1 << 20
_BUDGET = 0.2
_ALPHA = {"alpha": "0.9"}
_COMPARED = ("cg", "mg", "sp", "hpl")  # policies are compared on them


@dataclass(frozen=True)
class Subject:
    """A program, how it is run, and what the paper says of it."""

    case: str
    sources: tuple[str, ...]  # folders and files below apps
    words: tuple[str, ...]
    quick: tuple[str, ...]
    paper_mb: float | None = None
    pages_share: float = 0.4


_NPB = ("npb/ranks_serial.cpp",)
_FIVE = ("--iterations", "5")
SUBJECTS = (
    Subject("cg", ("npb/cg", *_NPB), ("--class", "B", *_FIVE), ("--class", "W"), 412),
    Subject("mg", ("npb/mg", *_NPB), ("--class", "A", *_FIVE), ("--class", "W"), 448),
    Subject(
        "sp",
        ("npb/sp", "npb/flow", *_NPB),
        ("--class", "B", *_FIVE),
        ("--class", "W", *_FIVE),
        344,
    ),
    Subject("hpl", ("hpl",), ("--n", "8192"), ("--n", "1500"), 544, 0.03),
    Subject(
        "hpl-256", ("hpl",), ("--n", "8192", "--block", "256"), ("--n", "1500", "--block", "256"),
        544, 0.03,
    ),
    Subject(
        "cg-npb33",
        ("npb/cg", *_NPB),
        ("--class", "B", *_FIVE, "--matrix-scratch", "npb3.3"),
        ("--class", "W", "--matrix-scratch", "npb3.3"),
    ),
    Subject(
        "cg-1",
        ("npb/cg", *_NPB),
        ("--class", "B", "--iterations", "1"),
        ("--class", "W", "--iterations", "1"),
    ),
    Subject(
        "cg-20",
        ("npb/cg", *_NPB),
        ("--class", "B", "--iterations", "20"),
        ("--class", "W", "--iterations", "20"),
    ),
)


def measure(quick: bool, directory: Path | None = None) -> Iterator[Fact]:
    """The facts as they come; traces stay in `directory`, if one is given. Raises ProgramFailed."""
    if directory is not None and not directory.is_dir():
        raise ProgramFailed(f"{directory} is no directory: make it, or leave out --directory")
    with tempfile.TemporaryDirectory(prefix="perdure-memsim-") as folder:
        yield from _simulator_facts(quick, None)
        with progress("bench memsim", 2 * len(SUBJECTS)) as advance:
            for subject in SUBJECTS:
                name = f"{subject.case}-quick.ptrace" if quick else f"{subject.case}.ptrace"
                trace = (directory or Path(folder)) / name
                compute_ns = _computation_ns(subject, quick)
                if not trace.exists():
                    record_trace(subject, quick, trace)
                advance()
                yield from subject_facts(subject, quick, trace, compute_ns)
                if subject.case == "cg":
                    yield from _simulator_facts(quick, trace)
                if directory is None:
                    trace.unlink()
                advance()
    for fact in record.measure(quick):
        yield replace(fact, bench="memsim")


def _simulator_facts(quick: bool, trace: Path | None) -> list[Fact]:
    """Of the simulator itself: on Zipf and loop, or on a trace alone."""
    words = [str(find_program("bench_memsim"))]
    if quick:
        words.append("--quick")
    if trace is not None:
        words += ["--trace", str(trace)]
    facts = list(read_facts(run_lines(words)))
    if trace is None:
        return facts
    return [fact for fact in facts if fact.more.get("trace") not in ("zipf", "loop")
            and not str(fact.more.get("trace")).startswith(("zipf", "loop"))]


def program_of(subject: Subject, traced: bool) -> Path:
    """The program of a subject, for recording or as it is; built once for each build tree."""
    compiler = find_program("perdure-clang++", "trace/bin")
    build = compiler.parents[2]
    apps = CLONE / "apps"
    if not apps.exists():
        raise ProgramFailed(f"{apps} is not there: this benchmark needs a clone")
    name = "-".join(subject.sources[0].split("/")) + ("" if traced else "-plain")
    program = compiler.parents[1] / "programs" / name
    program.parent.mkdir(exist_ok=True)
    files = _sources(subject, apps)
    libraries = [build / f"apps/npb/libnpb_{part}.a" for part in ("program", "state")
                 if name.startswith("npb")]  # what the programs of NAS share
    for library in libraries:
        if not library.exists():
            raise ProgramFailed(f"there is no {library}: build npb_program first")
    tools = (compiler.parents[1] / "lib").glob("Perdure*.so")
    made_of = [*files, *apps.rglob("*.hpp"), *libraries, compiler, *tools]
    newest = max(path.stat().st_mtime for path in made_of)
    if program.exists() and program.stat().st_mtime > newest:
        return program
    words = ["--trace"] if traced else []
    command = [compiler, *words, "-O3", "-std=c++20", f"-I{apps}", f"-I{apps.parent / 'include'}",
               *files, *libraries, *(_shared(build) if libraries else []), "-o", program]
    output_of(command, f"perdure-clang++ on {subject.case}")
    return program


def _sources(subject: Subject, apps: Path) -> list[Path]:
    """The files of a subject, without tests."""
    files: list[Path] = []
    for name in subject.sources:
        place = apps / name
        found = sorted(place.glob("*.cpp")) if place.is_dir() else [place]
        files += [path for path in found if "test" not in path.name and "planted" not in path.name]
    return files


def _shared(build: Path) -> list[str]:
    """Perdure's library, as words of a link command."""
    capi = build / "src/capi"
    return [f"-L{capi}", f"-Wl,-rpath,{capi}", "-lperdure"]


def _command(subject: Subject, quick: bool, traced: bool) -> list[str]:
    return [str(program_of(subject, traced)), *(subject.quick if quick else subject.words)]


def _computation_ns(subject: Subject, quick: bool) -> float:
    """The nanoseconds of CPU that the program takes when nothing of it is for recording."""
    command = _command(subject, quick, False)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output_of(command, subject.case)
    return (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) * 1e9


def record_trace(subject: Subject, quick: bool, trace: Path) -> None:
    """Records what a program accesses."""
    command = _command(subject, quick, True)
    quiet = [shutil.which("sh") or "/bin/sh", "-c", 'exec "$@" >/dev/null', "sh", *command]
    code, found = run_recorded(quiet, trace, {})
    if code != 0:
        raise ProgramFailed(f"{subject.case} ended with {code} while it was recorded")
    found[-1].rename(trace)
    for other in found[:-1]:
        other.unlink()


def _fact(case: str, metric: str, value: float, unit: str = "", **more: Any) -> Fact:
    return Fact("memsim", case, metric, value, unit, more=more)


def subject_facts(
    subject: Subject, quick: bool, trace: Path, compute_ns: float
) -> Iterator[Fact]:
    """Everything that one trace says."""
    core = load_core()
    summary = core.summarise_trace(str(trace))
    footprint = summary.pages * summary.page_bytes
    more = {"paper_mb": subject.paper_mb} if subject.paper_mb else {}
    yield _fact(subject.case, "footprint_mb", footprint / 1e6, "MB", **more)
    yield _fact(subject.case, "misses", summary.reads + summary.writes)
    yield _fact(subject.case, "compute_s", compute_ns / 1e9, "s")
    curve = concentration_of(trace)
    stride = max(1, len(curve.pages) // 100)
    yield _fact(
        subject.case, "hot_share", curve.accesses_of(subject.pages_share), "",
        pages_share=subject.pages_share,
        curve=json.dumps([[round(page, 4), round(accesses, 4)] for page, accesses in zip(
            curve.pages[::stride], curve.accesses[::stride])]),
    )
    for suffix, preset in (("", DEFAULT_PRESET), ("-ddr4", f"{DEFAULT_PRESET}-ddr4")):
        devices = devices_named(preset, None, None, None, True)
        options = Options(devices, compute_ns=compute_ns)
        yield from _machine_facts(subject, quick, trace, options, footprint, suffix)


def _machine_facts(
    subject: Subject, quick: bool, trace: Path, options: Options, footprint: int, suffix: str
) -> Iterator[Fact]:
    case = subject.case + suffix
    page = 4096
    # In a quick run the machines are smaller in proportion.
    unit = MIB if not quick else max(page, footprint // 400 // page * page)
    mram = [64 * unit, 128 * unit, 256 * unit]
    step = max(page, footprint // 64 // page * page)
    with watching() as watch:
        study = Study(str(trace), options, mram, watch)
        found = optimise(study, "mram_fixed", {}, _BUDGET, 1024 * unit, step)
        yield from _points(case, found.typical, "typical")
        yield from _points(case, found.reference, "fits")
        frames = study.frames(step, 0)
        alone = [energy for _, energy in study.at(0, frames) if energy is not None]
        minima = local_minima(alone)
        kept = [i for i in minima if i > 0 or frames[i] * page >= footprint]
        yield _fact(case, "notches", len(kept), "", at_mib=json.dumps(
            [round(frames[i] * page / MIB, 1) for i in kept]))
        if len(kept) > 1:
            yield _fact(case, "notch_energy_ratio", alone[kept[0]] / alone[kept[-1]])
        if not suffix:
            for size in study.mram:
                row = study.points("mram_fixed", size, _wide(study, step, size, unit))
                for each in known_points(row):
                    yield _fact(case, "sweep_energy_j", each.energy_j, "J", time_s=each.time_s,
                                mram_bytes=size, total_bytes=each.total_bytes)
        enough = study.curves.curves[0].floor_pages * page <= 192 * unit
        if 128 * unit in mram and enough:
            paper = known_points(
                study.points("low_power", 128 * unit, [64 * unit // page], _ALPHA)
            )
            if paper:
                yield from _points(case, paper[0], "paper")
                yield from _ratios(case, paper[0], found.typical, "paper")
                if case == "cg" and not quick:
                    yield from _claim_facts(study, [64 * unit // page], [1024 * unit // page])
        if not suffix and case in _COMPARED and mram:
            wide = (unit * each for each in (16, 32, 64, 128, 256, 320))
            sizes = [size for size in wide if size < footprint]
            yield from _worst_facts(case, trace, options, sizes, step, watch)
            if 128 * unit in mram:
                yield from _policy_facts(case, study, 128 * unit, step)
        if watch.stopped:
            raise KeyboardInterrupt
        if found.best is not None:
            yield from _points(case, found.best, "best", why=_why(found, found.best))
            yield from _ratios(case, found.best, found.typical, "best")


def _claim_facts(study: Study, small: list[int], typical: list[int]) -> Iterator[Fact]:
    """What the paper says of CG asks for three different times of computation.

    Time and energy grow by a constant with each second of it, so two seconds give all of them.
    """
    measured = study.options

    def at(seconds: float) -> tuple[KnownPoint, KnownPoint]:
        study.options = replace(measured, compute_ns=seconds * 1e9)
        return (known_points(study.points("low_power", 128 * MIB, small, _ALPHA))[0],
                known_points(study.points("lru", 0, typical))[0])

    (here, there), (here_later, there_later) = at(0), at(1)

    def seconds_for(ratio: float, name: str) -> float:
        of, over = getattr(here, name), getattr(there, name)
        return (of - ratio * over) / (
            ratio * (getattr(there_later, name) - over) - (getattr(here_later, name) - of))

    for claim, seconds in (
        ("33j", (33 - there.energy_j) / (there_later.energy_j - there.energy_j)),
        ("energy", seconds_for(0.25, "energy_j")),
        ("time", seconds_for(1.17, "time_s")),
    ):
        paper, full = at(seconds)
        case = f"cg-for-{claim}"
        yield _fact(case, "compute_s", seconds, "s")
        yield _fact(case, "typical_energy_j", full.energy_j, "J")
        yield from _ratios(case, paper, full, "paper")
    study.options = measured


def _wide(study: Study, step: int, mram: int, unit: int) -> list[int]:
    """Frames of DRAM up to what the program needs, and on to the paper's 1 GiB of memory."""
    more = study.frames(step, mram, 1024 * unit)
    return sorted({*study.frames(step, mram), *more})


def _why(found: Optimum, best: KnownPoint) -> str:
    """The notch at the best point; or what lies beyond it, where it is no notch."""
    for notch in found.notches:
        if notch.point == best:
            return f"{notch.kind}: {notch.reason}"
    less = [point for point in found.points
            if point.mram_bytes == best.mram_bytes and point.dram_bytes < best.dram_bytes]
    if not less:
        return "the least DRAM that was tried beside this MRAM"
    if max(less, key=lambda point: point.dram_bytes).energy_j < best.energy_j:
        return "less DRAM takes less energy still, but more time than the budget"
    return "no notch: the energy of its neighbours is within 1 %"


def _points(case: str, point: KnownPoint, name: str, **more: Any) -> Iterator[Fact]:
    where = {"mram_mib": point.mram_bytes / MIB, "dram_mib": point.dram_bytes / MIB, **more}
    yield _fact(f"{case}-{name}", "time_s", point.time_s, "s", **where)
    yield _fact(f"{case}-{name}", "energy_j", point.energy_j, "J", **where)


def _ratios(case: str, point: KnownPoint, typical: KnownPoint, name: str) -> Iterator[Fact]:
    yield _fact(f"{case}-{name}", "energy_ratio", point.energy_j / typical.energy_j)
    yield _fact(f"{case}-{name}", "time_ratio", point.time_s / typical.time_s)


def _worst_facts(
    case: str, trace: Path, options: Options, sizes: list[int], step: int, watch: Watch
) -> Iterator[Fact]:
    study = Study(str(trace), options, sizes, watch)
    for mram in sizes:
        rows = {
            policy: known_points(study.points(policy, mram, study.frames(2 * step, mram), values))
            for policy, values in (("lru", {}), ("mram_fixed", {}), ("low_power", _ALPHA))
        }
        for policy in ("mram_fixed", "low_power"):
            ratios = [(one.time_s / lru.time_s, one.dram_bytes / MIB)
                      for one, lru in zip(rows[policy], rows["lru"])]
            worst, best = max(ratios), min(ratios)
            yield _fact(f"{case}-{policy}", "worst_time_ratio", worst[0], "", mram_mib=mram / MIB,
                        dram_mib=worst[1], best=best[0], best_dram_mib=best[1])


def _policy_facts(case: str, study: Study, mram: int, step: int) -> Iterator[Fact]:
    frames = study.frames(2 * step, mram)
    rows = {
        policy: known_points(study.points(policy, mram, frames, values))
        for policy, values in (("lru", {}), ("mram_fixed", {}), ("low_power", _ALPHA))
    }
    for policy, row in rows.items():
        for point in row:
            yield _fact(f"{case}-{policy}", "policy_time_s", point.time_s, "s",
                        dram_bytes=point.dram_bytes, mram_bytes=mram)
