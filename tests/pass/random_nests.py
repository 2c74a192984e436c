#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random loop nests do the same with the pass as without it.

    random_nests.py --build DIR [--seed N] [--count 300] [--runtime poison|perdure]
                    [--threads N|beside] [--reader] [--lto thin|full] [--plugin FILE]
                    [--library FILE] [--keep DIR] [--unit FILE [--seeds 40] [--levels=-O2]]

Programs of nest_generator.py are compiled natively and by the pass with the same flags, and run
side by side by nest_driver.c: linked with poison_runtime.cpp; or with libperdure, in all tiers,
where each program is killed in an epoch and restarted. Prints the seed; --seed takes it back.
With --threads, nests are parallel loops of OpenMP where they may be, which are left alone; with 1,
of the same arrays. With --threads beside, a thread of the program may run a part of a nest.
With --reader, over libperdure, a thread looks at all objects all the time, and fails if it sees
what the program as written could not have shown (reader.h).
With --unit, the programs of FILE are run instead of generated ones, at some levels, or those that
are named, separated by commas, and seeds.
With --lto, lld optimises both sides once more; then nothing is stored past the cache.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nest_generator

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
PER_UNIT = 50
KINDS = ("asked", "taken", "redirected", "past_cache")
LEVELS = ["-O1", "-O2", "-O2", "-O3", "-O3 -march=native", "-O2 -fno-vectorize", "-Os",
          "-O2 -fno-strict-aliasing", "-O2 -ffp-contract=off", "-O0"]
LEVELS_OF_FILE = "-O1,-O2,-O3 -march=native"


class Failure(Exception):
    """A unit that does not compile, or programs that differ."""


def run(words: list, **how) -> str:
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                         **how)
    if ran.returncode != 0:
        said = (ran.stdout[-1500:] + ran.stderr[-3000:]).strip()
        raise Failure(f"{' '.join(str(word) for word in words)}: {ran.returncode}\n{said}")
    return ran.stdout


def plugin_of(options: argparse.Namespace) -> Path:
    return options.plugin or options.build / "trace/lib/PerdurePass.so"


def flags_of(options: argparse.Namespace) -> list[str]:
    lto = [] if options.lto is None else [f"-flto={options.lto}"]
    return [*lto, *(["-fopenmp"] if options.threads > 0 else ["-pthread"])]


def compile_unit(text: str, level: str, folder: Path, options: argparse.Namespace) -> list[Path]:
    source = folder / "nests.c"
    source.write_text(text)
    objects = []
    for side in ("native", "ipv"):
        out = folder / f"{side}.o"
        words = ["clang-19", *level.split(), *flags_of(options), "-w", f"-DSIDE={side}",
                 f"-I{HERE}", "-c", source,
                 "-o", out]
        environment = dict(os.environ)
        if side == "ipv" or options.reader:
            words.insert(1, f"-fpass-plugin={plugin_of(options)}")
            environment["PERDURE_PASS"] = "ipv-all" if side == "ipv" else "ipv-check"
        run(words, env=environment)
        objects.append(out)
    return objects


def build_runtime(folder: Path, options: argparse.Namespace) -> list:
    """What generated programs are linked with."""
    driver, reader, poison = folder / "driver.o", folder / "reader.o", folder / "poison.o"
    flags = ["-O2", f"-I{INCLUDE}", f"-I{HERE}", "-c"]
    run(["clang-19", *flags, HERE / "nest_driver.c", "-o", driver])
    run(["clang-19", *flags, HERE / "reader.c", "-o", reader])
    libperdure = options.build.resolve() / "src/capi"
    linked = [driver, reader, f"-L{libperdure}", f"-Wl,-rpath,{libperdure}", "-lperdure"]
    if options.runtime == "perdure":
        return linked
    run(["clang++-19", *flags, HERE / "poison_runtime.cpp", "-o", poison])
    return [poison, *linked]  # in front: its functions are taken


def link(objects: list[Path], level: str, folder: Path, options: argparse.Namespace,
         common: list) -> Path:
    program = folder / "nests"
    linked = [*flags_of(options), *(["-fuse-ld=lld", level.split()[0]] if options.lto else [])]
    run(["clang++-19", *objects, *common, *linked, "-o", program, "-lm"])
    return program


