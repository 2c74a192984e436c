# SPDX-License-Identifier: BSD-3-Clause
"""tools/tidy.py: every rule finds what it is for, and leaves good code alone."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as draw

import tidy
import tidy_english
import tidy_labels
import tidy_licence
import tidy_sentences

LAYERS = "perdure ⇐\nbase ⇐\npmem ⇐ base\npool ⇐ base pmem\nsim ⇐ base\napps ⇐ perdure\n"


@pytest.fixture
def findings(tmp_path, monkeypatch):
    """Writes {path: text} as a repository and returns what tidy finds, as strings."""
    monkeypatch.setattr(tidy.shutil, "which", lambda _: None)  # clang-format has its own test
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/layers.txt").write_text(LAYERS)

    def check(files: dict[str, str]) -> list[str]:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return [str(finding) for finding in tidy.check_all(tmp_path, list(files))]

    return check


def one(found: list[str], start: str, word: str) -> None:
    assert len(found) == 1 and found[0].startswith(start) and word in found[0], found


def test_clean_files_have_no_findings(findings):
    assert not findings(
        {
            "src/pool/a.cpp": '#include "pool/a.hpp"\n#include "pmem/b.hpp"\n',
            "src/pool/CMakeLists.txt": "perdure_module(pool SOURCES a.cpp DEPS base pmem)\n",
            "README.md": "# Title\n\nSee [the next](docs/next.md#two-words) and `[x](gone.md)`.\n",
            "docs/next.md": "# Next\n\n## Two words\n",
        }
    )


@pytest.mark.parametrize(
    "path, text",
    [
        ("src/sim/a.cpp", '#include "pmem/b.hpp"\n'),
        ("src/base/a.hpp", '#include "pool/b.hpp"\n'),
        ("include/perdure/a.h", '#include "base/b.hpp"\n'),
        ("apps/a.cpp", '#include "pool/b.hpp"\n'),
        ("src/pmem/CMakeLists.txt", "perdure_module(pmem\n  SOURCES a.cpp\n  DEPS base pool)\n"),
        ("src/sim/CMakeLists.txt", "perdure_module(s_@ FOLDER sim DEPS pmem_@_layer)\n"),
    ],
)
def test_edges_that_layers_forbid_are_found(findings, path, text):
    one(findings({path: text}), f"{path}:1:", "may not use")


def test_modules_that_layers_do_not_name_are_found(findings):
    one(findings({"src/extra/a.cpp": "int a;\n"}), "src/extra/a.cpp:1:", "not in tools/layers.txt")


def test_commented_includes_are_no_edges(findings):
    text = '// #include "pmem/b.hpp"\n/*\n#include "pmem/c.hpp"\n*/\n'
    assert not findings({"src/sim/a.cpp": text})


def body(lines: int) -> str:
    return "  x++;\n" * lines


@pytest.mark.parametrize(
    "head",
    [
        "int f(int x) {\n",
        "auto f(int x) -> int {\n",
        "template <typename T>\nvoid A<T>::f(int x) const noexcept {\n",
        "A::A(int x) : B(x), c_{x} {\n",
        "namespace a {\nclass B {\n  void f(int x) override {\n",
        'extern "C" {\nvoid f(int x) {\n',
        "#define M(x) { x }\nstatic void f(void) {\n",
        "TEST(Suite, name_is_a_sentence) {\n",
        "void f(const char* s = \"{\", char c = '{') {\n",
    ],
)
def test_function_of_71_lines_is_found_whatever_its_head(findings, head):
    opened = head.count("{\n")
    end = "}\n" * opened
    assert not findings({"src/base/a.cpp": head + body(67) + end})
    one(findings({"src/base/a.cpp": head + body(69) + end}), "src/base/a.cpp:", "a function has")


def test_long_initialisers_classes_and_namespaces_are_no_functions(findings):
    table = "int table[] = {\n" + "  1,\n" * 90 + "};\n"
    group = "namespace a {\nstruct B {\n" + "  int x;\n" * 90 + "};\n}\n"
    assert not findings({"src/base/a.cpp": table, "src/base/b.hpp": group})


def test_lambdas_count_with_their_function(findings):
    inner = "  auto g = [](int x) {\n" + body(66) + "  };\n"
    text = "void f() {\n" + inner + "  g(1);\n}\n"
    one(findings({"src/base/a.cpp": text}), "src/base/a.cpp:1:", "71 lines")


MANY = "".join(f"  int a{i}_ = {i};\n" for i in range(15))


def test_a_class_of_16_fields_is_found(findings):
    text = "class Big final : public Base {\n public:\n  int size() const { return a1_; }\n"
    more = ("  std::function<void(int)> call_;\n", "  Thing<int> thing_{a0_};\n", "  int b_[3];\n")
    assert findings({"src/pool/some.hpp": text + MANY + "};\n"}) == []
    for field in more:
        found = findings({"src/pool/some.hpp": text + MANY + field + "};\n"})
        assert "Big has 16 fields" in " ".join(map(str, found))


def test_what_is_no_field_of_the_class_does_not_count(findings):
    inner = "  struct Inner {\n    int x_;\n  };\n  void set(int y_);\n  Big() : a0_(1) {}\n"
    text = "class Big {\n" + MANY + inner + "};\n"
    assert findings({"src/pool/some.hpp": text}) == []
    assert findings({"tests/pool/some_test.cpp": "class Big {\n" + MANY + "  int b_;\n};\n"}) == []


def test_python_functions_files_and_lines_have_limits(findings):
    long = "def f():\n" + "    pass\n" * 70
    one(findings({"tools/a.py": long}), "tools/a.py:1:", "71 lines; a function")
    one(findings({"tools/b.py": "a = 1\n" * 801}), "tools/b.py:0:", "801 lines; a file")
    one(findings({"tools/c.py": "#" * 101 + "\n"}), "tools/c.py:1:", "101 columns")


@pytest.mark.parametrize(
    "path, text",
    [
        ("src/pool/a.cpp", "void f() { _mm_clwb(p); }\n"),
        ("src/pool/a.cpp", "void f() { _mm_sfence(); }\n"),
        ("src/pool/a.cpp", "void f() { _mm512_stream_si512(p, v); }\n"),
        ("src/pool/a.cpp", "void f() { __builtin_ia32_clflushopt(p); }\n"),
        ("src/pool/a.cpp", 'void f() { asm volatile("sfence"); }\n'),
        ("src/pool/a.cpp", "#include <mpi.h>\n"),
        ("src/pool/a.cpp", "void f() { PMPI_Barrier(c); }\n"),
        ("include/perdure/a.h", "int f(MPI_Comm comm);\n"),
        ("apps/a.cpp", "void f() { strcpy(a, b); }\n"),
        ("src/pool/a.cpp", "int f() { return ::open(a, O_RDONLY); }\n"),
        ("src/pool/b.cpp", "void f() { ::unlink(a); }\n"),
        ("src/pmem/b.cpp", "std::ofstream file(a);\n"),
        ("src/pmem/a.cpp", "int f() { return shm_open(a, 0, 0600); }\n"),
        ("src/pool/a.cpp", "int fd = ::socket(AF_INET, SOCK_STREAM, 0);\n"),
        ("src/pool/a.cpp", "long fd = ::syscall(SYS_userfaultfd, O_CLOEXEC);\n"),
        ("src/pool/a.cpp", "FileHandle copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));\n"),
        ("src/pool/a.cpp", 'const char* text = std::getenv("HOME");\n'),
        ("src/pool/a.cpp", 'const char* text = ::secure_getenv("HOME");\n'),
        ("src/pool/a.cpp", "int failed = ::flock(fd, LOCK_EX);\n"),
        ("python/perdure/a.py", "path.write_text(text)\n"),
        ("python/perdure/run/a.py", "file = open(path, 'w')\n"),
        ("apps/a.cpp", "void f() { sprintf(a, b); }\n"),
        ("tests/a.cpp", "int f() { return rand(); }\n"),
        ("tests/a.cpp", "using namespace std;\n"),
    ],
)
def test_banned_calls_are_found(findings, path, text):
    one(findings({path: text}), f"{path}:1:", ":")


def test_banned_calls_are_allowed_where_they_belong(findings):
    assert not findings(
        {
            "src/pmem/a.cpp": "void f() { _mm_sfence(); }\n",
            "src/pool/a.cpp": '// MPI_Barrier, strcpy(\nauto t = "rand()"; int operand(int);\n',
            "include/perdure/perdure_mpi.h": "#include <mpi.h>\nint f(MPI_Comm comm);\n",
            "apps/a.cpp": "#include <mpi.h>\nvoid f() { snprintf(a, 1, b); ::unlink(b); }\n",
            "src/base/files.cpp": "int f() { return ::openat(a, b, 0); }\n",
            "src/pool/a_test.cpp": "std::ofstream file(a);\n",
            "src/sim/a.cpp": "FileHandle handle(::socket(AF_INET, SOCK_STREAM, 0));\n",
            "src/base/environment.cpp": 'auto text = ::secure_getenv("HOME");\n',
            "src/base/file_handle.cpp": "int f() { return ::flock(fd, LOCK_EX); }\n",
            "python/perdure/a.py": "text = open(path).read()\n",
            "python/perdure/files.py": "path.write_text(text)\n",
        }
    )


@pytest.mark.parametrize(
    "text, word",
    [
        ("# TO" + "DO: more\n", "do it"),
        ("path = '/wo" + "rk/main'\n", "path of one machine"),
        ("cd /ho" + "me/someone\n", "path of one machine"),
        ("cd /ro" + "ot\n", "path of one machine"),
        ("a\tb\n", "tab"),
        ("a \n", "blanks"),
        ("a", "no newline"),
    ],
)
def test_text_rules(findings, text, word):
    one(findings({"notes.txt": text}), "notes.txt:1:", word)


def test_paths_and_words_that_only_look_alike_are_left_alone(findings):
    fine = "${X}/home/a https://h.org/home/a TODOS src/home/b ../home/a the /root-like 8/home\n"
    assert not findings({"notes.txt": fine})


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        ("docs/a.md", "# A\n\nWhat can not be read.\n", "cannot"),
        ("docs/a.md", "# A\n\nAll files but for one.\n", "except for"),
        ("docs/a.md", "# A\n\nThe pass runs behind the others.\n", "after"),
        ("docs/a.md", "# A\n\nRanks that have it open yet.\n", "still"),
        ("docs/a.md", "# A\n\nWho waits longer goes ahead.\n", "a process that"),
        ("docs/a.md", "# A\n\nWhat stands there is old.\n", "what is there"),
        ("docs/a.md", "# A\n\nLines that have no own colour.\n", "of its own"),
        ("src/pool/a.hpp", "// It is in use by who has it open.\n", "by whoever"),
        ("src/base/a.cpp", "  // It is the same on all ranks, but\n  // for one.\n", "except for"),
        ("src/base/a.cpp", "int behind = 0;\n", "after"),
        ("pass/a.cpp", "int told = 0;  // Rows stand at its end.\n", "is"),
        ("python/perdure/a.py", "told = 1\n", "reported"),
        ("tests/a/CMakeLists.txt", "# It shall not fail.\n", "should"),
        ("include/perdure/a.h", "/* It is told on stderr. */\n", "reported"),
        ("src/base/a.cpp", 'const char* a = "a file that is none";\n', "is not one"),
    ],
)
def test_english_that_is_translated_is_found(findings, path, text, word):
    one(findings({path: text}), f"{path}:", word)


@given(draw.sampled_from(tidy_english.WORDS).flatmap(
    lambda turn: draw.from_regex(turn[0], fullmatch=True)))
def test_each_turn_has_a_sign_by_which_it_is_found(turn):
    assert any(sign in turn.lower() for sign in tidy_english.SIGNS), turn


def test_english_that_only_looks_alike_is_left_alone(findings):
    text = "# A\n\nNothing was committed yet. It cannot only fail. Left behind, far behind.\n"
    assert not findings({"docs/a.md": text + "\n## Who is trusted\n\nWho waits?\n"})
    assert not findings({"docs/a.md": "# A\n\nIt is all we want, but\n\nfor one it is not.\n"})
    assert not findings({"docs/a.md": "# A\n\nIt stands for a name, and\nis not there yet.\n"})
    assert not findings({"pass/a.cpp": "int behind = told;\n"})
    assert not findings({"LICENSE": "IN NO EVENT SHALL WE\n"})


@pytest.mark.parametrize("path", ["src/base/string_utils.hpp", "tools/common/a.txt"])
def test_names_that_say_nothing_are_found(findings, path):
    one(findings({path: "\n"}), f"{path}:0:", "says nothing")


def test_markdown_rules(findings):
    one(findings({"a.md": "No title\n"}), "a.md:1:", "title")
    one(findings({"b.md": "# B\n\n[gone](gone.md)\n"}), "b.md:3:", "dead link")
    one(findings({"c.md": "# C\n\n[x](#nowhere)\n"}), "c.md:3:", "no such heading")
    assert not findings({"d.md": "# D\n\n[x](https://example.org/gone.md) [y](../)\n"})


LONG = "The pool " + "and the array " * 12 + "are whole."
SHORT = "A pool is whole. "


@pytest.mark.parametrize("page", ["README.md", "docs/new.md", "apps/hpl/README.md"])
def test_a_page_with_too_many_long_sentences_is_found(findings, page):
    assert not findings({page: "# Title\n\n" + SHORT * 49 + LONG + "\n"})
    found = findings({page: "# Title\n\n" + SHORT * 48 + LONG + "\n"})
    one(found, f"{page}:0", "1 of 49 sentences have over 35 words: 40 in 'The pool and the array")


def test_the_changelog_may_have_long_sentences(findings):
    assert not findings({"CHANGELOG.md": f"# Title\n\n{LONG}\n"})


def test_tables_code_and_comments_have_no_sentences():
    rows = "| " + "word " * 40 + "|\n- \n  | " + "word " * 40 + "|\n"
    code = "```\n" + "word " * 40 + "\n```\n\n    " + "word " * 40 + "\n"
    comment = "<!-- " + "word " * 40 + "-->\n"
    assert tidy_sentences.sentences(f"# Title\n\n{rows}\n{code}\n{comment}") == []


def test_items_are_counted_with_the_lines_below_them():
    items = "- One item\n  goes on. It has two.\n- Another, e.g. this.\n\nA [link](to/a.md).\n"
    assert tidy_sentences.sentences(items) == [
        "One item goes on.", "It has two.", "Another, e.g this.", "A [link]."]  # fmt: skip


def test_a_mutant_whose_text_is_gone_or_there_twice_is_found(findings):
    mutants = '[{"name": "m", "file": "src/base/a.cpp", "find": "int a;", "replace": ""}]\n'
    listed = {"tests/mutants/mutants.json": mutants}
    assert not findings(listed | {"src/base/a.cpp": "int a;\n"})
    one(findings(listed | {"src/base/a.cpp": "int b;\n"}), "tests/mutants/", "occurs 0 times")
    one(findings(listed | {"src/base/a.cpp": "int a;\nint a;\n"}), "tests/mutants/", "2 times")


def test_unformatted_code_is_found(tmp_path):
    if shutil.which("clang-format-19") is None:
        pytest.skip("clang-format-19 is not installed")
    (tmp_path / ".clang-format").write_text("BasedOnStyle: Google\n")
    (tmp_path / "a.cpp").write_text("int  f( ){return 1 ;}\n")
    (tmp_path / "b.cpp").write_text("int f() { return 1; }\n")
    files = [tidy.SourceFile(tmp_path, name) for name in ("a.cpp", "b.cpp")]
    found = [str(finding) for finding in tidy.check_format(files, tmp_path)]
    one(found, "a.cpp:1:", "not formatted")


def test_it_covers_the_repository_and_exits_with_1_on_findings(tmp_path, monkeypatch, capsys):
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/layers.txt").write_text(LAYERS)
    (tmp_path / "a.md").write_text("no title\n")
    monkeypatch.setattr(tidy.sys, "argv", ["tidy.py", "--root", str(tmp_path)])
    assert tidy.main() == 1
    assert "a.md:1: does not start with a title" in capsys.readouterr().out


@pytest.fixture
def history(tmp_path):
    """Commits {path: text} with a message, and returns what tidy finds in the last commit."""

    def git(*words: str) -> None:
        name = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "base: the first")

    def commit(message: str, files: dict[str, str]) -> list[str]:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", message)
        return [what for _, what in tidy.check_commits(tmp_path, "HEAD~1..HEAD")]

    return commit


CODE = {"src/pool/a.cpp": "int a() { return 1; }\n"}


def test_commits_that_say_why_have_no_findings(history):
    assert not history("pool: a is 1\n\nIt was 2, which nobody could use.\n", CODE)
    assert not history("tests: a is tested", {"src/pool/a_test.cpp": "int b();\n"})
    assert not history("pool: what a is", {"src/pool/a.cpp": "// One.\n" + CODE["src/pool/a.cpp"]})


def test_a_change_of_the_product_without_a_body_is_found(history):
    (what,) = history("pool: a is 1", CODE)
    assert "no body" in what


@pytest.mark.parametrize("subject, word", [("pool: " + "a" * 55, "61 columns"),
                                           ("A is 1", "area: what changes")])
def test_subjects_that_are_too_long_or_name_no_area_are_found(history, subject, word):
    (what,) = history(subject, {"docs/a.txt": subject})
    assert word in what


def test_a_range_that_git_does_not_know_is_an_error(history, tmp_path):
    with pytest.raises(SystemExit, match="nowhere"):
        list(tidy.check_commits(tmp_path, "nowhere..HEAD"))


@pytest.mark.parametrize(
    "name, before, after",
    [
        ("a.cpp", "int a;\n", "// {}\nint a;\n"),
        ("a.hpp", "// A thing.\n", "// {}\n//\n// A thing.\n"),
        ("a.py", '"""A."""\n', '# {}\n"""A."""\n'),
        ("a", "#!/bin/sh\n# A.\n", "#!/bin/sh\n# {}\n#\n# A.\n"),
        ("CMakeLists.txt", "add_test(a)\n", "# {}\nadd_test(a)\n"),
        ("a.f90", "module a\n", "! {}\nmodule a\n"),
        ("a.lua.in", "-- A.\n", "-- {}\n--\n-- A.\n"),
    ],
)
def test_code_without_its_licence_is_found_and_mended(tmp_path, name, before, after):
    (tmp_path / name).write_text(before)
    (found,) = tidy.check_licences(tmp_path, [name])
    assert "tools/tidy_licence.py" in found.message
    changed = tidy_licence.with_line(name, before)
    assert changed == after.format(tidy_licence.LINE)
    (tmp_path / name).write_text(changed)
    assert not list(tidy.check_licences(tmp_path, [name]))


def test_what_is_no_code_needs_no_licence_line(tmp_path):
    (tmp_path / "a.md").write_text("# A\n")
    (tmp_path / "a.json").write_text("{}\n")
    (tmp_path / "py.typed").write_text("")
    assert not list(tidy.check_licences(tmp_path, ["a.md", "a.json", "py.typed"]))


DEFINED = ["//   pool.I1  At every instant", "//       all is whole: more.", "// Threads: one."]


def labels_found(**texts: list[str]) -> list[str]:
    files = [(name.replace("__", "/") + ".hpp", lines) for name, lines in texts.items()]
    page = tidy_labels.page(each for each, _ in tidy_labels.definitions(files))
    files.append((tidy_labels.PAGE, page.splitlines()))
    return [f"{path}:{line}: {what}" for path, line, what in tidy_labels.check_labels(files)]


def test_labels_that_are_defined_once_and_mentioned_are_right():
    assert labels_found(src__pool__commit=DEFINED, src__mpi__a=["// by pool.I1, it is so"]) == []


@pytest.mark.parametrize("texts, what", [
    ({"src__pool__a": ["//   I1  Without a prefix"]}, "prefix: pool.I1"),
    ({"src__pool__a": ["//   levels.I1  With another's"]}, "prefix: pool.I1"),
    ({"src__pool__a": DEFINED, "src__pool__b": DEFINED}, "is defined in src/pool/a.hpp:1"),
    ({"src__pool__a": DEFINED, "src__mpi__b": ["// as pool.I2"]}, "pool.I2 is defined nowhere"),
])
def test_labels_that_are_not_are_found(texts, what):
    found = labels_found(**texts)
    assert len(found) == 1 and what in found[0], found


def test_the_page_of_labels_has_the_first_sentence_of_each():
    found = tidy_labels.definitions([("src/pool/commit.hpp", DEFINED)])
    assert "| pool.I1 | At every instant all is whole. |" in tidy_labels.page(d for d, _ in found)
    old = [("src/pool/commit.hpp", DEFINED), (tidy_labels.PAGE, [])]
    wrong = ["is not what the sources say: run tools/tidy_labels.py --write"]
    assert [what for _, _, what in tidy_labels.check_labels(old)] == wrong
