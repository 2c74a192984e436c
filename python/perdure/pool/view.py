# SPDX-License-Identifier: BSD-3-Clause
"""Pool reports as tables for people and as plain values for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.core import load_core
from perdure.documents import fields
from perdure.pool.names import shown_name
from perdure.screen import Screen, one_line
from perdure.tables import Table, table
from perdure.units import bytes_text, time_text

if TYPE_CHECKING:
    from perdure import _core

_MOVED = "it was made in another directory: a job refuses it until `perdure pool adopt`"
_VERSION = ("version", "parent", "committed_ns", "abandoned")
_ARRAY = ("name", "part", "type", "extents", "mode", "checksums", "size_bytes")
_FILE = ("path", "full_path", "bytes")
_DRAINED = ("version", "incarnation", "ranks", "bytes", "written", "complete")
_NAMES_MAX = 12
ITERATION = "iteration"  # the scalar of perdure_scalar() that counts iterations


def iteration_of(catalogue: _core.Catalogue | None) -> int | None:
    """The value of the scalar "iteration", if the version has one of 4 or 8 bytes."""
    for scalar in catalogue.scalars if catalogue else ():
        if scalar.name == ITERATION and len(scalar.bytes) in (4, 8):
            return int.from_bytes(scalar.bytes, "little", signed=True)
    return None


def name_text(entry: _core.ArrayEntry | _core.ScalarEntry) -> str:
    """The name of an array or scalar, and the array's piece if it is one of several."""
    piece = getattr(entry, "part", 0)
    name = one_line(shown_name(entry.name))
    return f"{name}, piece {piece}" if piece else name


def owner_text(pool: _core.PoolReport) -> str:
    """Whose the pool's directory is: "alice (1000)"."""
    return load_core().user_text(pool.owner).removeprefix("user ")


def ranks_text(ranks: list[int], of_all: int | None = None) -> str:
    """ "ranks 0, 2", or "all ranks" if there are `of_all` of them."""
    if len(ranks) == of_all:
        return "all ranks"
    if not ranks:
        return "no rank"
    return f"rank{'s' * (len(ranks) != 1)} {', '.join(map(str, ranks))}"


def findings_of(pool: _core.PoolReport) -> list[tuple[str, str, str]]:
    """(severity, where, sentence) of all findings, ranks first."""
    of_ranks = [
        (finding.severity.name, f"rank {rank.rank}", finding.text)
        for rank in pool.ranks
        for finding in rank.findings
    ]
    of_pool = [(finding.severity.name, "pool", finding.text) for finding in pool.findings]
    return of_ranks + of_pool + ([("note", "pool", _MOVED)] if pool.moved else [])


def pool_json(pool: _core.PoolReport) -> dict:
    """A report as plain values; sizes in bytes, times in nanoseconds since 1970."""
    return {
        "directory": pool.directory,
        "owner": {"uid": pool.owner, "name": owner_text(pool)},
        "job": pool.job_name,
        "job_id": pool.job_id,
        "created_ns": pool.created_ns,
        "ranks": pool.rank_count,
        "version": pool.version,
        "keep": pool.keep,
        "worst": pool.worst.name,
        "findings": [
            {"severity": severity, "where": where, "text": text}
            for severity, where, text in findings_of(pool)
        ],
        "rank_files": [_rank_json(rank) for rank in pool.ranks],
    }


def versions_json(pool: _core.PoolReport) -> list[dict]:
    """The versions that can be restored, newest first; times in nanoseconds since 1970."""
    return [fields(held, _VERSION) for held in pool.versions]


def print_versions(pool: _core.PoolReport, console: Screen) -> None:
    """One line per version that can be restored, newest first."""
    made = table("version", "made from", "committed", "state", left=("state",))
    for held in pool.versions:
        state = "newest" if held.version == pool.version else "abandoned" * held.abandoned
        made.add_row(str(held.version), str(held.parent), time_text(held.committed_ns), state)
    console.print(made if pool.versions else "no versions yet")


