#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The house rules that a machine can check: layers, lengths, banned calls, paths, Markdown.

    tools/tidy.py [--root DIR] [FILE…]     all files of the repository, or the ones named
    tools/tidy.py --commits RANGE          what these commits say of themselves (tidy_commits.py)

Prints one line per finding, "path:line: what", and exits with 1 if there is any. What each rule
wants is in the docstring of its function. Rules look at code with comments and strings
blanked, unless they are about text.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import tidy_classes
import tidy_english
import tidy_labels
import tidy_licence
import tidy_sentences
from tidy_commits import check_commits

FUNCTION_LINES = 70
FILE_LINES = 800
LINE_COLUMNS = 100
C_SUFFIXES = {".c", ".h", ".cpp", ".hpp"}
CODE_SUFFIXES = C_SUFFIXES | {".py", ".sh", ".cmake", ".f90", ".in"}
BINARY_SUFFIXES = {".png", ".svg", ".pdf", ".gz", ".bin"}
# Kept as their authors wrote them: measured or published material, and what fuzzing found.
VERBATIM_FOLDERS = ("data/", "tests/fuzz/found/")


@dataclass(frozen=True, order=True)
class Finding:
    """One broken rule; line 0 means the whole file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class SourceFile:
    """A file of the repository; `path` is relative to `root`, with forward slashes."""

    def __init__(self, root: Path, path: str):
        self.root = root
        self.path = path
        self.suffix = Path(path).suffix
        self.name = Path(path).name

    @cached_property
    def text(self) -> str:
        return (self.root / self.path).read_text(encoding="utf-8", errors="replace")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def code(self) -> str:
        """C and C++ with comments and literals blanked; other files as they are."""
        return blank_c(self.text) if self.is_c else self.text

    @property
    def is_c(self) -> bool:
        return self.suffix in C_SUFFIXES

    @property
    def is_code(self) -> bool:
        return self.suffix in CODE_SUFFIXES or self.name == "CMakeLists.txt"

    @property
    def module(self) -> str | None:
        """The layer the file belongs to, by its folder."""
        parts = self.path.split("/")
        if parts[0] == "src" and len(parts) > 2:
            return parts[1]
        if self.path.startswith("include/perdure/"):
            return "perdure"
        return "apps" if parts[0] == "apps" else None

    def finding(self, line: int, message: str) -> Finding:
        return Finding(self.path, line, message)


_C_TOKEN = re.compile(
    r'''//[^\n]*|/\*.*?\*/|R"(?P<tag>\w*)\(.*?\)(?P=tag)"'''
    r'''|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+\'''',
    re.DOTALL,
)


def blank_c(text: str) -> str:
    """`text` with comments and literals blanked, line by line; #include lines are kept."""

    def blanked(match: re.Match) -> str:
        before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        if before.lstrip().startswith("#include"):
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())

    return _C_TOKEN.sub(blanked, text)


def only_text(text: str) -> str:
    """The comments of C and C++ code, and its literals that hold a blank; all else is blanked."""
    kept = [" " if letter != "\n" else "\n" for letter in text]
    for match in _C_TOKEN.finditer(text):
        if match.group().startswith("/") or match.group().startswith('"') and " " in match.group():
            kept[match.start() : match.end()] = match.group()
    return "".join(kept)


def line_of(text: str, position: int) -> int:
    """The number, from 1, of the line at `position`."""
    return text.count("\n", 0, position) + 1


# --- layers --------------------------------------------------------------------------------------


def read_layers(root: Path) -> dict[str, set[str]]:
    """tools/layers.txt: each module with the modules it may use."""
    layers = {}
    for line in (root / "tools/layers.txt").read_text(encoding="utf-8").splitlines():
        if "⇐" in line and not line.startswith("#"):
            module, allowed = line.split("⇐")
            layers[module.strip()] = set(allowed.split())
    return layers


def check_includes(file: SourceFile, layers: dict[str, set[str]]) -> Iterator[Finding]:
    """A module includes itself and what layers.txt allows; a folder of src/ is named there."""
    if not file.is_c or file.module is None:
        return
    if file.module not in layers:
        yield file.finding(1, f"module '{file.module}' is not in tools/layers.txt")
        return
    allowed = layers[file.module] | {file.module}
    for match in re.finditer(r'^#include ["<](\w+)/', file.code, re.MULTILINE):
        used = match.group(1)
        if used in layers and used not in allowed:
            line = line_of(file.code, match.start())
            yield file.finding(line, f"'{file.module}' may not use '{used}' (tools/layers.txt)")


