# SPDX-License-Identifier: BSD-3-Clause
"""`perdure bench foreign`: which programs of others it runs, and what it says of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conftest import MPIS
from perdure.programs import ProgramFailed
from perdure_bench.foreign import Foreign, find_foreign, measure, totals

_PROGRAM = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
#ifdef WINDOW
  int* base; MPI_Win win;
  MPI_Win_allocate(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_free(&win);
#endif
#ifdef FILES
  MPI_File file; int one = 1;
  MPI_File_open(MPI_COMM_WORLD, "f", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_at_all(file, 0, &one, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
#endif
  int ranks; MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Finalize();
  if (getenv("ENDS") && (ranks != 3 || argc != 2)) return 1;
  return AT_END;
}
"""
_WRONG_WITH_TWIN = (
    '!(!getenv("PERDURE_WINDOWS") || !__builtin_strstr(getenv("PERDURE_WINDOWS"), "twin"))'
)


@pytest.fixture(params=MPIS)
def suite(tmp_path, request):
    """A folder as a suite has it, with programs that were built."""
    folder = tmp_path / "suite"
    folder.mkdir()
    source = tmp_path / "program.c"
    source.write_text(_PROGRAM)
    compiler = os.environ[f"PERDURE_TEST_MPICC_{request.param}"]
    for name, *options in (
        ("window", "-DWINDOW", "-DAT_END=0"), ("file", "-DFILES", "-DAT_END=0"),
        ("fails", "-DWINDOW", "-DAT_END=1"), ("neither", "-DAT_END=0"),
        ("twin", "-DWINDOW", f"-DAT_END={_WRONG_WITH_TWIN}"),
    ):  # fmt: skip
        subprocess.run([compiler, source, *options, "-o", folder / name], check=True, timeout=60)
    (folder / "testlist").write_text("# none\nfile 3 arg=word env=ENDS=yes timeLimit=6\nwindow\n")
    (folder / "script").write_text("#!/bin/sh\n# libmpich.so.12 MPI_File_open\n")
    (folder / "script").chmod(0o700)
    return request.param, folder


def test_programs_with_files_or_windows_are_found_with_what_their_list_says(suite):
    flavour, folder = suite
    found = {program.name: program for program in find_foreign([folder])}
    assert set(found) == {"suite/window", "suite/file", "suite/fails", "suite/twin"}
    assert {program.flavour for program in found.values()} == {flavour}
    listed = found["suite/file"]
    assert (listed.ranks, listed.words, listed.limit_s) == (3, ("word",), 6)
    assert listed.environment == (("ENDS", "yes"),)
    assert listed.variants == ["cache", "later"]
    assert found["suite/window"].variants == ["copy", "log", "twin", "flush"]
    with pytest.raises(ProgramFailed, match="is no folder"):
        find_foreign([folder / "window"])


def test_each_is_compared_with_itself_and_what_fails_only_so_is_named(suite, monkeypatch):
    flavour, folder = suite
    launcher = Path(os.environ[f"PERDURE_TEST_MPIEXEC_{flavour}"])  # whose ranks yield
    monkeypatch.setenv("PATH", f"{launcher.parent}:{os.environ['PATH']}")
    facts = {(fact.case, fact.metric): fact for fact in measure(True, [folder])}
    for case in ("suite/window-copy", "suite/window-flush", "suite/file-cache", "suite/twin-log"):
        fact = facts[case, "ratio_to_stock"]
        assert fact.value > 0 and fact.more["stock_s"] > 0
    assert ("suite/fails-copy", "ratio_to_stock") not in facts
    assert ("suite/twin-twin", "ratio_to_stock") not in facts
    assert facts["all-copy", "ratio_to_stock"].more == {"programs": 2, "left_out": ["suite/fails"]}
    assert facts["all-twin", "ratio_to_stock"].more["programs"] == 1
    assert facts["all-twin", "failed"].value == 1
    assert facts["all-twin", "failed"].more["names"] == ["suite/twin"]
    assert facts["all-log", "failed"].holds and not facts["all-twin", "failed"].holds
    crowd = "crowded" if len(os.sched_getaffinity(0)) < 3 else "all"  # it has three ranks
    assert facts[f"{crowd}-cache", "worst_ratio"].more["program"] == "suite/file"


def test_the_whole_says_the_median_and_the_worst():
    medians = {"copy": {"a": 1.0, "b": 3.0, "c": 1.1}}
    facts = {fact.metric: fact for fact in totals(medians, {}, ["d"], claims=True)}
    assert facts["ratio_to_stock"].value == 1.1 and facts["ratio_to_stock"].holds
    assert (facts["worst_ratio"].value, facts["worst_ratio"].more["program"]) == (3.0, "b")
    assert facts["worst_ratio"].holds is False


def test_programs_of_more_ranks_than_processors_are_told_apart():
    medians = {"copy": {"a": 1.0, "b": 3.0, "c": 1.2}}
    said = totals(medians, {"copy": ["e"]}, ["d"], claims=True, crowded={"b"})
    facts = {(fact.case, fact.metric): fact for fact in said}
    assert facts["all-copy", "ratio_to_stock"].more["programs"] == 2
    assert facts["all-copy", "worst_ratio"].more["program"] == "c"
    crowded = facts["crowded-copy", "worst_ratio"]
    assert (crowded.value, crowded.more["program"], crowded.target) == (3.0, "b", None)
    assert facts["all-copy", "failed"].value == 1


def test_a_program_that_does_both_has_all_variants(tmp_path):
    assert Foreign("a", tmp_path, "mpich", files=True, windows=True).variants == [
        "cache", "later", "copy", "log", "twin", "flush"
    ]  # fmt: skip
