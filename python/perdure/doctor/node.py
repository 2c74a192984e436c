# SPDX-License-Identifier: BSD-3-Clause
"""Checks of this node: processor, kernel, limits, shared memory, GPU, clocks, meters."""

from __future__ import annotations

import os
import re
import resource
import time
from pathlib import Path

from perdure.doctor.check import NOTE, OK, PROBLEM, Check
from perdure.doctor.machine import Machine
from perdure.units import bytes_text

_SHM_BYTES_FEW = 256 << 20  # a container's is 64 MiB
_SHM_BYTES_MIN = 4 << 20  # run pages and the pages that ranks share
_PINNED_BYTES = 64 << 20
_CLOCKS = "sys/devices/system/clocksource/clocksource0"
_SLOW_CLOCKS = {"hpet", "acpi_pm", "jiffies", "refined-jiffies", "pit"}
_WORST_FLUSH = "clflush"
_DAY_S = 86400


def node_checks(machine: Machine) -> list[Check]:
    """All of them."""
    return [_flush(machine), _tracker(machine), _limits(machine), _shm(machine), _gpu(machine),
            _clock(machine), _meters(machine), _frequency(machine)]  # fmt: skip


def _flush(machine: Machine) -> Check:
    flush, copy = machine.core.flush_names()
    facts = {"flush": flush, "copy": copy}
    found = f"{flush}, {copy.removesuffix('-nt')} stores past the cache"
    if flush == _WORST_FLUSH:
        return Check("flush", NOTE, found, "commits flush one line after the other, and lose it "
                     "from the cache", "use a processor or virtual machine with clwb: mode copy "
                     "suffers least here", facts=facts)
    return Check("flush", OK, found, "commits use these", facts=facts)


def _tracker(machine: Machine) -> Check:
    try:
        tracker = machine.core.page_tracker()
    except machine.core.Error as failure:
        return Check("changes", PROBLEM, str(failure), "arrays in log mode are refused",
                     "take the variable away", "unset PERDURE_TRACKER")
    if tracker["kind"] == "kernel":
        return Check("changes", OK, "userfaultfd", "log mode asks the kernel what was written",
                     facts=tracker)
    does = "log mode catches page faults: read() into an array fails (EFAULT)"
    if tracker["asked"]:
        return Check("changes", NOTE, "PERDURE_TRACKER=faults", does, "let the kernel be asked",
                     "unset PERDURE_TRACKER", tracker)
    return Check("changes", NOTE, tracker["kernel_lacks"], does, "use Linux 6.7 or later, and in a "
                 "container a seccomp profile that allows userfaultfd", "uname -r", tracker)


def _limits(machine: Machine) -> Check:
    locked = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    largest = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    facts = {"memlock_bytes": _none_if_unlimited(locked),
             "file_bytes_max": _none_if_unlimited(largest)}  # fmt: skip
    if largest != resource.RLIM_INFINITY:
        return Check("limits", NOTE, f"a file may have {bytes_text(largest)} (ulimit -f)",
                     "a rank's part of a pool that is larger is refused", "raise the limit",
                     "ulimit -f unlimited", facts)
    found = f"memlock {'unlimited' if facts['memlock_bytes'] is None else bytes_text(locked)}"
    pins = bool(machine.names("sys/class/infiniband"))
    if pins and facts["memlock_bytes"] is not None and locked < _PINNED_BYTES:
        return Check("limits", NOTE, f"{found}, and InfiniBand", "Perdure locks no memory, but "
                     "MPI must to use the network", "raise the limit in /etc/security/limits.conf",
                     "ulimit -l unlimited", facts)
    return Check("limits", OK, found, "Perdure locks no memory", facts=facts)


def _none_if_unlimited(limit: int) -> int | None:
    return None if limit == resource.RLIM_INFINITY else limit


def _shm(machine: Machine) -> Check:
    place = machine.at("dev/shm")
    if not os.path.isdir(place):
        return Check("/dev/shm", NOTE, "there is none", "run pages go to $XDG_RUNTIME_DIR or "
                     "$TMPDIR, which may be a disk", "mount a tmpfs there",
                     "sudo mount -t tmpfs -o mode=1777 shm /dev/shm", {"free_bytes": None})
    status = os.statvfs(place)
    free, total = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    facts = {"free_bytes": free, "total_bytes": total}
    found = f"{bytes_text(free)} free of {bytes_text(total)}"
    does = "for run pages and tokens"
    if not os.access(place, os.W_OK | os.X_OK):
        return Check("/dev/shm", PROBLEM, "you may not write there", does,
                     "let the administrator give it the usual mode", "sudo chmod 1777 /dev/shm",
                     facts)
    if free < _SHM_BYTES_MIN:
        return Check("/dev/shm", PROBLEM, found, does, "remove what nobody needs any more",
                     "ls -lS /dev/shm", facts)
    if total < _SHM_BYTES_FEW:
        return Check("/dev/shm", NOTE, found, f"{does}; too small for pools",
                     "give a container more", "docker run --shm-size=4g IMAGE", facts)
    return Check("/dev/shm", OK, found, does, facts=facts)