def check_cmake_deps(file: SourceFile, layers: dict[str, set[str]]) -> Iterator[Finding]:
    """DEPS of perdure_module() in src/ name only what layers.txt allows."""
    if file.name != "CMakeLists.txt" or not file.path.startswith("src/"):
        return
    for match in re.finditer(r"perdure_module\(\s*([\w@]+)([^)]*)\)", file.text):
        words = match.group(2).split()
        module = (_words_after(words, "FOLDER") or [_without_flavour(match.group(1))])[0]
        line = line_of(file.text, match.start())
        if module not in layers:
            yield file.finding(line, f"module '{module}' is not in tools/layers.txt")
            continue
        for used in map(_without_flavour, _words_after(words, "DEPS")):
            if used not in layers[module]:
                yield file.finding(line, f"'{module}' may not use '{used}' (tools/layers.txt)")


def _without_flavour(target: str) -> str:
    """The module of a target that is made once per MPI: mpi_@_layer is mpi."""
    return target.removesuffix("_@_layer")


def _words_after(words: list[str], key: str) -> list[str]:
    """The words between `key` and the next word in capitals."""
    found = []
    if key in words:
        for word in words[words.index(key) + 1 :]:
            if word.isupper():
                break
            found.append(word)
    return found


# --- lengths -------------------------------------------------------------------------------------

_NOT_A_FUNCTION = re.compile(
    r"^\s*(?:else\b|do\b|try\b|extern\b|namespace\b|(?:typedef\s+)?(?:class|struct|union|enum)\b)"
    r"|\b(?:if|for|while|switch|catch)\s*\(|=\s*$|\breturn\b"
)
_FUNCTION_HEAD = re.compile(
    r"\)\s*(?:(?:const|noexcept|override|final|mutable|&&?|->\s*[\w:<>,&*\s]+|:\s.*)\s*)*$",
    re.DOTALL,
)
_MEMBER_INITIALISER = re.compile(r"\)\s*(?:noexcept\s*)?:\s[^;]*[\w>]$")  # then "{" opens no body


def c_functions(code: str) -> Iterator[tuple[int, int]]:
    """First and last line of each function body's definition; lambdas count with their function."""
    depth_inside = depth_initialiser = 0  # braces open since the function, the initialiser began
    start = head_start = 0
    for match in re.finditer(r"[{};]", code):
        mark, position = match.group(), match.start()
        if depth_inside:
            depth_inside += {"{": 1, "}": -1}.get(mark, 0)
            if depth_inside == 0:
                yield start, line_of(code, position)
                head_start = position + 1
            continue
        if mark != "{" and not depth_initialiser:
            head_start = position + 1
            continue
        head = _without_preprocessor(code[head_start:position])
        if depth_initialiser or _MEMBER_INITIALISER.search(head):
            depth_initialiser += {"{": 1, "}": -1}.get(mark, 0)
        elif _FUNCTION_HEAD.search(head) and not _NOT_A_FUNCTION.search(head):
            depth_inside = 1
            lead = code[head_start:position]
            start = line_of(code, head_start + len(lead) - len(lead.lstrip()))
        else:
            head_start = position + 1


