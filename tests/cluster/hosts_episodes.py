# SPDX-License-Identifier: BSD-3-Clause
"""Takes hosts, links, clocks and files from jobs on several hosts of one machine, without a Slurm.

    hosts_episodes.py [--episodes N] [--seed S] [--kinds K,…] [--json]

An episode is a job (hosts_job.c) on some of six hosts (hosts.py), with a scheme of redundancy, with
and without a drain, and one or two of the faults below; after each the job is started again, and at
the end it is closed in order. The job compares every byte; what version a start must have is what
docs/levels.md promises (hosts_promise.py). A drawn episode is repeated by its own seed, with the
same --kinds; moments are drawn too, but the machine's own timing is not repeated.

    processes     every process of the job is killed at once
    host          one host loses power, and comes back with its memory
    lost, lost2   one or two hosts are lost with their memory; the job gets spare hosts, or the same
    away          a host is left out of one start and had by the next, with what it had then
    stale         a host is lost, and later gets back the files that it had
    rotate        the ranks are started on other hosts than before
    cut           the link of a host is cut for a while
    pause         the processes of a host stand still for a while
    clock         the clocks of all hosts are wrong by days, anew at each start
    truncate      a rank's file is cut short
    flip          a byte of a rank's file is changed
    restart       the job is killed while it starts
    twice         the job is sent twice to the same hosts
    twice_drain   the job is sent twice to different hosts, with one drain

Exit code 1: something was wrong, lost, refused or hung; 3, with the reason: no hosts can be made.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]

from hosts import Hosts, why_not  # noqa: E402
from hosts_promise import Promise  # noqa: E402
from hosts_run import MPICH, PRELOADED, PROGRAM, Hung, Settings, Start  # noqa: E402

from perdure_bench.facts import Fact  # noqa: E402

FAULTS = ("wrong", "lost", "refused", "hung")
METRICS = ("episodes", "restarts", "right", "refused_rightly", *FAULTS)
SCHEMES = ("partner", "xor:4", "rs:2+2", "off")
HOSTS = 6
DAY_S = 86400


class Fault(Exception):
    """What was promised and not had: one of FAULTS, and what was seen."""

    def __init__(self, fault: str, seen: str):
        super().__init__(f"{fault}: {seen}")
        self.fault = fault


class RightlyRefused(Exception):
    """More was lost than is promised for, and the refusal says so."""


class Episode:
    """One job and what happens to it; run() raises Fault or RightlyRefused."""

    def __init__(self, hosts: Hosts, seed: int, kinds: list[str], plant: str | None):
        self._draw = draw = random.Random(seed)
        self._hosts, self._plant = hosts, plant
        self.counts: Counter[str] = Counter()
        self.kinds = draw.sample(kinds, min(len(kinds), draw.choice([1, 2])))
        scheme, drain = draw.choice(SCHEMES), draw.random() < 0.5
        count = 4 if scheme in ("xor:4", "rs:2+2") else draw.choice([2, 3, 4])
        if "twice_drain" in self.kinds:
            scheme, drain, count = draw.choice(["partner", "off"]), True, draw.choice([2, 3])
        per_host = 2 if count == 2 and draw.random() < 0.5 else 1
        folder = Path(tempfile.mkdtemp(prefix="episode-", dir=hosts.root))
        levels = f"redundancy={scheme};every={draw.randint(2, 6)}"
        if drain:
            levels += f";drain={folder}/drain"
        has_file = draw.random() < 0.4 and "twice_drain" not in self.kinds
        self._settings = Settings(
            folder, "job", seed, per_host, levels, draw.randint(4, 9), draw.randint(2, 15) * 1000,
            has_file,
        )  # fmt: skip
        self._nodes = draw.sample(hosts.nodes, count)
        self._promise = Promise(scheme, drain)
        self._start: Start | None = None
        self._starts = 0
        self._settled = 0  # of what the start says, the promise knows so many levels
        self._changed: set[int] = set()  # ranks whose file was truncated or flipped
        self._may_have_ended = False  # by what was done to it, and not by its own fault

    def __str__(self) -> str:
        settings = self._settings
        return (f"{'+'.join(self.kinds)}; {settings.levels.replace(str(settings.folder), '')}; "
                f"{len(self._nodes)} hosts of {settings.ranks_per_host} ranks"
                f"{'; file' * settings.has_file}")  # fmt: skip

    def run(self) -> None:
        self._start_again()
        for kind in self.kinds:
            self._go_on()
            getattr(self, f"fault_{kind}")()
            if self._start is None:
                self._start_again()
        self._go_on()
        self._finish()

    def close(self) -> None:
        """Ends what is left, and makes the hosts as they were."""
        if self._start is not None:
            self._start.kill()
        for number, node in enumerate(self._hosts.nodes):
            (self._hosts.root / f"clock.{node}").unlink(missing_ok=True)
            if not self._hosts.is_up(node):
                self._hosts.node_up(node)
            for process in self._hosts.processes(node):
                raise AssertionError(f"process {process} is left on host {number}")
        self._hosts.memories_wipe()
        shutil.rmtree(self._settings.folder)

    def keep(self, place: Path) -> None:
        """A copy of all that the job has, for somebody to look at."""
        place.mkdir(parents=True)
        self._copy(self._settings.folder, place / "shared")
        for node in self._hosts.nodes:
            self._copy(self._hosts.memory(node), place / node)

    # Starts.

    def _begin(self, settings: Settings | None = None, nodes: list[str] | None = None) -> Start:
        self._starts += 1
        return Start(self._hosts, settings or self._settings, nodes or self._nodes, self._starts)

    def _start_again(self) -> None:
        """Starts the job and judges what it found, or how it refused."""
        again = self._starts > 0
        settings = self._settings
        if again and self._plant == "input":
            settings = replace(settings, seed=settings.seed + 1)
        if again and self._plant == "forget":
            self._hosts.memories_wipe()
            shutil.rmtree(settings.folder / "drain", ignore_errors=True)
        for node in self._nodes:
            if not self._hosts.is_up(node):
                self._hosts.node_up(node)
        self._promise.starts_on(self._nodes)
        left = self._ranks_with_files()
        if not left and self._promise.least == 0:  # begins anew, as a user would
            (settings.folder / "job.dat").unlink(missing_ok=True)
        self._start = self._begin(settings)
        self._settled = 0
        self.counts["restarts"] += again
        if not self._start.wait_for(lambda said: len(said.restarted) == self._start.ranks):
            self._judge_refusal(left)
        self._judge_version()

    def _judge_version(self) -> None:
        said, output, promise = self._start.said(), self._start.output, self._promise
        steps = set(said.restarted)
        if len(steps) != 1:
            raise Fault("wrong", f"ranks restarted from {sorted(steps)}")
        step = steps.pop()
        if step < promise.least:
            seen = f"restarted from {step}, promised {promise.least}"
            raise Fault("lost", f"{seen}: {promise}\n{output}")
        if step > promise.most:
            seen = f"restarted from {step}, newest is {promise.most}"
            raise Fault("wrong", f"{seen}: {promise}\n{output}")
        promise.restarted(step, self._nodes, "was brought back" in output)
        self._changed.clear()
        self._may_have_ended = False

    def _judge_refusal(self, left: set[int]) -> None:
        """The job ended before it had begun."""
        output = self._start.output
        self._start.kill()
        if "WRONG at step" in output:
            raise Fault("wrong", output)
        said = f"{self._promise}, files of ranks {sorted(left)}:\n{output}"
        if not self._promise.may_refuse:
            raise Fault("refused", said)
        damaged = {int(rank) for rank in re.findall(r"/rank-(\d{5}): ", output)}
        if not damaged & self._changed and not self._names_what_is_left(output, left):
            raise Fault("refused", f"with a reason that is not so: {said}")
        self._start = None
        raise RightlyRefused(output)

    def _names_what_is_left(self, output: str, left: set[int]) -> bool:
        """A changed file may count as there or not."""
        said = re.search(r"these have a file of the pool on some node: ([^;]*)", output)
        named = {int(rank) for rank in re.findall(r"\d+", said[1])} if said else set()
        return said is not None and left - self._changed <= named <= left

    def _ranks_with_files(self) -> set[int]:
        """On hosts of the next start."""
        places = [self._hosts.memory(node) / "pool" for node in self._nodes]
        return {int(file.name[5:]) for place in places for file in place.glob("rank-?????")}

    def _take_note(self) -> None:
        """What the job has said is promised from now on."""
        said = self._start.said()
        self._promise.commits(said.committed)
        if said.levels > self._settled:
            self._settled = said.levels
            self._promise.levels_have(said.levels, self._nodes)

    def _go_on(self) -> None:
        """Some steps more. A job that a fault has ended is started again."""
        if self._start.wait_for_steps(self._draw.randint(2, 25)):
            return
        output = self._start.output
        self._end_by_kill()
        if "WRONG at step" in output:
            raise Fault("wrong", output)
        if not self._may_have_ended:
            raise Fault("refused", f"the job ended while nothing was done to it:\n{output}")
        self.counts["ended by a fault"] += 1
        self._start_again()
        self._go_on()

    def _end_by_kill(self) -> None:
        self._start.kill()
        self._take_note()
        self._start = None

    def _finish(self) -> None:
        code = self._start.end()
        said, output = self._start.said(), self._start.output
        self._start.kill()
        if "WRONG at step" in output:
            raise Fault("wrong", output)
        if code != 0 and self._may_have_ended:
            self._take_note()
            self.counts["ended by a fault"] += 1
            self._start_again()
            self._finish()
        elif code != 0 or said.closed != self._start.ranks:
            raise Fault("refused", f"the end: exit code {code}, {said}\n{output}")
        self._start = None

    # Faults.

    def fault_processes(self) -> None:
        self._end_by_kill()

    def _victims(self, count: int) -> list[str]:
        return self._draw.sample(self._nodes, min(count, len(self._nodes)))

    def _spares(self) -> list[str]:
        spares = [node for node in self._hosts.nodes if node not in self._nodes]
        self._draw.shuffle(spares)
        return spares

    def _power_off(self, nodes: list[str]) -> None:
        for node in nodes:
            self._hosts.node_kill(node)
        time.sleep(self._draw.choice([0, 0, 0.5]))  # the others may notice
        self._end_by_kill()

    def fault_host(self) -> None:
        self._power_off(self._victims(1))

    def _lose(self, count: int) -> list[str]:
        victims = self._victims(count)
        self._power_off(victims)
        for node in victims:
            self._hosts.node_wipe(node)
            self._promise.loses(node)
        if self._draw.random() < 0.6:
            self._replace(victims)
        return victims

    def _replace(self, nodes: list[str]) -> None:
        """By spare hosts, in the next start."""
        spares = self._spares()
        self._nodes = [spares.pop() if node in nodes else node for node in self._nodes]

    def fault_lost(self) -> None:
        self._lose(1)

    def fault_lost2(self) -> None:
        self._lose(2)

    def fault_away(self) -> None:
        """The host's memory is of an older life when it is had again, in place of another one."""
        victims = self._victims(1)
        self._power_off(victims)
        self._replace(victims)
        self._some_steps_later()
        self._have_again(victims[0])

    def _have_again(self, node: str) -> None:
        gone = self._draw.choice(self._nodes)
        self._nodes = [node if one == gone else one for one in self._nodes]
        self._draw.shuffle(self._nodes)

    def fault_stale(self) -> None:
        node = self._draw.choice(self._nodes)
        self._end_by_kill()
        backup = self._hosts.memory(node).parent / "backup"
        self._copy(self._hosts.memory(node), backup)
        if self._draw.random() < 0.5:
            self._some_steps_later()
        self._hosts.node_wipe(node)
        self._promise.loses(node)
        self._replace([node])
        self._some_steps_later()
        self._copy(backup, self._hosts.memory(node))
        shutil.rmtree(backup)
        self._have_again(node)

    def _some_steps_later(self) -> None:
        self._start_again()
        self._go_on()
        self._end_by_kill()

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        """Cached files' parts are as long as all of a node's memory, and mostly holes."""
        target.mkdir(exist_ok=True)
        words = ["cp", "-a", "--sparse=always", f"{source}/.", target]
        subprocess.run([str(word) for word in words], check=True)

    def fault_rotate(self) -> None:
        self._end_by_kill()
        by = self._draw.randrange(1, len(self._nodes))
        self._nodes = self._nodes[by:] + self._nodes[:by]

    def fault_cut(self) -> None:
        node = self._draw.choice(self._nodes)
        self._hosts.link(node, "down")
        time.sleep(self._draw.uniform(0.2, 3.0))
        self._hosts.link(node, "up")
        self._may_have_ended = True

    def fault_pause(self) -> None:
        node = self._draw.choice(self._nodes)
        self._hosts.pause(node)
        time.sleep(self._draw.uniform(0.2, 3.0))
        self._hosts.signal(node, signal.SIGCONT)
        self._may_have_ended = True

    def fault_clock(self) -> None:
        self._end_by_kill()
        for _ in range(2):
            for node in self._hosts.nodes:
                self._hosts.clock(node, self._draw.randint(-5 * DAY_S, 5 * DAY_S))
            self._some_steps_later()

    def _some_file(self, names: str) -> tuple[str, Path] | None:
        """Of a pool that the job has, and its host."""
        files = [(node, file) for node in self._nodes
                 for file in sorted((self._hosts.memory(node) / "pool").glob(names))
                 if file.stat().st_size > 0]  # fmt: skip
        return self._draw.choice(files) if files else None

    def fault_truncate(self) -> None:
        self._end_by_kill()
        if (found := self._some_file("rank-?????")) is not None:
            node, file = found
            with file.open("r+b") as opened:
                opened.truncate(self._draw.randrange(file.stat().st_size))
            self._changed.add(int(file.name[5:]))
            self._promise.is_damaged_on(node)

    def fault_flip(self) -> None:
        self._end_by_kill()
        kind = self._draw.choice(["rank", "rank", "image", "guard"])
        if (found := self._some_file(f"{kind}-*")) is None:
            return
        node, file = found
        place = self._draw.randrange(file.stat().st_size)
        with file.open("r+b") as opened:
            opened.seek(place)
            byte = opened.read(1)[0]
            opened.seek(place)
            opened.write(bytes([byte ^ (1 << self._draw.randrange(8))]))
        if kind == "rank":
            self._changed.add(int(file.name[5:10]))
            self._promise.is_damaged_on(node)
        else:
            self._promise.is_weak_on(node)

    def fault_restart(self) -> None:
        """In the middle of a start."""
        self._end_by_kill()
        self._promise.starts_on(self._nodes)
        self._start = self._begin()
        self._settled = 0
        self._start.wait_for(lambda said: said.opening > 0)
        time.sleep(self._draw.uniform(0, 0.4))
        self._start.kill()
        if self._start.said().restarted:  # it came further
            self._judge_version()
        self._end_by_kill()
        self.counts["killed in the restart"] += 1

    def _second(self, nodes: list[str], reason: str) -> Start | None:
        """The job sent again, with other input; what it must not do is go on with ours. None: it
        was refused."""
        settings = replace(self._settings, name="second", seed=self._settings.seed + 1000003)
        second = self._begin(settings, nodes)
        began = second.wait_for(lambda said: len(said.restarted) == second.ranks)
        output = second.output
        if not began:
            self.counts["second refused"] += 1
            second.kill()
            if "WRONG at step" in output:
                raise Fault("wrong", f"the second went on with the first one's state: {output}")
            if not re.search(reason, output):
                raise Fault("refused", f"the second, with no reason: {output}")
            return None
        if set(second.said().restarted) != {0}:
            second.kill()
            raise Fault("wrong", f"the second restarted from {second.said().restarted}: {output}")
        self.counts["second on its own"] += 1
        return second

    def fault_twice(self) -> None:
        reason = r"rank-\d+ is open in process \d+, and was not released"
        if (second := self._second(self._nodes, reason)) is not None:
            second.kill()
            raise Fault("wrong", "two jobs have one pool")
        self._start.wait_for_steps(3)
        self._end_by_kill()

    def fault_twice_drain(self) -> None:
        nodes = self._spares()[: len(self._nodes)]
        for node in nodes:
            if not self._hosts.is_up(node):
                self._hosts.node_up(node)
        second = self._second(nodes, r"lease|in use|another|alive|fork")
        if not self._start.wait_for_steps(12):
            raise Fault("refused", f"the first, because of the second: {self._start.output}")
        if second is not None:
            second.wait_for_steps(12)
            second.kill()
        for node in nodes:
            self._hosts.node_wipe(node)
        self._end_by_kill()
        if self._draw.random() < 0.5:  # all that is left of the first is in the drain
            for node in self._nodes:
                self._hosts.node_wipe(node)
                self._promise.loses(node)


