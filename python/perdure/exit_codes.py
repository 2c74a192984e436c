# SPDX-License-Identifier: BSD-3-Clause
"""With which codes verbs end, and what each says. The table of docs/cli.md is made of this."""

from __future__ import annotations

from typing import NamedTuple

DONE = 0
FAILED = 1
MISTAKE = 2
RULE_BROKEN = 86
LEFT_BEHIND = 122  # of processes too (src/base/process_end.hpp)
UNCLOSED = 123
ENDED_BY_US = 124  # as of timeout(1)
REMAINING = 125
NOT_EXECUTABLE = 126  # this and the next one as a shell says it
NO_PROGRAM = 127
SIGNALLED = 128  # and the signal's number
INTERRUPTED = 130
OF_PROGRAM = -1  # whatever the program ended with


class Exit(NamedTuple):
    """A code, and what it says of these verbs; of all of them if none is named."""

    code: int
    means: str
    verbs: tuple[str, ...] = ()


RUNNING = ("run", "advise", "trace record", "ipv record", "ipv check",
           "energy run")
EXITS = (
    Exit(DONE, "done"),
    Exit(DONE, "also where nothing can be applied, which is said",
         ("energy apply", "energy restore")),
    Exit(FAILED, "the work went wrong (a full device, a node without what it needs), or found "
         "something wrong"),
    Exit(FAILED, "damaged", ("pool versions", "pool check")),
    Exit(FAILED, "the array is not there, or damaged", ("pool dump",)),
    Exit(FAILED, "a version could not be brought there", ("pool drain",)),
    Exit(FAILED, "damaged, or no version bears the loss of a node", ("pool verify",)),
    Exit(FAILED, "a part could not be recovered, and stays; so where [the file was changed since]"
         "(cache.md#a-file-that-was-changed-since)", ("cache recover",)),
    Exit(FAILED, "in use, or not there", ("cache discard",)),
    Exit(FAILED, "a constant is missing", ("cache predict",)),
    Exit(FAILED, "no whole trace", ("trace record", "trace info")),
    Exit(FAILED, "no report, or no iteration", ("ipv record",)),
    Exit(FAILED, "no report, or no objects", ("ipv check",)),
    Exit(FAILED, "what can't be planned with", ("energy plan",)),
    Exit(FAILED, "a clock could not be set again, or the journal can't be believed",
         ("energy restore",)),
    Exit(FAILED, "nothing is built", ("config flags",)),
    Exit(FAILED, "there is a problem", ("doctor",)),
    Exit(MISTAKE, "a mistake: an option, a value, a file that is missing or of another kind, an "
         "output that can't be made. Nothing was done: outputs are looked at before the work "
         "begins"),
    Exit(RULE_BROKEN, "the program ended with 0, and broke a rule", ("ipv check",)),
    Exit(LEFT_BEHIND, "the job ended with 0, and bytes of a cached file are only in a part that "
         "could not be saved: [what a job leaves](run.md#what-a-job-leaves)", ("run",)),
    Exit(UNCLOSED, "the launcher ended with 0, but not all ranks had closed their pools "
         "(`--spares`, `--requeue`)", ("run",)),
    Exit(ENDED_BY_US, "the last attempt was ended by `--timeout`, `--hang-timeout` or "
         "`--stall-timeout`", ("run",)),
    Exit(REMAINING, "processes of a failed attempt survived SIGKILL, so nothing was restarted",
         ("run",)),
    Exit(NOT_EXECUTABLE, "the program can't be started", RUNNING),
    Exit(NO_PROGRAM, "there is no program of that name", RUNNING),
    Exit(SIGNALLED, "signal N ended it"),
    Exit(INTERRUPTED, "Ctrl-C, with what was done by then"),
    Exit(INTERRUPTED, "Ctrl-C, and nothing is half done", ("pool drain", "trace import")),
    Exit(INTERRUPTED, "Ctrl-C, and the same command goes on", ("energy profile run",)),
    Exit(OF_PROGRAM, "the program's own code", RUNNING),
)  # fmt: skip


def table(exits: tuple[Exit, ...], shortened: dict[str, str]) -> str:
    """The rows as Markdown, in the order of the codes; `shortened` has what verbs are called."""
    names = {OF_PROGRAM: "the program's", SIGNALLED: "128 + N"}
    rows = [
        f"| {names.get(each.code, each.code)} | {_verbs_text(each, shortened)} | {each.means} |\n"
        for each in sorted(exits, key=lambda each: each.code % 256)
    ]
    return "| code | of | means |\n|---|---|---|\n" + "".join(rows)


def _verbs_text(each: Exit, shortened: dict[str, str]) -> str:
    return ", ".join(f"`{shortened.get(verb, verb)}`" for verb in each.verbs) or "all verbs"