def room_bytes(entry: _core.ArrayEntry) -> int:
    """What all copies of an array take in the file."""
    return entry.copies * entry.stride_bytes


def unopened_of(rank: _core.RankReport) -> list[_core.ArrayEntry]:
    """The arrays of its newest version that nobody had open when it was committed."""
    if rank.catalogue is None:
        return []
    names = set(map(tuple, rank.catalogue.unopened))
    return [entry for entry in rank.catalogue.arrays if (entry.name, entry.part) in names]


def _rank_json(rank: _core.RankReport) -> dict:
    from perdure.api.meanings import kinds_of
    from perdure.pool.values import scalar_json

    catalogue = rank.catalogue
    kinds = kinds_of(catalogue)
    unopened = {(entry.name, entry.part) for entry in unopened_of(rank)}
    return {
        **fields(rank, ("rank", "path", "file_bytes", "usable", "complete_versions")),
        "committed_ns": catalogue.committed_ns if catalogue else None,
        "iteration": iteration_of(catalogue),
        "arrays": [
            {
                **fields(entry, _ARRAY),
                "room_bytes": room_bytes(entry),
                "opened": (entry.name, entry.part) not in unopened,
            }
            for entry in (catalogue.arrays if catalogue else ())
        ],
        "scalars": [
            scalar_json(scalar, kinds)
            for scalar in (catalogue.scalars if catalogue else ())
        ],
        "files": [fields(note, _FILE) for note in catalogue.files] if catalogue else [],
    }


def print_pool(pool: _core.PoolReport, console: Screen) -> None:
    """Everything about one pool: whose it is, its ranks, what they hold, what was found."""
    version = "none yet" if pool.version is None else str(pool.version)
    console.print(f"pool     {one_line(pool.directory)}\nowner    {owner_text(pool)}")
    console.print(f"job      {one_line(pool.job_name)} ({pool.job_id})")
    ranks = "1 rank" if pool.rank_count == 1 else f"{pool.rank_count} ranks"
    console.print(f"made     {time_text(pool.created_ns)}, for {ranks}")
    console.print(f"version  {version}\n")
    console.print(_ranks_table(pool))
    readable = [rank for rank in pool.ranks if rank.catalogue is not None]
    if readable:
        held = _contents(readable)
        alike = all(len(ranks) == len(readable) for *_, ranks in held)
        console.print(
            f"\nrank {readable[0].rank}, version {readable[0].newest}:"
            if alike
            else "\nof the ranks' newest versions:"
        )
        console.print(_contents_table(held, len(readable), alike))
        _print_unopened(readable, console)
    print_findings(pool, console)


def _ranks_table(pool: _core.PoolReport) -> Table:
    made = table("rank", "file", "versions", "iteration", "arrays", "committed")
    for rank in pool.ranks:
        catalogue, iteration = rank.catalogue, iteration_of(rank.catalogue)
        made.add_row(
            str(rank.rank),
            bytes_text(rank.file_bytes) if rank.usable else "unusable",
            ", ".join(map(str, rank.complete_versions)) or "-",
            "-" if iteration is None else str(iteration),
            bytes_text(sum(entry.size_bytes for entry in catalogue.arrays)) if catalogue else "-",
            time_text(catalogue.committed_ns) if catalogue else "-",
        )
    return made


