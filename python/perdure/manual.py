# SPDX-License-Identifier: BSD-3-Clause
"""Man pages of the command, made of its own help: perdure(1), and one of each verb.

They are written in man(7) itself, so that neither a build nor `perdure help --man` needs a program
for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perdure.files import write_bytes


def write_pages(folder: Path, top: Any, version: str) -> list[Path]:
    """Writes all pages to FOLDER/man1, where man(1) looks for them. Raises OSError."""
    place = folder / "man1"
    place.mkdir(parents=True, exist_ok=True)
    commands = {"perdure": top}
    commands |= {f"perdure {verb}": each for verb, each in _shown(top).items()}
    written = []
    for name, command in commands.items():
        file = place / f"{_title(name)}.1"
        page = man_page(name, command, list(commands), version)
        write_bytes(file, page.encode(), for_all=True)
        written.append(file)
    return written


def man_page(name: str, command: Any, others: list[str], version: str) -> str:
    """One page. It ends with the names of the other pages."""
    summary, *rest = _paragraphs(command.help)
    lines = [f'.TH "{_title(name).upper()}" 1 "" "{version}" "Perdure"', ".SH NAME",
             f"{_plain(_title(name))} \\- {_plain(summary.rstrip('.'))}",
             ".SH SYNOPSIS", *_usage(name, command)]  # fmt: skip
    if rest:
        lines += [".SH DESCRIPTION", *_text(rest)]
    if options := list(_options(command)):
        lines += [".SH OPTIONS", *options]
    below = _shown(command)
    if below:
        lines.append(".SH COMMANDS")
    for verb, each in below.items():
        lines += _entry(verb, each) if name == "perdure" else _section(f"{name} {verb}", each)
    lines += [".SH SEE ALSO", ",\n".join(_reference(other) for other in others if other != name)]
    return "\n".join(lines) + "\n"


def _title(name: str) -> str:
    return name.replace(" ", "-")


def _reference(name: str) -> str:
    return f"\\fB{_plain(_title(name))}\\fR(1)"


def _shown(command: Any) -> dict[str, Any]:
    return {verb: each for verb, each in getattr(command, "commands", {}).items()
            if not each.hidden}


def _plain(text: str) -> str:
    """As it stands: a hyphen is the sign that is typed, a point at the beginning no request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def _paragraphs(text: str | None) -> list[str]:
    """Of help: a paragraph is one line, except for examples, which begin with \\b."""
    parts = re.split(r"\n\s*\n", (text or "").strip())
    return [part if part.startswith("\b") else " ".join(part.split()) for part in parts]


def _text(paragraphs: list[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        title, *typed = paragraph.removeprefix("\b\n").splitlines()
        yield from (".PP", _plain(title))
        if typed:
            yield from (".RS 2", ".nf", *(_plain(line.strip("\n")) for line in typed), ".fi", ".RE")


def _usage(name: str, command: Any) -> list[str]:
    """The words of a command line."""
    arguments = (param for param in command.params if param.param_type_name == "argument")
    words = [param.metavar or param.name.upper() for param in arguments]
    words += ["VERB …"] if _shown(command) else []
    return [f".B {_plain(name)}", " ".join(["[options]", *(f"\\fI{_plain(w)}\\fR" for w in words)])]


def _options(command: Any) -> Iterator[str]:
    for param in command.params:
        if param.param_type_name != "option" or param.hidden:
            continue
        names = ", ".join(f"\\fB{_plain(name)}\\fR"
                          for name in (*param.opts, *param.secondary_opts))
        value = "" if param.is_flag else f" \\fI{_plain(param.metavar or 'VALUE')}\\fR"
        yield from (".TP", names + value, _plain(" ".join((param.help or "").split())))


def _entry(verb: str, command: Any) -> Iterator[str]:
    """Of perdure(1): a verb's page and what the verb is for."""
    summary, *_ = _paragraphs(command.help)
    yield from (".TP", _reference(f"perdure {verb}"), _plain(summary))


def _section(name: str, command: Any) -> Iterator[str]:
    """Of a verb that is a group: one of its verbs, with those below it."""
    yield from (f".SS {_plain(name)}", ".PP", *_usage(name, command))
    yield from _text(_paragraphs(command.help))
    yield from _options(command)
    for verb, each in _shown(command).items():
        yield from _section(f"{name} {verb}", each)