def _without_preprocessor(text: str) -> str:
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.MULTILINE)


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of each function, without its decorators."""
    left: list[ast.AST] = [ast.parse(text)]
    while left:
        node = left.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):  # where functions are
            found = getattr(node, part, ())
            left += found if isinstance(found, list) else ()


def check_lengths(file: SourceFile) -> Iterator[Finding]:
    """Functions, files and lines of code end before their limits."""
    if not file.is_code:
        return
    if len(file.lines) > FILE_LINES:
        yield file.finding(0, f"{len(file.lines)} lines; a file has at most {FILE_LINES}")
    for number, line in enumerate(file.lines, 1):
        if len(line) > LINE_COLUMNS:
            yield file.finding(number, f"{len(line)} columns; a line has at most {LINE_COLUMNS}")
    functions: Iterator[tuple[int, int]] = iter(())
    if file.is_c:
        functions = c_functions(file.code)
    elif file.suffix == ".py":
        functions = python_functions(file.text)
    for first, last in functions:
        if last - first + 1 > FUNCTION_LINES:
            length = last - first + 1
            yield file.finding(first, f"{length} lines; a function has at most {FUNCTION_LINES}")


# --- banned calls --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ban:
    """What must not be in C and C++ code, except below the folders where it may.

    All that the pattern finds has one of the signs in it, which are looked for first: it is faster.
    """

    pattern: re.Pattern
    signs: tuple[str, ...]
    reason: str
    allowed: tuple[str, ...] = ()
    allowed_in_tests: bool = False


BANS = (
    Ban(
        re.compile(r"\b_mm\w*_(?:clwb|clflush\w*|[slm]fence|stream\w*)\b|\b__builtin_ia32_\w+"),
        ("_mm", "__builtin_ia32_"),
        "only src/pmem flushes and fences",
        ("src/pmem/", "bench/ipv_update.cpp"),  # a contender: stores past the cache by hand
    ),
    Ban(
        re.compile(r"\basm\b|\b__asm(?:__)?\b"),
        ("asm",),
        "assembly belongs to src/pmem, and to the jumps of exported names",
        ("src/pmem/", "src/mpi/exported_calls.hpp"),
    ),
    Ban(
        re.compile(r"\bP?MPI_\w+|<mpi\.h>"),
        ("MPI_", "<mpi.h>"),
        "only the MPI layers know MPI",
        ("src/mpi/", "src/rma/", "src/mpiio/", "src/preload/", "src/capi/perdure_mpi_c.cpp",
         "include/perdure/perdure_mpi.h", "include/perdure/windows.hpp", "include/perdure/veloc/",
         "src/veloc/", "examples/", "apps/", "bench/", "tests/"),
    ),
    Ban(
        re.compile(
            r"(?<![\w>])::(?:open|openat|rename|unlink|mkdir|rmdir|remove|chmod|symlink)\s*\("
            r"|\b(?:creat|mkstemp|mkostemp|shm_open|shm_unlink|f(?:re)?open|openat|renameat"
            r"|unlinkat|mkdirat|symlinkat|opendir|remove_all|create_director(?:y|ies))\s*\("
            r"|\bfilesystem::(?:rename|remove)\b|\bstd::[io]?fstream\b|\bdirectory_iterator\b"
        ),
        ("open", "rename", "unlink", "mkdir", "rmdir", "remove", "chmod", "symlink", "creat",
         "mkstemp", "mkostemp", "fstream", "directory_iterator"),
        "files are opened, made and removed in src/base/files.cpp",
        ("src/base/files.cpp", "src/energy/testing/", "src/levels/testing/",
         "src/cache/testing/scratch_part.hpp", "apps/", "bench/", "examples/", "tests/"),
        allowed_in_tests=True,
    ),
    Ban(
        re.compile(
            r"^(?!.*\bFileHandle\b)[^\n]*(?:\bSYS_userfaultfd\b|::(?:socket|accept4?|eventfd"
            r"|memfd_create|epoll_create1?|timerfd_create|signalfd|inotify_init1?|pidfd_open)\s*\()"
            r"|\bF_DUPFD(?:_CLOEXEC)?,\s*[0-2]\b",
            re.MULTILINE,
        ),
        ("SYS_userfaultfd", "::socket", "::accept", "::eventfd", "::memfd_", "::epoll_",
         "::timerfd_", "::signalfd", "::inotify_", "::pidfd_", "F_DUPFD"),
        "a descriptor is given to a FileHandle at once, which puts it above 2",
        ("src/base/", "src/energy/testing/", "src/levels/testing/", "src/pmem/testing/", "apps/",
         "bench/", "tests/"),
        allowed_in_tests=True,
    ),
    Ban(
        re.compile(r"\b(?:secure_)?getenv\s*\("),
        ("getenv",),
        "variables are read in src/base/environment.cpp",
        ("src/base/environment.cpp", "src/device/testing/", "src/energy/testing/", "apps/",
         "bench/", "tests/"),
        allowed_in_tests=True,
    ),
    Ban(
        re.compile(r"::flock\s*\("),
        ("::flock",),
        "files are locked in src/base/file_handle.cpp, which waits for no one for ever",
        ("src/base/file_handle.cpp", "apps/", "bench/", "tests/"),
        allowed_in_tests=True,
    ),
    Ban(
        re.compile(r"\b(?:strcpy|strcat|sprintf|vsprintf|gets)\s*\("),
        ("strcpy", "strcat", "sprintf", "gets"),
        "has no bound",
    ),
    Ban(re.compile(r"\bs?rand\s*\("), ("rand",), "is not reproducible; seed a generator"),
    Ban(
        re.compile(r"\busing\s+namespace\s+std\b"),
        ("namespace",),
        "hides where names come from",
    ),
)  # fmt: skip


def check_bans(file: SourceFile) -> Iterator[Finding]:
    """No call of BANS outside the folders that may make it."""
    if not file.is_c:
        return
    for ban in BANS:
        if file.path.startswith(ban.allowed):
            continue
        if ban.allowed_in_tests and file.path.endswith("_test.cpp"):
            continue
        if not any(sign in file.code for sign in ban.signs):
            continue
        for match in ban.pattern.finditer(file.code):
            what = match.group().strip("( ")
            yield file.finding(line_of(file.code, match.start()), f"{what}: {ban.reason}")


_PYTHON_WRITES = re.compile(
    r"\.write_(?:text|bytes)\(|(?<![\w.])open\([^)\n]*[\"'][wax]b?\+?[\"']|\.open\([\"'][wax]"
    r"|\bmkstemp\(|\bos\.(?:rename|replace)\("
)


def check_python_writes(file: SourceFile) -> Iterator[Finding]:
    """The commands write files in python/perdure/files.py only."""
    ours = file.suffix == ".py" and file.path.startswith("python/perdure/")
    if not ours or file.path == "python/perdure/files.py":
        return
    for match in _PYTHON_WRITES.finditer(file.text):
        line = line_of(file.text, match.start())
        yield file.finding(line, f"{match.group()}: files are written in python/perdure/files.py")


# --- text ----------------------------------------------------------------------------------------

# Written so that this file does not break its own rules.
_LEFTOVERS = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "WI" + "P")
_LEFTOVER = re.compile(rf"\b(?:{'|'.join(_LEFTOVERS)})\b")
_ROOTS = ("/wo" + "rk", "/ho" + "me", "/ro" + "ot")
_MACHINE_PATH = re.compile(
    rf"(?<![\w.~$}})*/-])(?:{'|'.join(_ROOTS)})(?:/[\w.]|\b(?=[\"'`\s]|$))"
)
_BLANKS_AT_END = re.compile(r"[^\S\n](?:\n|\Z)")
_EMPTY_NAMES = re.compile(r"^(?:managers?|utils?|utilities|helpers?|common|misc)$")


def _may_have_findings(text: str) -> bool:
    """Of its lines, each of which is looked at only then."""
    signs = ("\t", *_LEFTOVERS, *_ROOTS)
    return any(sign in text for sign in signs) or _BLANKS_AT_END.search(text) is not None


def check_text(file: SourceFile) -> Iterator[Finding]:
    """No leftover-work words, no paths of one machine, no tabs, no blanks at the end of lines."""
    for number, line in enumerate(file.lines, 1) if _may_have_findings(file.text) else ():
        if match := _LEFTOVER.search(line):
            yield file.finding(number, f"'{match.group()}': do it, or open an issue")
        if match := _MACHINE_PATH.search(line):
            yield file.finding(number, f"'{match.group()}': a path of one machine")
        if "\t" in line and file.name != "Makefile":
            yield file.finding(number, "a tab")
        if line != line.rstrip():
            yield file.finding(number, "blanks at the end")
    if file.text and not file.text.endswith("\n"):
        yield file.finding(len(file.lines), "no newline at the end")


def check_classes(file: SourceFile) -> Iterator[Finding]:
    """No class of the product has more fields than tidy_classes allows."""
    if not tidy_classes.is_measured(file.path):
        return
    for position, message in tidy_classes.check_classes(file.code):
        yield file.finding(line_of(file.code, position), message)


def check_english(file: SourceFile) -> Iterator[Finding]:
    """No words of tidy_english.WORDS, in text, messages and names."""
    names_too = not (file.is_c and tidy_english.leaves_names(file.path))
    text = file.text if names_too else only_text(file.text)
    for number, message in tidy_english.findings_in(text):
        if not tidy_english.is_allowed(file.path, message):
            yield file.finding(number, message)


def check_name(file: SourceFile) -> Iterator[Finding]:
    """A file's name says what is in it."""
    for part in re.split(r"[/._-]", file.path):
        if _EMPTY_NAMES.match(part):
            yield file.finding(0, f"'{part}' in a name says nothing")


