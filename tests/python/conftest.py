# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the tests of the command: the command under test, its stand-in ranks, the MPIs."""

from __future__ import annotations

import array
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PERDURE_BUILD", ROOT / "build/dev"))
sys.path[:0] = [str(ROOT / "python"), str(BUILD / "python"), str(ROOT / "tools")]
MPIS = [name for name in os.environ.get("PERDURE_TEST_MPIS", "").split(",") if name]
LIMIT_S = 60.0
SLOW = os.environ.get("PERDURE_SLOW_TESTS") == "1"
os.environ["XDG_CONFIG_HOME"] = str(BUILD / "no_settings")  # a developer's own are no test's
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(BUILD / "hypothesis"))

# What Open MPI must be asked for in a container: root, more ranks than cores; and no second between
# asking the ranks of a job that failed to end and killing them; nor the fifth of a second in which
# a component looks for adapters of some networks.
os.environ.update(
    OMPI_ALLOW_RUN_AS_ROOT="1",
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
    OMPI_MCA_rmaps_base_oversubscribe="1",
    OMPI_MCA_mpi_yield_when_idle="1",
    OMPI_MCA_hwloc_base_binding_policy="none",
    OMPI_MCA_odls_base_sigkill_timeout="0",
    OMPI_MCA_pml="^cm",
)


def a_few(cases, count: int) -> list:
    """All of the cases in slow tests, otherwise `count` of them: others each time."""
    cases = list(cases)
    drawn = range(len(cases)) if SLOW else sorted(random.sample(range(len(cases)), count))
    return [cases[at] for at in drawn]


@dataclass
class Ran:
    """A finished `perdure`: its exit code, its output, its statistics."""

    code: int
    out: bytes
    err: str
    statistics: dict | None
    seconds: float


@cache
def schema_of(kind: str) -> dict | None:
    file = ROOT / f"docs/schemas/{kind}.schema.json"
    return json.loads(file.read_text()) if file.exists() else None


def hold_to_schema(out: bytes) -> None:
    """What a command prints as JSON keeps to the schema of its kind, whatever a test asks of it."""
    text = out.decode(errors="replace")
    whole = text.find("{\n")  # after what a program itself printed
    for each in [text[whole:]] if whole >= 0 else text.splitlines():
        if each.startswith("{") and '"schema"' in each:
            document = json.loads(each)
            if schema := schema_of(str(document.get("kind"))):
                jsonschema.validate(document, schema)


@contextmanager
def in_file(descriptor: int, redirect) -> Iterator[BinaryIO]:
    """What this process and its children write to it."""
    before = os.dup(descriptor)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), descriptor)
        try:
            how = {"encoding": "utf-8", "newline": "\n", "closefd": False}
            with open(descriptor, "w", **how) as stream, redirect(stream):
                yield file
        finally:
            os.dup2(before, descriptor)
            os.close(before)


def in_this_process(*words, verbs=None) -> Ran:
    """The command without a process of its own: hundreds of calls in seconds."""
    from perdure.cli import VERBS, command_line

    code = 0
    with in_file(1, redirect_stdout) as out, in_file(2, redirect_stderr) as err:
        try:
            command_line(verbs or VERBS)([str(word) for word in words], prog_name="perdure")
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        shown, said = (os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
                       for file in (out, err))  # fmt: skip
    hold_to_schema(shown)
    return Ran(code, shown, said.decode(), None, 0.0)


class Perdure:
    """Starts ./perdure as a user would."""

    def __init__(self, folder: Path):
        self.folder = folder

    def words(self, *words) -> list[str]:
        return [str(ROOT / "perdure"), *(str(word) for word in words)]

    def __call__(self, *words, stdin: bytes = b"", limit_s: float = LIMIT_S) -> Ran:
        began = time.monotonic()
        done = subprocess.run(
            self.words(*words),
            input=stdin,
            capture_output=True,
            cwd=self.folder,
            env=dict(os.environ),
            timeout=limit_s,
            check=False,
        )
        seconds = time.monotonic() - began
        hold_to_schema(done.stdout)
        return Ran(done.returncode, done.stdout, done.stderr.decode(), None, seconds)

    def run(self, options: list, command: list, stdin: bytes = b"") -> Ran:
        """`perdure run` with statistics."""
        statistics = self.folder / "statistics.json"
        ran = self("run", "--json", statistics, *options, "--", *command, stdin=stdin)
        hold_to_schema(statistics.read_bytes())
        ran.statistics = json.loads(statistics.read_text())
        return ran

    def start(self, *words, **streams) -> subprocess.Popen:
        return subprocess.Popen(self.words(*words), cwd=self.folder, **streams)

    def interrupted(self, content: bytes, *words) -> Ran:
        """Ctrl-C when half of `content` has been read from `pipe`."""
        began = time.monotonic()
        os.mkfifo(self.folder / "pipe")
        running = self.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with open(self.folder / "pipe", "wb", buffering=0) as into:
            into.write(content[: len(content) // 2])
            while bytes_left(into) and running.poll() is None:
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            with suppress(BrokenPipeError):  # it ended as soon as it saw the signal
                into.write(content[len(content) // 2 :])
        out, err = running.communicate(timeout=LIMIT_S)
        return Ran(running.returncode, out, err.decode(), None, time.monotonic() - began)


class PerdureHere(Perdure):
    """Without a process of its own, save for what a job is below, or is stopped."""

    WATCHES = ("trace", "ipv")  # a program, which it starts and waits for

    def __call__(self, *words, stdin: bytes = b"", limit_s: float = LIMIT_S) -> Ran:
        if stdin or words[0] == "run" or "--" in words and words[0] not in self.WATCHES:
            return super().__call__(*words, stdin=stdin, limit_s=limit_s)
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            return in_this_process(*words)
        finally:
            os.chdir(before)


def bytes_left(pipe) -> int:
    """Bytes in a pipe that its reader did not take yet."""
    left = array.array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, left)
    return left[0]


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Commands end on Ctrl-C although what runs the tests may have been started to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def memory_path():
    """A folder in memory, where there is one, for pools with many commits."""
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="perdure-test-", dir=place) as folder:
        yield Path(folder)


@pytest.fixture
def perdure(tmp_path, request) -> Perdure:
    """A process takes a fifth of a second: a file that asks often says IN_THIS_PROCESS = True."""
    here = getattr(request.module, "IN_THIS_PROCESS", False)
    return (PerdureHere if here else Perdure)(tmp_path)


@pytest.fixture
def fake_rank(tmp_path):
    """The command line of a rank without MPI; extra words are its options."""

    def command(*options) -> list[str]:
        program = BUILD / "tests/python/fake_rank"
        return [str(word) for word in (program, "-s", tmp_path, *options)]

    return command


@pytest.fixture
def mpi_job(tmp_path):
    """The command line of an MPI job of stand-in ranks."""

    def command(mpi: str, ranks: int, *options) -> list[str]:
        launcher = os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]
        program = BUILD / f"tests/python/fake_rank.{mpi}"
        words = (launcher, "-n", ranks, program, "-s", tmp_path, *options)
        return [str(word) for word in words]

    return command


def wait_until(condition, limit_s: float = 20.0) -> None:
    """Fails the test if `condition()` does not become true."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
