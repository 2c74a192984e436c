# SPDX-License-Identifier: BSD-3-Clause
"""The list of keys. docs/environment.md is made of it (tests/docs/pages.py --write)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from perdure.failures import Wrong
from perdure.units import TIMES, parse_quantity, parse_time

_MILLISECONDS_MAX = 3_600_000


@dataclass(frozen=True)
class Kind:
    """What a value may be. A text is taken as it is: who reads it checks it."""

    name: str
    unit: str = ""
    choices: tuple[str, ...] = ()

    def variable(self, value: Any) -> str:
        """The value of a file as the variable has it. Raises Wrong."""
        if self.name == "switch":
            if not isinstance(value, bool):
                raise Wrong(f"{value!r} is neither true nor false")
            return "1" if value else "0"
        if self.name == "milliseconds":
            return str(_milliseconds(value))
        if not isinstance(value, str):
            raise Wrong(f"{value!r} is no text; write it in quotes")
        if not value or not value.isprintable():
            raise Wrong(f"{value!r} is empty, or has characters that can't be printed")
        if self.choices and value not in self.choices:
            raise Wrong(f"'{value}' is none of {', '.join(self.choices)}")
        if self.name == "time" and value != "off":
            parse_time(value, unit="")
        return _path(value) if self.name == "path" else value


def _milliseconds(value: Any) -> int:
    if isinstance(value, str):
        value = parse_quantity(value, "time", TIMES, "30s or 250ms") * 1000
    number = not isinstance(value, bool) and isinstance(value, (int, float, Fraction))
    if not number or value % 1 != 0:  # nor infinite
        raise Wrong(f"{value!r} is no whole number of milliseconds, nor a text such as '30s'")
    if not 0 <= value <= _MILLISECONDS_MAX:
        raise Wrong(f"{value!r} is not from 0 to {_MILLISECONDS_MAX} milliseconds")
    return int(value)


def _path(value: str) -> str:
    """Of a file, which stays where it is while jobs begin in other folders."""
    if value == "~" or value.startswith("~/"):
        return str(Path(value).expanduser())
    if not value.startswith("/"):
        raise Wrong(f"'{value}' is no path from / or ~/ on")
    return value


SWITCH, TEXT, PATH, TIME = Kind("switch"), Kind("text"), Kind("path"), Kind("time")
MILLISECONDS = Kind("milliseconds", "ms")


def one_of(*choices: str) -> Kind:
    """A word of a few."""
    return Kind("word", choices=choices)


@dataclass(frozen=True)
class Key:
    """A setting: in a file `name`, in the environment `variable`."""

    name: str
    kind: Kind
    reader: str
    means: str  # Markdown
    default: str = "none"
    also: str = ""  # the same as an option, an info key, a field of perdure.h
    in_file: bool = True  # False: scripts read the variable that no verb of `perdure` starts

    @property
    def variable(self) -> str:
        """The variable's name."""
        return f"PERDURE_{self.name.upper()}"


