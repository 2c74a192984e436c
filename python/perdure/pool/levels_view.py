# SPDX-License-Identifier: BSD-3-Clause
"""What levels hold, as `perdure pool verify` says it: for people and as plain values for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.documents import fields
from perdure.pool.view import ranks_text
from perdure.screen import Screen, one_line

if TYPE_CHECKING:
    from perdure import _core


_KEPT = ("version", "incarnation", "images", "guards")


def levels_json(report: _core.LevelsReport) -> dict:
    """What was found, newest versions first; docs/schemas/pool-verify.schema.json describes it."""
    return {
        "job": report.job_name,
        "job_id": report.job_id,
        "ranks": report.rank_count,
        "pool_files": report.pool_files,
        "nodes": [_node_json(node) for node in report.nodes],
        "kept": [_kept_json(kept) for kept in report.kept],
        "drained": [
            {
                **fields(each, ("place", "version", "incarnation", "fork")),
                "problem": each.problem or None,
            }
            for each in report.drained
        ],
        "restart": {
            "now": _found_json(report.now),
            "without_all_nodes": _found_json(report.without_all),
            "given_up": report.given_up,
        },
        "problems": report.problems,
        "of_other_jobs": report.foreign,
    }


def _node_json(node: _core.VerifiedNode) -> dict:
    return {
        "directory": node.directory,
        "pool": node.pool,
        "pool_files": node.ranks,
        "left_over": node.left_over,
        "kept": [fields(kept, _KEPT) for kept in node.kept],
        "restart_without": _found_json(node.without),
    }


def _kept_json(kept: _core.KeptVersion) -> dict:
    return {
        **fields(kept, (*_KEPT, "restorable")),
        "bearable_losses": kept.losses,
        "groups": [
            {**fields(group, ("scheme", "members", "missing")), "bearable_losses": group.left}
            for group in kept.groups
        ],
    }


def _found_json(found: _core.RestartVersion) -> dict | None:
    if found.level.name == "none":
        return None
    return {**fields(found, ("version", "incarnation")), "from": found.level.name}


def print_levels(report: _core.LevelsReport, console: Screen) -> None:
    """What each level holds, what a restart would find, and what is wrong."""
    ranks, nodes = report.rank_count, len(report.nodes)
    console.print(
        f"job {one_line(report.job_name)}, {ranks} rank{'s' * (ranks != 1)}; {nodes} "
        f"director{'ies' if nodes != 1 else 'y'}: files of {ranks_text(report.pool_files, ranks)}"
    )
    for node in report.nodes:
        console.print(f"  {one_line(node.directory)}: {_node_text(node)}")
    for kept in report.kept:
        scheme = ", ".join(sorted({group.scheme for group in kept.groups}))
        console.print(
            f"version {kept.version} on nodes{scheme and f' ({scheme})'}: "
            f"images of {ranks_text(kept.images, ranks)}, "
            f"guards of {ranks_text(kept.guards, ranks)}; {_losses_text(kept)}"
        )
        for group in kept.groups:
            if group.missing:
                console.print(f"  {_group_text(group)}")
    for drained in report.drained:
        whole = "damaged" if drained.problem else "whole; all nodes may be lost"
        if drained.fork and not drained.problem:
            whole = "whole, of another run, which lacks what these nodes hold: not taken"
        console.print(f"version {drained.version} in {one_line(drained.place)}: {whole}")
    if not report.kept and not report.drained:
        console.print("no version is anywhere but in the pool: a lost node is a lost pool")
    console.print(f"a restart now finds {_found_text(report.now)}")
    if report.given_up:
        console.print(f"  and gives up versions up to {report.given_up}, which some rank has")
    if len(report.nodes) > 1:
        console.print(
            f"a restart without all of these nodes finds {_found_text(report.without_all)}"
        )
    for problem in report.problems:
        console.print(f"damaged: {one_line(problem)}")
    for path in report.foreign:
        console.print(f"of another job, not counted: {one_line(path)}")


def _found_text(found: _core.RestartVersion) -> str:
    places = {"pool": "in the pool", "nodes": "on nodes", "drain": "in a drain"}
    place = places.get(found.level.name)
    return f"version {found.version} {place}" if place else "nothing"


def _node_text(node: _core.VerifiedNode) -> str:
    if not (node.pool or node.ranks or node.kept):
        return "no pool"
    text = f"files of {ranks_text(node.ranks)}"
    if node.left_over:
        text += f", and old ones of {ranks_text(node.left_over)}"
    if node.kept:
        text += f"; images or guards of {_versions_text([kept.version for kept in node.kept])}"
    return f"{text}; without it {_found_text(node.without)}"


def _versions_text(versions: list[int]) -> str:
    return f"version{'s' * (len(versions) != 1)} {', '.join(map(str, versions))}"


def _group_text(group: _core.KeptGroup) -> str:
    text = f"of {ranks_text(group.members)}: an image or guard of {ranks_text(group.missing)} "
    text += "is missing, "
    if len(group.missing) > group.losses:
        return f"{text}more than {group.scheme} bears"
    left = f"{group.left}" if group.left else "none"
    return f"{text}{left} of their nodes may be lost"


def _losses_text(kept: _core.KeptVersion) -> str:
    if not kept.restorable:
        return "not to be had for all ranks"
    if kept.losses == 0:
        return "no node may be lost"
    more = " or more" if kept.losses == 3 else ""
    text = f"any {kept.losses}{more} node{'s' * (kept.losses != 1)} may be lost"
    least = min((group.left for group in kept.groups), default=None)
    return text if least is None else f"{text}, {least} of each failure group"
