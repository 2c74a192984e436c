# SPDX-License-Identifier: BSD-3-Clause
"""`perdure doctor`: what it says is what a pool then meets, and what each kind of machine gets.

Machines are faked by files of /proc, /sys and /etc as the kernel and Debian write them, by programs
in PATH, and by what the library says (Machine.core), where no file decides. What can't be had here
are DAX, a file system with quotas and one without locks: there the library's answer is made up.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import BUILD, MPIS, ROOT, in_this_process
from perdure.core import load_core
from perdure.doctor import mpi, node
from perdure.doctor.check import MARKS, NOTE, OK, PROBLEM, Check
from perdure.doctor.cleaners import cleaner_check
from perdure.doctor.command import examined
from perdure.doctor.jobs import job_checks
from perdure.doctor.machine import Machine
from perdure.doctor.mpi import mpi_checks
from perdure.doctor.node import node_checks
from perdure.doctor.place import memory_limit, place_checks
from perdure.doctor.view import Report
from perdure.mpi_wrappers import mixture_of, mpi_libraries
from perdure.screen import Screen

CORE = load_core()
EXT4 = {"name": "vda", "file_system": "ext4", "options": "rw,relatime"}
TMPFS = {"name": ":memory", "file_system": "tmpfs", "options": "rw"}
SLIP = "PERDURE_EMULATE"[:-1]
MEDIUM = {"kind": "file", "survives_power_failure": True, "granule_bytes": 4096}
COMPILERS = {name: (os.environ.get(f"PERDURE_TEST_MPICC_{name}"),
                    os.environ.get(f"PERDURE_TEST_MPIEXEC_{name}")) for name in MPIS}  # fmt: skip
TRACKER = {"kind": "kernel", "asked": False, "kernel_lacks": ""}


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    """A machine with no file and no program, and a library that says what is usual."""
    (tmp_path / "root/dev/shm").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in os.environ:
        if name.startswith(("PERDURE_", "SLURM_", "PBS_", "FLUX_", "OMPI_")):
            monkeypatch.delenv(name)
    core = SimpleNamespace(
        Error=CORE.Error, try_medium=lambda path: MEDIUM, energy_storage=lambda path: EXT4,
        user_quota=lambda path: None, flush_names=lambda: ("clwb", "avx512-nt"),
        page_tracker=lambda: TRACKER, list_meters=list, energy_policies=list,
        energy_why_not=lambda: "this machine has no frequency policies",
        mpi_of_text=CORE.mpi_of_text, is_known_variable=CORE.is_known_variable,
        variable_like=CORE.variable_like,
    )  # fmt: skip
    return Machine(core=core, root=tmp_path / "root", uid=1000)


def saying(machine: Machine, **answers) -> Machine:
    """The machine whose library answers otherwise; an exception is raised."""
    def answer(value):
        def call(*_words):
            if isinstance(value, Exception):
                raise value
            return value
        return call

    given = {name: answer(value) for name, value in answers.items()}
    return replace(machine, core=SimpleNamespace(**{**vars(machine.core), **given}))


def put(machine: Machine, path: str, text: str) -> None:
    file = machine.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def program(machine: Machine, name: str, prints: str, code: int = 0) -> None:
    file = machine.root.parent / "bin" / name
    file.write_text(f"#!/bin/sh\n/bin/cat <<'END'\n{prints}\nEND\nexit {code}\n")
    file.chmod(0o755)


def named(checks: list[Check], name: str) -> Check:
    (found,) = [check for check in checks if check.name == name]
    assert found.mark in MARKS and found.found and found.does
    assert found.mark == OK or found.improve, found
    assert found.mark != OK or not (found.improve or found.command), found
    assert not found.command or shlex.split(found.command, comments=True), found.command
    json.dumps(found.facts)
    return found


# --- what it says is what a pool meets -----------------------------------------------------------

JOB = """
import os, sys
import numpy, perdure
pool = perdure.open(sys.argv[1])
array = pool.array("u", (100000,), mode="log")
pool.restart()
array.working[:] = 1
pool.commit()
names = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
         if os.path.lexists(f"/proc/self/fd/{fd}")]