_LIBRARY, _WINDOWS, _FILES, _ENERGY = "library", "windows", "cached files", "energy"
_COMPILERS, _BENCH = "compilers", "`perdure bench`"
KEYS = (
    Key("any_owner", SWITCH, _LIBRARY, "accepts pools that another user owns or may write: "
        "[security](security.md#who-is-trusted)", "0", "`--any-owner`"),
    Key("lock_wait_ms", MILLISECONDS, _LIBRARY, "how long to wait for a process that still holds "
        "a rank's file", "10000"),
    Key("levels", TEXT, _LIBRARY, "what is kept on other nodes and on the file system, as text or "
        "a file's path: [levels](levels.md)", "a partner's copy, on several nodes",
        "`perdure_options.levels`, `perdure_levels`"),
    Key("check", SWITCH, _LIBRARY, "a store through a pointer or slice that is older than a commit "
        "ends the program there: [design](design.md#checking-stores)", "0"),
    Key("emulate", TEXT, _LIBRARY, "the memory model to emulate: `perdure devices`",
        also="`perdure_options.emulate`"),
    Key("devices", PATH, "library, command", "a file whose memory models are added to the built-in "
        "ones"),
    Key("checksum", one_of("crc64", "xxh3"), _LIBRARY, "of blocks of new arrays",
        "the fastest here"),
    Key("tracker", one_of("kernel", "faults"), _LIBRARY, "how log mode finds what changed: by the "
        "kernel (Linux 6.7), or page protection", "the first that there is"),
    Key("flush", one_of("clflush", "clflushopt", "clwb", "dc cvac", "dc cvap"), _LIBRARY,
        "the instruction that moves stores to memory", "the best here"),
    Key("pool", PATH, _WINDOWS, "the pool of windows that name none: [windows](windows.md)",
        also="`perdure_pool`"),
    Key("windows", TEXT, _WINDOWS, "makes the windows of an unchanged program persistent: "
        "[windows](windows.md)", also="info keys of a window"),
    Key("commit_patience", TIME, _LIBRARY, "after how long a commit that not all ranks reach is "
        "named: [windows](windows.md#a-commit-that-not-all-ranks-reach)", "30s"),
    Key("commit_limit", TIME, _LIBRARY, "after how long such a commit ends the job", "off"),
    Key("cache", TEXT, _FILES, "which files of an unchanged program are cached, and how: "
        "[cache](cache.md#hints)", also="`--cache`, `perdure_cache_*`"),
    Key("cache_host", TEXT, _FILES, "the address, or the interface's, at which a node serves its "
        "part", "this host's"),
    Key("cache_report", TEXT, _FILES, "prefix of files, one a rank, in which a run reports what it "
        "did with each cached file"),
    Key("record", TEXT, _FILES, "prefix of files, one a rank, in which a run records its MPI "
        "files: [prediction](cache_predict.md)"),
    Key("ipv", TEXT, "`perdure_ipv.h`", "overrides the program's options: [in-place "
        "versioning](ipv.md#tiers)"),
    Key("ipv_check", TEXT, "checker", "what a program built with `--ipv-record` or `--ipv-check` "
        "looks at: [checker](ipv_check.md#the-variable-perdure_ipv_check)"),
    Key("trace", TEXT, "recorder", "the trace that a program built with `--trace` records, and "
        "how: [tracing](tracing.md#the-variable-perdure_trace)"),
    Key("energy_plan", PATH, _ENERGY, "a plan that commits follow, before a profile: "
        "[energy](energy.md#commits)", also="`--commit-plan`"),
    Key("energy_profile", PATH, _ENERGY, "a profile that commits follow"),
    Key("energy_timeout_ms", MILLISECONDS, _ENERGY, "after so long a commit goes ahead without a "
        "token", "30000"),
    Key("energy_report", PATH, _ENERGY, "a file to which each rank appends, as lines of JSON, what "
        "was applied"),
    Key("energy_tokens", PATH, _ENERGY, "an administrator's directory for the tokens of all jobs "
        "of a group", "a file in `/dev/shm`"),
    Key("energy_state", PATH, _ENERGY, "where the frequency journal is, the limits of the clocks "
        "from before they were capped", "`/run/perdure-energy`, else `/dev/shm`"),
    Key("keeper", TEXT, _ENERGY, "the program `perdure-keeper`; `off`: none",
        "beside the library"),
    Key("clang", TEXT, _COMPILERS, "what `perdure-clang` and `perdure-clang++` call",
        "`clang`", in_file=False),
    Key("flang", TEXT, _COMPILERS, "what `perdure-flang` calls", "`flang-new`", in_file=False),
    Key("gcc", TEXT, _COMPILERS, "what `perdure-gcc` and its siblings call", "`gcc`",
        in_file=False),
    Key("build", PATH, "command", "the build tree whose module and programs are used",
        "`build/dev`; for programs `build/release` first", in_file=False),
    Key("bench_dir", PATH, _BENCH, "where pools are", "`/dev/shm`"),
    Key("bench_disk", PATH, _BENCH, "where files on a disk are", "`~/.cache/perdure-bench`"),
    Key("gluster", PATH, "`perdure bench`, tests", "a GlusterFS mount, where files are put"),
    Key("bench_mpich5", TEXT, _BENCH, "the launcher of an MPICH 5, which is measured as well"),
)
BY_NAME = {key.name: key for key in KEYS}


def table() -> str:
    """The rows as Markdown."""
    head = "| variable | means | value | default | read by |\n" + "|---" * 5
    rows = [
        " | ".join([f"| `{key.variable}`", _meaning(key), _value_text(key.kind), key.default,
                    key.reader])
        for key in KEYS
    ]  # fmt: skip
    return "\n".join([f"{head}|", *(f"{row} |" for row in rows), ""])


def _meaning(key: Key) -> str:
    also = f"; also {key.also}" if key.also else ""
    return f"{key.means}{also}{'' if key.in_file else '; not in a file'}"


def _value_text(kind: Kind) -> str:
    if kind.choices:
        return ", ".join(f"`{choice}`" for choice in kind.choices)
    return {"switch": "`1`, `0`; in a file `true`, `false`", "time": "a time; `off`",
            "milliseconds": "milliseconds; in a file also a time"}.get(kind.name, f"a {kind.name}")