def _gpu(machine: Machine) -> Check:
    version = machine.read("proc/driver/nvidia/version").splitlines()[:1]
    if version or machine.has("sys/module/nvidia"):
        number = re.search(r"\b\d+\.\d+(?:\.\d+)?\b", version[0] if version else "")
        found = f"NVIDIA's driver {number[0]}" if number else "NVIDIA's driver"
        return Check("GPU", OK, found, "arrays in copy and log mode may be in memory of the GPU; "
                     "while CUDA is in use, log mode compares the others whole",
                     facts={"driver": "nvidia"})
    if machine.has("sys/module/amdgpu") and machine.has("dev/kfd"):
        return Check("GPU", NOTE, "AMD's driver", "log mode does not see what the GPU stores to "
                     "memory of the host", "give arrays in log mode the flag PERDURE_COMPARE, or "
                     "use mode copy", facts={"driver": "amdgpu"})
    return Check("GPU", OK, "no driver is loaded", "nothing to do", facts={"driver": None})


def _clock(machine: Machine) -> Check:
    source = machine.read(f"{_CLOCKS}/current_clocksource").strip() or "unknown"
    others = machine.read(f"{_CLOCKS}/available_clocksource").split()
    wall, built = time.time(), _built_at()
    began = time.monotonic()
    facts = {"source": source, "wall_s": wall}
    if wall + _DAY_S < built or time.monotonic() < began:
        day = time.strftime("%Y-%m-%d", time.gmtime(wall))
        return Check("clocks", PROBLEM, f"the wall clock says {day}, when this Perdure was not "
                     "yet built", "versions get wrong times, and a drain's lease may be misjudged",
                     "set the clock", "sudo timedatectl set-ntp true", facts)
    if source in _SLOW_CLOCKS:
        command = f"echo tsc | sudo tee /{_CLOCKS}/current_clocksource" if "tsc" in others else ""
        return Check("clocks", NOTE, f"the kernel reads {source}", "each look at the clock costs "
                     "a microsecond, which commits of small arrays feel", "let it read the TSC, "
                     "if the processor's is stable", command, facts)
    return Check("clocks", OK, f"{source}, wall clock sane", "versions and leases have right times",
                 facts=facts)


def _built_at() -> float:
    """When this Perdure was built or installed."""
    return Path(__file__).stat().st_mtime


def _meters(machine: Machine) -> Check:
    rows = machine.core.list_meters()
    readable = [f"{row['interface']} {row['name']}" for row in rows if row["readable"]]
    facts = {"meters": len(rows), "readable": len(readable)}
    if readable:
        more = f" and {len(readable) - 1} more" if len(readable) > 1 else ""
        return Check("meters", OK, f"{readable[0]}{more}", "profiles and runs have their energy, "
                     "if `perdure energy probe` finds it alive", facts=facts)
    if rows:
        return Check("meters", NOTE, f"{rows[0]['interface']} {rows[0]['name']}: "
                     f"{rows[0]['reason'] or 'not readable'}", "energy is not measured",
                     rows[0]["remedy"] or "let the administrator make it readable",
                     "perdure energy probe", facts)
    return Check("meters", OK, "none", "energy plans need --power", facts=facts)


def _frequency(machine: Machine) -> Check:
    why_not = machine.core.energy_why_not()
    policies = machine.core.energy_policies()
    facts = {"policies": len(policies), "settable": not why_not}
    if not why_not:
        return Check("cpufreq", OK, f"{len(policies)} policies", "a plan's clock is set around "
                     "commits", facts=facts)
    if policies:
        return Check("cpufreq", NOTE, why_not, "a plan's clock is not set, and that is said",
                     "let the administrator install the rule of docs/energy.md",
                     "perdure energy probe", facts)
    return Check("cpufreq", OK, "no frequency driver", "a plan's clock is not set", facts=facts)
