# SPDX-License-Identifier: BSD-3-Clause
"""What a process leaves that ends with everything open: each cell of the table of docs/ends.md.

    check.py LANGUAGE MPI MPIEXEC PROGRAM [--nodes] [--all | --ends E,…]

Starts two ranks of ends.c, ends.f90 or ends.py under `perdure run`, once for each way to end, and
looks at the files, the parts, the pools, the exit code and the statistics of `perdure run`. What is
expected is read from the page. With --nodes each rank pretends to be on a node of its own, and has
files alone. LANGUAGE plain is plain.c, which knows nothing of Perdure, and is run with --cache.
Prints a line for each end; ends with 1 if a cell is not as the page says.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shlex
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["PERDURE_BUILD"])
sys.path[:0] = [str(ROOT / "python"), str(BUILD / "python")]

sys.path.append(str(ROOT / "tools"))

from mpi4py_tests import mpis_of, surroundings  # noqa: E402
from perdure.core import load_core  # noqa: E402

CELLS, FEW, RANKS = 2000, 10, 2
LEFT_BEHIND = 122
LIMIT_S = 240

# The columns of the table, by the ways to end of each language that make it happen.
COLUMNS = {
    "`MPI_Finalize`": {"c": ["finalize"], "fortran": ["finalize"]},
    "`exit()`, end of `main`": {"c": ["exit", "return", "handler"], "fortran": ["exit"]},
    "end of Python": {"python": ["finalize", "exception"]},
    "`abort()`, uncaught exception": {"c": ["abort"], "fortran": ["abort"], "python": ["abort"]},
    "`MPI_Abort`": {"c": ["mpi_abort"], "fortran": ["mpi_abort"]},
    "SIGTERM": {"c": ["sigterm"]},
    "SIGKILL": {"c": ["sigkill"]},
    "`_exit()`": {"c": ["_exit"]},
    "`exit()` of one rank": {"c": ["exit_one"]},
}
# Python that ends without MPI_Finalize is in the column of exit().
COLUMNS["`exit()`, end of `main`"]["python"] = ["exit"]
FILES = {
    "cached file": ("cached", CELLS),
    "file that stood aside at first": ("later", CELLS),
    "file that stands aside": ("aside", FEW),
}
FILE_NAMES = [name for name, _ in FILES.values()]
POOLS = {"pool": ("pool", "u"), "window": ("windows", "w")}
NOT_ON_NODES = ("exit_one", "handler", "return", "mpi_abort", "sigterm", "abort")
# The other ends are the same to us as one of these, and are for `make soak`.
QUICK = {
    "c": ("finalize", "exit", "handler", "abort", "mpi_abort", "sigterm", "sigkill", "_exit",
          "exit_one"),
    "fortran": ("finalize", "exit"),
    "python": ("finalize", "exit"),
}  # fmt: skip
FULL = ("full_finalize", "full_exit")
OTHERS = ("changed", *FULL)  # no columns: what can't be saved
QUICK_ON_NODES = ("finalize", "exit")
# Rows that other tests make happen.
ELSEWHERE = {
    "in-place object": "ipv_kill",
    "writer token": "energy_tokens_test",
}


def read_table(page: str) -> dict[str, dict[str, str]]:
    """What the page says of each row, by columns."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(head[1:], row[1:])) for row in rows}


@dataclass
class Ended:
    """A job that has ended, and what it left."""

    folder: Path
    code: int
    statistics: dict
    text: str
    faults: list[str] = field(default_factory=list)

    def need(self, good: bool, fault: str) -> None:
        if not good:
            self.faults.append(fault)

    def left_of(self, name: str) -> list[dict]:
        path = str((self.folder / name).resolve())
        return [part for part in self.statistics.get("left_behind", []) if part["file"] == path]


