# SPDX-License-Identifier: BSD-3-Clause
"""The documents name what there is: paths, functions, variables, verbs, options, layers.

Each test also spoils its page, which must be found.
"""

from __future__ import annotations

import re
import subprocess
import sys

import commands
import pages
import pytest
from pages import ROOT

DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("apps/*/README.md"))
    if path.name != "CHANGELOG.md"
)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def spoilt(text: str, old: str, new: str) -> str:
    assert old in text, f"'{old}' is gone: spoil the page by another word"
    return text.replace(old, new)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_that_a_document_names_exists(name):
    assert list(pages.wrong_paths(page(name))) == []


def test_every_program_of_the_examples_is_on_a_page():
    texts = "".join(page(name) for name in DOCUMENTS)
    programs = {path for path in pages.tracked() if path.startswith("examples/")}
    assert len(programs) > 20
    assert {path for path in programs if path not in texts} == set()


def test_the_program_of_the_readme_is_a_file_of_the_examples():
    shown = re.search(r"^```c\n(.*?)^```$", page("README.md"), re.M | re.S)
    assert shown
    file = page("examples/heat.c").removeprefix("/* SPDX-License-Identifier: BSD-3-Clause */\n")
    words = (re.sub(r"\s*//.*", "", text).split() for text in (file, shown[1]))  # in other lines
    assert "".join(next(words)) == "".join(next(words))


def statements(text: str) -> list[str]:
    """Of C, without comments and blanks, so that lines may be broken in another way."""
    code = re.sub(r"//.*|/\*.*?\*/", "", text)
    return ["".join(each.split()) for each in re.split(r";\s*\n", code) if each.strip()]


@pytest.mark.parametrize(("name", "program"), [("docs/ranks.md", "examples/strips.c")])
def test_every_statement_of_a_page_in_c_is_one_of_a_program_that_a_test_runs(name, program):
    shown = [line for block in re.findall(r"^```c\n(.*?)^```$", page(name), re.M | re.S)
             for line in statements(block)]  # fmt: skip
    whole = "".join(statements(page(program)))
    assert len(shown) >= 8
    assert [line for line in shown if line not in whole] == []


def test_a_wrong_path_is_found():
    found = list(pages.wrong_paths("see `src/pool/nothing.cpp`"))
    assert found == ["there is no src/pool/nothing.cpp"]


def test_every_function_of_the_walks_is_in_its_file():
    walks = page("docs/walks.md")
    assert list(pages.wrong_functions(walks)) == []
    counts = pages.functions_by_walk(walks)
    assert len(counts) == 6 and min(counts.values()) >= 5, counts


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("`commit_version()`", "`comit_version()`", "src/pool/commit.cpp has no comit_version()"),
        ("`ReplayOf::feed()`", "`Replay2::feed()`", "src/sim/policy.hpp has no Replay2::feed()"),
        ("**`src/sim/account.cpp`**, ", "", "cost_of() is named without its file"),
        ("`src/rma/operations.cpp`", "`src/rma/window.cpp`", "src/rma/window.cpp has no put()"),
    ],
)
def test_a_wrong_function_of_a_walk_is_found(old, new, finding):
    assert finding in list(pages.wrong_functions(spoilt(page("docs/walks.md"), old, new)))


def test_every_recipe_names_at_most_three_files():
    contributing = page("CONTRIBUTING.md")
    assert list(pages.wrong_recipes(contributing)) == []
    assert len(pages.recipes_of(contributing)) >= 7
    more = ", ".join(f"`docs/{name}.md`" for name in "abcd")
    many = spoilt(contributing, "Files: ", f"Files: {more}, ")
    assert len(list(pages.wrong_recipes(many))) >= 7
    assert list(pages.wrong_recipes(spoilt(contributing, "Forgotten: ", "")))


def test_the_variables_are_those_that_the_code_reads():
    environment = page("docs/environment.md")
    assert pages.wrong_variables(environment) == []
    assert len(pages.variables_read()) > 50
    wrong = pages.wrong_variables(spoilt(environment, "`PERDURE_POOL`", "`PERDURE_POND`"))
    both = ["variable PERDURE_POOL is not documented", "there is no variable PERDURE_POND"]
    assert wrong == both + [f"src/base/environment.cpp: {each}" for each in both]


def test_the_layers_are_those_of_the_layer_file():
    design = page("docs/design.md")
    assert pages.wrong_layers(design) == []
    assert pages.wrong_layers(spoilt(design, "| `model` | `base` |", "| `model` | `base` `pmem` |"))
    assert pages.wrong_layers(spoilt(design, "| `sim` |", "| `simulator` |"))


def test_the_policies_are_those_of_the_simulator():
    simulator = page("docs/simulator.md")
    assert pages.wrong_policies(simulator) == []
    assert pages.wrong_policies(spoilt(simulator, "| `lru` |", "| `mru` |")) == [
        "policy lru is not documented", "there is no policy mru"]  # fmt: skip


def test_the_ends_are_those_of_the_code():
    ends = page("docs/ends.md")
    assert pages.wrong_ends(ends) == []
    assert pages.wrong_ends(spoilt(ends, "| window |", "| door |")) == [
        "docs/ends.md has no row 'window' for OpenKind::windows"]  # fmt: skip
    assert pages.wrong_ends(spoilt(ends, "ends with 122", "ends with 121")) == [
        "docs/ends.md does not say that a process ends with 122"]  # fmt: skip


