# SPDX-License-Identifier: BSD-3-Clause
"""The options of `perdure energy plan`, in groups; `simulate` and `explain` share some.

Each group makes of its words what planning takes. Its methods raise Wrong with a remedy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from perdure.energy import quantities as q
from perdure.energy.formulas.monte_carlo import Observed
from perdure.energy.laws import law_of, usage_text
from perdure.energy.laws.law import Law
from perdure.energy.plan.failures import estimate, read_failures
from perdure.energy.plan.planning import Failing, Goal, Place, paths_of, profiles_to_places
from perdure.energy.plan.settings import FORMULAS, OBJECTIVES, RULES, Node
from perdure.energy.profile.file import Profile, check_machine, read_profile
from perdure.option_groups import AsJson, output_file, picture_file


def _text(meta: str, help_: str, default: str | bool = False) -> Any:
    return typer.Option(metavar=meta, help=help_, show_default=default)


Profiles = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PROFILE…", help="Files that `perdure energy profile` wrote, one "
                   "for each level."),
]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan that `perdure energy plan"
                                          " -o` wrote.")]


def positive(text: str, option: str) -> float:
    """A time that is more than none."""
    seconds = q.parse_time(text)
    if seconds <= 0:
        raise q.Wrong(f"{option} {text}: it must be more than nothing")
    return seconds


def _maybe(text: str | None, parse: Callable[[str], float]) -> float | None:
    return None if text is None else parse(text)


@dataclass(frozen=True)
class FailureOptions:
    """When failures come."""

    mtbf: Annotated[str | None, _text("TIME", "Mean time between failures, as 14.66h.")] = None
    rate: Annotated[str | None, _text("RATE", "Failures in a time, instead of --mtbf, as "
                                      "1.9e-5/s or 2/d.")] = None
    failures: Annotated[
        Path | None, _text("FILE", "Take the failures from a list (CSV: time or interval).")
    ] = None
    merge: Annotated[
        str, _text("TIME", "Count failures that come so soon after another one as the same.", True)
    ] = "0s"
    law: Annotated[
        str | None, _text("LAW", f"The law of the time between failures: {usage_text()}.",
                          "exponential, or as planned")
    ] = None

    def _mean_s(self) -> float | None:
        """The mean that --mtbf or --rate gives."""
        if sum(each is not None for each in (self.mtbf, self.rate, self.failures)) > 1:
            raise q.Wrong(_ONE_WAY)
        if self.rate is not None:
            return 1 / q.parse_rate(self.rate)
        return None if self.mtbf is None else positive(self.mtbf, "--mtbf")

    def failing(self, notes: list[str]) -> Failing:
        """What is planned for; a list of failures gives the mean."""
        law, mean_s = law_of(self.law or "exponential"), self._mean_s()
        if self.failures is not None:
            found = estimate(read_failures(self.failures, q.parse_time(self.merge)))
            notes += found.warnings
            if self.law is None and found.advice is not None:
                notes.append(found.advice)
            return Failing(law.with_mean(found.mtbf_s), found.low_s, found.high_s, found.events)
        if mean_s is None:
            raise q.Wrong(_ONE_WAY)
        return Failing(law.with_mean(mean_s))

    def observed(self) -> Observed | None:
        """The gaps of the list of failures, if there is one."""
        if self.failures is None:
            return None
        if self.law is not None:
            raise q.Wrong("--failures says when failures come; leave out --law")
        return Observed(read_failures(self.failures, q.parse_time(self.merge)).gaps_s)

    def law_instead_of(self, planned: Law) -> Law:
        """The planned law with what the options change."""
        law = planned if self.law is None else law_of(self.law, planned.mean_s)
        mean_s = self._mean_s()
        return law if mean_s is None else law.with_mean(mean_s)


_ONE_WAY = ("say how often failures come, in one way: --mtbf 14.66h, --rate 1.9e-5/s or "
            "--failures FILE")


@dataclass(frozen=True)
class LevelOptions:
    """Where checkpoints go, and what one costs there; a value for each level."""

    size: Annotated[
        str | None, _text("SIZE", "Size of a node's checkpoint, as 64GB or 64GiB.")
    ] = None
    write_time: Annotated[
        str | None, _text("TIME,…", "Time to write a checkpoint, as 130s.")
    ] = None
    read_time: Annotated[
        str | None, _text("TIME,…", "Time to read a checkpoint at a restart.")
    ] = None
    write_bandwidth: Annotated[str | None, _text("RATE,…", "Bandwidth of writing, instead of "
                                                 "--write-time, as 510MB/s.")] = None
    read_bandwidth: Annotated[str | None, _text("RATE,…", "Bandwidth of reading, instead of "
                                                "--read-time, as 735MB/s.")] = None
    write_power: Annotated[str | None, _text("POWER,…", "Power of a node that writes a "
                                             "checkpoint.")] = None
    read_power: Annotated[str | None, _text("POWER,…", "Power of a node that reads a "
                                            "checkpoint.")] = None
    writers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, show_default="one for each CPU",
                     help="How many processes write at once, if no profile says it."),
    ] = None
    levels: Annotated[
        str | None,
        _text("NAME,…", "Several levels, cheapest first; options with … take a value for each, "
              "- where a profile has it."),
    ] = None
    share: Annotated[
        str | None, _text("SHARE,…", "The share of the failures that each level is the "
                          "cheapest remedy for.")
    ] = None
    pattern: Annotated[
        str | None, _text("N,…", "Write every N-th checkpoint to each level.", "best")
    ] = None
    path: Annotated[
        str | None, _text("DIR,…", "Where the checkpoints of each level go.")
    ] = None
    other_machine: Annotated[
        bool, typer.Option("--other-machine", help="Take profiles of another machine.")
    ] = False

    def size_bytes(self) -> float | None:
        """Of a node's checkpoint."""
        return _maybe(self.size, q.parse_size)

    def writers_at_once(self) -> int:
        """Where no profile says it."""
        return self.writers or os.cpu_count() or 1

    def every(self) -> tuple[int, ...] | None:
        """The pattern."""
        values = q.parse_list(self.pattern, q.parse_count)
        return None if values is None else tuple(values)

    def places(self, files: list[Path], notes: list[str]) -> tuple[Place, ...]:
        """The levels; profiles go to those that have no times of their own."""
        names = q.parse_list(self.levels, str) or ["local"]
        if len(set(names)) != len(names):
            raise q.Wrong(f"--levels {self.levels}: each level needs a name of its own")
        profiles = [_profile(file, self.other_machine, notes) for file in files]
        count = len(names)
        shares, paths = self._shares(count), paths_of(self.path, count)
        costs = [self._of_each(name, parse, count) for name, parse in _COSTS.items()]
        for seconds in costs[0] + costs[1]:
            if seconds is not None and seconds <= 0:
                raise q.Wrong("a checkpoint or restart takes more than no time")
        made = [Place(name, shares[i], paths[i], None, *(each[i] for each in costs))
                for i, name in enumerate(names)]
        return tuple(profiles_to_places(profiles, made))

    def _shares(self, count: int) -> list[float]:
        shares = q.parse_list(self.share, q.parse_share)
        if shares is None and count > 1:
            raise q.Wrong("--levels needs --share: which part of the failures each level is the "
                          "cheapest remedy for, as 70%,25%,5%")
        shares = shares or [1.0]
        if len(shares) != count:
            raise q.Wrong(f"--share has {len(shares)} values for {count} levels")
        return shares

    def _of_each(
        self, name: str, parse: Callable[[str], float], count: int
    ) -> list[float | None]:
        """An option's value for each level; - is for None."""
        found = q.parse_list(getattr(self, name), lambda word: None if word == "-" else parse(word))
        if found is not None and len(found) != count:
            option = f"--{name.replace('_', '-')}"
            raise q.Wrong(f"{option} has {len(found)} values for {count} levels")
        return found or [None] * count