def right_cells(path: Path, cells: int) -> int:
    content = path.read_bytes() if path.exists() else b""
    there = min(cells, len(content) // 4)
    words = struct.unpack(f"<{there}i", content[: 4 * there])
    return sum(word == i + 1 for i, word in enumerate(words))


def check_whole(ended: Ended, name: str, cells: int) -> None:
    path = ended.folder / name
    size = path.stat().st_size if path.exists() else 0
    right = right_cells(path, RANKS * cells)
    ended.need(right == RANKS * cells and size == 4 * RANKS * cells,
               f"{name}: {right} of {RANKS * cells} cells are right, it has {size} bytes")
    place = ended.folder / "parts"
    parts = load_core().list_parts(str(place)) if place.exists() else []
    found = [part.file for part in parts if part.path == str(path)]
    ended.need(not found, f"{name}: parts are left: {found}")


def check_file(ended: Ended, word: str, name: str, cells: int, alone: bool) -> None:
    """`alone`: no launcher may have ended one process because of another."""
    check_whole(ended, name, cells)
    left = ended.left_of(name)
    if word == "written":
        # MPICH's and Open MPI's launchers end all ranks when one goes without MPI_Finalize.
        ended.need(not left or not alone, f"{name}: should not have been left: {left}")
    elif word == "left":
        ended.need(bool(left), f"{name}: nothing was left")
        ended.need(sum(part["written_bytes"] for part in left) > 0, f"{name}: nothing was saved")
        ended.need(all(part["error"] is None for part in left), f"{name}: {left}")
    else:
        ended.need(False, f"{name}: no such word: {word}")


def check_pooled(ended: Ended, word: str) -> None:
    path = ended.folder / "pooled"
    if word == "written":
        return check_whole(ended, "pooled", CELLS)
    ended.need(word == "at version", f"pooled: no such word: {word}")
    left = ended.left_of("pooled")
    ended.need(len(left) == 1 and left[0]["error"] is not None and "pool" in left[0]["error"],
               f"pooled: it should be named: {left}")
    ended.need(ended.code != 0, "pooled: it is left, and the exit code is 0")
    if not left:
        return None
    core = load_core()
    core.recover_parts([(str(Path(left[0]["part"]).parent), left[0]["part"])], 1, False, "")
    right = right_cells(path, RANKS * CELLS)
    ended.need(right == RANKS * CELLS // 2,
               f"pooled: {right} cells, not the {RANKS * CELLS // 2} of version 1")
    return None


def check_pool(ended: Ended, word: str, name: str, array: str) -> None:
    ended.need(word == "version", f"{name}: no such word: {word}")
    core = load_core()
    place = ended.folder / name
    version = core.inspect_pool(str(place)).version
    ended.need(version == 1, f"{name}: version {version}, not 1")
    for rank in range(RANKS):
        kind, _, content = core.dump_array(str(place), rank, array)
        types = {"double": "<f8", "float64": "<f8"}
        found = set(numpy.frombuffer(content, dtype=types.get(kind, "<i8")).tolist())
        ended.need(found == {1}, f"{name}: rank {rank} has {found}, not 1")
        with open(place / f"rank-{rank:05}", "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                ended.need(False, f"{name}: rank {rank} is locked")


def check_level(ended: Ended, word: str) -> None:
    pool, drain = ended.folder / "pool", ended.folder / "drain"

    def arrived() -> bool:
        return any(drain.glob("**/version-1.*/manifest"))

    if word == "arrives":
        ended.need(arrived(), "version 1 is not in the drain")
        return
    ended.need(word == "later", f"level: no such word: {word}")
    report = load_core().drain_pool(str(pool), str(drain))  # as `perdure pool drain`
    # The end may come before the image is made, without which its cached file stays with the pool.
    said = any("cached files are committed with it" in problem for problem in report.problems)
    ended.need(arrived() or said, f"version 1 can't be drained: {report.problems}")


class Job:
    """The program of a language, under an MPI."""

    def __init__(self, given: argparse.Namespace):
        self.language = given.language
        self.mpi = given.mpi
        self.launcher = [str(ROOT / "tools/mpirun.sh"), given.mpiexec]
        self.program = given.program
        library = BUILD / f"src/capi/libperdure_mpi_{given.mpi}.so"
        script = ROOT / "tests/add_preload.sh"
        self.nodes = given.nodes
        self.preload = [str(script), str(library)] if given.language == "python" else []

    def environment(self, **more: str) -> dict[str, str]:
        around = {k: v for k, v in os.environ.items() if not k.startswith("PERDURE_CACHE")}
        return {**around, "PERDURE_LOCK_WAIT_MS": "0", **more}

    def levels(self, folder: Path) -> str:
        return f"redundancy=off;drain={folder}/drain;drain_every=1;patience=20s"

    def around(self) -> dict[str, str]:
        """What Python's ranks need to find this MPI, and the library that takes its calls."""
        if self.language != "python":
            return {}
        place = BUILD / "mpi4py"
        (mpi,) = [found for found in mpis_of(BUILD) if found.name == self.mpi]
        around = surroundings(mpi, place, place / "wheel")
        kept = ("LD_LIBRARY_PATH", "MPI4PY_MPIABI", "MPI4PY_RC_THREAD_LEVEL")
        paths = f"{place / 'wheel'}:{ROOT / 'python'}:{BUILD / 'python'}"
        return {key: around[key] for key in kept} | {"PYTHONPATH": paths}

    def run(self, folder: Path, end: str, *what: str, cache: Sequence[str] = ()) -> Ended:
        report = folder / "run.json"
        command = [str(ROOT / "perdure"), "run", "--quiet", "--json", str(report), *cache, "--"]
        ranks = [*self.preload, *(self.noted(folder) if end in FULL else self.ranks)]
        command += [*self.launcher, str(RANKS), *ranks, str(folder), end]
        command += FILE_NAMES if self.nodes else what
        around = self.environment(PERDURE_BUILD=str(BUILD), PERDURE_LEVELS=self.levels(folder),
                                  **self.around())
        done = subprocess.run(command, env=around, text=True,
                              capture_output=True, timeout=LIMIT_S, check=False)
        statistics = json.loads(report.read_text()) if report.exists() else {}
        return Ended(folder, done.returncode, statistics, done.stdout + done.stderr)

    @property
    def ranks(self) -> list[str]:
        if not self.nodes:
            return self.program
        rank = "${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}"
        return ["sh", "-c", f'PERDURE_NODE_ID=$(({rank} % 2)) exec "$@"', "sh", *self.program]

    def noted(self, folder: Path) -> list[str]:
        """Each rank, with a file that has its own exit code."""
        return ["sh", "-c", f'"$@"; code=$?; echo $code > {folder}/code.$$; exit $code', "sh",
                *self.program]

    def run_changed(self, folder: Path) -> Ended:
        """Somebody else changes a file that a killed job has left, before the job is over."""
        report = folder / "run.json"
        ranks = shlex.join([*self.launcher, str(RANKS), *self.program, str(folder), "sigkill"])
        script = f"{ranks} cached; sleep 0.5; echo changed > {folder}/cached"
        command = [str(ROOT / "perdure"), "run", "--json", str(report), "--", "sh", "-c", script]
        around = self.environment(PERDURE_BUILD=str(BUILD))
        done = subprocess.run(command, env=around, text=True, capture_output=True, timeout=LIMIT_S,
                              check=False)
        return Ended(folder, done.returncode, json.loads(report.read_text()), done.stderr)

    def run_one(self, folder: Path, end: str) -> Ended:
        """Two processes that no launcher connects; the first ends while the second goes on."""
        def start(rank: int) -> subprocess.Popen:
            return subprocess.Popen([*self.launcher, "1", *self.program, str(folder), end],
                                    env=self.environment(ENDS_RANK=str(rank)), text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        processes = [start(0), start(1)]
        text, _ = processes[0].communicate(timeout=LIMIT_S)
        ended = Ended(folder, 0, {}, text)
        ended.need(bool(list((folder / "parts").glob("*.part"))), "the other's part is gone")
        (folder / "gone").touch()
        text, _ = processes[1].communicate(timeout=LIMIT_S)
        ended.text += text
        return ended


def check_end(job: Job, table: dict, column: str, end: str) -> list[str]:
    """What is not as the column says."""
    with tempfile.TemporaryDirectory(prefix="perdure-ends-", dir="/dev/shm") as place:
        folder = Path(place)
        ended = job.run_one(folder, end) if end == "exit_one" else job.run(folder, end)
        alone = end not in ("exit", "return", "handler")
        for row, (name, cells) in FILES.items():
            # Files that several nodes open are cached from the first byte on.
            word = table["cached file" if job.nodes else row][column]
            check_file(ended, word, name, cells, alone)
        if end != "exit_one" and not job.nodes:
            for row, (name, array) in POOLS.items():
                if name == "windows" and job.language == "python":
                    continue  # windows of mpi4py are C's
                check_pool(ended, table[row][column], name, array)
            check_level(ended, table["way to a level"][column])
            if job.language == "c":
                check_pooled(ended, table["file in a pool's versions"][column])
        # Without MPI_Finalize the launcher may end a rank that is still in its exit handlers, and
        # say so by its code.
        clean = column == "`MPI_Finalize`" or (column == "end of Python" and end != "exception")
        if clean and job.mpi == "mpich":
            ended.need(ended.code == 0, f"the exit code is {ended.code}")
        if ended.faults:
            ended.faults.append(f"exit code {ended.code}; {ended.statistics.get('left_behind')}; "
                                f"said: {ended.text[-2000:]}")
        return ended.faults


def check_changed(job: Job) -> list[str]:
    """`perdure run` names what it can't save, keeps it, and does not end with 0."""
    with tempfile.TemporaryDirectory(prefix="perdure-ends-", dir="/dev/shm") as place:
        folder = Path(place)
        ended = job.run_changed(folder)
        left = ended.left_of("cached")
        ended.need(ended.code == LEFT_BEHIND, f"the exit code is {ended.code}, not {LEFT_BEHIND}")
        ended.need(ended.statistics["exit_code"] == LEFT_BEHIND, "--json has another exit code")
        ended.need(len(left) == 1 and "changed" in (left[0]["error"] or ""), f"left: {left}")
        ended.need((folder / "cached").read_text() == "changed\n", "the file was written to")
        ended.need(bool(left) and Path(left[0]["part"]).exists(), "the part is gone")
        ended.need("cached" in ended.text, f"nothing was said: {ended.text}")
        return ended.faults


def check_plain(job: Job, end: str, options: str) -> list[str]:
    """plain.c under `perdure run --cache`, as its user would start it."""
    with tempfile.TemporaryDirectory(prefix="perdure-ends-", dir="/dev/shm") as place:
        folder = Path(place)
        given = f"directory={folder}/parts;{options}".rstrip(";")
        ended = job.run(folder, end, cache=["--cache", "cached", "--cache-options", given])
        check_whole(ended, "cached", CELLS)
        if end == "finalize":
            ended.need(ended.code == 0 and not ended.left_of("cached"),
                       f"exit code {ended.code}, {ended.statistics}: {ended.text[-1500:]}")
        return ended.faults


def main_of_plain(job: Job) -> int:
    faults = 0
    for end in ("finalize", "exit"):
        for options in ("", "from=0"):
            found = check_plain(job, end, options)
            faults += bool(found)
            verdict = "wrong" if found else "right"
            print("\n  ".join([f"plain {job.mpi} {end} {options}: {verdict}", *found]))
    return 1 if faults else 0


def check_full(job: Job, end: str) -> list[str]:
    """A process that can't write back says so, does not end with 0, and keeps what it has."""
    with tempfile.TemporaryDirectory(prefix="perdure-ends-", dir="/dev/shm") as place:
        folder = Path(place)
        ended = job.run(folder, end, "cached")
        check_whole(ended, "cached", CELLS)
        ended.need(bool(ended.left_of("cached")), "nothing was left")
        codes = [code.read_text().strip() for code in folder.glob("code.*")]
        ended.need(str(LEFT_BEHIND) in codes, f"no rank ended with {LEFT_BEHIND}: {codes}")
        # MPICH's launcher may hang up on the rank that ends second, and then has its own code.
        right = ended.code == LEFT_BEHIND if end == "full_finalize" else ended.code != 0
        ended.need(right, f"the exit code is {ended.code}, not {LEFT_BEHIND}; of ranks: {codes}")
        call = "MPI_Finalize" if end == "full_finalize" else "exit()"
        said = f"{folder}/cached was not closed, and {call} could not: "
        ended.need(said in ended.text and ".part: `perdure cache recover`" in ended.text,
                   f"it was not said: {ended.text[-1500:]}")
        return ended.faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", choices=("c", "fortran", "python", "plain"))
    parser.add_argument("mpi")
    parser.add_argument("mpiexec")
    parser.add_argument("program", nargs="+")
    parser.add_argument("--nodes", action="store_true")
    parser.add_argument("--all", action="store_true", help="also ends that are alike to us")
    parser.add_argument("--ends", default="")
    given = parser.parse_args()
    if given.language == "python" and not (BUILD / "mpi4py/wheel").is_dir():
        print("skipped: mpi4py was not fetched: tools/mpi4py_tests.py fetches it")
        return 77
    if given.language == "plain":
        return main_of_plain(Job(given))
    table = read_table((ROOT / "docs/ends.md").read_text())
    rows = {*FILES, *POOLS, "file in a pool's versions", "way to a level", *ELSEWHERE}
    faults = 0
    if set(table) != rows or any(set(row) != set(COLUMNS) for row in table.values()):
        print(f"the table of docs/ends.md has other rows or columns than are checked: {set(table)}")
        return 1
    quick = QUICK_ON_NODES if given.nodes else QUICK[given.language]
    chosen = given.ends.split(",") if given.ends else None if given.all else [*quick, *OTHERS]
    job = Job(given)
    for column, ends in COLUMNS.items():
        for end in ends.get(given.language, []):
            if chosen is not None and end not in chosen or given.nodes and end in NOT_ON_NODES:
                continue
            began = time.monotonic()
            found = check_end(job, table, column, end)
            faults += bool(found)
            print(f"{given.language} {given.mpi} {end}: {'wrong' if found else 'right'} "
                  f"({time.monotonic() - began:.1f} s)")
            for fault in found:
                print(f"  {fault}")
    for end in OTHERS if given.language == "c" and not given.nodes else ():
        if chosen is not None and end not in chosen:
            continue
        found = check_changed(job) if end == "changed" else check_full(job, end)
        faults += bool(found)
        print("\n  ".join([f"c {given.mpi} {end}: {'wrong' if found else 'right'}", *found]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