KINDS = [name.removeprefix("fault_") for name in vars(Episode) if name.startswith("fault_")]
WAITING = ("twice_drain",)  # for what the product does not promise yet; only with --kinds
MOSTLY = [kind for kind in KINDS if kind not in WAITING]


@dataclass
class Tally:
    """Of a campaign, and of the episodes with one kind of fault."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, episode: Episode, verdict: str) -> None:
        self.counts.update(episode.counts)
        self.counts.update(("episodes", verdict))

    def facts(self, case: str, seed: int) -> list[Fact]:
        return [Fact("hosts", case, metric, self.counts[metric], "", n=self.counts["episodes"],
                     target=0 if metric in FAULTS else None,
                     holds=self.counts[metric] == 0 if metric in FAULTS else None,
                     more={"seed": seed})
                for metric in METRICS]  # fmt: skip


def judged(episode: Episode) -> tuple[str, str]:
    """Runs it; what it is counted as, and what was seen."""
    try:
        episode.run()
    except Fault as fault:
        return fault.fault, str(fault)
    except Hung as hung:
        return "hung", str(hung)
    except RightlyRefused as refusal:
        return "refused_rightly", str(refusal)
    return "right", ""


def campaign(options: argparse.Namespace) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {"all": Tally()}
    with Hosts(HOSTS) as hosts:
        for seed in range(options.seed, options.seed + options.episodes):
            episode = Episode(hosts, seed, options.kinds, options.plant)
            began = time.monotonic()
            verdict, seen = judged(episode)
            took_s = time.monotonic() - began
            print(f"seed {seed}: {verdict}, {took_s:.0f} s: {episode}", file=sys.stderr, flush=True)
            if verdict in FAULTS or (seen and options.verbose):
                print(indent(seen, "    "), file=sys.stderr, flush=True)
            if verdict in FAULTS and options.keep is not None:
                episode.keep(options.keep / f"seed-{seed}")
            for case in ("all", *episode.kinds):
                tallies.setdefault(case, Tally()).add(episode, verdict)
            episode.close()
    return tallies


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=12)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(30),
                        help="of the first episode; the next one has the next seed")  # fmt: skip
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=MOSTLY,
                        help=f"of faults, a comma between; all but {', '.join(WAITING)}")
    parser.add_argument("--plant", choices=["input", "forget"],
                        help="a fault of the product that must be found: each start has another "
                             "input, or what was kept is thrown away before it")  # fmt: skip
    parser.add_argument("--keep", type=Path, help="where faults leave files and output")
    parser.add_argument("--json", action="store_true", help="facts as JSON lines, and no table")
    parser.add_argument("--verbose", action="store_true", help="what right refusals said, too")
    options = parser.parse_args()
    if unknown := [kind for kind in options.kinds if kind not in KINDS]:
        parser.error(f"there is no kind {', '.join(unknown)}; there are {', '.join(KINDS)}")
    return options


def reason_to_skip() -> str | None:
    needed = [MPICH.program_mpiexec, PROGRAM, *PRELOADED]
    missing = [str(path) for path in needed if not path.exists()]
    if missing:
        return f"there is no {', '.join(missing)}: run tools/bootstrap.sh --cluster, then build"
    return why_not()


def main() -> int:
    options = parse()
    if (reason := reason_to_skip()) is not None:
        print(f"skipped: {reason}")
        return 3
    print(f"--seed {options.seed}", file=sys.stderr, flush=True)
    tallies = campaign(options)
    facts = [fact for case, tally in sorted(tallies.items())
             for fact in tally.facts(case, options.seed)]  # fmt: skip
    if options.json:
        print("".join(fact.line() + "\n" for fact in facts), end="")
    else:
        show(tallies)
    return 1 if any(tallies["all"].counts[fault] for fault in FAULTS) else 0


def show(tallies: dict[str, Tally]) -> None:
    print(f"{'':12}" + "".join(f"{metric:>17}" for metric in METRICS))
    for case, tally in sorted(tallies.items()):
        print(f"{case:12}" + "".join(f"{tally.counts[metric]:17}" for metric in METRICS))


if __name__ == "__main__":
    sys.exit(main())
