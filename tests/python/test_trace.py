# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS truth
"""perdure trace: programs whose accesses are known, built in each way, are counted to the line."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, ROOT, Perdure

IN_THIS_PROCESS = True
PROGRAMS = ROOT / "tests/trace"
LINES = 32768  # of an array of the test programs, which the cache of 1 MB does not hold
HAS_PASS = (BUILD / "trace/lib/PerdurePass.so").exists() and shutil.which("clang-19") is not None
CLANG = pytest.param("clang", marks=pytest.mark.skipif(not HAS_PASS, reason="no LLVM 19"))
BOTH = pytest.mark.parametrize("compiler", ["gcc", CLANG])

if not (BUILD / "trace/bin").exists():
    pytest.skip("a build without the recorder (sanitizers)", allow_module_level=True)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Compiles and links in two steps, as makefiles do; each program once for all tests."""

    @cache
    def compiled(compiler: str, *sources: str, flags: tuple = ("-O2",), trace: bool = True) -> str:
        folder = tmp_path_factory.mktemp("build")
        program = str(BUILD / f"trace/bin/perdure-{compiler}")
        how = [program, *(["--trace"] if trace else []), *flags, f"-I{ROOT / 'include'}"]
        objects = []
        for source in sources:
            objects.append(str(folder / (Path(source).name + ".o")))
            subprocess.run([*how, "-c", str(ROOT / source), "-o", objects[-1]], check=True,
                           cwd=folder)
        name = str(folder / "program")
        subprocess.run([*how, *objects, "-o", name], check=True, cwd=folder)
        return name

    return compiled


def totals(perdure, *words, code: int = 0) -> dict:
    """What `perdure trace` reports of the only trace."""
    ran = perdure("trace", "-o", "t.ptrace", "--json", *words)
    assert ran.code == code, ran.err
    text = ran.out.decode()
    (found,) = json.loads(text[text.index("{\n") :])["traces"]
    return found


def triad_lines(lines: int, repeats: int) -> tuple[int, int]:
    return 2 * lines * repeats + 2, 3 * lines + lines * repeats


@BOTH
@pytest.mark.parametrize("flags", [("-O2",), ("-O3", "-march=native")])
def test_a_triad_is_counted_to_the_line(perdure, build, compiler, flags):
    program = build(compiler, "tests/trace/triad.c", flags=flags)
    found = totals(perdure, "--", program, LINES, 3)
    assert (found["reads"], found["writes"]) == triad_lines(LINES, 3)
    assert found["streams"] == [{"reads": found["reads"], "writes": found["writes"]}]
    assert program in found["command"]


SEEN_LINES, SEEN_REPEATS, SEEN_CACHE = 2048, (1, 3), ("--size", "64K")


@pytest.fixture(scope="module")
def seen_by_lackey(build, tmp_path_factory) -> list[dict]:
    """The program of plain GCC under Valgrind."""
    perdure = Perdure(tmp_path_factory.mktemp("lackey"))
    plain = build("gcc", "tests/trace/triad.c", trace=False, flags=("-O1",))
    return [totals(perdure, "--valgrind", *SEEN_CACHE, "--", plain, SEEN_LINES, repeats)
            for repeats in SEEN_REPEATS]


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
@BOTH
def test_lackey_sees_the_same_misses(perdure, build, compiler, seen_by_lackey):
    """What it sees more, of the start and end of a process, does not depend on the repeats."""
    lines, theirs = SEEN_LINES, seen_by_lackey
    traced = build(compiler, "tests/trace/triad.c")
    ours = [totals(perdure, *SEEN_CACHE, "--", traced, lines, n) for n in SEEN_REPEATS]
    for kind in ("reads", "writes"):
        grown = [found[1][kind] - found[0][kind] for found in (ours, theirs)]
        assert grown[0] == {"reads": 4 * lines, "writes": 2 * lines}[kind]
        assert abs(grown[1] - grown[0]) <= 8  # a line of the stack, here and there
        assert 0 < theirs[0][kind] - ours[0][kind] < 12000  # the dynamic linker and the C library


