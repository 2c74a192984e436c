# SPDX-License-Identifier: BSD-3-Clause
"""The command's manners: one shape of messages, one set of exit codes, help that says it all.

Every verb goes through a wrong option, a missing file, an output that cannot be made, a full
device and Ctrl-C. What a verb imports before it works is asserted, not how long it takes.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from functools import cache

import pytest

from conftest import BUILD, ROOT, a_few, in_this_process, wait_until
from perdure.cli import command_line
from perdure.exit_codes import INTERRUPTED, MISTAKE, NO_PROGRAM, NOT_EXECUTABLE
from perdure.tables import table
from perdure_bench.cli import VERBS

USAGE_COLUMNS = 80


@cache
def commands() -> dict[str, object]:
    """Each verb, such as "pool ls", with what typer made of it."""

    def below(command, name):
        inner = getattr(command, "commands", None)
        if inner is None:
            return {name: command}
        return {key: made for word, each in inner.items()
                for key, made in below(each, f"{name} {word}".strip()).items()}

    return below(command_line(VERBS), "")


def run(words, **settings) -> subprocess.CompletedProcess:
    return subprocess.run(
        [ROOT / "perdure", *words], capture_output=True, text=True, timeout=60, check=False,
        **settings,
    )  # fmt: skip


def assert_said(code: int, err: str, wanted: int) -> None:
    """A sentence in the shape of all messages; helps are not messages."""
    assert code == wanted, err
    assert "Traceback" not in err and re.match(r"perdure: \S.*\S\n\Z", err), err


VERB_NAMES = sorted(commands())
APPLICATIONS = ("eddy/eddy", "hpccg/hpccg_mpich", "hpl/hpl", "matpower/matpower_mpich",
                "npb/npb_cg", "pagerank/pagerank_mpich")  # fmt: skip


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("words", [["--nonsense"], ["--json", "surplus", "1", "2", "3", "4", "5"]])
def test_an_application_ends_at_a_mistake_as_the_verbs_do(application, words):
    program = BUILD / "apps" / application
    if not program.exists():
        pytest.skip(f"{program} was not built")
    ended = subprocess.run([program, *words], capture_output=True, text=True, timeout=60)
    assert ended.returncode == MISTAKE and not ended.stdout
    assert re.match(rf"{program.name}: \S.*\(--help shows the options\)\n\Z", ended.stderr)
    helped = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60)
    assert helped.returncode == 0 and words[0] not in helped.stderr


@pytest.mark.parametrize("verb", VERB_NAMES)
def test_a_wrong_option_is_a_mistake_that_names_the_help(verb):
    ran = in_this_process(*verb.split(), "--no-such-option", verbs=VERBS)
    assert_said(ran.code, ran.err, MISTAKE)
    assert "--no-such-option" in ran.err and f"see perdure {verb} --help" in ran.err


@pytest.mark.parametrize("words", ["nothing", "pool nothing", "sim nothing", "poool ls"])
def test_a_wrong_verb_is_a_mistake(words):
    ran = in_this_process(*words.split(), verbs=VERBS)
    assert_said(ran.code, ran.err, MISTAKE)
    assert words != "poool ls" or "Did you mean 'pool'? See perdure --help\n" in ran.err


MISSING = [
    "pool ls /nonexistent", "pool show /nonexistent", "pool versions /nonexistent",
    "pool check /nonexistent", "pool export /nonexistent --to x.npz",
    "pool dump /nonexistent u", "pool adopt /nonexistent",
    "pool drain /nonexistent --to .", "pool verify /nonexistent", "pool rm /nonexistent",
    "cache ls /nonexistent", "cache recover /nonexistent", "cache discard --all /nonexistent",
    "cache predict /nonexistent", "ipv explain /nonexistent",
    "ipv explain ipv.json --record /nonexistent", "sim run /nonexistent --dram 1M",
    "sim sweep /nonexistent", "sim optimise /nonexistent", "sim locality /nonexistent",
    "sim report /nonexistent", "trace info /nonexistent",
    "trace import lackey /nonexistent out.ptrace", "energy plan /nonexistent --mtbf 3h",
    "energy plan --failures /nonexistent --write-time 9s", "energy simulate /nonexistent",
    "energy explain /nonexistent", "energy profile /nonexistent",
    "energy profile show /nonexistent", "energy profile check /nonexistent",
    "energy profile merge /nonexistent -o new.json", "energy profile plot /nonexistent -o new.png",
    "energy run --profile /nonexistent --path . -- true", "doctor /nonexistent",
    "run --commit-plan /nonexistent -- true", "report /nonexistent",
    "advise --carried /nonexistent -- true", "advise --pool /nonexistent -- true",
]  # fmt: skip


@pytest.mark.parametrize("words", MISSING)
def test_a_missing_file_is_a_mistake_that_names_it(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ipv.json").write_text("")
    ran = in_this_process(*words.split())
    assert_said(ran.code, ran.err, MISTAKE)
    assert "/nonexistent" in ran.err and list(tmp_path.iterdir()) == [tmp_path / "ipv.json"]


def test_missing_files_are_tried_with_every_verb_that_reads_one():
    reading = {verb for verb, made in commands().items() if VERBS[verb.split()[0]].part[:2] != "Of"
               and any(each.param_type_name == "argument" for each in made.params)}
    running = {"run", "energy run", "ipv check", "ipv record", "trace record"}
    running |= {"help", "config show"}  # of words
    tried = {line.split()[0] for line in MISSING} | \
        {" ".join(line.split()[:2]) for line in MISSING} | \
        {" ".join(line.split()[:3]) for line in MISSING} | {"energy profile run"}
    assert reading - running <= tried


PROGRAMS = ["run --", "advise --", "energy run --writers 1 --", "ipv check --",
            "ipv record --", "trace -o t.ptrace --", "trace --valgrind -o t.ptrace --"]  # fmt: skip


@pytest.mark.parametrize("words", PROGRAMS)
def test_a_program_that_may_not_be_run_ends_with_126(words, tmp_path):
    (tmp_path / "data").write_text("no program")
    ran = run([*words.split(), "./data"], cwd=tmp_path)
    if "valgrind is not installed" in ran.stderr:
        pytest.skip("valgrind is not installed")
    assert_said(ran.returncode, ran.stderr, NOT_EXECUTABLE)
    assert "./data" in ran.stderr


@pytest.mark.parametrize("words", PROGRAMS)
def test_a_program_that_does_not_exist_ends_with_127(words, tmp_path):
    ran = run([*words.split(), "./nonexistent"], cwd=tmp_path)
    if "valgrind is not installed" in ran.stderr:
        pytest.skip("valgrind is not installed")
    assert_said(ran.returncode, ran.stderr, NO_PROGRAM)
    assert "nonexistent" in ran.stderr


OUTPUTS = [
    "run --json OUT -- touch done", "pool dump nothing u -o OUT", "trace -o OUT -- touch done",
    "trace import lackey nothing OUT", "sim sweep nothing --plot OUT.png",
    "sim optimise nothing --plot OUT.svg", "sim locality nothing --plot OUT.pdf",
    "sim report nothing -o OUT", "report nothing -o OUT",
    "energy plan --mtbf 3h --write-time 9s --read-time 9s -o OUT",
    "energy plan --mtbf 3h --write-time 9s --read-time 9s --plot OUT.png",
    "energy plan --mtbf 3h --write-time 9s --read-time 9s --front OUT.png",
    "energy profile . --yes -o OUT", "energy profile merge nothing nothing -o OUT",
    "energy profile plot nothing -o OUT.png", "energy run --writers 1 --json OUT -- touch done",
    "bench kill --quick --plot OUT.png", "demo --picture OUT.png",
]  # fmt: skip


@pytest.mark.parametrize("words", OUTPUTS)
def test_an_output_that_cannot_be_made_is_refused_before_the_work(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = in_this_process(*words.replace("OUT", "/nonexistent/x").split(), verbs=VERBS)
    assert_said(ran.code, ran.err, MISTAKE)
    assert "there is no folder /nonexistent" in ran.err and not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", ["sim locality t --plot x.txt", "energy plan --plot x.docx"])
def test_a_picture_of_an_unknown_kind_is_refused_before_the_work(words):
    ran = in_this_process(*words.split())
    assert_said(ran.code, ran.err, MISTAKE)
    assert ".png, .svg, .pdf" in ran.err


def test_every_option_that_names_an_output_is_tried():
    named = {"-o", "--output", "--plot", "--front", "--picture"}
    for verb, made in commands().items():
        for each in made.params:
            if named & set(each.opts) or (each.opts == ["--json"] and not each.is_flag):
                assert any(
                    line.startswith((verb, verb.removesuffix(" record"), verb.removesuffix(" run")))
                    and named.union({"--json"}) & set(each.opts) & set(line.split())
                    for line in OUTPUTS
                ), (verb, each.opts)


@pytest.mark.parametrize("verb", VERB_NAMES)
def test_what_is_called_o_is_the_output_in_every_verb(verb):
    for each in commands()[verb].params:
        if {"-o", "--out", "--output"} & set(each.opts):
            assert each.opts == ["-o", "--output"], each.opts


PRINTING = [
    "--help", "devices", "devices --json", "pool ls", "doctor", "cache ls",
    "sim policies", "energy probe",
    "energy plan --mtbf 3h --write-time 9s --read-time 9s --json", "run --json - -- true",
]  # fmt: skip


@pytest.mark.parametrize("words", PRINTING)
def test_a_full_device_is_said_and_fails(words, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run([ROOT / "perdure", *words.split()], stdout=full, text=True,
                              stderr=subprocess.PIPE, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last == "perdure: the output could not be written: No space left on device"


def test_a_reader_that_has_seen_enough_is_not_spoken_to():
    line = f"{shlex.quote(str(ROOT / 'perdure'))} devices --json | head -1"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "" and done.stdout == "{\n"


# With what each has loaded when it begins.
WAITING = [
    ("trace import lackey FIFO out.ptrace", "/_core."),
    ("energy simulate plan.json --intervals 1e12 --seed 1", "/_generator."),
]


@pytest.mark.parametrize("words, module", WAITING)
def test_ctrl_c_ends_a_verb_with_130_and_a_sentence(words, module, tmp_path):
    os.mkfifo(tmp_path / "FIFO")
    plan = "energy plan --mtbf 3h --write-time 9s --read-time 9s -o plan.json"
    assert run(plan.split(), cwd=tmp_path).returncode == 0
    running = subprocess.Popen([ROOT / "perdure", *words.split()], cwd=tmp_path, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until_busy(running.pid, module)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == INTERRUPTED and "stopped" in err and "Traceback" not in err
    assert all(line.startswith("perdure: ") for line in err.splitlines()), err


def wait_until_busy(pid: int, module: str) -> None:
    """Until the compiled module is loaded and what needs it has had the time to begin."""
    def is_loaded() -> bool:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            return module in maps.read()

    wait_until(is_loaded, 60)
    time.sleep(1.0)


def test_ctrl_c_ends_the_runner_of_the_tests_without_a_traceback(tmp_path):
    ctest = tmp_path / "ctest"
    ctest.write_text("#!/bin/sh\ntouch began\nexec sleep 60\n")
    ctest.chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    running = subprocess.Popen([sys.executable, ROOT / "tools/run_tests.py"], cwd=tmp_path,
                               env=path, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    while not (tmp_path / "began").exists():
        time.sleep(0.02)
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == INTERRUPTED and "Traceback" not in err


@pytest.mark.skipif(os.getuid() != 0, reason="only root can have a /dev/shm of its own")
def test_the_runner_of_the_tests_removes_what_ended_jobs_left_and_nothing_else(tmp_path):
    ctest = tmp_path / "ctest"
    ctest.write_text("""#!/bin/sh
        touch /dev/shm/ucx_shm_posix_left /dev/shm/own
        sleep 5 > /dev/shm/mpich_held 2>/dev/null &
    """)
    ctest.chmod(0o755)
    before = "touch /dev/shm/ucx_shm_posix_before; sleep 0.1"
    runner = f"{sys.executable} {ROOT / 'tools/run_tests.py'}"
    ran = subprocess.run(
        ["sh", ROOT / "tests/kill/own_shm.sh", "sh", "-c", f"{before}; {runner}; ls /dev/shm"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, cwd=tmp_path,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "removed 1 files of ended MPI jobs from /dev/shm" in ran.stdout, ran.stderr
    assert ran.stdout.split()[-3:] == ["mpich_held", "own", "ucx_shm_posix_before"]


@pytest.mark.parametrize("number", ["inf", "nan", "1e999", "-1"])
@pytest.mark.parametrize("words", [
    "sim run t --dram X", "sim sweep t --up-to X", "sim run t --dram 1M --compute X",
    "energy plan --mtbf X --write-time 9s --read-time 9s", "energy simulate p --intervals X",
    "cache predict r --backing X",
    "cache predict r --stock-latency X",
    "cache predict r --link X,1us", "energy run --writers 1 --timeout X -- true",
])  # fmt: skip
def test_no_number_is_too_strange(words, number):
    ran = in_this_process(*words.replace(" X", f" {number}").split())
    assert_said(ran.code, ran.err, MISTAKE)
    assert f"'{number}'" in ran.err


# --- help ----------------------------------------------------------------------------------------


def help_of(verb: str, word: str = "--help") -> str:
    ran = in_this_process(*verb.split(), word, verbs=VERBS)
    assert ran.code == 0 and ran.err == ""
    return ran.out.decode()


@pytest.mark.parametrize("verb", VERB_NAMES)
def test_help_shows_every_option_with_its_default_and_no_types(verb, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(USAGE_COLUMNS))
    text = help_of(verb)
    words = " ".join(text.split())
    assert max(map(len, text.splitlines())) <= USAGE_COLUMNS
    assert not re.search(r"<\w+|x[<>]=|\{", text) and text == help_of(verb, "-h")
    for each in commands()[verb].params:
        if each.param_type_name != "option":
            continue
        assert all(name in words for name in each.opts)
        for default in defaults_of(each):
            assert default in words, (each.opts, default)
        assert each.is_flag or each.metavar, f"{each.opts}: a word for its value"


# A help that begins so says nothing without the option before it: "Of a node.", "Meanwhile.".
HALF = re.compile(
    r"(?:Also|As|At|Between|From|How,|In|Instead|May|Meanwhile|More|Of|See|So|Than|There|Through"
    r"|Where[.,]|Which|Whose|With|Without)\b"
)
ADDED = re.compile(r"\s*\[(?:default: |at least |required).*$|\s*\(\.png.*$")


@pytest.mark.parametrize("verb", VERB_NAMES)
def test_the_help_of_every_option_and_argument_stands_by_itself(verb):
    for each in commands()[verb].params:
        said = ADDED.sub("", getattr(each, "help", None) or "")
        assert len(said.split()) >= 3 and not HALF.match(said), (each.opts, said)


def defaults_of(option) -> list[str]:
    """What must be in the help: what the source says of the default, and the default."""
    said = re.findall(r"\[default: [^]]*\]", option.help or "")
    if isinstance(option.show_default, str):
        said.append(option.show_default)
    elif option.default not in (None, False, "", ()) and not said and not option.is_flag:
        said.append(f"default: {option.default}")
    return said


def test_most_options_with_a_value_say_their_default():
    assert sum(len(defaults_of(each)) for made in commands().values() for each in made.params
               if each.param_type_name == "option") >= 50  # fmt: skip


def test_the_first_screen_groups_the_verbs_and_shows_an_example_of_each(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(USAGE_COLUMNS))
    text = in_this_process("--help", verbs=VERBS).out.decode()
    for word, verb in VERBS.items():
        assert re.search(rf"^  {word} +{re.escape(verb.summary)}\n +{re.escape(verb.example)}$",
                         text, re.M)  # fmt: skip
        assert f"{verb.example} ".startswith(f"perdure {word} ")
    assert max(map(len, text.splitlines())) <= USAGE_COLUMNS
    assert len({verb.part for verb in VERBS.values()}) >= 3


def test_examples_can_be_pasted():
    for verb in VERB_NAMES:
        block = re.search(r"^  Examples?\b.*:\n((?:    .*\n)+)", help_of(verb), re.M)
        for line in re.sub(r" \\\n +", " ", block[1]).splitlines() if block else ():
            words = shlex.split(line)
            assert re.search(r"[ (]perdure ", line) or "cp" in words, line


# Capital words; choices as they are typed; NAME=VALUE; "…" where more may follow.
METAVAR = re.compile(r"(?:[A-Z]+|[a-z]+)(?:(?:\||=|,)(?:[A-Z]+|[a-z]+)|=P%)*(?:[,;]?…)?")


@pytest.mark.parametrize("verb", VERB_NAMES)
def test_the_words_that_stand_for_values_look_alike(verb, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = help_of(verb)
    assert not re.search(r"\b(?:TEXT|SECONDS|INTEGER|FLOAT)\b|\[ARGS\]|\.\.\.$", text, re.M)
    for each in commands()[verb].params:
        word = each.metavar or ""
        if each.param_type_name == "argument" or not each.is_flag:
            assert METAVAR.fullmatch(word), (each.opts, word)
            assert word[:1].isupper() or "|" in word or "=" in word, (each.opts, word)


@pytest.mark.parametrize("verb", ["", "pool", *VERB_NAMES])
def test_a_help_has_its_headings_once(verb):
    headings = re.findall(r"^ *(Usage|Arguments|Options|Commands|Examples?)\b[^:\n]*:",
                          help_of(verb), re.M)
    assert headings[0] == "Usage" and len(headings) == len(set(headings))
    assert not {"Example", "Examples"} <= set(headings)


@pytest.mark.parametrize("verb", ["", "pool", "pool ls", "trace", "energy profile", "help"])
def test_help_as_a_verb_says_what_the_option_says(verb):
    assert in_this_process("help", *verb.split(), verbs=VERBS).out.decode() == help_of(verb)


def test_help_of_what_is_no_verb_is_a_mistake():
    ran = in_this_process("help", "pool", "nothing")
    assert_said(ran.code, ran.err, MISTAKE)
    assert "'nothing'; see perdure pool --help" in ran.err


@pytest.mark.parametrize("words", ["version", "--version", "-V"])
def test_the_version_can_be_asked_for_in_every_way(words):
    ran = in_this_process(words)
    assert (ran.code, ran.err) == (0, "")
    assert re.fullmatch(r"perdure \d+\.\d+\.\d+\S*\n", ran.out.decode())


# --- tables --------------------------------------------------------------------------------------


def shown(made, columns: int | None) -> list[str]:
    return [text for _, text in made.lines(columns)]


def test_a_table_that_fits_is_aligned_and_one_in_a_pipe_is_not_padded():
    made = table("name", "size", left=("name",), title="Parts")
    made.add_row("a\x1b[2J", 7)
    made.add_row("long name", 1234)
    assert shown(made, 80) == ["Parts", "name       size", "a\\x1b[2J      7", "long name  1234"]
    assert shown(made, None) == ["Parts", "name\tsize", "a\\x1b[2J\t7", "long name\t1234"]


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_a_table_that_is_too_wide_is_broken_or_becomes_lines_of_name_and_value(columns):
    words = table("name", "why", left=("name", "why"))
    words.add_row("part", "because it says so, and more of it than one line of a screen holds " * 3)
    numbers = table("name", *(f"column {n}" for n in range(12)), left=("name",))
    for name in ("first", "second"):
        numbers.add_row(name, *range(10**6, 10**6 + 12))
    for made in (words, numbers):
        assert max(map(len, shown(made, columns))) <= columns
    assert shown(words, columns)[1].startswith("part  because it says so")
    lines = shown(numbers, columns)
    assert lines[:2] == ["name       first", "column 0   1000000"] and len(lines) == 2 * 13 + 1


ODD = "unreadable: rank-00001 is of another job, which somebody copied here; see pool show"


def pools(*, odd: dict[int, tuple[str, str]]) -> list[str]:
    """The lines of `pool ls` with five pools, of which the odd ones have another path and state."""
    made = table("pool", "owner", "job", "ranks", "version", "iteration", "files", "state",
                 left=("pool", "owner", "job", "state"))
    for number in range(5):
        path, state = odd.get(number, (f"/mnt/pmem/heat{number}", "fine"))
        made.add_row(path, "root (0)", "heat", 4, 1200 + number, 1200, "1.2 GB", state)
    return shown(made, 80)


def test_a_long_state_of_one_pool_leaves_the_others_on_a_line_each():
    lines = pools(odd={2: ("/mnt/pmem/heat2", ODD)})
    assert len(lines) == 8 and max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[1:4]] == [f"/mnt/pmem/heat{n}" for n in range(3)]
    assert " ".join(" ".join(lines[4:6]).split()) == ODD and lines[4].startswith("  unreadable")
    assert lines[6].startswith("/mnt/pmem/heat3  root (0)  heat  ") and lines[6].endswith("fine")


def test_a_long_path_of_one_pool_leaves_the_others_on_a_line_each():
    path = "/mnt/pmem/" + "projects/" * 5 + "heat"
    lines = pools(odd={0: (path, "damaged")})
    assert len(lines) == 7 and max(map(len, lines)) <= 80
    assert lines[1] == path and re.match(r" +root \(0\)  heat .* damaged$", lines[2])
    both = pools(odd={0: (path, ODD)})
    assert len(both) == 9 and both[1] == path and both[3].startswith("  unreadable")


def test_a_table_with_many_odd_rows_is_lines_of_name_and_value():
    lines = pools(odd={number: (f"/mnt/pmem/heat{number}", ODD) for number in range(3)})
    assert lines[0] == "pool       /mnt/pmem/heat0" and max(map(len, lines)) <= 80


# --- start-up ------------------------------------------------------------------------------------

HEAVY = ("numpy", "scipy", "matplotlib", "jinja2", "rich.markdown", "rich.table", "rich.progress",
         "rich.console", "asyncio", "perdure.api")  # fmt: skip
_ARITHMETIC = ("bench", "demo", *(f"energy {word}" for word in ("plan", "simulate", "explain")))
_LIGHT_VERBS = [verb for verb in VERB_NAMES if not verb.startswith(_ARITHMETIC)]
LIGHT = ["--version", "version", "--help", "-h", "help", "help pool ls",
         "run -- true", "devices", "pool ls .", "cache ls",
         *(f"{verb} --help" for verb in a_few(_LIGHT_VERBS, 12))]


# Each in a process of its own, which goes on from one that has imported the command.
_EACH = """
import os, sys
sys.path[:0] = sys.argv[1:3]
lines = sys.argv[3:]
from perdure_bench.cli import main
for line in lines:
    sys.stdout.flush()
    if os.fork() == 0:
        sys.argv[1:] = line.split()
        try:
            main()
        finally:
            sys.stdout.flush()
            print(line, *sys.modules, sep=",", file=sys.stderr, flush=True)
    elif os.wait()[1] != 0:
        sys.exit(f"{line} failed")
    else:
        continue
    break
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    """What each light verb has imported when it ends."""
    paths = [str(ROOT / "python"), str(BUILD / "python")]
    done = subprocess.run([sys.executable, "-I", "-c", _EACH, *paths, *LIGHT],
                          capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.split(",") for line in done.stderr.splitlines()]
    return {words: set(modules) for words, *modules in lines if words in LIGHT}


