# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS hostile
"""What is preloaded serves the MPI of the process, or stands aside with one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, MPIS
from perdure.cache.preload import NoLibrary, preloading
from preloading import PRELOAD, flavour, run_job, stands_aside

PROGRAMS = BUILD / "tests/preload"
NAMES = {"mpich": "MPICH", "openmpi": "Open MPI"}
KNOWN = [mpi for mpi in MPIS if mpi in NAMES]
ALL = [*KNOWN, "abi"]
WRONG = [(mpi, other) for mpi in KNOWN for other in ALL if other != mpi]

pytestmark = pytest.mark.skipif(
    not (PROGRAMS / "preload_strange").exists(),
    reason="the programs of tests/preload were not built: a sanitizer must be loaded first",
)


@pytest.fixture
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("preload")
    yield made
    shutil.rmtree(made)


def launcher(mpi: str) -> str:
    return os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]


@pytest.mark.parametrize("ask", [False, True])
@pytest.mark.parametrize("mpi, other", WRONG)
def test_the_library_of_another_mpi_stands_aside_with_one_line(folder, mpi, other, ask):
    program = PROGRAMS / f"preload_plain.{mpi}"
    job = run_job(launcher(mpi), [program], folder, [flavour(other)], ask)
    stands_aside(job, NAMES[mpi], f"libperdure_mpi_{other}.so does not serve", PRELOAD.name)


@pytest.mark.parametrize("mpi, other", WRONG)
def test_the_library_of_another_mpi_stands_aside_of_one_loaded_late_and_privately(
    folder, mpi, other
):
    command = [PROGRAMS / "preload_private", PROGRAMS / f"libpreload_part.{mpi}.so"]
    stands_aside(run_job(launcher(mpi), command, folder, [flavour(other)]), NAMES[mpi])


@pytest.mark.parametrize("mpi, other", WRONG)
def test_a_program_linked_with_the_right_library_keeps_it_behind_a_wrong_one(folder, mpi, other):
    program = PROGRAMS / f"preload_linked.{mpi}"
    job = run_job(launcher(mpi), [program], folder, [flavour(other)], ask=True)
    job.was_right()
    assert job.made() == (True, True)
    assert job.err.count("\n") == 1 and NAMES[mpi] in job.err


@pytest.mark.parametrize("mpi, other", WRONG)
def test_a_pool_of_the_wrong_library_is_an_error_with_a_sentence(folder, mpi, other):
    counter = BUILD / f"tests/python/counter.{mpi}"
    done = subprocess.run(
        [counter, str(folder / "pool"), "3"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LD_PRELOAD": str(flavour(other))},
    )
    assert done.returncode == 1
    assert f"counter: this program has {NAMES[mpi]}" in done.stderr
    assert not (folder / "pool").exists()


@pytest.mark.parametrize("library", [PRELOAD, *map(flavour, ALL)], ids=lambda path: path.name)
def test_an_unknown_mpi_gets_its_calls_as_they_were_made(library):
    for words in ([], ["init"]):
        ran = run_alone(library, PROGRAMS / "preload_strange", *words)
        assert (ran.returncode, ran.stdout) == (0, "right\n")
        assert ran.stderr == (
            "Perdure stands aside: this program has Strange MPI 7.1, which no library of Perdure "
            "serves\n"
        )


def test_a_call_that_the_mpi_library_lacks_ends_the_program_with_a_sentence():
    for words in (["MPI_Win_sync"], ["init", "MPI_Win_sync"]):
        ran = run_alone(PRELOAD, PROGRAMS / "preload_strange", *words)
        assert (ran.returncode, ran.stdout) == (127, "is called\n")
        assert ran.stderr.endswith(
            "Perdure: the program calls MPI_Win_sync, which Strange MPI 7.1 does not have\n"
        )


def test_a_large_count_call_that_the_mpi_library_lacks_is_its_call_of_int_counts():
    ran = run_alone(PRELOAD, PROGRAMS / "preload_strange", "wide")
    assert (ran.returncode, ran.stdout) == (0, "right\n"), ran.stderr


@pytest.mark.parametrize("mpi", KNOWN)
def test_without_the_library_for_an_mpi_the_preloaded_one_stands_aside(folder, mpi):
    alone = shutil.copy(PRELOAD, folder)
    job = run_job(launcher(mpi), [PROGRAMS / f"preload_plain.{mpi}"], folder, [alone], ask=True)
    stands_aside(job, NAMES[mpi], f"there is no {folder}/{flavour(mpi).name}")


@pytest.mark.parametrize("ask", [False, True])
@pytest.mark.parametrize("mpi", KNOWN)
@pytest.mark.parametrize("kind", ["plain", "linked", "private"])
def test_one_library_serves_each_mpi(folder, mpi, kind, ask):
    command = [PROGRAMS / f"preload_{kind}.{mpi}"]
    if kind == "private":
        command = [PROGRAMS / "preload_private", PROGRAMS / f"libpreload_part.{mpi}.so"]
    job = run_job(launcher(mpi), command, folder, [PRELOAD], ask)
    job.was_right()
    assert (job.err, job.made()) == ("", (ask, ask))


@pytest.mark.parametrize("mpi", KNOWN)
@pytest.mark.parametrize("first", [True, False])
def test_one_library_beside_the_right_one_serves_in_either_order(folder, mpi, first):
    libraries = [PRELOAD, flavour(mpi)] if first else [flavour(mpi), PRELOAD]
    job = run_job(launcher(mpi), [PROGRAMS / f"preload_plain.{mpi}"], folder, libraries, ask=True)
    job.was_right()
    assert (job.err, job.made()) == ("", (True, True))


@pytest.mark.parametrize("mpi", KNOWN)
@pytest.mark.parametrize("now", [{}, {"LD_BIND_NOW": "1"}], ids=["lazy", "now"])
def test_a_launcher_may_inherit_what_is_preloaded(folder, mpi, now):
    program = PROGRAMS / f"preload_plain.{mpi}"
    job = run_job(launcher(mpi), [program], folder, [PRELOAD], ask=True, inherit=True, **now)
    job.was_right()
    assert (job.err, job.made()) == ("", (True, True))


@pytest.mark.parametrize("library", [PRELOAD, *map(flavour, ALL)], ids=lambda path: path.name)
def test_programs_without_mpi_notice_nothing(library):
    for command in (["ls", "/"], ["sh", "-c", "echo a"], [sys.executable, "-c", "print(1)"]):
        plain = subprocess.run(command, capture_output=True, text=True, check=True)
        ran = run_alone(library, *command, PERDURE_WINDOWS="pool=/no/such", PERDURE_CACHE="files=*")
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, plain.stdout, "")


def test_one_library_needs_nothing_that_a_program_could_have_otherwise():
    found = subprocess.run(["readelf", "-d", PRELOAD], capture_output=True, text=True, check=True)
    needed = [line for line in found.stdout.splitlines() if "(NEEDED)" in line]
    of_c = ("libc.so", "libm.so", "ld-linux")
    assert needed and all(any(name in line for name in of_c) for line in needed), needed


@pytest.mark.parametrize("mpi", KNOWN)
def test_a_program_that_opens_no_file_leaves_nothing_in_the_cache(folder, mpi):
    cache = folder / "cache"
    program = PROGRAMS / f"preload_many_windows.{mpi}"
    asked = {"PERDURE_CACHE": f"directory={cache}"}
    run_job(launcher(mpi), [program, "windows"], folder, [PRELOAD], **asked).was_right()
    assert cache.is_dir() and not list(cache.iterdir())


def run_alone(library, *command, **environment: str) -> subprocess.CompletedProcess:
    """Runs a program that no launcher started."""
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment, "LD_PRELOAD": str(library)},
    )


@pytest.mark.parametrize("what", ["windows", "regions"])
@pytest.mark.parametrize("mpi", KNOWN)
def test_what_a_pool_has_no_room_for_stays_plain(folder, mpi, what):
    program = PROGRAMS / f"preload_many_windows.{mpi}"
    job = run_job(launcher(mpi), [program, what], folder, [PRELOAD], ask=True)
    job.was_right()
    assert job.made()[0]
    lines = job.err.splitlines()
    first = [line for line in lines if "is not persistent, and is empty after a restart" in line]
    counts = [line for line in lines if "were not persistent either" in line]
    reporting = 1 if what == "windows" else 2  # attaching is each rank's own
    assert len(first) == len(counts) == reporting and len(lines) == 2 * reporting, job.err
    assert all("raise the limit" in line for line in first)
    assert all(int(line.split()[1]) > 100 for line in counts)


@pytest.mark.parametrize("mpi", KNOWN)
def test_a_window_that_one_rank_alone_has_no_room_for_stays_plain_on_all(folder, mpi):
    program = PROGRAMS / f"preload_many_windows.{mpi}"
    job = run_job(launcher(mpi), [program, "uneven"], folder, [PRELOAD], ask=True)
    job.was_right()
    assert "region attached to window 'window-0' is not persistent" in job.err


@pytest.mark.parametrize("mpi", KNOWN)
def test_after_a_restart_no_region_holds_what_another_held(folder, mpi):
    program = PROGRAMS / f"preload_many_windows.{mpi}"
    killed = run_job(launcher(mpi), [program, "killed"], folder, [PRELOAD], ask=True)
    assert killed.code != 0 and "raise the limit" in killed.err
    run_job(launcher(mpi), [program, "again"], folder, [PRELOAD], ask=True).was_right()


@pytest.mark.parametrize("mpi", [mpi for mpi in KNOWN if mpi == "mpich"])
def test_windows_of_a_session_without_mpi_init_stay_plain(folder, mpi):
    program = PROGRAMS / f"preload_many_windows.{mpi}"
    job = run_job(launcher(mpi), [program, "session"], folder, [PRELOAD], ask=True)
    job.was_right()
    assert not job.made()[0]
    first, count = job.err.splitlines()
    assert "has not called MPI_Init()" in first and "perdure: 2 more windows" in count


@pytest.mark.parametrize("mpi", KNOWN)
def test_a_damaged_pool_is_an_error_for_a_program_that_knows_nothing_of_it(folder, mpi):
    program = PROGRAMS / f"preload_many_windows.{mpi}"
    run_job(launcher(mpi), [program, "killed"], folder, [PRELOAD], ask=True)
    os.truncate(folder / "windows/world/rank-00001", 4096)
    job = run_job(launcher(mpi), [program, "again"], folder, [PRELOAD], ask=True)
    assert job.code != 0 and "is not persistent" not in job.err


def test_a_library_in_a_folder_with_a_space_is_preloaded(tmp_path, monkeypatch):
    folder = tmp_path / "a folder"
    folder.mkdir()
    library = Path(shutil.copy(PRELOAD, folder))
    for searched in (None, "/lib"):
        if searched:
            monkeypatch.setenv("LD_LIBRARY_PATH", searched)
        shown = subprocess.run(
            ["cat", "/proc/self/maps"], capture_output=True, text=True, check=True,
            env={**os.environ, **preloading(library)},
        )  # fmt: skip
        assert str(library) in shown.stdout and not shown.stderr
    with pytest.raises(NoLibrary, match="another folder"):
        preloading(tmp_path / "a:folder" / library.name)
