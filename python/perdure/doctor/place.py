# SPDX-License-Identifier: BSD-3-Clause
"""Checks of a directory for pools: its medium, locks, room and pages."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

from perdure.doctor.check import NOTE, OK, PROBLEM, Check
from perdure.doctor.machine import Machine
from perdure.units import bytes_text

_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "9p", "virtiofs",
            "afs", "orangefs", "pvfs2", "glusterfs"}  # fmt: skip
_ROOM_BYTES_MIN = 16 << 20
_ROOM_BYTES_FEW = 256 << 20
_NO_LIMIT = 1 << 60  # of a cgroup: more than any machine has


def place_checks(machine: Machine, path: Path) -> list[Check]:
    """All of a directory that is there."""
    try:
        medium = machine.core.try_medium(str(path))
    except machine.core.Error as failure:
        refused = Check("medium", PROBLEM, str(failure), "a job is refused its pool here",
                        "do as the sentence says, or choose another directory")
        return [refused, *_room(machine, path, in_memory=False)]
    storage = machine.core.energy_storage(str(path))
    in_memory = medium["kind"] == "tmpfs"
    checks = [_medium(medium, storage), _locks(storage), *_room(machine, path, in_memory)]
    return [*checks, _pages(machine, path, storage)] if in_memory else checks


def _medium(medium: dict[str, Any], storage: dict[str, Any]) -> Check:
    kind, file_system = medium["kind"], storage["file_system"]
    facts = {**medium, "file_system": file_system, "device": storage["name"]}
    if kind == "DAX":
        return Check("medium", OK, f"persistent memory, {file_system} with DAX",
                     "commits flush the processor's caches, and survive a loss of power",
                     facts=facts)
    if kind == "tmpfs":
        return Check("medium", NOTE, "memory, tmpfs",
                     "commits survive processes, not the node",
                     "bring versions to a file system that outlives it",
                     'export PERDURE_LEVELS="drain=$HOME/perdure-levels"', facts)
    found = f"{file_system} on {storage['name']}"
    does = "commits wait for fdatasync, and survive a loss of power"
    if file_system == "overlay":
        return Check("medium", NOTE, found, f"{does}, but go with the container",
                     "give the container a directory of the host for pools",
                     "docker run -v /mnt/pmem/me:/pools IMAGE", facts)
    if file_system.removeprefix("fuse.") in _NETWORK:
        return Check("medium", NOTE, found, f"{does}; each crosses the network",
                     "put pools on the node's own memory or disk, and drain versions to here",
                     f"export PERDURE_LEVELS={shlex.quote('drain=' + os.getcwd())}", facts)
    return Check("medium", OK, found, does, facts=facts)


def _locks(storage: dict[str, Any]) -> Check:
    """The library has locked the file that it tried the medium with."""
    options = storage["options"].split(",")
    local = [word for word in options if word in ("localflock", "local_lock=flock",
                                                  "local_lock=all", "nolock")]  # fmt: skip
    if local:
        return Check("locks", NOTE, f"flock holds on this node only ({local[0]})",
                     "two jobs on two nodes could open one pool at the same time",
                     "mount it with locks that all nodes see, or let one job at a time run",
                     facts={"granted": True, "local": True})
    return Check("locks", OK, "flock", "no two jobs open one pool at a time",
                 facts={"granted": True, "local": False})


def _room(machine: Machine, path: Path, in_memory: bool) -> list[Check]:
    status = os.statvfs(path)
    free, total = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    facts: dict[str, Any] = {"free_bytes": free, "total_bytes": total}
    found = f"{bytes_text(free)} free of {bytes_text(total)}"
    least = free
    quota = machine.core.user_quota(str(path))
    if quota is not None and quota[1]:
        facts["quota_left_bytes"] = left = max(quota[1] - quota[0], 0)
        found += f", {bytes_text(left)} of your quota"
        least = min(least, left)
    does = "arrays must fit when opened"
    where = shlex.quote(str(path))
    if least < _ROOM_BYTES_FEW:
        mark = PROBLEM if least < _ROOM_BYTES_MIN else NOTE
        room = Check("room", mark, found, does, "look for pools that nobody needs any more",
                     f"perdure pool ls {where}", facts)
    else:
        room = Check("room", OK, found, does, facts=facts)
    limit = memory_limit(machine) if in_memory else None
    return [room] if limit is None or limit >= free else [room, _limited(limit)]


def _limited(limit: int) -> Check:
    return Check("cgroup", NOTE, f"processes here may have {bytes_text(limit)} of memory, and "
                 "files on tmpfs count", "the kernel kills a job that takes more (exit code 137)",
                 "ask for more memory than the job and its pools have together",
                 "sbatch --mem=SIZE job.sh",
                 {"limit_bytes": limit})


def memory_limit(machine: Machine) -> int | None:
    """The least limit of the memory cgroups of this process, of either version."""
    limits = []
    for line in machine.read("proc/self/cgroup").splitlines():
        number, controllers, group = (line.split(":", 2) + ["", ""])[:3]
        if not number.isdecimal() or controllers not in ("", "memory"):
            continue
        base = "sys/fs/cgroup/memory" if controllers else "sys/fs/cgroup"
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        parts = [part for part in group.split("/") if part not in ("", "..")]
        for depth in range(len(parts) + 1):
            text = machine.read("/".join([base, *parts[:depth], name])).strip()
            if re.fullmatch(r"[0-9]{1,20}", text) and int(text) < _NO_LIMIT:
                limits.append(int(text))
    return min(limits, default=None)


def _pages(machine: Machine, path: Path, storage: dict[str, Any]) -> Check:
    """Of a file on tmpfs: the mount decides, and the kernel's switch over it."""
    switch = machine.read("sys/kernel/mm/transparent_hugepage/shmem_enabled")
    forced = (re.findall(r"\[(\w+)\]", switch) or ["deny"])[0]
    asked = [word[5:] for word in storage["options"].split(",") if word.startswith("huge=")]
    mounted = asked[0] if asked else "never"
    huge = forced == "force" or (forced != "deny" and mounted in ("always", "within_size"))
    facts = {"huge": huge, "mounted": mounted, "shmem_enabled": forced}
    if huge:
        return Check("pages", OK, "huge pages", "commits touch few entries of the page table",
                     facts=facts)
    mount = shlex.quote(str(_mount_point(path)))
    return Check("pages", NOTE, "pages of 4 KiB", "huge ones make commits faster",
                 "let the administrator mount it with huge pages",
                 f"sudo mount -o remount,huge=within_size {mount}", facts)


def _mount_point(path: Path) -> Path:
    place = path.resolve()
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return place