print(int(pool.status().survives_power_failure), int("anon_inode:[userfaultfd]" in names))
pool.close()
"""


def reported(place: Path, **environment: str) -> dict[str, dict]:
    """What a process of its own says as JSON, by the names of the checks."""
    words = [ROOT / "perdure", "doctor", place, "--json"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False,
                         env={**os.environ, **environment})
    assert ran.returncode in (0, 1) and ran.stderr == "", ran.stderr
    document = json.loads(ran.stdout)
    assert ran.returncode == int(document["problems"] > 0)
    return {check["name"]: check for check in document["checks"]}


def job(place: Path, **environment: str) -> tuple[bool, bool, str]:
    """A pool there: does it survive a loss of power, is the kernel asked, and what was said."""
    folders = os.pathsep.join([str(ROOT / "python"), str(BUILD / "python")])
    ran = subprocess.run([sys.executable, "-c", JOB, place / "pool"], capture_output=True,
                         text=True, timeout=60, check=False,
                         env={**os.environ, "PYTHONPATH": folders, **environment})  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    survives, asks = ran.stdout.split()
    return survives == "1", asks == "1", ran.stderr


@pytest.fixture(params=["memory_path", "tmp_path"])
def place(request) -> Path:
    """A directory on tmpfs, and one that may lie on a disk."""
    return request.getfixturevalue(request.param)


def test_the_medium_is_what_a_pool_there_reports(place):
    says = reported(place)["medium"]["facts"]
    assert job(place)[0] == says["survives_power_failure"]
    assert sorted(each.name for each in place.iterdir()) == ["pool"]


@pytest.mark.parametrize("asked", ["", "faults"])
def test_the_tracker_is_the_one_that_log_mode_takes(memory_path, asked):
    says = reported(memory_path, PERDURE_TRACKER=asked)["changes"]
    assert says["facts"]["kind"] == ("kernel" if job(memory_path, PERDURE_TRACKER=asked)[1]
                                     else "faults")
    assert asked != "faults" or says["mark"] == NOTE


def test_the_flush_is_the_one_that_a_pool_takes(memory_path):
    said = job(memory_path, PERDURE_FLUSH="nonsense")[2]
    (used,) = re.findall(r"PERDURE_FLUSH=nonsense is not of this processor; (.+) is used", said)
    assert reported(memory_path)["flush"]["facts"]["flush"] == used


def test_a_directory_that_a_pool_is_refused_is_a_problem_with_the_same_sentence(memory_path):
    memory_path.chmod(0o777)
    says = reported(memory_path)["medium"]
    folders = os.pathsep.join([str(ROOT / "python"), str(BUILD / "python")])
    opened = "import sys, perdure; perdure.open(sys.argv[1])"
    ran = subprocess.run([sys.executable, "-c", opened, memory_path], capture_output=True,
                         text=True, timeout=60, env={**os.environ, "PYTHONPATH": folders},
                         check=False)
    assert ran.returncode == 1 and says["mark"] == PROBLEM
    assert says["found"] in ran.stderr and not list(memory_path.iterdir())


def test_a_variable_that_a_job_says_nobody_reads_is_a_problem(memory_path):
    said = job(memory_path, **{SLIP: "x"}, PERDURE_CHECK="0")[2]
    says = reported(memory_path, **{SLIP: "x"}, PERDURE_CHECK="0")["variables"]
    assert f"{SLIP} is set" in said and "did you mean PERDURE_EMULATE?" in said
    assert says["facts"]["unknown"] == [SLIP] and says["mark"] == PROBLEM
    assert "PERDURE_EMULATE may be meant" in says["found"]
    assert says["command"] == f"unset {SLIP}"


@pytest.mark.parametrize("name", MPIS)
def test_the_compilers_are_those_of_the_mpi_that_they_were_found_to_be_of(
    name, machine, monkeypatch
):
    compiler, launcher = COMPILERS[name]
    if not compiler or not launcher:
        pytest.skip("which compiler is whose is not given here")
    (machine.root.parent / "bin/mpicc").symlink_to(compiler)
    (machine.root.parent / "bin/mpiexec").symlink_to(launcher)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/bin:/bin")
    found = named(mpi_checks(machine), "MPI")
    assert found.facts["compiles_for"] == name and found.mark == OK
    assert found.facts["launches"] == ("mpich" if name == "abi" else name)


# --- a directory ---------------------------------------------------------------------------------


def test_a_disk_survives_a_loss_of_power(machine, tmp_path):
    checks = place_checks(machine, tmp_path)
    assert [check.name for check in checks] == ["medium", "locks", "room"]
    assert named(checks, "medium").mark == OK and "ext4 on vda" in named(checks, "medium").found


def test_dax_is_the_best_medium(machine, tmp_path):
    dax = saying(machine, try_medium={**MEDIUM, "kind": "DAX"})
    assert "persistent memory" in named(place_checks(dax, tmp_path), "medium").found


@pytest.mark.parametrize("file_system, advice", [
    ("nfs4", "drain"), ("lustre", "drain"), ("fuse.glusterfs", "drain"), ("overlay", "container"),
])
def test_a_file_system_with_a_catch_is_a_note(machine, tmp_path, file_system, advice):
    other = saying(machine, energy_storage={**EXT4, "file_system": file_system})
    medium = named(place_checks(other, tmp_path), "medium")
    assert medium.mark == NOTE and advice in medium.improve + medium.command


def test_memory_does_not_outlive_the_node(machine, tmp_path):
    memory = saying(machine, try_medium={**MEDIUM, "kind": "tmpfs"}, energy_storage=TMPFS)
    medium = named(place_checks(memory, tmp_path), "medium")
    assert medium.mark == NOTE and "drain=" in medium.command


def test_what_the_library_refuses_is_a_problem(machine, tmp_path):
    broken = saying(machine, try_medium=CORE.Error("no locks here; choose another directory"))
    checks = place_checks(broken, tmp_path)
    assert named(checks, "medium").mark == PROBLEM
    assert named(checks, "medium").found == "no locks here; choose another directory"


@pytest.mark.parametrize("options, mark", [("rw,flock", OK), ("rw,localflock", NOTE),
                                           ("rw,local_lock=all", NOTE)])
def test_locks_that_other_nodes_do_not_see_are_a_note(machine, tmp_path, options, mark):
    other = saying(machine, energy_storage={**EXT4, "options": options})
    assert named(place_checks(other, tmp_path), "locks").mark == mark


@pytest.mark.parametrize("left, mark", [(4 << 20, PROBLEM), (100 << 20, NOTE), (400 << 30, OK)])
def test_the_room_is_what_a_quota_leaves(machine, tmp_path, left, mark):
    status = os.statvfs(tmp_path)
    if status.f_bavail * status.f_frsize < 256 << 20:
        pytest.skip("there is no room")
    limited = saying(machine, user_quota=(1 << 30, (1 << 30) + left))
    room = named(place_checks(limited, tmp_path), "room")
    assert room.mark == mark and room.facts["quota_left_bytes"] == left
    assert "of your quota" in room.found


CGROUPS = [
    ("0::/user.slice/job\n", "sys/fs/cgroup/user.slice/job/memory.max", "1048576\n", 1 << 20),
    ("0::/a/b\n", "sys/fs/cgroup/a/memory.max", "4096\n", 4096),
    ("0::/\n", "sys/fs/cgroup/memory.max", "max\n", None),
    ("9:memory:/slurm/job_7\n1:cpu:/x\n",
     "sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "65536\n", 65536),
    ("9:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n", None),
    ("0::/../../etc\n", "sys/fs/cgroup/memory.max", "no number\n", None),
    ("rubbish", "sys/fs/cgroup/memory.max", "7\n", None),
]


@pytest.mark.parametrize("groups, file, limit, wanted", CGROUPS)
def test_the_limit_of_memory_is_that_of_either_version_of_cgroups(
    machine, groups, file, limit, wanted
):
    put(machine, "proc/self/cgroup", groups)
    put(machine, file, limit)
    assert memory_limit(machine) == wanted


def test_a_cgroup_smaller_than_a_tmpfs_is_a_note(machine, tmp_path):
    put(machine, "proc/self/cgroup", "0::/\n")
    put(machine, "sys/fs/cgroup/memory.max", "1048576\n")
    memory = saying(machine, try_medium={**MEDIUM, "kind": "tmpfs"}, energy_storage=TMPFS)
    assert "137" in named(place_checks(memory, tmp_path), "cgroup").does
    assert [check.name for check in place_checks(machine, tmp_path)].count("cgroup") == 0


@pytest.mark.parametrize("switch, options, mark", [
    ("always within_size advise [never] deny force", "rw,huge=always", OK),
    ("always within_size advise [never] deny force", "rw,huge=within_size", OK),
    ("always within_size advise [never] deny force", "rw", NOTE),
    ("always within_size advise never [deny] force", "rw,huge=always", NOTE),
    ("always within_size advise never deny [force]", "rw", OK),
    ("", "rw,huge=always", NOTE),
])
def test_the_pages_of_a_tmpfs_are_its_mounts_and_the_kernels(
    machine, tmp_path, switch, options, mark
):
    put(machine, "sys/kernel/mm/transparent_hugepage/shmem_enabled", switch)
    memory = saying(machine, try_medium={**MEDIUM, "kind": "tmpfs"},
                    energy_storage={**TMPFS, "options": options})
    assert named(place_checks(memory, tmp_path), "pages").mark == mark


# --- cleaners ------------------------------------------------------------------------------------

TMPFILES = [
    ("q /tmp 1777 root root 10d", "/tmp/me", True),
    ("q /tmp 1777 root root 10d", "/tmp", True),
    ("D! /tmp 1777 root root -", "/tmp/me", False),
    ("D /tmp 1777 root root", "/tmp/me", False),
    ("d /scratch/* - - - 30d", "/scratch/alice/pools", True),
    ("e '/scratch/al ice' - - - aAmM:5d", "/scratch/al ice/pools", True),
    ("q /tmp 1777 root root 10d", "/tmpfs/me", False),
    ("q /tmp 1777 root root 10d\nx /tmp/me", "/tmp/me", False),
    ("q /tmp 1777 root root 10d\nx /tmp/other", "/tmp/me", True),
    ("R /tmp/me", "/tmp/me", False),
    ("# q /tmp - - - 1d\n\n\"broken", "/tmp/me", False),
]


@pytest.mark.parametrize("lines, place, cleans", TMPFILES)
def test_a_rule_of_tmpfiles_with_an_age_is_a_problem(machine, lines, place, cleans):
    put(machine, "etc/tmpfiles.d/site.conf", lines + "\n")
    assert named([cleaner_check(machine, Path(place))], "cleaners").mark == OK  # no systemd
    (machine.root / "run/systemd/system").mkdir(parents=True)
    found = named([cleaner_check(machine, Path(place))], "cleaners")
    assert (found.mark, found.facts["cleaner"]) == \
        ((PROBLEM, "systemd-tmpfiles") if cleans else (OK, None))
    if cleans:  # the remedy is one
        rule = shlex.split(found.command.partition(" | ")[0])[1]
        put(machine, "etc/tmpfiles.d/perdure.conf", rule + "\n")
        assert named([cleaner_check(machine, Path(place))], "cleaners").mark == OK or " " in place


def test_a_file_of_tmpfiles_in_etc_takes_the_place_of_the_one_of_the_package(machine):
    (machine.root / "run/systemd/system").mkdir(parents=True)
    put(machine, "usr/lib/tmpfiles.d/tmp.conf", "q /tmp 1777 root root 10d\n")
    assert cleaner_check(machine, Path("/tmp")).mark == PROBLEM
    put(machine, "etc/tmpfiles.d/tmp.conf", "q /tmp 1777 root root -\n")
    assert cleaner_check(machine, Path("/tmp")).mark == OK


@pytest.mark.parametrize("text, place, cleans", [
    ("TMPREAPER_TIME=7d\nTMPREAPER_DIRS='/tmp/. /scratch/.'\n", "/scratch/me", True),
    ("TMPREAPER_TIME=7d\nTMPREAPER_DIRS='/tmp/.'\n", "/scratch/me", False),
    ("SHOWWARNING=true\nTMPREAPER_DIRS='/tmp/.'\n", "/tmp/me", False),
])
def test_a_directory_of_tmpreaper_is_a_problem(machine, text, place, cleans):
    put(machine, "etc/tmpreaper.conf", text)
    assert (cleaner_check(machine, Path(place)).mark == PROBLEM) == cleans


def test_a_directory_of_tmpwatch_is_a_problem(machine):
    put(machine, "etc/cron.daily/tmpwatch", '/usr/sbin/tmpwatch "$flags" 10d /tmp\n')
    assert named([cleaner_check(machine, Path("/tmp/me"))], "cleaners").mark == PROBLEM
    assert cleaner_check(machine, Path("/var/tmp/me")).mark == OK


def test_logind_takes_dev_shm_of_users_who_log_out_unless_they_linger(machine):
    pool = Path("/dev/shm")
    assert cleaner_check(machine, pool).mark == OK  # no logind
    (machine.root / "run/systemd/sessions").mkdir(parents=True)
    assert named([cleaner_check(machine, pool)], "cleaners").facts["cleaner"] == "logind"
    assert cleaner_check(machine, Path("/mnt")).mark == OK
    assert cleaner_check(replace(machine, uid=0), pool).mark == OK
    put(machine, "etc/systemd/logind.conf", "[Login]\n#RemoveIPC=yes\nRemoveIPC=no\n")
    assert cleaner_check(machine, pool).mark == OK
    put(machine, "etc/systemd/logind.conf.d/site.conf", "[Login]\nRemoveIPC=yes\n")
    assert cleaner_check(machine, pool).mark == PROBLEM
    put(machine, "var/lib/systemd/linger/4000000", "")
    assert cleaner_check(replace(machine, uid=4000000), pool).mark == OK


# --- the node ------------------------------------------------------------------------------------


def test_a_good_node_has_no_note(machine, monkeypatch):
    monkeypatch.setattr(machine.__class__, "at", Machine.at)
    put(machine, f"{node._CLOCKS}/current_clocksource", "tsc\n")
    assert {check.mark for check in node_checks(machine)} == {OK}


def test_a_processor_with_the_oldest_flush_is_a_note(machine):
    old = saying(machine, flush_names=("clflush", "sse2-nt"))
    assert named(node_checks(old), "flush").mark == NOTE


@pytest.mark.parametrize("tracker, mark, said", [
    (TRACKER, OK, "kernel"),
    ({**TRACKER, "kind": "faults", "kernel_lacks": "userfaultfd: Operation not permitted"}, NOTE,
     "Operation not permitted"),
    ({**TRACKER, "kind": "faults", "asked": True}, NOTE, "PERDURE_TRACKER"),
    (CORE.Error("PERDURE_TRACKER=x is neither kernel nor faults"), PROBLEM, "neither"),
])
def test_how_changes_are_found_is_what_the_library_says(machine, tracker, mark, said):
    found = named(node_checks(saying(machine, page_tracker=tracker)), "changes")
    assert found.mark == mark and said in found.found + found.does


@pytest.mark.parametrize("limits, infiniband, mark", [
    ({}, False, OK), ({resource.RLIMIT_MEMLOCK: 65536}, False, OK),
    ({resource.RLIMIT_MEMLOCK: 65536}, True, NOTE), ({}, True, OK),
    ({resource.RLIMIT_FSIZE: 1 << 30}, False, NOTE),
])
def test_limits_that_stop_a_job_are_a_note(machine, monkeypatch, limits, infiniband, mark):
    unlimited = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (limits.get(kind, unlimited),) * 2)
    if infiniband:
        (machine.root / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    assert named(node_checks(machine), "limits").mark == mark


@pytest.mark.parametrize("total, free, mark", [
    (64 << 20, 60 << 20, NOTE), (8 << 30, 1 << 20, PROBLEM), (8 << 30, 7 << 30, OK),
])
def test_the_size_of_dev_shm_is_looked_at(machine, monkeypatch, total, free, mark):
    status = SimpleNamespace(f_bavail=free, f_blocks=total, f_frsize=1)
    monkeypatch.setattr(os, "statvfs", lambda path: status)
    assert named(node_checks(machine), "/dev/shm").mark == mark


def test_a_node_without_dev_shm_is_a_note(machine):
    (machine.root / "dev/shm").rmdir()
    assert named(node_checks(machine), "/dev/shm").mark == NOTE


@pytest.mark.parametrize("file, text, driver, mark", [
    ("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  "
     "Tue\n", "nvidia", OK),
    ("sys/module/nvidia/refcnt", "1", "nvidia", OK), ("dev/kfd", "", "amdgpu", NOTE),
    ("etc/nothing", "", None, OK),
])
def test_a_driver_of_a_gpu_is_named(machine, file, text, driver, mark):
    put(machine, file, text)
    if driver == "amdgpu":
        put(machine, "sys/module/amdgpu/refcnt", "1")
    found = named(node_checks(machine), "GPU")
    assert (found.facts["driver"], found.mark) == (driver, mark)
    assert "NVRM" not in text or "550.54.15" in found.found


@pytest.mark.parametrize("source, others, mark, command", [
    ("tsc", "tsc hpet", OK, False), ("kvm-clock", "kvm-clock", OK, False),
    ("hpet", "tsc hpet", NOTE, True), ("acpi_pm", "acpi_pm", NOTE, False), ("", "", OK, False),
])
def test_a_slow_clock_is_a_note(machine, source, others, mark, command):
    put(machine, f"{node._CLOCKS}/current_clocksource", source + "\n")
    put(machine, f"{node._CLOCKS}/available_clocksource", others + "\n")
    found = named(node_checks(machine), "clocks")
    assert (found.mark, bool(found.command)) == (mark, command)


def test_a_wall_clock_from_before_this_perdure_is_a_problem(machine, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1e6)
    assert "1970-01-12" in named(node_checks(machine), "clocks").found


METER = {"interface": "powercap", "name": "package-0", "readable": True, "reason": "",
         "remedy": ""}  # fmt: skip


def test_meters_are_those_of_the_library(machine):
    alive = saying(machine, list_meters=[METER, {**METER, "name": "dram"}])
    assert "package-0 and 1 more" in named(node_checks(alive), "meters").found
    closed = {**METER, "readable": False, "reason": "Permission denied", "remedy": "as root: x"}
    found = named(node_checks(saying(machine, list_meters=[closed])), "meters")
    assert (found.mark, found.improve) == (NOTE, "as root: x")
    assert named(node_checks(machine), "meters").mark == OK


def test_the_clock_can_be_capped_where_the_library_says_so(machine):
    policies = saying(machine, energy_policies=[{}, {}], energy_why_not="")
    assert "2 policies" in named(node_checks(policies), "cpufreq").found
    closed = saying(machine, energy_policies=[{}], energy_why_not="scaling_max_freq: no")
    assert named(node_checks(closed), "cpufreq").mark == NOTE


# --- MPI -----------------------------------------------------------------------------------------

OPEN_MPI = "mpiexec (OpenRTE) 4.1.4\n\nReport bugs to"
HYDRA = "HYDRA build details:\n  Version: 4.0.2"
PREDEFINED = {"mpich": "#define MPICH_VERSION \"4\"", "openmpi": "#define OPEN_MPI 1",
              "abi": "#define MPI_ABI_VERSION 1"}  # fmt: skip


@pytest.mark.parametrize("compiler, launcher, mark", [
    ("openmpi", OPEN_MPI, OK), ("mpich", HYDRA, OK), ("abi", HYDRA, OK),
    ("mpich", "Intel(R) MPI Library for Linux* OS, Version 2021.11", OK),
    ("openmpi", "mpiexec (Open MPI) 5.0.11", OK), ("openmpi", HYDRA, PROBLEM),
    ("mpich", OPEN_MPI, PROBLEM), ("abi", OPEN_MPI, PROBLEM),
    (None, HYDRA, OK), ("mpich", None, OK), (None, None, OK), ("mpich", "some other one", OK),
])
def test_a_compiler_and_a_launcher_of_two_mpis_are_a_problem(machine, compiler, launcher, mark):
    if compiler:
        program(machine, "mpicc", PREDEFINED[compiler])
    if launcher:
        program(machine, "mpiexec", launcher)
    program(machine, "mpiexec.mpich", HYDRA)
    found = named(mpi_checks(machine), "MPI")
    assert found.mark == mark and found.facts["compiles_for"] == compiler
    if (compiler, mark) == ("mpich", PROBLEM):
        assert found.command == "mpiexec.mpich -n 4 ./solver"


def put_wrapper(machine: Machine, name: str, libraries: dict[str, list[str]]) -> None:
    """A wrapper that stands for a compiler with -L of folders, and with what is in each."""
    folders = {folder: machine.root.parent / f"lib/{folder}" for folder in libraries}
    words = " ".join(f"-L{place}" for place in folders.values())
    program(machine, name, f"ld_{name} {words} -lm -lmpi_mpifh -lmpi")
    program(machine, f"ld_{name}", "libnothing.so")
    for folder, names in libraries.items():
        folders[folder].mkdir(parents=True, exist_ok=True)
        for each in names:
            library, _, soname = each.partition("=")
            (folders[folder] / f"lib{library}.so").write_text(soname)


def put_readelf(machine: Machine) -> None:
    """Of libraries whose text is their SONAME; that of Fortran needs its own MPI's."""
    file = machine.root.parent / "bin/readelf"
    file.write_text("#!/bin/sh\n[ -f $2 ] && for name in $(/bin/cat $2); do\n"
                    "echo \" 0x01 (NEEDED)  Shared library: [$name]\"; done\n")
    file.chmod(0o755)


