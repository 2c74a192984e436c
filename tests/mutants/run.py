# SPDX-License-Identifier: BSD-3-Clause
"""Plants one mistake at a time in the product and demands that a named test sees it.

A mutant is a piece of a source file that is replaced (mutants.json). The mutated file is compiled
with the flags of the build tree, linked into the named test in front of the library that holds the
original, and the test must fail. A test that passes with the mistake in place is no test of it.
With "library" the file is put in that shared library instead, which the named test then loads.
Python is planted into a copy of the package and its tests; there "filter" is an expression for -k.
With "variant" the test is an MPI program for MPICH, which two ranks run; the file is put in the
program itself if the variant is "linked", and otherwise in the library of windows, with which
tests/rma/variant.sh runs that variant.
With "slow" the test takes all its cases, as it does in `make soak`.
A "test" that is a program of tests/pass compiles with a mutant of pass/ as a plug-in of its own, or
runs its programs with the mutant's "library"; there "filter" is the rest of its command line.

    run.py --build build/dev [--list] [--every N] [NAME …]

Exit status: 0 if every mutant was killed, 1 if one survived, 2 if one could not be planted.
"""

import argparse
import functools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from compilations import commands_of, sources_of  # noqa: E402

SECONDS_MAX = 120


class NotPlanted(Exception):
    """The mutant can't be made: its text is gone, or it does not compile."""


def mutated_text(mutant):
    """The source with the mistake in it; each piece must occur in it exactly once."""
    text = (ROOT / mutant["file"]).read_text()
    for find, replace in [[mutant["find"], mutant["replace"]], *mutant.get("also", [])]:
        if text.count(find) != 1:
            raise NotPlanted(f"{find!r} occurs {text.count(find)} times in {mutant['file']}")
        text = text.replace(find, replace)
    return text


def compile_mutant(mutant, build, folder):
    """Compiles the mutated file as the build does; returns the object, and the end of the name of
    the one that it stands for."""
    source = folder / Path(mutant["file"]).name
    source.write_text(mutated_text(mutant))
    original = str(ROOT / mutant["file"])
    command = next((c for c in commands_of(build)
                    if original in sources_of(c) and "openmpi" not in c["command"]), None)
    if command is None:
        raise NotPlanted(f"{mutant['file']} is not in the build")
    words = shlex.split(command["command"])
    replaced = words[words.index("-o") + 1]
    if command["file"] == original:
        replaced = replaced[replaced.index(".dir/") :]  # in any target
    else:  # compiled with others
        text = Path(command["file"]).read_text()
        source = folder / Path(command["file"]).name
        source.write_text(text.replace(f'"{original}"', f'"{folder / Path(original).name}"'))
    words[words.index("-o") + 1] = str(folder / "mutant.o")
    words[words.index("-c") + 1] = str(source)
    words += [f"-I{Path(original).parent}", "-Wno-error"]
    run(words, command["directory"])
    return folder / "mutant.o", replaced


def link(target, build, folder, planted):
    """Links a test or library with the mutated object in place of the original."""
    mutant, original = planted
    commands = subprocess.run(
        ["ninja", "-C", str(build), "-t", "commands", target],
        capture_output=True, text=True, check=True).stdout.splitlines()
    command = next(line for line in reversed(commands) if " -o " in line)
    words = shlex.split(command.partition(": && ")[2].partition(" && :")[0])
    words = [word for word in words if not word.endswith(original)]
    at = words.index("-o")
    made = folder / target
    words[at + 1] = str(made)
    words.insert(at, str(mutant))  # before the libraries
    run(words, build)
    return made


def run(words, directory):
    """Runs a compiler or linker; its complaint becomes the reason."""
    done = subprocess.run(words, cwd=directory, capture_output=True, text=True)
    if done.returncode != 0:
        raise NotPlanted(done.stderr.strip()[-600:])


@functools.cache
def tests_of(build):
    """What CTest runs, by the names of the tests."""
    shown = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"],
                           capture_output=True, text=True, check=True).stdout
    return {test["name"]: test.get("command") for test in json.loads(shown)["tests"]}


def command_of(test, build):
    """The program that has the test, and the words for it."""
    command = tests_of(build).get(test)
    if not command:
        raise NotPlanted(f"the build has no test {test}")
    return command


def survives(mutant, build, folder, planted):
    """True if the named test passes although the mistake is there."""
    preload = {"PERDURE_SLOW_TESTS": "1"} if "slow" in mutant else {}
    program, *words = command_of(mutant["test"], build)
    if "library" in mutant:
        preload["LD_PRELOAD"] = str(link(mutant["library"], build, folder, planted))
    else:
        program = link(Path(program).name, build, folder, planted)
    done = finished([program, *words, f"--gtest_filter={mutant['filter']}", "--gtest_fail_fast"],
                    GTEST_COLOR="no", PERDURE_TEST_DIR=str(folder), **preload)
    if done is not None and "Running 0 tests" in done.stdout:
        raise NotPlanted(f"no test matches {mutant['filter']}")
    return done is not None and done.returncode == 0


