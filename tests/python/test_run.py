# SPDX-License-Identifier: BSD-3-Clause
# ctest: OWN_SHM
"""`perdure run`: restarts, rehearsed failures, signals, and output that stays as it was.

Method: the real command runs stand-in ranks (programs/fake_rank.c) that keep to the run page's
contract, without an MPI where none is needed and with every MPI of the build elsewhere.
"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import BUILD, MPIS, wait_until

SHARED = Path("/dev/shm")


def processes_with(word: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if word.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def script(folder: Path, text: str) -> str:
    path = folder / "job.py"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("code", [0, 1, 3, 42, 255])
def test_exit_code_of_the_job_is_passed_on(perdure, code):
    assert perdure("run", "--", "sh", "-c", f"exit {code}").code == code


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM"])
def test_death_by_a_signal_becomes_128_plus_its_number(perdure, name):
    number = signal.Signals[name].value
    assert perdure("run", "--", "sh", "-c", f"kill -{number} $$").code == 128 + number


def test_missing_and_unexecutable_programs_end_as_in_a_shell(perdure, tmp_path):
    missing = perdure("run", "--", "./no-such-program")
    assert missing.code == 127 and "no program" in missing.err
    (tmp_path / "text").write_text("text")
    assert perdure("run", "--", "./text").code == 126


def test_options_after_the_first_word_belong_to_the_job(perdure):
    ran = perdure("run", "echo", "--quiet", "-n", "2", "--json")
    assert ran.out == b"--quiet -n 2 --json\n"


def test_binary_output_and_input_are_untouched(perdure):
    every_byte = bytes(range(256)) * 5000
    ran = perdure("run", "--", "cat", stdin=every_byte)
    assert ran.out == every_byte and ran.code == 0


def test_jobs_see_no_variable_of_the_command_but_the_run_directory(perdure, monkeypatch):
    monkeypatch.setenv("PERDURE_KILL", "rank=0,iteration=1,point=copy")
    shown = perdure("run", "--", "env").out.decode().splitlines()
    names = {line.split("=")[0] for line in shown}
    # sh, which starts the command, sets these three.
    assert names - set(os.environ) <= {"PERDURE_RUN_DIR", "PWD", "OLDPWD", "SHLVL"}
    assert "PERDURE_KILL" not in names


def test_quiet_prints_nothing_of_its_own(perdure, fake_rank):
    ran = perdure("run", "--quiet", "--kill-at", "3", "--", *fake_rank())
    assert (ran.code, ran.out, ran.err) == (0, b"done at 10\n", "")


@pytest.mark.parametrize("point", ["copy", "data", "slot", "state", "agreed"])
def test_kill_at_an_iteration_restarts_from_the_version_before_or_of_it(perdure, fake_rank, point):
    ran = perdure.run(["--kill-at", 5, "--kill-point", point], fake_rank())
    first, second = ran.statistics["attempts"]
    assert ran.code == 0 and ran.statistics["completed"] and ran.statistics["restarts"] == 1
    assert ran.statistics["rehearsal"]["happened"]
    assert (first["signal"], first["version"], first["commits"]) == ("SIGKILL", 4, 4)
    assert second["restored_version"] == (5 if point in ("state", "agreed") else 4)
    assert second["version"] == 10 and second["commits"] == 10 - second["restored_version"]


def test_kill_after_seconds_of_computing(perdure, fake_rank):
    ran = perdure.run(["--kill-at", "0.3s"], fake_rank("-n", 40, "-m", 25))
    first, second = ran.statistics["attempts"]
    assert first["signal"] == "SIGKILL" and ran.statistics["rehearsal"]["happened"]
    assert second["restored_version"] in (first["version"], first["version"] + 1)
    assert 0 < second["restored_version"] < 40 and ran.code == 0


def test_no_restart_is_made_unless_asked_for(perdure, fake_rank):
    ran = perdure.run(["--restarts", 0, "--kill-at", 5], fake_rank())
    assert ran.code == 128 + signal.SIGKILL and len(ran.statistics["attempts"]) == 1
    assert len(perdure.run([], fake_rank("-e", 7)).statistics["attempts"]) == 1


def test_restarts_end_when_they_are_used_up(perdure, fake_rank):
    ran = perdure.run(["--restarts", 2], fake_rank("-e", 7))
    assert ran.code == 7 and not ran.statistics["completed"]
    assert [attempt["exit_code"] for attempt in ran.statistics["attempts"]] == [7, 7, 7]


def test_failure_that_did_not_happen_is_said(perdure, fake_rank):
    ran = perdure.run(["--kill-at", 500], fake_rank())
    assert ran.code == 0 and not ran.statistics["rehearsal"]["happened"]
    assert "did not happen" in ran.err


@pytest.mark.parametrize(
    "options", [["--kill-at", "soon"], ["--kill-at", "-4"], ["--kill-at", "3", "--kill-point", "x"]]
)
def test_senseless_rehearsals_are_refused_before_the_job_starts(perdure, options):
    ran = perdure("run", *options, "--", "echo", "started")
    assert ran.code == 2 and ran.out == b""
    assert options[-2] in ran.err and f"'{options[-1]}'" in ran.err


@pytest.mark.parametrize("options, sentence", [
    (["--kill-rank", 0], "--kill-rank kills nothing without --kill-at"),
    (["--kill-point", "slot"], "--kill-point kills nothing without --kill-at"),
    (["--kill-at", "3s", "--kill-point", "copy"], "--kill-at 3s is a time"),
])  # fmt: skip
def test_an_option_of_a_rehearsal_that_would_do_nothing_is_refused(perdure, options, sentence):
    ran = perdure("run", *options, "--", "echo", "started")
    assert ran.code == 2 and ran.out == b"" and sentence in ran.err


def test_timeout_ends_a_job_that_ignores_sigterm(perdure, tmp_path):
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    ran = perdure.run(["--timeout", 0.5], [sys.executable, script(tmp_path, deaf)])
    assert ran.code == 124 and ran.statistics["attempts"][0]["ended"] == "timeout"
    assert ran.seconds < 20 and not processes_with(str(tmp_path))


HUNG_LAUNCHER = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ranks = []
for rank in range(2):
    environment = {**os.environ, "PMI_RANK": str(rank), "PMI_SIZE": "2"}
    ranks.append(subprocess.Popen(sys.argv[1:], env=environment, start_new_session=True))
if "PERDURE_KILL" in os.environ:
    time.sleep(600)  # does not notice that a rank is gone
sys.exit(max(abs(rank.wait()) for rank in ranks))
"""