def check_markdown(file: SourceFile) -> Iterator[Finding]:
    """Starts with a title; relative links lead to a file or a heading that exists."""
    if file.suffix != ".md":
        return
    if not file.text.startswith("# "):
        yield file.finding(1, "does not start with a title")
    prose = re.sub(r"```.*?```|`[^`\n]*`", _blank_lines, file.text, flags=re.DOTALL)
    for match in re.finditer(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)", prose):
        if (problem := _broken_link(file, match.group(1))) is not None:
            yield file.finding(line_of(prose, match.start()), problem)


def check_sentences(file: SourceFile) -> Iterator[Finding]:
    """At most 2 % of the sentences of a page are long."""
    problem = tidy_sentences.finding(file.text) if tidy_sentences.is_held(file.path) else None
    if problem is not None:
        yield file.finding(0, problem)


def _blank_lines(match: re.Match) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def _broken_link(file: SourceFile, link: str) -> str | None:
    if re.match(r"[a-z]+:", link):
        return None
    path, _, anchor = link.partition("#")
    target = (file.root / file.path).parent / path if path else file.root / file.path
    if not target.exists():
        return f"dead link: {link}"
    if anchor and target.suffix == ".md" and anchor not in _anchors(target.read_text("utf-8")):
        return f"no such heading: {link}"
    return None


