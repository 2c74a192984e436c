#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills a virtual machine whose programs keep their state on an emulated NVDIMM, again and again.

    run.py                        60 kills, in turn over all modes
    run.py --kills 12 --seed 7    fewer, at the same moments as another run with this seed
    run.py --mode twin --json     one mode; facts as JSON lines
    run.py --plant loss           puts back an older NVDIMM once a life: the test must notice

The guest mounts ext4 -o dax, and pools are mapped with MAP_SYNC. qemu gets SIGKILL at a random
moment, in commits or between mount and restart; the next guest goes on with what is in the NVDIMM's
file. A pool lives through 2 to 4 kills, then its job ends by itself and a new one begins. Counts

  lost     a restart from before what had been acknowledged
  wrong    other contents, an error of the guest's kernel, a pool that is not on DAX
  refused  no restart

Exit code: 0 none of them, 1 some, 3 there is no guest here (the reason is printed).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from images import TOOLS, CannotRun, Images, tool
from judge import FAULTS, Verdict, judge
from machine import Guest, MachineFailed, Parts

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "python"))
from perdure.progress import progress  # noqa: E402

SIZES = (2000, 20000, 120000)  # cells of 8 bytes
KILLS_OF_A_LIFE = (2, 4)
EARLY = 0.25  # of the kills: between mount and the first commit
COMMITS_S = 1.5  # a kill in commits comes within this after the first
OFF_S = 60  # by a guest's clock, from a kill to the next boot
ANSWER_S = 300  # a guest that says nothing for so long has failed
ENDLESS = 10**6
RANKS = "mpiexec.hydra -launcher fork -n 2"
JOBS = {  # mode: program, its command in the folder {place}
    "copy": ("dax_job", "dax_job copy {place}/pool {cells} {steps}"),
    "twin": ("dax_job", "dax_job twin {place}/pool {cells} {steps}"),
    "log": ("dax_job", "dax_job log {place}/pool {cells} {steps}"),
    "windows": ("dax_job", RANKS + " dax_job window {place}/pool {cells} {steps}"),
    "ipv": ("ipv_kill_job", "ipv_kill_job {place}/pool {steps} {seed}"),
    "file": ("pool_job_mpich", RANKS + " pool_job_mpich {place} {seed} {steps} 1"),
}
PROGRAMS = {"dax_job": "tests/dax/dax_job", "ipv_kill_job": "tests/ipv/ipv_kill_job",
            "pool_job_mpich": "tests/mpiio/pool_job_mpich"}
FACTS = ("kernel", "persistence_domain", "instructions")


@dataclass
class Life:
    """A pool from its making to the run in which its job ends by itself."""

    mode: str
    number: int
    cells: int
    seed: int
    kills_left: int
    acknowledged: int = 0
    runs: int = 0

    def command(self, last: bool) -> str:
        """The line for the guest's console."""
        folder = f"{self.mode}-{self.number}"
        steps = self.acknowledged + 5 if last else ENDLESS
        return folder + " " + JOBS[self.mode][1].format(
            place=f"/nvm/{folder}", cells=self.cells, seed=self.seed, steps=steps)


@dataclass
class Tally:
    """Of one mode."""

    kills: int = 0
    early: int = 0
    restarts: int = 0
    acknowledged: int = 0
    persistence: set[str] = field(default_factory=set)
    faults: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in FAULTS})