MIXED = {"openmpi": ["mpi_mpifh=libmpi_mpifh.so.40 libmpi.so.40"], "system": ["mpi=libmpich.so.12"]}
ONE = {"own": ["mpi_mpifh=libmpi_mpifh.so.40 libmpi.so.40", "mpi=libmpi.so.40"]}


@pytest.mark.parametrize("name, sibling, mark, command", [
    ("mpifort.openmpi", ONE, NOTE, "mpifort.openmpi -L{lib}/own solver.f90"),
    ("mpifort", ONE, PROBLEM, "mpifort -L{lib}/own solver.f90"),
    ("mpifort", MIXED, PROBLEM, "mpifort -show"), ("mpifort", {}, PROBLEM, "mpifort -show"),
])
def test_a_compiler_that_links_two_mpis_is_named_with_the_option_that_leaves_one(
    machine, name, sibling, mark, command
):
    put_readelf(machine)
    put_wrapper(machine, name, MIXED)
    if sibling is ONE:
        put_wrapper(machine, name.replace("fort", "cc"), sibling)
    found = named(mpi_checks(machine), "compilers")
    assert found.mark == mark and command.format(lib=machine.root.parent / "lib") == found.command
    assert f"{name} links libmpi.so.40 and libmpich.so.12" in found.found
    assert list(found.facts["mix"]) == [name]