def _anchors(markdown: str) -> set[str]:
    """Heading anchors as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+)$", markdown, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in headings}


# --- clang-format --------------------------------------------------------------------------------


def check_format(files: list[SourceFile], root: Path) -> Iterator[Finding]:
    """C and C++ look as clang-format 19 writes them; not checked where it is not installed."""
    program = shutil.which("clang-format-19")
    names = [file.path for file in files if file.is_c]
    if program is None or not names:
        return
    command = [program, "--dry-run", "--ferror-limit=1", *names]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    for match in re.finditer(r"^(\S+?):(\d+):\d+: (?:warning|error): (.+)$", done.stderr, re.M):
        message = "not formatted (make format)"
        if "clang-format-violations" not in match.group(3):
            message = match.group(3)
        yield Finding(match.group(1), int(match.group(2)), message)


# --- all of it -----------------------------------------------------------------------------------


def repository_files(root: Path) -> list[str]:
    """What git tracks, or would if it were added; all files where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        names = [name for name in done.stdout.split("\0") if name]
    else:
        names = [path.relative_to(root).as_posix() for path in root.rglob("*")]
    return sorted(name for name in set(names) if _is_ours(root, name))


def _is_ours(root: Path, name: str) -> bool:
    path = root / name
    verbatim = name.startswith(VERBATIM_FOLDERS) or path.suffix in BINARY_SUFFIXES
    return path.is_file() and not path.is_symlink() and not verbatim


def check_licences(root: Path, names: list[str]) -> Iterator[Finding]:
    """Code says its licence on top."""
    for name in tidy_licence.files_without(root, names):
        yield Finding(name, 1, f"lacks '{tidy_licence.LINE}' (tools/tidy_licence.py writes it)")


def check_mutants(root: Path) -> Iterator[Finding]:
    """Each mistake that tests/mutants plants finds the text that it replaces, exactly once."""
    name = "tests/mutants/mutants.json"
    listed = root / name
    mutants = json.loads(listed.read_text()) if listed.exists() else []
    for mutant in mutants:
        text = (root / mutant["file"]).read_text()
        for find, replace in [[mutant["find"], mutant["replace"]], *mutant.get("also", [])]:
            times = text.count(find)
            if times != 1:
                message = f"{mutant['name']}: {find!r} occurs {times} times in {mutant['file']}"
                yield Finding(name, 0, message)
            text = text.replace(find, replace)


def check_labels(root: Path) -> Iterator[Finding]:
    """Each invariant's label is defined once, with its module's prefix, and is on docs' page."""
    texts = [(name, (root / name).read_text("utf-8").splitlines())
             for name in repository_files(root) if tidy_labels.may_mention(name)]
    for path, line, message in tidy_labels.check_labels(texts):
        yield Finding(path, line, message)


def check_all(root: Path, names: list[str]) -> list[Finding]:
    """Every rule on every file, in the order of paths and lines."""
    layers = read_layers(root)
    files = [SourceFile(root, name) for name in names]
    findings = {*check_format(files, root), *check_mutants(root)}
    for file in files:
        findings.update(check_includes(file, layers))
        findings.update(check_cmake_deps(file, layers))
        for rule in (check_lengths, check_classes, check_bans, check_python_writes, check_text,
                     check_name, check_english, check_markdown, check_sentences):
            findings.update(rule(file))
    return sorted(findings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--commits", metavar="RANGE", help="for example origin/main..HEAD")
    parser.add_argument("files", nargs="*")
    asked = parser.parse_args()
    if asked.commits:
        wrong = list(check_commits(asked.root, asked.commits))
        for commit, what in wrong:
            print(f"{commit}: {what}")
        print(f"tidy: commits {asked.commits}, {len(wrong)} findings")
        return 1 if wrong else 0
    names = asked.files or repository_files(asked.root)
    findings = [*check_all(asked.root, names), *check_licences(asked.root, names)]
    findings = sorted([*findings, *check_labels(asked.root)])
    for finding in findings:
        print(finding)
    print(f"tidy: {len(names)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