class Campaign:
    """Runs lives of all modes in turn until enough guests were killed."""

    def __init__(self, parts: Parts, scratch: Path, options: argparse.Namespace):
        self._parts, self._scratch, self._options = parts, scratch, options
        self._draw = random.Random(options.seed)
        self._frozen = scratch / "frozen"
        self._guests = 0
        self.tallies = {mode: Tally() for mode in options.mode}
        self.facts: dict[str, str] = {}

    def boot(self) -> None:
        """Boots the guest that all others go on from."""
        guest = Guest(self._parts, self._scratch)
        try:
            if not guest.wait_for(rb"\nready\n", ANSWER_S):
                raise MachineFailed(f"the guest does not boot: {tail(guest.text)}")
            for line in guest.text.decode(errors="replace").splitlines():
                name, _, value = line.partition(": ")
                if name in FACTS:
                    self.facts[name] = value.strip()
            guest.freeze(self._frozen)
        finally:
            guest.kill()

    def look_for_whole_cache_flush(self) -> str:
        """What is wrong with how the guest answers requests to flush its whole cache."""
        text = self._ask("check-0 dax_job wbinvd; echo \"wbinvd $?\"; "
                         "PERDURE_IPV=flush=cache ipv_kill_job /nvm/check-0/pool 1 1")
        if b"\nbytes are executed\n" not in text:
            raise MachineFailed(f"the guest could not try WBINVD: {tail(text)}")
        executed = b"\nwbinvd 139\n" not in text  # 128 + SIGSEGV
        self.facts["wbinvd"] = "executed" if executed else "not for programs: SIGSEGV"
        refusals = [line for line in text.decode(errors="replace").splitlines()
                    if "whole cache can't be flushed" in line]
        self.facts["flush=cache"] = refusals[0] if refusals else f"not refused: {tail(text)}"
        if executed:
            return "root of the guest may execute WBINVD: flush=cache need not be refused"
        return "" if refusals else f"flush=cache {self.facts['flush=cache']}"

    def run(self) -> None:
        """The kills, and then a last restart of each life."""
        lives: dict[str, Life] = {}
        kills = 0
        with progress("kills", self._options.kills) as advance:
            while kills < self._options.kills or lives:
                mode = self._next_mode(lives, kills)
                life = lives.get(mode) or self._new_life(mode)
                lives[mode] = life
                last = life.kills_left == 0 or kills >= self._options.kills
                self._one_run(life, last)
                if last:
                    del lives[mode]
                else:
                    kills += 1
                    advance()

    def _next_mode(self, lives: dict[str, Life], kills: int) -> str:
        runs = self._options.mode if kills < self._options.kills else list(lives)
        return min(runs, key=lambda mode: self.tallies[mode].kills if mode not in lives
                   or lives[mode].kills_left else -1)

    def _new_life(self, mode: str) -> Life:
        draw = self._draw
        return Life(mode, draw.getrandbits(31), draw.choice(SIZES), draw.getrandbits(20),
                    draw.randint(*KILLS_OF_A_LIFE))

    def _one_run(self, life: Life, last: bool) -> None:
        tally = self.tallies[life.mode]
        early = not last and self._draw.random() < EARLY
        moment = self._draw.random()
        if self._options.plant and last:
            shutil.copyfile(self._scratch / "older", self._parts.nvdimm)
        elif self._options.plant and life.runs == 0:
            shutil.copyfile(self._parts.nvdimm, self._scratch / "older")
        began = time.monotonic()
        text = self._live(life.command(last), early, None if last else moment)
        verdict = judge(text, JOBS[life.mode][0], life.acknowledged, must_restart=not early)
        if last and not verdict.faults and b"\nended 0\n" not in text:
            verdict.faults["refused"] = f"the job does not end: {tail(text)}"
        self._count(tally, life, verdict)
        tally.kills += not last
        tally.early += early
        life.kills_left -= not last
        if self._options.verbose:
            how = "ended by itself" if last else "killed early" if early else "killed in commits"
            print(f"{life.mode:7} {life.runs}: restarted {verdict.restarted}, acknowledged "
                  f"{verdict.acknowledged}, {how} after {time.monotonic() - began:.1f} s "
                  f"{verdict.faults or ''}", file=sys.stderr, flush=True)

    def _count(self, tally: Tally, life: Life, verdict: Verdict) -> None:
        tally.restarts += life.runs > 0 and verdict.restarted is not None
        life.runs += 1
        tally.acknowledged += max(0, verdict.acknowledged - life.acknowledged)
        life.acknowledged = verdict.acknowledged
        if verdict.persistence:
            tally.persistence.add(verdict.persistence)
        for fault, seen in verdict.faults.items():
            tally.faults[fault].append(f"{life.mode}-{life.number}, run {life.runs}: {seen}")

    def _live(self, command: str, early: bool, moment: float | None) -> bytes:
        """One guest; moment: when it is killed, of the time that there is; None: when it ends."""
        guest = Guest(self._parts, self._scratch, self._frozen)
        try:
            self._guests += 1
            guest.say(f"{int(time.time()) + OFF_S * self._guests} {command}")
            if moment is None:
                guest.wait_for(rb"\n(unmounted|failed: .*)\n", ANSWER_S)
            elif early:
                guest.wait_for(rb"\nmounted\n", ANSWER_S)
                guest.listen(moment * COMMITS_S / 3)
            else:
                guest.wait_for(rb"\n(committed \d+|ended \d+|failed: .*)\n", ANSWER_S)
                guest.listen(moment * COMMITS_S)
        finally:
            guest.kill()
        return guest.text

    def _ask(self, command: str) -> bytes:
        return self._live(command, early=False, moment=None)