def survives_in_pass(mutant, build, folder, planted):
    """True if the named program of tests/pass is content with a compiler, or a library, that has
    the mistake."""
    place = ROOT / "tests/pass"
    words = [sys.executable, place / mutant["test"], "--build", build, *mutant["filter"].split()]
    option = "--library" if "library" in mutant else "--plugin"
    made = link(mutant.get("library", "PerdurePass"), build, folder, planted)
    done = finished([*words, option, made], cwd=place)
    if done is not None and done.returncode == 0:
        return True
    control = finished(words, cwd=place)  # a program that is never content kills everything
    if control is None or control.returncode != 0:
        raise NotPlanted(f"{mutant['test']} fails without the mistake, too")
    return False


def survives_in_windows(mutant, build, folder, planted):
    """True if the named MPI program passes with the mistake."""
    launcher = build / "mpi_yield/mpiexec.mpich"
    program = next(build.glob(f"tests/**/{mutant['test']}"), None)
    if program is None or not launcher.exists():
        raise NotPlanted("the build has no tests for MPICH")
    linked = mutant["variant"] == "linked"

    def passes(made):
        start = ([ROOT / "tools/mpirun.sh", launcher, "2", made] if linked else
                 [ROOT / "tests/rma/variant.sh", mutant["variant"], made, launcher, "2", program])
        done = finished([*start, f"--gtest_filter={mutant['filter']}"],
                        PERDURE_TEST_DIR=str(folder))
        if done is not None and "Running 0 tests" in done.stdout:
            raise NotPlanted(f"no test matches {mutant['filter']}")
        return done is not None and done.returncode == 0

    target = mutant["test"] if linked else "perdure_mpi_shared_mpich"
    if passes(link(target, build, folder, planted)):
        return True
    if not passes(program if linked else build / "src/capi/libperdure_mpi_mpich.so"):
        raise NotPlanted(f"{mutant['test']} fails without the mistake, too")
    return False


def finished(words, cwd=None, **environment):
    """The test's end; None if it was hung: it is ended then, with all that it started."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
                          env=dict(os.environ, **environment), start_new_session=True) as test:
        try:
            stdout, stderr = test.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(test.pid, signal.SIGKILL)
            return None
    return subprocess.CompletedProcess(words, test.returncode, stdout, stderr)


def survives_in_python(mutant, build, folder):
    """True if the named tests pass in a copy of the tree's Python with the mistake in it."""
    python = ROOT / ".venv/bin/python"
    if not python.exists():
        raise NotPlanted("there is no .venv: run tools/bootstrap.sh")
    for name in ("python", "tests/python"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("data", "tests/golden"):
        (folder / name).symlink_to(ROOT / name)
    (folder / mutant["file"]).write_text(mutated_text(mutant))
    done = finished([python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
                     folder / "tests/python" / mutant["test"], "-k", mutant["filter"]],
                    PERDURE_BUILD=str(build), PYTHONDONTWRITEBYTECODE="1",
                    PYTHONPYCACHEPREFIX=str(build / "pycache"))  # what other tests compiled
    if done is not None and done.returncode not in (0, 1):  # nothing matches, or no test at all
        raise NotPlanted((done.stdout + done.stderr).strip()[-600:])
    return done is not None and done.returncode == 0


def try_mutant(mutant, build, whole):
    """(mutant, verdict, detail); not `whole`: only whether its text is still where it was."""
    if not whole:
        try:
            mutated_text(mutant)
        except NotPlanted as reason:
            return mutant, "not planted", str(reason)
        return mutant, "left out", ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            if mutant["file"].endswith(".py"):
                alive = survives_in_python(mutant, build, folder)
            else:
                planted = compile_mutant(mutant, build, folder)
                if mutant["test"].endswith(".py"):
                    alive = survives_in_pass(mutant, build, folder, planted)
                elif "variant" in mutant:
                    alive = survives_in_windows(mutant, build, folder, planted)
                else:
                    alive = survives(mutant, build, folder, planted)
        except NotPlanted as reason:
            return mutant, "not planted", str(reason)
    return mutant, "SURVIVED" if alive else "killed", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--every", type=int, default=1, metavar="N",
                        help="plant each N-th; of the others only see that they can be planted")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    mutants = json.loads((Path(__file__).parent / "mutants.json").read_text())
    if options.names:
        mutants = [m for m in mutants if m["name"] in options.names]
    if options.list:
        print("\n".join(m["name"] for m in mutants))
        return 0
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        build = options.build.resolve()
        verdicts = []
        for mutant, verdict, detail in pool.map(
                lambda at: try_mutant(at[1], build, at[0] % options.every == 0),
                enumerate(mutants)):
            if verdict == "left out":
                continue
            verdicts.append(verdict)
            print(f"{verdict:12} {mutant['name']:34} {mutant['test']} {mutant['filter']} {detail}",
                  flush=True)
    print(f"{verdicts.count('killed')} of {len(verdicts)} mutants killed")
    return 2 if "not planted" in verdicts else int("SURVIVED" in verdicts)


if __name__ == "__main__":
    sys.exit(main())
