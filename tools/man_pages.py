# SPDX-License-Identifier: BSD-3-Clause
"""Makes man pages of the command's own help: perdure(1), and one of each verb.

    python man_pages.py LOWDOWN FOLDER VERSION
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from perdure.cli import command_line


def plain(text: str | None) -> str:
    """One paragraph as Markdown takes it."""
    return (text or "").replace("<", "\\<").replace("*", "\\*").replace("_", "\\_")


def paragraphs(text: str | None) -> list[str]:
    """Help as Markdown; examples, as they are typed, as code."""
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", (text or "").strip()):
        if not paragraph.startswith("\b"):
            lines += [plain(paragraph), ""]
            continue
        title, *typed = paragraph.removeprefix("\b\n").splitlines()
        lines += [plain(title), "", *(f"    {line}" for line in typed), ""]
    return lines


def options_of(command: Any) -> list[str]:
    lines = []
    for param in command.params:
        if param.param_type_name != "option" or param.hidden:
            continue
        names = ", ".join(f"**{name}**" for name in (*param.opts, *param.secondary_opts))
        value = "" if param.is_flag else f" *{param.metavar or 'VALUE'}*"
        lines += [f"{names}{value}", "", f":   {plain(param.help)}", ""]
    return lines


def usage(name: str, command: Any) -> str:
    words = [
        plain(param.metavar or param.name.upper())
        for param in command.params
        if param.param_type_name == "argument"
    ]
    words += ["verb …"] if hasattr(command, "commands") else []
    return f"**{name}** \\[options\\] {' '.join(words)}"


def page(name: str, command: Any) -> str:
    """Markdown of one command, with what is below it."""
    summary, *rest = paragraphs(command.help)
    title = name.replace(" ", "-")
    lines = ["# NAME", "", f"{title} - {summary.rstrip('.')}", "", "# SYNOPSIS", ""]
    below = getattr(command, "commands", {})
    lines += [usage(name, command), ""]
    if any(rest):
        lines += ["# DESCRIPTION", "", *rest]
    options = options_of(command)
    lines += ["# OPTIONS", "", *options] if options else []
    for verb, each in below.items():
        if each.hidden:
            continue
        lines += [f"# {verb}", "", usage(f"{name} {verb}", each), "", *paragraphs(each.help)]
        lines += [] if hasattr(each, "commands") and not each.params else options_of(each)
    return "\n".join(lines) + "\n"


def main() -> None:
    lowdown, folder, version = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    top: Any = command_line()
    pages = {"perdure": top}
    pages |= {f"perdure {verb}": each for verb, each in top.commands.items()}
    for name, command in pages.items():
        title = name.replace(" ", "-")
        head = [f"-Mtitle={title}", "-Msection=1", f"-Msource=Perdure {version}", "-Mdate="]
        made = subprocess.run(
            [lowdown, "-s", "-tman", "--out-no-smarty", *head],
            input=page(name, command),
            check=True,
            capture_output=True,
            text=True,
        )
        (folder / f"{title}.1").write_text(made.stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