def tail(text: bytes) -> str:
    """The end of a console, in one line."""
    return " | ".join(text.decode(errors="replace").strip().splitlines()[-3:])


def facts_of(campaign: Campaign, seed: int, seconds: float) -> list[dict]:
    """JSON lines: the machine's, each mode's, the total's."""
    lines: list[dict] = [{"test": "dax", "case": "machine", "seed": seed, **campaign.facts}]
    total: dict[str, float] = {}
    for mode, tally in campaign.tallies.items():
        counts = {"kills": tally.kills, "kills_before_restart": tally.early,
                  "restarts": tally.restarts, "acknowledged": tally.acknowledged,
                  **{name: len(tally.faults[name]) for name in FAULTS}}
        total = {name: total.get(name, 0) + count for name, count in counts.items()}
        lines.append({"test": "dax", "case": mode, **counts,
                      "survives": sorted(tally.persistence)})
    return [*lines, {"test": "dax", "case": "all", **total, "seconds": round(seconds, 1)}]


def show(campaign: Campaign, lines: list[dict]) -> None:
    """The same to be read."""
    for name, value in campaign.facts.items():
        print(f"{name}: {value}")
    columns = ("kills", "restarts", "acknowledged", *FAULTS)
    print(f"{'':10}" + "".join(f"{name:>13}" for name in columns) + "  the pool survives")
    for line in lines[1:]:
        survives = ", ".join(line.get("survives", []))
        print(f"{line['case']:10}" + "".join(f"{line[name]:13}" for name in columns)
              + f"  {survives}")
    for tally in campaign.tallies.values():
        for fault, seen in tally.faults.items():
            for one in seen:
                print(f"{fault}: {one}")
    print(f"{lines[-1]['seconds']} s; a missing flush is not seen here: stores reach the NVDIMM's "
          "file at once")


def make_parts(scratch: Path, build: Path) -> Parts:
    """With a copy of the formatted NVDIMM in the scratch folder."""
    for name in TOOLS:
        tool(name)
    programs: list[tuple[str, Path | str]] = [
        (name, tool(name)) for name in ("mpiexec.hydra", "hydra_pmi_proxy")]
    for name, path in PROGRAMS.items():
        if not (build / path).exists():
            raise CannotRun(f"{build / path} is missing: build it, or configure with MPICH")
        programs.append((name, build / path))
    images = Images(build / "dax")
    kernel = images.kernel()
    initramfs = images.initramfs(HERE / "init.sh", programs)
    nvdimm = scratch / "nvdimm"
    shutil.copyfile(images.nvdimm(kernel, initramfs), nvdimm)
    return Parts(kernel, initramfs, nvdimm)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60, help="of the guest (default 60)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(30))
    parser.add_argument("--mode", action="append", choices=list(JOBS), help="only this; repeat it")
    parser.add_argument("--plant", choices=["loss"], help="a fault that the test must find")
    parser.add_argument("--json", action="store_true", help="facts as JSON lines, and no table")
    parser.add_argument("--verbose", action="store_true", help="a line for each run of a guest")
    parser.add_argument("--build", type=Path, default=ROOT / "build/dev", help="the build tree")
    options = parser.parse_args()
    options.mode = options.mode or list(JOBS)
    if options.kills < 1:
        parser.error("--kills must be at least 1")
    return options


def campaign_in(scratch: Path, options: argparse.Namespace) -> int:
    """Exit code."""
    began = time.monotonic()
    campaign = Campaign(make_parts(scratch, options.build.resolve()), scratch, options)
    campaign.boot()
    unexpected = campaign.look_for_whole_cache_flush()
    campaign.run()
    lines = facts_of(campaign, options.seed, time.monotonic() - began)
    written = "".join(json.dumps(line) + "\n" for line in lines)
    (options.build / "dax/results.jsonl").write_text(written)
    if options.json:
        print(written, end="")
    else:
        show(campaign, lines)
    if unexpected:
        print(unexpected, file=sys.stderr)
    return 1 if unexpected or any(lines[-1][fault] for fault in FAULTS) else 0


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    options = parse()
    signal.signal(signal.SIGTERM, interrupt)
    print(f"--seed {options.seed}", file=sys.stderr, flush=True)
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with contextlib.ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="perdure-dax-", dir=parent)
        scratch = stack.enter_context(folder)
        try:
            return campaign_in(Path(scratch), options)
        except CannotRun as reason:
            print(f"skipped: {reason}")
            return 3
        except MachineFailed as reason:
            print(f"failed: {reason}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130


if __name__ == "__main__":
    sys.exit(main())
