#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cuts the power of a disk under a real file system, and looks what a restart finds.

    run.py                          60 cuts of each of three jobs, on ext4, XFS and Btrfs
    run.py --cuts 6 --seed 7        fewer, at the same places as another run with this seed
    run.py --system xfs --job pool  one file system, one job
    run.py --plant flush            a disk that ignores flushes while the job runs: must be noticed

A FUSE file under a loop device logs each write and each flush (logged_disk.c). A job runs on it and
marks in the same log what was acknowledged (power_job.c). Of each of some moments in that log three
disks are made: with nothing of what was not flushed, with half of it, and with half of its sectors
of 512 bytes. Each is mounted as after a boot, and the job starts again. Counts

  lost     a restart from before what had been acknowledged
  wrong    other contents, or more than was begun
  refused  no restart

and, apart from these, what is no fault of the job's:

  no_mount the file system itself did not survive, as sectors of one of its own blocks are torn

Exit code: 0 none of them, 1 some, or more than one file system in twenty did not survive, 3 there
can be no such disk here (the reason is printed).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from disk_log import WAYS, Cut, Medium, cuts_of, read_log, store, survivors

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "python"))
from perdure.progress import progress  # noqa: E402

MIB = 2**20
SYSTEMS = {  # its smallest size, how it is made, how it is mounted
    "ext4": (48 * MIB, ("mkfs.ext4", "-q", "-F"), "errors=remount-ro"),
    "xfs": (320 * MIB, ("mkfs.xfs", "-q", "-f"), "nouuid"),
    "btrfs": (128 * MIB, ("mkfs.btrfs", "-q", "-f"), "rw"),
}
JOBS = {"pool": 12, "drain": 6, "file": 48}  # steps
FAULTS = ("lost", "wrong", "refused")
COLUMNS = ("images", "newer", *FAULTS, "no_mount")
IN_NAMESPACE = "PERDURE_TEST_POWER_NAMESPACE"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
LIMIT_S = 120
NO_MOUNT_MAX = 0.05  # of all images: with more the campaign looks at too little


class CannotRun(Exception):
    """Something is missing here that the project can't bring."""


class NoMount(Exception):
    """The kernel does not take the image for that file system any more."""


@dataclass
class Tally:
    """Of one job on one file system."""

    images: int = 0
    newer: int = 0  # a restart from more than was acknowledged
    no_mount: list[str] = field(default_factory=list)
    faults: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in FAULTS})