@BOTH
@pytest.mark.parametrize(
    ("which", "reads", "writes"),
    [
        ("memset", 0, LINES),
        ("memcpy", LINES, LINES),
        ("memmove", LINES, LINES),
        ("blocks", LINES, LINES),
        ("add", LINES, 0),  # the read misses, and the write that follows does not
        ("compare", LINES, 0),
        ("straddle", 0, LINES),
        ("fork", 0, LINES),  # what the child does is not in it
        ("mark", 0, LINES),
        ("quick_exit", 0, LINES),
    ],
)
def test_each_kind_of_access_is_counted(perdure, build, compiler, which, reads, writes):
    found = totals(perdure, "--", build(compiler, "tests/trace/kinds.c"), which)
    # Besides: the stack, the words of the command, and the last line of main().
    assert 0 <= found["reads"] - reads <= 12
    assert 0 <= found["writes"] - writes <= 12


@pytest.mark.skipif(not HAS_PASS, reason="no LLVM 19")
def test_vectors_touch_what_single_accesses_touch(perdure, build, tmp_path):
    wide = ("-O3", "-mavx512f", "-mprefer-vector-width=512")
    text = subprocess.run(
        ["clang-19", *wide, "-S", "-emit-llvm", "-o", "-", PROGRAMS / "vectors.c"],
        check=True, capture_output=True, text=True,
    ).stdout
    for kind in ("gather", "scatter", "load", "store"):
        assert f"call void @llvm.masked.{kind}" in text or f"@llvm.masked.{kind}" in text, kind
    if "avx512f" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor can't run them")
    counted = []
    for flags in (wide, ("-O1",)):
        # With so many ways no two lines are in each other's way, whatever is touched first.
        program = build("clang", "tests/trace/vectors.c", flags=flags)
        found = totals(perdure, "--ways", 16, "--", program)
        counted.append((found["reads"], found["writes"], found["pages"]))
    assert counted[0] == counted[1]


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=CLANG.marks)])
@pytest.mark.parametrize(("which", "streams"), [("threads", 5), ("turns", 2), ("openmp", 4)])
def test_threads_have_streams_and_caches_of_their_own(perdure, build, compiler, which, streams):
    if which == "openmp" and compiler == "clang++":
        pytest.skip("OpenMP's library of Clang is another package")
    flags = ("-O2", "-fopenmp" if which == "openmp" else "-pthread")
    found = totals(perdure, "--", build(compiler, "tests/trace/threads.cpp", flags=flags), which)
    assert 0 <= found["writes"] - 4 * LINES <= 40
    # A thread that began after another one ended goes on with its stream.
    assert 2 <= len(found["streams"]) <= streams
    if which == "openmp":
        assert [stream["writes"] // LINES for stream in found["streams"]] == [1] * 4


def test_a_fortran_program_and_its_region_are_counted(perdure, build):
    sources = ("fortran/perdure_trace.f90", "tests/trace/sweep.f90")
    program = build("gfortran", *sources)
    found = totals(perdure, "--marked", "--", program)
    assert found["regions"] == ["sweep"]
    # 20 sweeps of 125000 lines each; a line at either end may be shared.
    assert abs(found["reads"] - 20 * 2 * 125000) <= 40
    assert found["writes"] <= 40  # each write follows the read of its line


@BOTH
def test_a_marked_region_holds_what_is_between_the_calls(perdure, build, compiler):
    program = build(compiler, "tests/trace/kinds.c")
    found = totals(perdure, "--marked", "--", program, "mark")
    assert found["regions"] == ["solve"]
    assert 2000 <= found["writes"] <= 2004
    assert found["reads"] <= 4


@BOTH
def test_two_runs_give_the_same_bytes(perdure, build, compiler, tmp_path):
    program = build(compiler, "tests/trace/triad.c")
    seen = []
    for _ in range(2):
        totals(perdure, "--no-times", "--mode", "modern", "--", program, 4096, 2)
        seen.append((tmp_path / "t.ptrace").read_bytes())
    assert seen[0] == seen[1]


def recorded_bytes(program: str, words: tuple, settings: str) -> subprocess.CompletedProcess:
    """The program, with PERDURE_TRACE as it is."""
    environment = {**os.environ, "PERDURE_TRACE": settings}
    return subprocess.run([program, *words], env=environment, capture_output=True, check=False,
                          timeout=60)


@BOTH
@pytest.mark.parametrize("which", ["copy", "fork", "mark", "quick_exit", "_exit"])
def test_the_helper_changes_no_byte_of_the_trace(build, compiler, which, tmp_path):
    program = build(compiler, "tests/trace/kinds.c")
    if which == "copy":
        program, words = build(compiler, "tests/trace/triad.c"), ("50000", "9")
    else:
        words = (which,)
    seen = []
    for options in ("helper=off", "helper=on", "helper=on,buffer=1", "helper=auto"):
        file = tmp_path / "same.ptrace"
        ran = recorded_bytes(program, words, f"{file},times=off,{options}")
        assert ran.stderr == b""
        assert ran.returncode == (3 if which == "_exit" else 0)
        seen.append(file.read_bytes())
    assert len(seen[0]) > 300
    assert seen == [seen[0]] * len(seen)


@BOTH
def test_one_processor_and_several_give_the_same_trace(build, compiler, tmp_path):
    program = build(compiler, "tests/trace/triad.c")
    allowed, seen = os.sched_getaffinity(0), []
    try:
        for processors in ({min(allowed)}, allowed):
            os.sched_setaffinity(0, processors)
            ran = recorded_bytes(program, ("50000", "3"), f"{tmp_path}/p.ptrace,times=off")
            assert ran.returncode == 0
            seen.append((tmp_path / "p.ptrace").read_bytes())
    finally:
        os.sched_setaffinity(0, allowed)
    assert seen[0] == seen[1]


@BOTH
@pytest.mark.parametrize("helper", ["on", "off"])
def test_a_pipe_gets_what_a_file_gets(build, compiler, helper, tmp_path):
    program = build(compiler, "tests/trace/triad.c")
    file, pipe = tmp_path / "file.ptrace", tmp_path / "pipe"
    options = f"times=off,helper={helper}"
    assert recorded_bytes(program, ("50000", "9"), f"{file},{options}").returncode == 0
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reading:
        ran = recorded_bytes(program, ("50000", "9"), f"{pipe},{options}")
        received = reading.stdout.read()
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert received == file.read_bytes()


@BOTH
def test_a_program_that_prints_nothing_can_give_its_trace_to_the_standard_output(
    build, compiler, tmp_path
):
    program = build(compiler, "tests/trace/kinds.c")
    file = tmp_path / "file.ptrace"
    assert recorded_bytes(program, ("mark",), f"{file},times=off").returncode == 0
    assert recorded_bytes(program, ("mark",), "-,times=off").stdout == file.read_bytes()


@BOTH
@pytest.mark.parametrize("helper", ["on", "off"])
def test_a_killed_program_s_trace_says_what_of_it_is_whole(perdure, build, compiler, helper):
    program = build(compiler, "tests/trace/kinds.c")
    ran = perdure("trace", "-o", "t.ptrace", "--helper", helper, "--floor", 0, "--", program,
                  "killed")
    assert ran.code == 128 + 9
    again = perdure("trace", "info", "t.ptrace")
    assert again.code == 1
    found = re.search(r"truncated.*; (\d+) records before are whole, of (\d+) accesses", again.err)
    assert found is not None, again.err
    # 50 sweeps; at most the buffer and a frame are lost.
    assert 20 * LINES <= int(found[2]) <= 51 * LINES


@BOTH
def test_a_program_that_is_killed_leaves_a_trace_that_is_refused(perdure, build, compiler):
    ran = perdure("trace", "-o", "t.ptrace", "--", build(compiler, "tests/trace/kinds.c"), "killed")
    assert ran.code == 128 + 9
    assert "t.ptrace" in ran.err and "signal 9" in ran.err
    again = perdure("trace", "info", "t.ptrace")
    assert again.code == 1
    assert "truncated" in again.err or "cut" in again.err or "end" in again.err, again.err


@BOTH
def test_a_program_that_ends_by_underscore_exit_leaves_a_whole_trace(perdure, build, compiler):
    program = build(compiler, "tests/trace/kinds.c")
    found = totals(perdure, "--", program, "_exit", code=3)
    assert 0 <= found["writes"] - LINES <= 12


def test_a_program_that_was_not_built_for_it_is_told_apart(perdure):
    ran = perdure("trace", "-o", "t.ptrace", "--", "true")
    assert ran.code == 1
    assert "--trace" in ran.err and "--valgrind" in ran.err
    ran = perdure("trace", "-o", "t.ptrace", "--", "./no-such-program")
    assert ran.code == 127 and "no such program" in ran.err


def test_without_the_variable_nothing_is_recorded(build, tmp_path):
    program = build("gcc", "tests/trace/triad.c")
    before = set(tmp_path.iterdir())
    assert subprocess.run([program, "64", "1"], cwd=tmp_path, check=True).returncode == 0
    assert set(tmp_path.iterdir()) == before


def test_a_wrong_option_ends_the_program_before_it_begins(perdure, build):
    program = build("gcc", "tests/trace/triad.c")
    ran = perdure("trace", "-o", "t.ptrace", "--size", "3M", "--", program)
    assert ran.code == 1 and "power of two" in ran.err
    assert ran.out == b""


@pytest.mark.skipif(not MPIS, reason="no MPI")
@pytest.mark.parametrize("mpi", MPIS)
def test_each_rank_leaves_a_trace(perdure, build, tmp_path, mpi):
    program = build("gcc", "tests/trace/triad.c")
    launcher = os.environ[f"PERDURE_TEST_MPIEXEC_{mpi}"]
    ran = perdure("trace", "-o", "t.ptrace", "--", launcher, "-n", 2, program, LINES, 1)
    assert ran.code == 0, ran.err
    for rank in range(2):
        found = json.loads(perdure("trace", "info", "--json", f"t.ptrace.{rank}").out)["traces"]
        assert (found[0]["rank"], found[0]["ranks"]) == (rank, 2)
        assert len(found[0]["streams"]) == 1
        assert (found[0]["reads"], found[0]["writes"]) == triad_lines(LINES, 1)
    assert not list(tmp_path.glob("*.recording.*"))


def test_other_tools_traces_are_imported(perdure, tmp_path):
    (tmp_path / "in.txt").write_text(" L 1000,8\n S 2000,8\nI  3000,4\n M 4000,4\n")
    ran = perdure("trace", "import", "lackey", "in.txt", "out.ptrace", "--json")
    (found,) = json.loads(ran.out)["traces"]
    assert (found["reads"], found["writes"], found["pages"]) == (2, 1, 3)
    ran = perdure("trace", "import", "cachegrind", "in.txt", "out.ptrace")
    assert ran.code == 2 and "there are lackey, din" in ran.err
    ran = perdure("trace", "import", "din", "in.txt", "out.ptrace")
    assert ran.code == 2 and "line 1" in ran.err


def test_an_import_that_is_stopped_or_fails_leaves_what_was_there(perdure, tmp_path):
    (tmp_path / "good.txt").write_text(" L 1000,8\n")
    assert perdure("trace", "import", "lackey", "good.txt", "out.ptrace").code == 0
    before = (tmp_path / "out.ptrace").read_bytes()
    lines = b" S 1000,8\n" * 2_000_000
    for name in ("out.ptrace", "new.ptrace"):
        ran = perdure.interrupted(lines, "trace", "import", "lackey", "pipe", name)
        assert (ran.code, ran.out, ran.err) == (130, b"", "perdure: stopped\n")
        (tmp_path / "pipe").unlink()
        (tmp_path / "bad.txt").write_bytes(b" L 1000,8\n" * 200_000 + b"\xff\x01\n")
        ran = perdure("trace", "import", "lackey", "bad.txt", name)
        assert ran.code == 2 and "line 200001 is not of this format: \\xff\\x01" in ran.err
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.suffix != ".json") == [
        "bad.txt", "good.txt", "out.ptrace"]  # fmt: skip
    assert (tmp_path / "out.ptrace").read_bytes() == before


