# SPDX-License-Identifier: BSD-3-Clause
"""Runs every fuzz target with libFuzzer, AddressSanitizer and UndefinedBehaviorSanitizer.

    run.py [--seconds N] [--keep FOLDER] [TARGET …]

Builds the preset `fuzz`, begins with the seeds of each target and what was found before
(tests/fuzz/found), and prints how many inputs each target had. With --keep the inputs that reached
new code, and findings, stay in FOLDER, and the next run goes on from them.

Exit status: 0 if nothing was found; 1 if something was: the input is in FOLDER/TARGET/findings, and
belongs into tests/fuzz/found/TARGET once it is understood.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "build/fuzz/tests/fuzz"
SKIPPED = 77  # the exit code that ctest knows
INPUT_SECONDS_MAX = 20
MEMORY_MB_MAX = 2048


def targets():
    """The names of all targets, as CMakeLists.txt has them."""
    text = (ROOT / "tests/fuzz/CMakeLists.txt").read_text()
    return re.search(r"set\(fuzz_targets ([^)]*)\)", text)[1].split()


def build(names):
    """Builds the programs of the targets."""
    if not (ROOT / "build/fuzz/build.ninja").exists():
        subprocess.run(
            ["cmake", "--preset", "fuzz"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
        )
    programs = [f"fuzz_{name}" for name in names]
    command = ["cmake", "--build", "--preset", "fuzz", "--target", *programs]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def run_target(name, folder, seconds):
    """Fuzzes one target; returns the number of inputs and whether nothing was found."""
    corpus, findings = folder / name / "corpus", folder / name / "findings"
    for path in (corpus, findings):
        path.mkdir(parents=True, exist_ok=True)
    program = PROGRAMS / f"fuzz_{name}"
    subprocess.run([program, "--seeds", corpus], check=True)
    found = ROOT / "tests/fuzz/found" / name
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={INPUT_SECONDS_MAX}",
        f"-rss_limit_mb={MEMORY_MB_MAX}",
        f"-artifact_prefix={findings}/",
        "-max_len=20000",
        "-print_final_stats=1",
    ]
    folders = [corpus, *([found] if found.is_dir() else [])]
    shared_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="perdure-fuzz-", dir=shared_memory) as scratch:
        environment = os.environ | {
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "PERDURE_TEST_DIR": scratch,
        }
        done = subprocess.run(
            [program, *options, *folders], env=environment, text=True, errors="replace",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    inputs = re.search(r"number_of_executed_units: (\d+)", done.stdout)
    if done.returncode != 0:
        print(done.stdout[-6000:])
    return int(inputs[1]) if inputs else 0, done.returncode == 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all")
    arguments = parser.parse_args()
    unknown = set(arguments.targets) - set(targets())
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(targets())}")
    if shutil.which("clang++-19") is None:
        print("skipped: libFuzzer needs clang++-19 (Debian: clang-19, libclang-rt-19-dev)")
        return SKIPPED
    names = arguments.targets or targets()
    build(names)
    with tempfile.TemporaryDirectory(prefix="perdure-fuzz-") as scratch:
        folder = arguments.keep or Path(scratch)
        results = {}
        for name in names:
            results[name] = run_target(name, folder, arguments.seconds)
            inputs, clean = results[name]
            verdict = "" if clean else "FOUND SOMETHING"
            print(f"{name:14} {inputs:>12,} inputs  {verdict}", flush=True)
    total = sum(inputs for inputs, _ in results.values())
    found = sum(not clean for _, clean in results.values())
    print(f"{'all':14} {total:>12,} inputs, {found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
