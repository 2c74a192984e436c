# SPDX-License-Identifier: BSD-3-Clause
"""`perdure run --log`: a copy of the job's output in a file, with a line at each begin and end."""

from __future__ import annotations

import os
import re
import sys

import pytest

from conftest import BUILD, ROOT

JOB = """
import sys
sys.path[:0] = [{paths}]
import perdure
with perdure.open("pool") as pool:
    state = pool.scalars(iteration=0)
    u = pool.array("u", 10)
    pool.restart()
    while state.iteration < 5:
        state.iteration += 1
        print("step", state.iteration, flush=True)
        print("note", state.iteration, file=sys.stderr)
        pool.commit()
print("no end of line", end="")
""".format(paths=f"'{ROOT / 'python'}', '{BUILD / 'python'}'")
MARK = re.compile(r"== perdure run, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}: (.*)")


def marks_in(text: str) -> list[str]:
    return [found[1] for line in text.splitlines() if (found := MARK.fullmatch(line))]


def test_each_attempt_begins_and_ends_with_a_line_that_says_its_versions(perdure, tmp_path):
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "job.log").write_text("of yesterday\n")
    ran = perdure("run", "--kill-at", 3, "--log", "job.log", "--", sys.executable, "job.py")
    assert ran.code == 0, ran.err
    text = (tmp_path / "job.log").read_text()
    assert text.startswith("of yesterday\n")
    begun, died, again, ended = marks_in(text)
    assert begun.startswith("attempt 1 of 2 begins: ")
    assert re.fullmatch(r"attempt 1 ended: SIGKILL after .*; began anew; version 2 committed", died)
    assert again.startswith("attempt 2 of 2 begins, after version 2: ")
    assert re.fullmatch(
        r"attempt 2 ended: exit 0 after .*; went on from version 2; version 5 committed", ended
    )
    # What the job wrote is there twice: where it would have been without the option, and here.
    out = [line for line in text.splitlines() if line.startswith(("step", "no end"))]
    assert out == ran.out.decode().splitlines()
    assert ran.out.endswith(b"no end of line")
    notes = [line for line in text.splitlines() if line.startswith("note")]
    assert notes == [line for line in ran.err.splitlines() if line.startswith("note")]


def test_lines_of_two_streams_are_whole_and_bytes_stay_as_they_are(perdure, tmp_path):
    (tmp_path / "job.py").write_text(
        "import os, threading\n"
        "def write(to, mark):\n"
        "    for i in range(400):\n"
        "        line = bytes([mark]) * (i % 60 + 1) + b'\\n'\n"
        "        os.write(to, line[:7]); os.write(to, line[7:])\n"
        "a = threading.Thread(target=write, args=(1, 0xff)); a.start()\n"
        "write(2, 0x01); a.join()\n"
    )
    ran = perdure("run", "-q", "--log", "job.log", "--", sys.executable, "job.py")
    assert ran.code == 0
    lines = (tmp_path / "job.log").read_bytes().splitlines()[1:-1]
    assert {bytes(set(line)) for line in lines} == {b"\xff", b"\x01"}
    assert b"".join(line + b"\n" for line in lines if line[0] == 0xFF) == ran.out


def test_the_exit_code_is_the_jobs_and_what_runs_on_in_the_background_holds_nothing_up(
    perdure, tmp_path
):
    ran = perdure("run", "-q", "--log", "a.log", "--", "sh", "-c", "echo x; sleep 20 & exit 3")
    assert ran.code == 3 and ran.out == b"x\n"
    assert marks_in((tmp_path / "a.log").read_text())[-1].startswith("attempt 1 ended: exit 3")
    assert perdure("run", "-q", "--log", "a.log", "--", "./none").code == 127


def test_what_can_not_be_added_to_is_a_mistake_and_nothing_is_started(perdure, tmp_path):
    (tmp_path / "victim").write_text("victim\n")
    (tmp_path / "link").symlink_to("victim")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    for name in ("link", "fifo", "folder", "no/where", "-"):
        ran = perdure("run", "--log", name, "--", "touch", "started")
        assert ran.code == 2 and ran.err.startswith("perdure: "), (name, ran.err)
    assert (tmp_path / "victim").read_text() == "victim\n"
    assert not (tmp_path / "started").exists()


def test_a_job_goes_on_if_its_log_is_full(perdure, tmp_path):
    if not os.access("/dev/full", os.W_OK):
        pytest.skip("there is no /dev/full")
    sys.path.insert(0, str(ROOT / "python"))
    from perdure.run.live import PlainLive
    from perdure.run.log import JobLog

    said: list[str] = []
    log = JobLog(tmp_path / "a.log", PlainLive(said.append))
    log._file = open("/dev/full", "ab")  # noqa: SIM115
    outputs = log.start(1, 1, ["job"])
    for end in outputs:
        os.close(end)
    log.end("attempt 1 ended: exit 0", 0.1, None, None)
    assert len(said) == 1 and "goes on without its log" in said[0]