@pytest.mark.parametrize("libraries", [
    ONE, {"a": ["mpi_mpifh=libmpifort.so.12 libmpi.so.12"], "b": ["mpi=libmpich.so.12"]},
])
def test_compilers_that_link_one_mpi_under_any_name_are_fine(machine, libraries):
    put_readelf(machine)
    for name in ("mpicc", "mpicxx", "mpifort"):
        put_wrapper(machine, name, libraries)
    found = named(mpi_checks(machine), "compilers")
    assert (found.mark, found.found) == (OK, "mpicc, mpicxx and 1 more")


@pytest.mark.parametrize("ending", ["", ".mpich", ".openmpi"])
def test_what_a_fortran_compiler_is_said_to_link_is_what_a_program_of_it_needs(tmp_path, ending):
    wrapper = f"mpifort{ending}"
    libraries = mpi_libraries(wrapper)
    if not libraries:
        pytest.skip(f"there is no {wrapper}")
    mixed = mixture_of(wrapper)
    (tmp_path / "p.f90").write_text("program p\n use mpi_f08\n call MPI_Init()\nend program\n")
    for options in ([], shlex.split(mixed.remedy) if mixed else []):
        build = [wrapper, *options, "-o", "p", "p.f90"]
        if subprocess.run(build, cwd=tmp_path, capture_output=True, check=False).returncode:
            pytest.skip(f"{wrapper} finds no compiler")
        ldd = subprocess.run(["ldd", "p"], cwd=tmp_path, capture_output=True, text=True, check=True)
        loaded = tuple(sorted(set(re.findall(r"libmpi(?:ch)?\.so\.\d+", ldd.stdout))))
        assert loaded == (libraries if mixed is None or not options else loaded[:1])