def test_launcher_that_hangs_after_a_rank_died_is_ended_and_the_job_restarted(
    perdure, fake_rank, tmp_path
):
    job = [sys.executable, script(tmp_path, HUNG_LAUNCHER), *fake_rank("-t", "-n", 200, "-m", 10)]
    options = ["--kill-at", 3, "--kill-rank", 1, "--hang-timeout", 0.5]
    ran = perdure.run(options, job)
    first, second = ran.statistics["attempts"]
    assert first["ended"] == "hang" and second["ended"] == "exit" and ran.code == 0
    assert first["processes_ended"] and ran.seconds < 30
    assert not processes_with(str(tmp_path))


def test_rank_that_finished_early_is_not_a_hang(perdure, fake_rank):
    ranks = "for r in 0 1; do PMI_RANK=$r PMI_SIZE=2 \"$@\" & done; wait"
    job = ["sh", "-c", ranks, "sh", *fake_rank("-l", 1, "-w", 2, "-n", 3)]
    ran = perdure.run(["--hang-timeout", 0.5], job)
    assert ran.code == 0 and ran.statistics["attempts"][0]["ended"] == "exit"


def test_orphans_of_a_failed_attempt_are_ended_before_the_restart(perdure, tmp_path):
    orphan = "(setsid sleep 987654 >/dev/null 2>&1 &); sleep 0.3; exit 3"
    ran = perdure.run(["--restarts", 1], ["sh", "-c", orphan])
    ended = [attempt["processes_ended"] for attempt in ran.statistics["attempts"]]
    assert ran.code == 3 and all(len(names) == 1 and "sleep" in names[0] for names in ended)
    assert not processes_with("987654")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR2", "SIGHUP", "SIGINT"])
