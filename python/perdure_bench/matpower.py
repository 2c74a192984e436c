# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench matpower`: powers of an adjacency matrix, stock MPI-IO against cached files.

The paper on the MPI-IO cache, its Figures 2 to 8, with apps/matpower. A round runs every case with
stock MPI-IO and with its files cached, in a new random order; a ratio compares runs of one round.

    stock_s, cached_s   from opening the files to having closed them; stages are fields of the fact
    time_ratio          cached over stock
    time_ratio_to_sync  cached with writes acknowledged at once, over the same with writes
                        acknowledged when they are done (Figure 2)

Case pP-doc-off is power P, with its file kept (Figure 3); doc-on is with MPI_MODE_DELETE_ON_CLOSE
(Figure 6); p2-nN and p8-nN have N nodes (Figures 4, 5, 7); p2-ranksR have R ranks (Figure 8), more
than cores with Open MPI, which yields. Cases …-modelled are not measured: see matpower_model.py.

Products are not followed by MPI_File_sync, which spares stock MPI-IO an fsync for each, except in
p8-synced-doc-off. Every cached run must report that its files were cached, and every power must be
the same with both; where it is kept, the closed file is read again and compared.

Files lie in --directory, else on the GlusterFS that $PERDURE_GLUSTER names, else on disk
($PERDURE_BENCH_DISK). Targets are claimed of GlusterFS.
"""

from __future__ import annotations

import json
import operator
import os
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from perdure.cache.preload import cache_environment
from perdure.programs import OPEN_MPI, Program, ProgramFailed, find_programs, output_of
from perdure.progress import progress
from perdure_bench.facts import Fact, in_turn, reported
from perdure_bench.matpower_cases import (
    ASYNC,
    CACHED,
    FULL,
    QUICK,
    STOCK,
    SWEPT_POWERS,
    Setting,
    Size,
    settings_of,
    target_of,
)
from perdure_bench.matpower_model import MODELLED_RANKS, NOTE, Outcome, fit
from perdure_bench.solver import disk_directory, file_system_of, pool_directory

SUMMARY = "time of powers of a matrix in cached files, over stock MPI-IO"
_LIMIT_S = 1800
_RESULT = "matpower-result.bin"
_TIMES = ("total", "open", "io", "compute", "close")

Round = dict[tuple[Setting, str], Outcome]


def measure(quick: bool, directory: Path | None = None) -> Iterator[Fact]:
    """The facts, as they come. Raises ProgramFailed."""
    size = QUICK if quick else FULL
    settings = settings_of(size)
    runs = size.rounds * sum(len(setting.variants) for setting in settings)
    place = _place(directory)
    with (
        pool_directory() as pools,
        tempfile.TemporaryDirectory(prefix="perdure-matpower-", dir=place) as files,
        progress("bench matpower", runs) as advance,
    ):
        bench = Bench(Path(files), pools, advance)
        rounds = bench.run_rounds(settings, size.rounds)
        yield from facts_of(settings, rounds, size, bench.about)
        yield from modelled_facts(settings, rounds, size, bench.about, os.cpu_count() or 1)


def _place(directory: Path | None) -> Path:
    """Where the files go; raises ProgramFailed if it was named and is no directory."""
    named = directory or os.environ.get("PERDURE_GLUSTER")
    if named:
        if not Path(named).is_dir():
            raise ProgramFailed(f"{named} is no directory; mount or make it, or name another")
        return Path(named)
    return disk_directory()


class Bench:
    """Runs matpower; every run begins with neither files nor a pool."""

    def __init__(self, files: Path, pools: Path, advance: Callable[[], None]):
        self._files, self._pools, self._advance = files, pools, advance
        self._programs = {program.flavour: program for program in find_programs("matpower")}
        self.about = {"file_system": file_system_of(files)}

    def run_rounds(self, settings: list[Setting], rounds: int) -> list[Round]:
        """For each round, the outcome of each variant of each setting."""
        runs = [(setting, variant) for setting in settings for variant in setting.variants]
        done = []
        for _ in range(rounds):
            around = {run: self._run(*run) for run in in_turn(runs)}
            for setting in settings:
                answers = {around[setting, variant].answer for variant in setting.variants}
                if len(answers) != 1:
                    raise ProgramFailed(f"{setting.names[0]}: stock and cached powers differ")
            done.append(around)
        return done

    def _program(self, ranks: int) -> Program:
        """MPICH as in the paper; Open MPI, which yields, for more ranks than cores."""
        wanted = ["mpich", "openmpi"] if ranks <= (os.cpu_count() or 1) else ["openmpi", "mpich"]
        known = [self._programs[name] for name in wanted if name in self._programs]
        return [*known, *self._programs.values()][0]

    def _run(self, setting: Setting, variant: str) -> Outcome:
        program = self._program(setting.ranks)
        options = [*setting.options(), "--directory", str(self._files), "--json"]
        command = program.command(setting.ranks, *options)
        name = f"matpower {setting.names[0]}, {variant}"
        try:
            output = output_of(command, name, self._environment(variant), _LIMIT_S)
            if variant != STOCK:
                check_cached(self._pools, setting.ranks, name)
        finally:
            self._forget()
        self._advance()
        return outcome_of(output)

    def _environment(self, variant: str) -> dict[str, str]:
        environment = {**os.environ, **OPEN_MPI}
        for name in ("PERDURE_CACHE", "PERDURE_CACHE_REPORT"):
            environment.pop(name, None)
        if variant == STOCK:
            return environment
        pool = self._pools / "pool"
        pool.mkdir()
        options = f"directory={pool};ack={'async' if variant == ASYNC else 'sync'}"
        cache = cache_environment(["matpower-*.bin"], options)
        return {**environment, **cache, "PERDURE_CACHE_REPORT": str(self._pools / "report")}

    def _forget(self) -> None:
        shutil.rmtree(self._pools / "pool", ignore_errors=True)
        for path in [*self._pools.glob("report.*"), *self._files.glob("matpower-*.bin")]:
            path.unlink()


def check_cached(reports: Path, ranks: int, name: str) -> None:
    """Raises ProgramFailed unless every rank reported, in `reports`, that the power was cached."""
    for rank in range(ranks):
        path = reports / f"report.{rank}"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = [json.loads(line) for line in text.splitlines()]
        cached = [line for line in lines if Path(line["file"]).name == _RESULT and line["cached"]]
        if not cached:
            raise ProgramFailed(
                f"{name}: rank {rank} did not report {_RESULT} as cached; does the library that "
                "was preloaded have the cache for files? Build it anew"
            )
        failed = [line["error"] for line in lines if line.get("error")]
        if failed:
            raise ProgramFailed(f"{name}: rank {rank}: {failed[0]}")


def outcome_of(printed: str) -> Outcome:
    """What a run printed; raises ProgramFailed if it did not report."""
    facts = reported(printed, "matpower", "total_s")
    times = {part: facts[f"{part}_s"].value for part in _TIMES}
    moved = facts["read_bytes"].value + facts["written_bytes"].value
    return Outcome(**times, moved_bytes=moved, answer=facts["total_s"].more["hash"])


def _medians(outcomes: list[Outcome]) -> Outcome:
    parts = (*_TIMES, "moved_bytes")
    middles = {
        part: statistics.median(getattr(outcome, part) for outcome in outcomes) for part in parts
    }
    return Outcome(**middles, answer=outcomes[0].answer)


def facts_of(
    settings: list[Setting], rounds: list[Round], size: Size, about: dict
) -> Iterator[Fact]:
    """What was measured."""
    for setting in settings:
        more = {**about, **setting.about}
        stock = [around[setting, STOCK] for around in rounds]
        cached = [around[setting, CACHED] for around in rounds]
        ratios = [c.total / s.total for c, s in zip(cached, stock, strict=True)]
        target = target_of(setting, size, about["file_system"])
        for case in setting.names:
            for metric, ran in (("stock_s", stock), ("cached_s", cached)):
                middle = _medians(ran)
                parts = {f"{p}_s": getattr(middle, p) for p in _TIMES[1:]}
                times = [outcome.total for outcome in ran]
                yield Fact.of("matpower", case, metric, times, "s", more=more | parts)
            keeps = operator.lt if target == 1.0 else operator.le
            yield Fact.of("matpower", case, "time_ratio", ratios, "", target, keeps, more)
        if ASYNC in setting.variants:
            asked = [around[setting, ASYNC].total for around in rounds]
            ratios = [a / c.total for a, c in zip(asked, cached, strict=True)]
            case = f"p{setting.power}-async"
            yield Fact.of("matpower", case, "async_s", asked, "s", more=more)
            yield Fact.of("matpower", case, "time_ratio_to_sync", ratios, more=more)


def modelled_facts(
    settings: list[Setting], rounds: list[Round], size: Size, about: dict, cores: int
) -> Iterator[Fact]:
    """Figure 8 beyond the machine, from the runs with its power and the measured ranks."""
    for power in SWEPT_POWERS:
        setting = next(s for s in settings if f"p{power}-doc-off" in s.names)
        stock = _medians([around[setting, STOCK] for around in rounds])
        cached = _medians([around[setting, CACHED] for around in rounds])
        model = fit(setting.nodes, power, min(cores, size.ranks), stock, cached)
        for ranks in MODELLED_RANKS:
            more = {**about, **setting.about, "ranks": ranks, "modelled": NOTE, **model.speeds}
            case = f"p{power}-ranks{ranks}-modelled"
            times = {"stock_s": model.stock_s(ranks), "cached_s": model.cached_s(ranks)}
            for metric, value in times.items():
                yield Fact("matpower", case, metric, value, "s", more=more)
            ratio = times["cached_s"] / times["stock_s"]
            yield Fact("matpower", case, "time_ratio", ratio, "", more=more)