@pytest.mark.parametrize("built, compiler, mark", [
    (["mpich", "openmpi"], "openmpi", OK), (["mpich"], "openmpi", NOTE), ([], "abi", NOTE),
    (["mpich"], None, OK),
])
def test_the_library_to_preload_serves_what_it_finds_beside_it(
    machine, tmp_path, monkeypatch, built, compiler, mark
):
    library = tmp_path / "lib/libperdure_preload.so"
    library.parent.mkdir()
    library.touch()
    for name in built:
        (library.parent / CORE.mpi_of_text(*mpi._TEXTS[name])["library"]).touch()
    monkeypatch.setattr(mpi, "find_library", lambda: library)
    if compiler:
        program(machine, "mpicc", PREDEFINED[compiler])
    found = named(mpi_checks(machine), "preload")
    assert (found.mark, found.facts["serves"]) == (mark, built)


def test_no_library_to_preload_is_a_note(machine, monkeypatch):
    def missing():
        raise mpi.NoLibrary("there is none in /a, /b")

    monkeypatch.setattr(mpi, "find_library", missing)
    assert named(mpi_checks(machine), "preload").mark == NOTE


@pytest.mark.parametrize("launcher, variable, mark", [
    (OPEN_MPI, "", NOTE), (OPEN_MPI, "ucx", OK), ("mpiexec (Open MPI) 5.0.11", "", OK),
    (HYDRA, "", NOTE), ("HYDRA build details:\n  Version: 4.3.2", "", OK), ("what", "", OK),
])
def test_windows_between_nodes_have_the_notes_of_their_mpi(
    machine, monkeypatch, launcher, variable, mark
):
    if variable:
        monkeypatch.setenv("OMPI_MCA_osc", variable)
    program(machine, "mpiexec", launcher)
    assert named(mpi_checks(machine), "windows").mark == mark