def test_what_is_no_trace_is_refused_with_a_sentence(perdure, tmp_path):
    (tmp_path / "program").write_bytes(Path("/bin/ls").read_bytes()[:240])
    (tmp_path / "byte").write_bytes(b"\xff\n")
    for form in ("lackey", "din", "dramsim3", "ramulator", "oracle_general", "csv"):
        packed = gzip.compress(b" L 1000,8\n" * 1000)
        (tmp_path / "packed").write_bytes(packed.ljust((len(packed) + 23) // 24 * 24, b"\0"))
        for name in ("program", "byte", "packed"):
            ran = perdure("trace", "import", form, name, "z.ptrace")
            assert ran.code == 2 and len(ran.err) > 40 and ran.err.count("\n") == 1, ran.err
            assert (name != "packed") or "is compressed: gzip -dc" in ran.err
            assert not (tmp_path / "z.ptrace").exists()


def test_what_a_format_loses_is_said_and_csv_keeps_it(perdure, tmp_path):
    requests = [(1, 10, 69632, 2), (1, 20, 512, -1), (2, 10, 4096, -1)]
    (tmp_path / "o").write_bytes(b"".join(struct.pack("<IQIq", *one) for one in requests))
    ran = perdure("trace", "import", "oracle_general", "o", "o.ptrace", "--json")
    assert json.loads(ran.out)["traces"][0]["writes"] == 0
    assert "no directions: all are taken as reads; 1 request of more than a page" in ran.err
    assert "69,632 bytes" in ran.err and "csv" in ran.err
    (tmp_path / "c").write_text("time,op,size,address\n1,2a,69632,80\n1,28,512,160\n2,W,4096,80\n")
    ran = perdure("trace", "import", "csv", "c", "c.ptrace", "--unit", "512", "--json")
    (found,) = json.loads(ran.out)["traces"]
    assert (ran.err, found["reads"], found["writes"], found["pages"]) == ("", 1, 18, 17)
    headless = perdure("trace", "import", "csv", "--columns", "op,address", "c", "h.ptrace")
    assert headless.code == 2 and "line 1 is not of this format" in headless.err
    for words, said in ((("--unit", "0", "csv"), "at least bytes"), (("--unit", "8", "din"), "csv"),
                        (("--columns", "op", "csv"), "'address'")):  # fmt: skip
        ran = perdure("trace", "import", *words, "c", "z.ptrace")
        assert ran.code == 2 and said in ran.err, ran.err


@pytest.mark.parametrize("name, variable, package", [
    ("clang", "PERDURE_CLANG", "clang-19"), ("flang", "PERDURE_FLANG", "flang-19"),
    ("g++", "PERDURE_GCC", "g++"),
])
def test_a_compiler_that_is_not_there_is_named_with_the_remedy(name, variable, package):
    compiler = BUILD / f"trace/bin/perdure-{name}"
    if not compiler.exists():
        pytest.skip(f"there is no {compiler}")
    ran = subprocess.run([compiler, "-c", "x.c"], capture_output=True, text=True, check=False,
                         env={**os.environ, variable: "/nonexistent/cc"}, timeout=60)  # fmt: skip
    assert ran.returncode == 127 and ran.stderr.count("\n") == 1
    assert f"(apt install {package})" in ran.stderr and f"by {variable}" in ran.stderr
