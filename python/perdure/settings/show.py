# SPDX-License-Identifier: BSD-3-Clause
"""The verbs `perdure config show|env`."""

from __future__ import annotations

import os
import re
import shlex
from typing import Annotated, Any

import typer

from perdure.documents import print_json
from perdure.failures import Wrong
from perdure.option_groups import AsJson
from perdure.screen import console, plain, say
from perdure.settings.files import JOB_FILE, Setting, settings_of_files, user_file
from perdure.settings.keys import BY_NAME, KEYS, Key
from perdure.tables import table


def show(
    name: Annotated[
        str | None, typer.Argument(metavar="KEY", help="A setting, for all that is known of it.  "
                                   "[default: all settings]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show each setting, what holds, and where it comes from.

    Settings are in the environment, in the job's file, which $PERDURE_CONFIG names, and in the
    user's, ~/.config/perdure/config.toml, in this order. Options of a verb go before all of them.
    What the library makes of a value it says itself, when it reads it.

    Example: perdure config show --json
    """
    if name is not None and name not in BY_NAME:
        raise Wrong(f"there is no setting '{name}'; `perdure config show` lists all")
    files = settings_of_files()
    rows = [_row(key, files) for key in KEYS if name in (None, key.name)]
    if as_json:
        paths = {"user_file": str(user_file()), "job_file": os.environ.get(JOB_FILE) or None}
        print_json("config", {**paths, "settings": rows})
    elif name is not None:
        _print_one(rows[0])
    else:
        _print_all(rows)
    _say_unknown()


def _row(key: Key, files: dict[str, Setting]) -> dict[str, Any]:
    """What a document says of a key."""
    given, setting = os.environ.get(key.variable), files.get(key.name)
    source, place = "default", None
    if given:
        source = "environment"
    elif setting is not None:
        source, place = "file", f"{setting.file}:{setting.line}"
    return {
        "key": key.name, "variable": key.variable,
        "value": given or (setting.value if setting else None), "source": source, "place": place,
        "type": key.kind.name, "unit": key.kind.unit or None,
        "choices": list(key.kind.choices) or None, "default": _unmarked(key.default),
        "read_by": _unmarked(key.reader), "also": _unmarked(key.also) or None,
        "means": _unmarked(key.means),
    }  # fmt: skip


def _unmarked(text: str) -> str:
    """Without the marks of Markdown."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "")


def _source_text(row: dict[str, Any]) -> str:
    """The file as whose it is; its path is below the table."""
    if row["source"] != "file":
        return row["source"]
    file, _, line = row["place"].rpartition(":")
    return f"{'job' if file == os.environ.get(JOB_FILE) else 'user'}'s, line {line}"


def _print_all(rows: list[dict[str, Any]]) -> None:
    """The value comes last: it is broken into lines where it does not fit."""
    names = ("setting", "from", "read by", "value")
    made = table(*names, left=names)
    for row in rows:
        value = f"({row['default']})" if row["value"] is None else row["value"]
        made.add_row(row["key"], _source_text(row), row["read_by"].removeprefix("perdure "), value)
    out = console()
    out.print(made)
    for whose, file in (("user's", str(user_file())), ("job's", os.environ.get(JOB_FILE))):
        if file:
            out.print(f"{whose} file: {file}" + ("" if os.path.lexists(file) else " (not there)"))


def _print_one(row: dict[str, Any]) -> None:
    out = console()
    kind = row["type"] + (f" of {', '.join(row['choices'])}" if row["choices"] else "")
    value = "not set" if row["value"] is None else row["value"]
    for what, said in (("setting", row["key"]), ("variable", row["variable"]), ("value", value),
                       ("from", row["place"] or row["source"]), ("type", kind),
                       ("default", row["default"]),
                       ("read by", row["read_by"]), ("also", row["also"] or "-"),
                       ("means", row["means"])):
        out.print(f"{what:<10}{plain(said)}")


def _say_unknown() -> None:
    """Variables with a slip of the keys, which programs name as well."""
    from perdure.core import load_core

    core = load_core()
    for name in sorted(os.environ):
        if name.startswith("PERDURE_") and not core.is_known_variable(name):
            like = core.variable_like(name)
            say(f"perdure: the variable {name} is set, and Perdure reads none of that name"
                f"{f'; did you mean {like}?' if like else ''}", err=True)


def env() -> None:
    """Print what files of settings say as commands of a shell, for programs that are started there.

    Programs read variables, not files: `perdure run` and the other verbs set them for what they
    start. What the environment has already stays as it is.

    Example: eval "$(perdure config env)"
    """
    out = console()
    for name, setting in settings_of_files().items():
        variable = BY_NAME[name].variable
        if not os.environ.get(variable):
            out.print(f"export {variable}={shlex.quote(setting.value)}")