def test_a_program_that_hangs_or_fails_is_not_waited_for(machine, monkeypatch):
    monkeypatch.setattr("perdure.doctor.machine._PROGRAM_S", 0.2)
    hanging = machine.root.parent / "bin/mpiexec"
    hanging.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    hanging.chmod(0o755)
    assert "unknown" in named(mpi_checks(machine), "MPI").found
    program(machine, "mpiexec", "nothing", code=3)
    assert "unknown" in named(mpi_checks(machine), "MPI").found


# --- jobs ----------------------------------------------------------------------------------------


def scheduler(machine: Machine) -> Check:
    return named(job_checks(machine), "scheduler")


def test_no_scheduler_is_fine(machine):
    assert scheduler(machine).mark == OK and scheduler(machine).facts["in_job"] is False


def test_slurm_without_a_job_is_named_with_its_version(machine):
    program(machine, "sinfo", "slurm-wlm 22.05.8")
    assert scheduler(machine).found.startswith("Slurm 22.05.8")
    program(machine, "sinfo", "\x1b[2Jevil\nslurm 1", code=0)
    assert scheduler(machine).found.startswith("Slurm,")


@pytest.mark.parametrize("says, mark, requeue", [
    ("JobId=7 JobName=x Requeue=1 Restarts=0", OK, True),
    ("JobId=7 JobName=x Requeue=0 Restarts=0", NOTE, False), ("rubbish", NOTE, None),
])
def test_a_job_of_slurm_may_be_requeued_or_not(machine, monkeypatch, says, mark, requeue):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    program(machine, "sinfo", "slurm 24.11.0")
    program(machine, "scontrol", says)
    found = scheduler(machine)
    assert (found.mark, found.facts["requeue"]) == (mark, requeue) and "job 7" in found.found