def test_the_verbs_are_those_of_the_command():
    cli = page("docs/cli.md")
    assert pages.wrong_verbs(cli) == []
    assert pages.wrong_verbs(spoilt(cli, "`perdure sim report", "`perdure sim reports")) == [
        "verb sim report is not documented", "there is no verb sim reports"]  # fmt: skip


def test_the_benchmarks_are_those_of_the_command():
    cli = page("docs/cli.md")
    assert pages.wrong_benchmarks(cli) == []
    assert pages.wrong_benchmarks(spoilt(cli, "| `memsim` |", "| `memsin` |")) == [
        "benchmark memsim is not documented", "there is no benchmark memsin"]  # fmt: skip


def test_the_options_are_those_of_the_command():
    cli = page("docs/cli.md")
    assert pages.wrong_tables(cli, "docs/cli.md") == []
    wrong = spoilt(cli, "`--kill-rank`", "`--kill-ranks`")
    assert len(pages.wrong_tables(wrong, "docs/cli.md")) == 2


def test_the_settings_are_those_of_the_code():
    settings = page("docs/environment.md")
    assert pages.wrong_tables(settings, "docs/environment.md") == []
    wrong = spoilt(settings, "| `PERDURE_CHECK` | a store ", "| `PERDURE_CHECK` | a load ")
    assert len(pages.wrong_tables(wrong, "docs/environment.md")) == 2


def test_the_exit_codes_are_those_of_the_code_and_name_verbs_that_there_are():
    cli = page("docs/cli.md")
    assert len(pages.wrong_tables(spoilt(cli, "| 86 | `ipv check` |", "| 87 | `ipv check` |"),
                                  "docs/cli.md")) == 2
    assert {verb for each in pages.exits() for verb in each.verbs} <= set(pages.verbs())


@pytest.mark.parametrize(
    ("command", "finding"),
    [
        ("perdure run --restarts 5 -- ./solver --quick", None),
        ("./perdure bench ipv --quick | tools/figures.py take ipv", None),
        ("perdure trace -o cg.ptrace --size=2M -- ./cg.B", None),
        ("perdure energy profile /scratch --max-bytes 2GiB", None),
        ("perdure runs -- ./solver", "no verb runs"),
        ("perdure run --dram 1GiB -- ./solver", "run has no --dram"),
        ("perdure pool ls --data", "pool ls has no --data"),
        ("perdure config --cflag", "config has no --cflag"),
        ("pip install '.[torch,darshan]'", None),
        ("pip install '.[tensorflow]'", "no extra tensorflow"),
        ("pip install 'perdure[darshan]'", "the package is in no index: pip install ."),
        ("make tests", "no target tests"),
    ],
)
def test_a_command_that_is_none_is_found(command, finding):
    assert commands.Checker(pages.BUILD).problem(command) == finding


def test_commands_within_commands_are_looked_at(tmp_path):
    (tmp_path / "page.md").write_text("    cc -o s s.c $(perdure config --libs) && make test\n")
    found = commands.commands_of(tmp_path / "page.md")
    assert found == ["cc -o s s.c $(perdure config --libs)", "perdure config --libs", "make test"]


def test_the_glossary_explains_a_word_once():
    glossary = page("docs/glossary.md")
    assert pages.wrong_glossary(glossary) == []
    assert pages.wrong_glossary(spoilt(glossary, "| **law** |", "| **pool** |")) == [
        "'pool' is explained twice"]  # fmt: skip


def test_the_glossary_has_no_more_than_a_hundred_words():
    glossary = page("docs/glossary.md")
    words = glossary.count("\n| **")
    rows = [f"| **word {n}** | means | |\n" for n in range(101 - words)]
    assert pages.wrong_glossary(glossary + "".join(rows[1:])) == []
    assert pages.wrong_glossary(glossary + "".join(rows)) == [
        "101 words, at most 100: merge two, or define one where it is used"]  # fmt: skip


def test_the_picture_is_what_its_script_draws():
    script = [sys.executable, str(ROOT / "docs/pictures/draw_parts.py"), "--check"]
    assert subprocess.run(script, check=False).returncode == 0


def test_the_readme_is_short():
    seen = re.sub(r"<!--.*?-->\n", "", page("README.md"), flags=re.DOTALL)
    assert len(seen.splitlines()) <= 180


def sources(folder: str, ending: str) -> list[str]:
    names = ("perdure", "perdure_mpi", "perdure_ipv")
    return [page(f"{folder}/{name}{ending}") for name in names]


def test_every_call_has_its_name_in_every_language():
    headers = "".join(sources("include/perdure", ".h"))
    declared = set(re.findall(r"^PERDURE_API .*?\b(perdure_\w+)\(", headers, re.M))
    table = page("docs/languages.md").partition("\n| C |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| `(perdure_\w+)` \| (.*) \|$", table, re.M))
    assert set(rows) == declared
    fortran, cpp = "".join(sources("fortran", ".f90")), page("docs/cpp.md")
    python = page("docs/python.md") + page("python/perdure/windows.py")
    for call, cells in rows.items():
        in_cpp, in_fortran, in_python = cells.split(" | ")
        assert re.findall(r"\w+", in_fortran)[0] in re.findall(r"\w+", fortran), call
        assert set(re.findall(r"(\w+)\(", in_cpp)) <= set(re.findall(r"\w+", cpp)), call
        name = re.findall(r"(\w+)(?:\(.*?\))?`", in_python)
        assert name or "none (1)" in in_python or "class" in in_python, call
        assert set(name) <= set(re.findall(r"\w+", python)), call