# In the order of the fields of Place.
_COSTS: dict[str, Callable[[str], float]] = {
    "write_time": q.parse_time, "read_time": q.parse_time,
    "write_bandwidth": q.parse_bandwidth, "read_bandwidth": q.parse_bandwidth,
    "write_power": q.parse_power_drawn, "read_power": q.parse_power_drawn,
}  # fmt: skip


def _profile(file: Path, other_machine: bool, notes: list[str]) -> Profile:
    profile = read_profile(file)
    check_machine(profile, other_machine, notes.append)
    return profile


@dataclass(frozen=True)
class NodeOptions:
    """What a node takes besides reading and writing checkpoints."""

    power: Annotated[str | None, _text("POWER", "Power of a node that computes, as 471W.")] = None
    downtime: Annotated[str, _text("TIME", "Time from a failure to the restart.", True)] = "0s"
    down_power: Annotated[str | None, _text("POWER", "Power of a node from a failure to the "
                                            "restart.", "as when computing")] = None
    overhead: Annotated[
        str | None,
        _text("TIME", "Asynchronous checkpoints: the program waits only so long for each."),
    ] = None
    flush_power: Annotated[
        str, _text("POWER", "Power beside that of computing while a checkpoint is written.", True)
    ] = "0W"

    def node(self) -> Node:
        """In numbers."""
        return Node(
            compute_W=_maybe(self.power, q.parse_power_drawn),
            downtime_s=q.parse_time(self.downtime),
            down_W=_maybe(self.down_power, q.parse_power),
            overhead_s=_maybe(self.overhead, lambda text: positive(text, "--overhead")),
            flush_W=q.parse_power(self.flush_power),
        )


@dataclass(frozen=True)
class GoalOptions:
    """What is made least, and how."""

    objective: Annotated[
        str, typer.Option(metavar="|".join(OBJECTIVES), help="What the plan makes least.")
    ] = "time"
    formula: Annotated[
        str, typer.Option(metavar="|".join(FORMULAS), help="How time is split; `perdure energy "
                          "explain` has the formulas.")
    ] = "exact"
    interval: Annotated[
        str | None,
        _text("|".join((*RULES, "TIME")), "Time of work between checkpoints.",
              "optimal; with --formula paper young"),
    ] = None
    job: Annotated[str | None, _text("TIME", "Time of work of the whole job, as 24h.")] = None

    def goal(self) -> Goal:
        """In numbers."""
        for name, known in (("objective", OBJECTIVES), ("formula", FORMULAS)):
            if getattr(self, name) not in known:
                raise q.Wrong(f"--{name} {getattr(self, name)}: there are {', '.join(known)}")
        rule = self.interval is None or self.interval in RULES
        return Goal(
            objective=self.objective,
            formula=self.formula,
            interval=self.interval if rule else positive(str(self.interval), "--interval"),
            job_s=_maybe(self.job, lambda text: positive(text, "--job")),
        )


@dataclass(frozen=True)
class OutputOptions:
    """Where a plan goes."""

    output: Annotated[
        Path | None, output_file("-o", "--output", help="Write the plan to this file.")
    ] = None
    as_json: AsJson = False
    plot: Annotated[
        Path | None, picture_file("--plot", help="Draw time and energy against the interval")
    ] = None
    front: Annotated[
        Path | None,
        picture_file("--front", help="Draw the plans that no other beats in time and energy"),
    ] = None