def run_programs(program: Path, seed: int, folder: Path, options: argparse.Namespace) -> str:
    pool = [folder / "pool"] if options.runtime == "perdure" else []
    environment = {**os.environ, "POISON_SEED": str(seed), "OMP_WAIT_POLICY": "passive",
                   "OMP_NUM_THREADS": str(max(1, options.threads))}
    if options.preload is not None:
        environment["LD_PRELOAD"] = str(options.preload)
    return run([program, seed, *pool, *(["reader"] if options.reader else [])], env=environment)


def check_unit(number: int, options: argparse.Namespace, folder: Path, common: list) -> dict:
    seed = options.seed + number
    source = random.Random(seed)
    count = min(PER_UNIT, options.count - number * PER_UNIT)
    level = source.choice(LEVELS if number else LEVELS[:-1])  # something is to be transformed
    text = nest_generator.unit(source, number * PER_UNIT, count, options.threads)
    objects = compile_unit(text, level, folder, options)
    program = link(objects, level, folder, options, common)
    try:
        said = run_programs(program, seed, folder, options)
    except Failure as failure:
        raise Failure(f"{level}, unit {number}: {failure}") from None
    told = re.findall(r"(\d+) boxes asked for, (\d+) taken, (\d+) redirected, "
                      r"(\d+) past the cache", said)
    found = {kind: sum(int(one[place]) for one in told) for place, kind in enumerate(KINDS)}
    looks = sum(int(one) for one in re.findall(r"(\d+) looks", said))
    return {**found, "looks": looks, "optimised": 0 if level == "-O0" else count}


def check_file(options: argparse.Namespace, folder: Path, common: list) -> None:
    for level in options.levels.split(","):
        objects = compile_unit(options.unit.read_text(), level, folder, options)
        program = link(objects, level, folder, options, common)
        for seed in range(options.seed, options.seed + options.seeds):
            try:
                run_programs(program, seed, folder, options)
            except Failure as failure:
                raise Failure(f"{level}, seed {seed}: {failure}") from None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--runtime", choices=["poison", "perdure"], default="poison")
    parser.add_argument("--threads", default=0,
                        type=lambda text: nest_generator.BESIDE if text == "beside" else int(text))
    parser.add_argument("--reader", action="store_true")
    parser.add_argument("--lto", choices=["thin", "full"])
    parser.add_argument("--plugin", type=Path, help="instead of the build's")
    parser.add_argument("--library", dest="preload", type=Path,
                        help="libperdure, instead of the build's")
    parser.add_argument("--unit", type=Path, help="programs of a file, instead of random ones")
    parser.add_argument("--seeds", type=int, default=40, help="of such a file, at each level")
    parser.add_argument("--levels", default=LEVELS_OF_FILE, help="of such a file")
    parser.add_argument("--keep", type=Path, help="keep sources and programs there")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    if options.reader:
        options.runtime = "perdure"
    totals = dict.fromkeys((*KINDS, "looks", "optimised"), 0)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        common = build_runtime(folder, options)
        if options.unit is not None:
            try:
                check_file(options, folder, common)
            except Failure as failure:
                print(failure)
                return 1
            return 0
        for number in range((options.count + PER_UNIT - 1) // PER_UNIT):
            try:
                told = check_unit(number, options, folder, common)
            except Failure as failure:
                print(f"seed {options.seed}, {failure}")
                return 1
            totals = {key: totals[key] + told[key] for key in totals}
    if options.runtime == "perdure":
        print(f"{options.count} programs, killed and restarted: all equal"
              + (f"; {totals['looks']} looks" if options.reader else ""))
        return 1 if options.reader and totals["looks"] == 0 else 0
    print(f"{options.count} programs, all equal; {totals['taken']} boxes of "
          f"{totals['asked']} were taken, {totals['redirected']} of them redirected, "
          f"{totals['past_cache']} stored past the cache")
    many = totals["optimised"]
    least = {"taken": many, "redirected": many // 3} if options.threads == 0 else {}
    if platform.machine() == "x86_64" and options.lto is None and options.threads == 0:
        least["past_cache"] = many // 10
    if options.count >= PER_UNIT and any(totals[kind] < few for kind, few in least.items()):
        print("too few boxes: the pass transformed nearly nothing")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