def _contents(readable: list[_core.RankReport]) -> list[tuple[str, str, str, str, list[int]]]:
    """Name, shape, size and checksums of what ranks hold, and which ranks hold it so.

    Of a scalar the first rank's value is shown.
    """
    from perdure.api.meanings import kinds_of
    from perdure.pool.values import array_text, scalar_text

    found: dict[tuple, tuple[str, str, str, str, list[int]]] = {}
    row: tuple[str, str, str, str, list[int]]
    for rank in readable:
        assert rank.catalogue is not None
        kinds = kinds_of(rank.catalogue)
        for entry in rank.catalogue.arrays:
            checked = "yes" if entry.checksums else "no"
            key = name_text(entry), array_text(entry, kinds), checked
            row = (*key[:2], bytes_text(entry.size_bytes), checked, [])
            found.setdefault(key, row)[-1].append(rank.rank)
        for scalar in rank.catalogue.scalars:
            size = len(scalar.bytes)
            row = (name_text(scalar), scalar_text(scalar, kinds), bytes_text(size), "yes", [])
            found.setdefault((scalar.name, size), row)[-1].append(rank.rank)
        for note in rank.catalogue.files:
            cells = one_line(note.path), "file that goes back", bytes_text(note.bytes)
            row = (*cells, "its end", [])
            found.setdefault((note.path, note.bytes, "file"), row)[-1].append(rank.rank)
    order = {name: i for i, name in enumerate(dict.fromkeys(row[0] for row in found.values()))}
    return sorted(found.values(), key=lambda row: order[row[0]])


def _contents_table(held: list, ranks_of_all: int, alike: bool) -> Table:
    """`alike`: all ranks hold the same, so nobody need be named."""
    more = () if alike else ("ranks",)
    made = table(
        "name",
        "shape and mode",
        "size",
        "checksums",
        *more,
        left=("name", "shape and mode", "checksums", *more),
    )
    for *cells, ranks in held:
        made.add_row(*cells, *([] if alike else [ranks_text(ranks, ranks_of_all)]))
    return made


def _print_unopened(readable: list[_core.RankReport], console: Screen) -> None:
    """What a version carries on, and takes room for, although the program has it no more."""
    found = [entry for rank in readable for entry in unopened_of(rank)]
    names = list(dict.fromkeys(name_text(entry) for entry in found))
    if not names:
        return
    shown = ", ".join(names[:_NAMES_MAX]) + (" …" if len(names) > _NAMES_MAX else "")
    counted = "1 array is" if len(names) == 1 else f"{len(names)} arrays are"
    console.print(
        f"{counted} carried on although the job did not open them:"
        f" {shown}, with {bytes_text(sum(map(room_bytes, found)))} of room.\nTo drop one, let the"
        " program open it as it is stored, and remove it: perdure_array_remove(), or in Python"
        " pool.remove(pool.array(name))"
    )


def print_findings(pool: _core.PoolReport, console: Screen) -> None:
    """One line per finding; what a crash leaves behind is no damage."""
    colours = {"damage": "bold red", "crash": "yellow", "note": "yellow", "fine": "green"}
    for severity, where, text in findings_of(pool):
        console.print(severity, style=colours[severity], end="")
        console.print(f"  {where}: {text}")


def drain_json(report: _core.DrainReport) -> dict:
    """What `perdure pool drain` did, newest version first."""
    return {
        "place": report.place,
        "job": report.job_name,
        "job_id": report.job_id,
        "ranks": report.rank_count,
        "versions": [
            {
                **fields(each, _DRAINED),
                "missing_ranks": each.missing,
                "problem": each.problem or None,
            }
            for each in report.versions
        ],
        "problems": report.problems,
        "stopped": report.stopped,
    }


def print_drain(report: _core.DrainReport, console: Screen) -> None:
    """One line per version, and what is wrong."""
    for problem in report.problems:
        console.print(one_line(problem))
    for each in report.versions:
        console.print(f"version {each.version}: {_drained_text(each)}")
    if not report.versions:
        console.print("nothing to drain: the ranks of this node have no version in common")
    else:
        console.print(f"in {one_line(report.place)}")


def _drained_text(drained: _core.DrainedVersion) -> str:
    if drained.problem:
        return f"not drained: {one_line(drained.problem)}"
    done = "was there already"
    if drained.written:
        ranks = len(drained.ranks)
        done = f"{bytes_text(drained.bytes)} of {ranks} rank{'s' * (ranks != 1)} written"
    if drained.complete:
        return f"{done}; it is whole"
    return f"{done}; {drained.missing} ranks of other nodes are missing"