def test_signals_reach_the_job(perdure, tmp_path, name):
    listener = f"""
import signal, sys, time
signal.signal(signal.{name}, lambda *_: sys.exit(33))
print("ready", flush=True)
time.sleep(60)
"""
    words = ("run", "--restarts", 3, "--", sys.executable, script(tmp_path, listener))
    job = perdure.start(*words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert job.stdout.readline() == b"ready\n"
    if name.startswith("SIGUSR"):
        job.send_signal(signal.Signals[name])
        for _ in range(3):  # a failure like any other: started again
            assert job.stdout.readline() == b"ready\n"
            job.send_signal(signal.Signals[name])
    else:
        job.send_signal(signal.Signals[name])
    assert job.wait(30) == 33
    job.stdout.close()


@pytest.mark.parametrize("mpi", MPIS)
def test_ctrl_c_ends_an_mpi_job_and_leaves_nothing(perdure, mpi_job, tmp_path, mpi):
    before = set(os.listdir(SHARED))
    statistics = tmp_path / "statistics.json"
    words = ("run", "--restarts", 3, "--json", statistics, "--", *mpi_job(mpi, 2, "-n", 100000))
    job = perdure.start(*words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    wait_until(lambda: (tmp_path / "state-1").exists())
    job.send_signal(signal.SIGINT)
    job.wait(30)  # the code is the MPI's: hydra ends with 0 now and then
    counts = json.loads(statistics.read_text())
    assert counts["stopped_by"] == "SIGINT" and not counts["completed"] and counts["restarts"] == 0
    assert not processes_with(str(tmp_path))
    mine = {name for name in set(os.listdir(SHARED)) - before if owner_is_gone(name)}
    assert not mine


def owner_is_gone(name: str) -> bool:
    """Other tests may be running: only files that no process holds count as left behind."""
    from perdure.run.leftovers import held_files

    try:
        status = os.stat(SHARED / name)
    except OSError:
        return False
    return SHARED.joinpath(name).is_file() and (status.st_dev, status.st_ino) not in held_files()


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("at", ["20", "0.3s"])
def test_mpi_job_is_killed_and_started_again(perdure, mpi_job, mpi, at):
    before = set(os.listdir(SHARED))
    ran = perdure.run(["--kill-at", at], mpi_job(mpi, 2, "-n", 60))
    first, second = ran.statistics["attempts"]
    assert ran.code == 0 and b"done at 60\n" in ran.out
    assert ran.statistics["rehearsal"] == {
        "rank": 1,
        "point": "copy",
        "iteration": None if "s" in at else 20,
        "seconds": 0.3 if "s" in at else None,
        "happened": True,
    }
    assert first["exit_code"] != 0 and first["ranks"] == first["ranks_reporting"] == 2
    assert 0 < second["restored_version"] < 60 and second["version"] == 60
    assert not {name for name in set(os.listdir(SHARED)) - before if owner_is_gone(name)}


@pytest.mark.parametrize("mpi", MPIS)
def test_exit_code_of_an_mpi_job_is_passed_on(perdure, mpi_job, mpi):
    assert perdure("run", "--", *mpi_job(mpi, 2, "-n", 2, "-e", 5)).code == 5


def test_run_directory_is_removed_and_private(perdure):
    shown = perdure("run", "--", "sh", "-c", 'stat -c "%a %n" "$(dirname "$PERDURE_RUN_DIR")"').out
    mode, path = shown.decode().split()
    assert mode == "700" and not os.path.exists(path)


def test_directory_of_a_killed_launcher_is_removed_by_a_later_one(perdure):
    stale = SHARED / "perdure-run-stale-test"
    stale.mkdir(exist_ok=True)
    (stale / "lock").touch()
    os.utime(stale, (1, 1))
    environment = {key: value for key, value in os.environ.items() if key != "XDG_RUNTIME_DIR"}
    subprocess.run(perdure.words("run", "--", "true"), env=environment, check=True, timeout=30)
    assert not stale.exists()


ATTEMPT_KEYS = {
    "nodes", "lost", "asked_to_end",
    "attempt", "ended", "why", "exit_code", "signal", "seconds", "start_s", "ranks",
    "ranks_reporting",
    "restored_version", "restart_s", "version", "iteration", "commits", "commit_s", "commit_bytes",
    "model_s", "commit_share", "ranks_unclosed", "processes_ended", "shared_memory_removed",
    "began_s", "history",
}  # fmt: skip
JOB_KEYS = {
    "kind", "schema", "command", "exit_code", "completed", "stopped_by", "seconds", "restarts",
    "requeued", "levels", "rehearsal", "left_behind", "attempts", "plan", "perdure", "host",
    "began",
}  # fmt: skip


def test_statistics_have_the_documented_keys(perdure, fake_rank):
    ran = perdure.run([], fake_rank())
    assert set(ran.statistics) == JOB_KEYS and ran.statistics["kind"] == "run"
    (attempt,) = ran.statistics["attempts"]
    assert set(attempt) == ATTEMPT_KEYS
    assert attempt["commits"] == 10 and attempt["commit_bytes"] == 40_000_000
    assert attempt["commit_s"] == pytest.approx(0.01) and attempt["restart_s"] == 0.002
    page = Path(__file__).parents[2] / "docs/run.md"
    named = set(re.findall(r"^\| `(\w+)` \|", page.read_text(), re.MULTILINE))
    assert named >= JOB_KEYS | ATTEMPT_KEYS


def test_statistics_on_stdout_follow_the_output(perdure, fake_rank):
    ran = perdure("run", "--json", "-", "--", *fake_rank())
    assert ran.out.startswith(b'done at 10\n{\n  "kind": "run"')


def test_report_tells_each_attempt_in_lines_of_80_columns(perdure, fake_rank):
    ran = perdure("run", "--kill-at", 5, "--", *fake_rank())
    first, second = ran.err.partition("attempt 2 ")[::2]
    assert re.search(r"^attempt 1 +SIGKILL, after .*\n  restored +nothing", first, re.M)
    assert re.match(r" +exit 0, after .*\n  restored +version 4, in ", second)
    assert max(map(len, ran.err.splitlines())) <= 80


def test_terminal_line_leaves_the_output_of_the_job_in_order(perdure, fake_rank):
    """On a terminal the job's bytes come through whole; what is ours is in escape sequences."""
    numbers = "i=0; while [ $i -lt 200 ]; do echo line-$i; i=$((i+1)); sleep 0.005; done"
    job = ["sh", "-c", f'"$@" & {numbers}; wait', "sh", *fake_rank("-n", 80)]
    shown = in_terminal(perdure.words("run", "--", *job))
    ours = re.compile(r"\x1b7.*?\x1b8(\x1b\[1A)?", re.DOTALL)
    assert "iteration" in "".join(match.group() for match in ours.finditer(shown))
    rest = ours.sub("", shown)
    assert [line for line in rest.split() if line.startswith("line-")] == [
        f"line-{number}" for number in range(200)
    ]
    assert "\x1b[r" in shown  # the scrolling region is given back


def in_terminal(words: list[str]) -> str:
    """What `words` shows on a terminal of 24 rows."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(words[0], words)
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown.decode(errors="replace")


def test_a_run_that_is_recorded_is_preloaded_without_a_cached_file(perdure, monkeypatch):
    library = BUILD / "src/capi/libperdure_preload.so"
    if not library.exists():
        pytest.skip("the library to preload was not built")
    monkeypatch.setenv("PERDURE_RECORD", "run")
    ran = perdure("run", "--", "sh", "-c", "echo $LD_PRELOAD; echo ${PERDURE_CACHE-none}")
    assert ran.code == 0 and b"libperdure_preload.so" in ran.out and ran.out.endswith(b"\nnone\n")
    assert "no pool was opened" in ran.err