def test_a_job_of_slurm_whose_number_is_none_is_not_asked_about(machine, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7; rm -rf /")
    program(machine, "scontrol", "Requeue=1")
    assert scheduler(machine).mark == NOTE
    assert shlex.split(scheduler(machine).command)[-1] == "7; rm -rf /"


def test_a_job_of_pbs_is_named(machine, monkeypatch):
    monkeypatch.setenv("PBS_NODEFILE", "/nodes")
    assert "PBS" in scheduler(machine).found


# --- the screen ----------------------------------------------------------------------------------


EVIL = "\x1b]0;title\x07 \u202egnp \x9b31m\nsecond line"


@pytest.mark.parametrize("columns", [None, 40, 80, 200])
def test_hostile_names_reach_no_terminal(machine, tmp_path, capsys, monkeypatch, columns):
    place = tmp_path / EVIL.replace("/", "")
    place.mkdir()
    evil = saying(machine, energy_storage={"name": EVIL, "file_system": EVIL, "options": EVIL},
                  list_meters=[{**METER, "name": EVIL, "readable": False, "reason": EVIL,
                                "remedy": EVIL}],
                  page_tracker=CORE.Error(EVIL))  # fmt: skip
    put(machine, "etc/tmpreaper.conf", f"TMPREAPER_DIRS='{tmp_path}/.'\nTMPREAPER_TIME='\x1b[1m'\n")
    put(machine, f"{node._CLOCKS}/current_clocksource", EVIL)
    monkeypatch.setenv("PERDURE_\x1b[2J", "x")
    screen = Screen(sys.stdout)
    screen.columns = columns
    screen.print(Report(place, examined(evil, place)))
    shown = capsys.readouterr().out
    assert not any(sign in shown for sign in ("\x1b", "\x07", "\x9b", "\u202e"))
    assert columns is not None or all(line.count("\t") == 5 for line in shown.splitlines())


def test_files_that_are_none_hold_nothing_up(machine, tmp_path):
    os.makedirs(machine.root / "proc/self")
    os.mkfifo(machine.root / "proc/self/cgroup")
    (machine.root / "etc").mkdir()
    os.mkfifo(machine.root / "etc/tmpreaper.conf")
    put(machine, "etc/cron.daily/tmpwatch", "x" * (1 << 20))
    (machine.root / "run/systemd/system").mkdir(parents=True)
    os.makedirs(machine.root / "etc/tmpfiles.d/folder.conf")
    assert examined(machine, tmp_path)


def test_a_screen_of_80_columns_fits_but_for_commands_which_stay_whole(machine, tmp_path):
    memory = saying(machine, try_medium={**MEDIUM, "kind": "tmpfs"}, energy_storage=TMPFS,
                    page_tracker=CORE.Error("x"))
    lines = [text if isinstance(text, str) else text.text + text.rest
             for _, text in Report(tmp_path, examined(memory, tmp_path)).lines(80)]
    title, *rest = lines
    assert title.startswith("The directory ") and rest[-1].startswith("1 problem, ")
    marked = [line.split() for line in rest if line.startswith("  ") and line[2:3].strip()]
    checks = [check for some in examined(memory, tmp_path).values() for check in some]
    assert [words[:2] for words in marked] == [[check.mark, check.name] for check in checks]
    assert all(len(line) <= 80 for line in rest if " $ " not in line) and len(lines) <= 60


def test_marks_are_words_and_colours_only_where_a_terminal_has_them(machine, tmp_path, monkeypatch):
    class Terminal:
        text = ""

        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> None:
            self.text += text

    report = Report(tmp_path, examined(saying(machine, page_tracker=CORE.Error("x")), tmp_path))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for colour in (True, False):
        stream = Terminal()
        Screen(stream).print(report)
        assert ("\x1b[31m" in stream.text) == colour and "problem" in stream.text
        assert "1 problem, " in stream.text
        monkeypatch.setenv("NO_COLOR", "1")


def test_the_whole_command_leaves_the_directory_as_it_was(memory_path):
    memory_path.chmod(0o700)
    before = memory_path.stat()
    ran = in_this_process("doctor", memory_path)
    assert ran.code in (0, 1) and ran.err == "" and not list(memory_path.iterdir())
    assert stat.S_IMODE(memory_path.stat().st_mode) == stat.S_IMODE(before.st_mode) == 0o700


def test_a_path_that_is_no_directory_is_a_mistake(tmp_path):
    (tmp_path / "file").touch()
    ran = in_this_process("doctor", tmp_path / "file")
    assert ran.code == 2 and "is no directory" in ran.err


def test_the_page_has_each_line_and_no_other(machine, tmp_path):
    put(machine, "proc/self/cgroup", "0::/\n")
    put(machine, "sys/fs/cgroup/memory.max", "1\n")
    program(machine, "mpiexec", HYDRA)
    put_readelf(machine)
    put_wrapper(machine, "mpicc", ONE)
    memory = saying(machine, try_medium={**MEDIUM, "kind": "tmpfs"}, energy_storage=TMPFS)
    names = [check.name for checks in examined(memory, tmp_path).values() for check in checks]
    page = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([^`]+)` \|", page, re.M) == names