@pytest.mark.parametrize("words", LIGHT)
def test_a_light_verb_imports_nothing_heavy(words, imported):
    assert "perdure.cli" in imported[words] and not set(HEAVY) & imported[words]


@pytest.mark.parametrize("line, last", [
    ("perdure adv", "advise"), ("perdure pool sh", "show"), ("perdure run --kill-a", "--kill-at"),
])  # fmt: skip
def test_bash_completes_by_the_script_that_the_command_prints(line, last):
    ask = (f'eval "$(perdure help --completion bash)"; COMP_WORDS=({line}); '
           f"COMP_CWORD={len(line.split()) - 1}; _perdure_completion perdure; "
           "printf '%s\\n' \"${COMPREPLY[@]}\"")
    path = {**os.environ, "PATH": f"{ROOT}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", ask], env=path, capture_output=True, text=True,
                          timeout=60, check=True)  # fmt: skip
    assert last in done.stdout.splitlines()


def test_other_shells_have_a_script_and_unknown_ones_are_named():
    for shell in ("zsh", "fish"):
        assert b"_PERDURE_COMPLETE=complete_" in in_this_process("help", "--completion", shell).out
    refused = in_this_process("help", "--completion", "csh")
    assert_said(refused.code, refused.err, MISTAKE)


def test_cache_without_a_pattern_does_not_take_the_next_word_for_one():
    ran = run(["run", "--cache", "--", "true"])
    assert_said(ran.returncode, ran.stderr, MISTAKE)
    assert "--cache '*'" in ran.stderr