def run(*words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [str(word) for word in words]
    return subprocess.run(command, capture_output=True, text=True, check=check, timeout=LIMIT_S)


@contextlib.contextmanager
def mounted(source: Path, folder: Path, options: str) -> Iterator[Path]:
    """A file system in a file, by a loop device that goes with the mount."""
    folder.mkdir(exist_ok=True)
    done = run("mount", "-o", f"loop,{options}", source, folder, check=False)
    if done.returncode != 0:
        raise NoMount(done.stderr.strip())
    try:
        yield folder
    finally:
        run("umount", folder)


@contextlib.contextmanager
def logged_disk(program: Path, log: Path, size: int, folder: Path) -> Iterator[Path]:
    """The disk's file."""
    folder.mkdir()
    done = run(program, log, size, folder, "-o", "default_permissions", check=False)
    if done.returncode != 0:
        raise CannotRun(f"no FUSE: {done.stderr.strip()}")
    try:
        yield folder / "disk"
    finally:
        run("umount", folder)


class Machine:
    """Runs the job and, for each image of the disk, the restart after it."""

    def __init__(self, build: Path, scratch: Path, system: str, job: str) -> None:
        self._job = build / "tests/power/power_job"
        self._disk = build / "tests/power/logged_disk"
        self._scratch, self._system, self._name = scratch, system, job
        self._size, self._make, self._options = SYSTEMS[system]

    def _command(self, verb: str, place: Path, mark: Path) -> list[object]:
        memory = self._scratch / "memory"
        shutil.rmtree(memory, ignore_errors=True)
        memory.mkdir()
        return [self._job, verb, self._name, place, memory, JOBS[self._name], mark]

    def record(self) -> Path:
        """The log of an undisturbed run, from an empty disk on."""
        log = self._scratch / "log"
        folder = self._scratch / "mounted"
        with logged_disk(self._disk, log, self._size, self._scratch / "fuse") as disk:
            run(*self._make, disk)
            with mounted(disk, folder, self._options):
                done = run(*self._command("run", folder, disk.parent / "mark"), check=False)
        if done.returncode != 0:
            raise SystemExit(f"the job failed undisturbed: {done.stderr}")
        return log

    def restart(self, image: Path) -> subprocess.CompletedProcess[str]:
        """After a boot: with another boot id, as the processes of before are gone, and a clock of
        the time since then, as nothing that they did is younger. Raises NoMount."""
        running = int(time.clock_gettime(time.CLOCK_BOOTTIME))
        booted = ("unshare", "--fork", "--time", "--boottime", -running)
        (self._scratch / "boot_id").write_text(f"{uuid.uuid4()}\n")
        run("mount", "--bind", self._scratch / "boot_id", BOOT_ID)
        try:
            with mounted(image, self._scratch / "mounted", self._options) as place:
                return run(*booted, *self._command("check", place, Path("none")), check=False)
        finally:
            run("umount", BOOT_ID)

    def medium(self, log: Path) -> Medium:
        return Medium(self._scratch / "medium", self._size, read_log(log))


def judge(tally: Tally, done: subprocess.CompletedProcess[str], cut: Cut, what: str) -> None:
    tally.images += 1
    text = " | ".join((done.stdout + done.stderr).strip().splitlines()[-3:])
    found = next((int(line.split()[1]) for line in done.stdout.splitlines()
                  if line.startswith("found ")), None)
    if done.returncode in (2, 3) or (found is not None and found > cut.acknowledged + 1):
        fault = "wrong"
    elif done.returncode != 0 or found is None:
        fault = "refused"
    elif found < cut.acknowledged:
        fault = "lost"
    else:
        tally.newer += found > cut.acknowledged
        return
    tally.faults[fault].append(f"{what}, acknowledged {cut.acknowledged}: {text}")


def campaign(machine: Machine, what: str, options: argparse.Namespace,
             advance: Callable[..., None], scratch: Path) -> Tally:
    chance = random.Random(f"{options.seed} {what}")
    log = machine.record()
    medium = machine.medium(log)
    cuts = cuts_of(read_log(log), flushes=options.plant != "flush")
    tally = Tally()
    image = scratch / "image"
    for cut in sorted(chance.sample(cuts, min(options.cuts, len(cuts))),
                      key=lambda cut: cut.records):
        medium.flush_up_to(cut.flushed)
        for way in WAYS:
            run("cp", "--sparse=always", medium.path, image)
            store(image, survivors(cut, way, chance))
            case = f"{what}, record {cut.records}, {way}"
            try:
                judge(tally, machine.restart(image), cut, case)
            except NoMount as reason:
                tally.images += 1
                tally.no_mount.append(f"{case}: {reason}")
        advance()
    log.unlink()
    return tally


def facts_of(tallies: dict[str, Tally], seed: int) -> list[dict]:
    lines = []
    total = dict.fromkeys(COLUMNS, 0)
    for what, tally in tallies.items():
        counts = {"images": tally.images, "newer": tally.newer,
                  **{name: len(tally.faults[name]) for name in FAULTS},
                  "no_mount": len(tally.no_mount)}
        total = {name: total[name] + count for name, count in counts.items()}
        lines.append({"test": "power", "case": what, **counts})
    return [*lines, {"test": "power", "case": "all", "seed": seed, **total}]


def show(tallies: dict[str, Tally], lines: list[dict]) -> None:
    print(f"{'':14}" + "".join(f"{name:>9}" for name in COLUMNS))
    for line in lines:
        print(f"{line['case']:14}" + "".join(f"{line[name]:9}" for name in COLUMNS))
    for tally in tallies.values():
        for one in tally.no_mount:
            print(f"no_mount: {one}")
        for fault, seen in tally.faults.items():
            for one in seen:
                print(f"{fault}: {one}")


def check_possible(options: argparse.Namespace) -> None:
    """Raises CannotRun."""
    if os.geteuid() != 0:
        raise CannotRun("mounting needs root")
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not os.path.exists(device):
            raise CannotRun(f"there is no {device}")
    for name in ("power_job", "logged_disk"):
        if not (options.build / "tests/power" / name).exists():
            raise CannotRun(f"{name} is not built: it needs MPICH and libfuse3 "
                            "(tools/bootstrap.sh --power)")
    if shutil.which("fusermount3") is None:
        raise CannotRun("there is no fusermount3 (tools/bootstrap.sh --power)")


def usable_systems(names: list[str]) -> list[str]:
    """Those that this kernel mounts and whose tools are here; why not is said."""
    known = Path("/proc/filesystems").read_text(encoding="utf-8").split()
    usable = []
    for name in names:
        tool = SYSTEMS[name][1][0]
        if shutil.which(tool) is None:
            print(f"skipped: {name}: there is no {tool}", file=sys.stderr)
        elif name not in known and run("modprobe", name, check=False).returncode != 0:
            print(f"skipped: {name}: this kernel does not have it", file=sys.stderr)
        else:
            usable.append(name)
    return usable


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=60, help="of each job on each file system")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(30))
    parser.add_argument("--system", action="append", choices=list(SYSTEMS), help="repeat it")
    parser.add_argument("--job", action="append", choices=list(JOBS), help="repeat it")
    parser.add_argument("--plant", choices=["flush"], help="a fault that the test must find")
    parser.add_argument("--json", action="store_true", help="facts as JSON lines, and no table")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev", help="the build tree")
    options = parser.parse_args()
    options.build = options.build.resolve()
    return options


def everything(options: argparse.Namespace) -> int:
    check_possible(options)
    systems = usable_systems(options.system or list(SYSTEMS))
    jobs = options.job or list(JOBS)
    tallies: dict[str, Tally] = {}
    with progress("cuts", len(systems) * len(jobs) * options.cuts) as advance:
        for system in systems:
            for job in jobs:
                with tempfile.TemporaryDirectory(prefix="perdure-power-", dir="/var/tmp") as folder:
                    scratch = Path(folder)
                    machine = Machine(options.build, scratch, system, job)
                    what = f"{system} {job}"
                    tallies[what] = campaign(machine, what, options, advance, scratch)
    lines = facts_of(tallies, options.seed)
    if options.json:
        print("".join(json.dumps(line) + "\n" for line in lines), end="")
    else:
        show(tallies, lines)
    if not tallies:
        raise CannotRun("none of the file systems can be mounted here")
    total = lines[-1]
    unseen = total["no_mount"] > NO_MOUNT_MAX * total["images"]
    return 1 if unseen or any(total[fault] for fault in FAULTS) else 0


def main() -> int:
    options = parse()
    if os.geteuid() == 0 and IN_NAMESPACE not in os.environ:  # mounts go with this process
        os.environ[IN_NAMESPACE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              *sys.argv])
    print(f"--seed {options.seed}", file=sys.stderr, flush=True)
    began = time.monotonic()
    try:
        return everything(options)
    except CannotRun as reason:
        print(f"skipped: {reason}")
        return 3
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        print(f"{time.monotonic() - began:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
