# SPDX-License-Identifier: BSD-3-Clause
"""Which setting and which interval cost least, and how far apart the choices are.

A candidate is what one operation costs at one setting of a profile (or as given by hand). Times
in s, powers in W, EPE (energy per effective unit time) in W. No extrapolation: only settings
that were measured are candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from perdure.energy.formulas import model
from perdure.energy.profile.file import Profile, Quantity, Setting
from perdure.energy.quantities import Wrong, duration_text, percent_text

OBJECTIVES = ("time", "energy", "edp")
FORMULAS = ("exact", "paper")
RULES = ("optimal", "young", "daly")
FRONT_STEPS = 9


@dataclass(frozen=True)
class Candidate:
    """One operation at one setting. `spread` is half of a 95 % interval, 0 where unknown."""

    setting: Setting
    seconds: float
    seconds_spread: float = 0.0
    power_W: float | None = None
    power_spread: float = 0.0
    J_per_MB: float | None = None


@dataclass(frozen=True)
class Node:
    """What a node takes besides reading and writing; powers of None are not known.

    `down_W` None: as when computing. `overhead_s` not None: checkpoints are asynchronous.
    """

    compute_W: float | None = None
    downtime_s: float = 0.0
    down_W: float | None = None
    overhead_s: float | None = None
    flush_W: float = 0.0


@dataclass(frozen=True)
class Problem:
    """What does not depend on the setting."""

    rate_per_s: float
    node: Node = Node()
    objective: str = "time"
    formula: str = "exact"
    interval: str | float = "optimal"  # a rule, or seconds

    @property
    def needs_power(self) -> bool:
        """Whether the objective can't be computed without powers."""
        return self.objective != "time"


@dataclass(frozen=True)
class Outcome:
    """One pair of settings with its interval. Energies are None where a power is unknown."""

    write: Candidate
    read: Candidate
    machine: model.Machine
    work_s: float
    time_per_work: float
    epe_W: float | None
    checkpoints_per_day: float


def candidates_of(profile: Profile, op: str, size_bytes: float) -> list[Candidate]:
    """The settings of an operation; the interval of the seconds is that of the bandwidth."""
    found = []
    for point in profile.of(op):
        seconds = size_bytes / 1e6 / point.bandwidth_MBps.mean
        energy = point.energy_J_per_MB
        if energy is None and point.power_W is not None:
            value = point.power_W.mean / point.bandwidth_MBps.mean
            energy = Quantity(value, value, value)
        found.append(
            Candidate(
                setting=point.setting,
                seconds=seconds,
                seconds_spread=seconds
                * min(1.0, point.bandwidth_MBps.half_width / point.bandwidth_MBps.mean),
                power_W=None if point.power_W is None else point.power_W.mean,
                power_spread=0.0 if point.power_W is None else point.power_W.half_width,
                J_per_MB=None if energy is None else energy.mean,
            )
        )
    return found


def given(seconds: float, power_W: float | None, writers: int, size_bytes: float) -> Candidate:
    """The only candidate: what a user gave."""
    per_MB = None if power_W is None else power_W * seconds / (size_bytes / 1e6)
    return Candidate(Setting(None, writers), seconds, power_W=power_W, J_per_MB=per_MB)


def check_checkpoint(seconds: float, rate_per_s: float, what: str = "a checkpoint") -> None:
    """Raises Wrong where a checkpoint takes longer than the time between failures."""
    if seconds * rate_per_s <= 1:
        return
    chance = percent_text(float(np.exp(-seconds * rate_per_s)))
    raise Wrong(
        f"{what} takes {duration_text(seconds)}, longer than the mean time between failures of "
        f"{duration_text(1 / rate_per_s)}: only {chance} of them would be finished before a "
        "failure, and the run would hardly advance. Write less, write to a faster level "
        "(--levels local,…), or check size and failure rate"
    )


def _known(problem: Problem, *rows: list[Candidate]) -> bool:
    return problem.node.compute_W is not None and all(
        each.power_W is not None for row in rows for each in row
    )


def grid_machine(
    problem: Problem, writes: list[Candidate], reads: list[Candidate]
) -> model.Machine:
    """The model's machine: a row of arrays for each write, a column for each read.

    Where a power is not known all are 1, so that energy counts time.
    """
    known = _known(problem, writes, reads)
    seconds, write_W = (
        np.array(row, dtype=float)[:, None]
        for row in ([each.seconds for each in writes],
                    [each.power_W if known else 1.0 for each in writes])
    )
    read_s, read_W = (
        np.array(row, dtype=float)
        for row in ([each.seconds for each in reads],
                    [each.power_W if known else 1.0 for each in reads])
    )
    down_W = problem.node.compute_W if problem.node.down_W is None else problem.node.down_W
    overhead_s = problem.node.overhead_s
    return model.Machine(
        rate_per_s=problem.rate_per_s,
        write_s=seconds if overhead_s is None else np.minimum(overhead_s, seconds),
        read_s=read_s,
        downtime_s=problem.node.downtime_s,
        latency_s=None if overhead_s is None else seconds,
        compute_W=problem.node.compute_W if known else 1.0,
        write_W=write_W,
        read_W=read_W,
        down_W=down_W if known else 1.0,
        flush_W=problem.node.flush_W if known else 0.0,
    )


def machine_for(problem: Problem, write: Candidate, read: Candidate) -> model.Machine:
    """The model's machine of one pair of settings, in floats."""
    grid = grid_machine(problem, [write], [read])
    return model.Machine(
        **{name: None if value is None else float(np.squeeze(value))
           for name, value in vars(grid).items()}
    )


def work_for(problem: Problem, machine: model.Machine) -> model.Numbers:
    """The interval that the problem's rule or objective gives; a float, or an array for a grid.

    Raises Wrong where a given one is too short for an asynchronous checkpoint.
    """
    if not isinstance(problem.interval, str):
        if np.any(problem.interval < machine.overlap_s):
            raise Wrong(
                f"an interval of {duration_text(problem.interval)} is shorter than the "
                f"{duration_text(float(np.max(machine.overlap_s)))} for which a checkpoint is "
                "still being written"
            )
        return problem.interval
    if problem.interval in ("young", "daly"):
        rule = model.young_work if problem.interval == "young" else model.daly_work
        return np.maximum(rule(machine), machine.overlap_s)
    if problem.objective == "energy":
        return model.energy_optimal_work(machine, problem.formula)
    if problem.objective == "edp":
        return model.edp_optimal_work(machine, problem.formula)
    return model.time_optimal_work(machine)


def outcome_of(problem: Problem, write: Candidate, read: Candidate) -> Outcome:
    """What one pair of settings costs at its interval."""
    machine = machine_for(problem, write, read)
    work_s = float(work_for(problem, machine))
    times = model.SPLITS[problem.formula](work_s, machine)
    started = np.exp(machine.rate_per_s * (machine.write_s + machine.overlap_s))
    known = _known(problem, [write], [read])
    return Outcome(
        write,
        read,
        machine,
        work_s,
        float(times.total / work_s),
        float(times.energy(machine) / work_s) if known else None,
        float(started / times.total * 86400),
    )


def value_of(outcome: Outcome, objective: str) -> float:
    """What is made least."""
    if objective == "time":
        return outcome.time_per_work
    if outcome.epe_W is None:
        raise Wrong(
            f"the objective {objective} needs the powers of computing, writing and reading, and "
            "one is not known (a profile without a meter has none): give --power, --write-power "
            "and --read-power, or plan with --objective time"
        )
    return outcome.epe_W if objective == "energy" else outcome.epe_W * outcome.time_per_work


def values_of(
    problem: Problem, writes: list[Candidate], reads: list[Candidate]
) -> np.ndarray:
    """The objective of every pair, each with its own interval: an array (writes, reads)."""
    machine = grid_machine(problem, writes, reads)
    work_s = work_for(problem, machine)
    times = model.SPLITS[problem.formula](work_s, machine)
    value = times.total / work_s
    if problem.objective == "energy":
        value = times.energy(machine) / work_s
    elif problem.objective == "edp":
        value = value * times.energy(machine) / work_s
    return np.broadcast_to(value, (len(writes), len(reads)))


def spreads_of(
    problem: Problem, op: str, own: list[Candidate], other: Candidate, values: np.ndarray
) -> np.ndarray:
    """Half of the 95 % interval of each value, from that of the measurements it is made of.

    First order: the effects of its time and of its power, taken as independent.
    """
    total = np.zeros(len(own))
    for field in ("seconds", "power"):
        moved = [
            replace(each, seconds=each.seconds + each.seconds_spread) if field == "seconds"
            else replace(each, power_W=each.power_W and each.power_W + each.power_spread)
            for each in own
        ]
        total += (_along(problem, op, moved, other) - values) ** 2
    return np.sqrt(total)


def _along(problem: Problem, op: str, own: list[Candidate], other: Candidate) -> np.ndarray:
    pair = (own, [other]) if op == "write" else ([other], own)
    return values_of(problem, *pair).ravel()


def default_setting(candidates: list[Candidate]) -> Setting:
    """What a run does if nobody plans: the highest frequency, as many writers as were measured."""
    return max((each.setting for each in candidates), key=_order)


def _order(setting: Setting) -> tuple[int, int]:
    return (setting.freq_kHz or 0, setting.writers)


@dataclass(frozen=True)
class Choice:
    """Why an operation has its setting.

    `best` has the least mean; `chosen` is that, or, of those that can't be distinguished from it
    (their 95 % intervals overlap), the one that changes least. `per_MB` has least energy per byte.
    """

    chosen: Candidate
    best: Candidate
    per_MB: Candidate | None
    default: Setting
    alike: tuple[Setting, ...]
    values: tuple[tuple[Candidate, float, float], ...]  # candidate, objective, its spread


def _changes(setting: Setting, default: Setting) -> int:
    frequency = default.freq_kHz is not None and setting.freq_kHz != default.freq_kHz
    return int(frequency) + int(setting.writers != default.writers)


def _choose(problem: Problem, op: str, own: list[Candidate], other: Candidate) -> Choice:
    """The setting of one operation while that of the other one is held."""
    default = default_setting(own)
    values = _along(problem, op, own, other)
    spreads = spreads_of(problem, op, own, other, values)
    rows = tuple(zip(own, map(float, values), map(float, spreads)))
    best, least, spread = min(rows, key=lambda row: row[1])
    alike = [row for row in rows if row[1] - row[2] <= least + spread]
    chosen = min(alike, key=lambda row: (_changes(row[0].setting, default), row[1]))[0]
    measured = [(each.J_per_MB, place) for place, each in enumerate(own)
                if each.J_per_MB is not None]
    per_MB = own[min(measured)[1]] if measured else None
    return Choice(chosen, best, per_MB, default, tuple(row[0].setting for row in alike), rows)


@dataclass(frozen=True)
class Found:
    """The chosen pair and why."""

    outcome: Outcome
    write: Choice
    read: Choice


def _with_powers(problem: Problem, candidates: list[Candidate], op: str) -> list[Candidate]:
    if not problem.needs_power:
        return candidates
    known = [each for each in candidates if each.power_W is not None]
    if not known:
        raise Wrong(
            f"the objective {problem.objective} needs the power of a {op}, and none is known (no "
            f"meter): give --{op}-power, or plan with --objective time"
        )
    return known


def optimise(problem: Problem, writes: list[Candidate], reads: list[Candidate]) -> Found:
    """The pair of settings with least objective, then the do-nothing rule for each operation.

    The interval is found anew for every pair. Raises Wrong where C > MTBF at every setting.
    """
    if problem.needs_power and problem.node.compute_W is None:
        raise Wrong(
            f"the objective {problem.objective} needs the power of the computation: give --power, "
            "as 471W, or plan with --objective time"
        )
    writes, reads = (_with_powers(problem, each, op)
                     for each, op in ((writes, "write"), (reads, "read")))
    overhead_s = problem.node.overhead_s
    stopped = [each.seconds if overhead_s is None else min(overhead_s, each.seconds)
               for each in writes]
    check_checkpoint(min(stopped), problem.rate_per_s)
    values = values_of(problem, writes, reads)
    best_read = reads[int(np.argmin(values) % len(reads))]
    write = _choose(problem, "write", writes, best_read)
    read = _choose(problem, "read", reads, write.chosen)
    return Found(outcome_of(problem, write.chosen, read.chosen), write, read)


@dataclass(frozen=True)
class FrontPoint:
    """A plan that no other one beats in both time and energy."""

    time_per_work: float
    epe_W: float
    work_s: float
    write: Setting
    read: Setting


def pareto_front(
    problem: Problem, writes: list[Candidate], reads: list[Candidate]
) -> list[FrontPoint]:
    """Settings and intervals from the time optimum to the energy optimum, the undominated ones.

    Fastest first. Empty where powers are not known.
    """
    writes = [each for each in writes if each.power_W is not None]
    reads = [each for each in reads if each.power_W is not None]
    if problem.node.compute_W is None or not writes or not reads:
        return []
    machine = grid_machine(problem, writes, reads)
    ends = [np.broadcast_to(each, (len(writes), len(reads))) for each in (
        model.time_optimal_work(machine), model.energy_optimal_work(machine, problem.formula))]
    share = np.linspace(0, 1, FRONT_STEPS)[:, None, None]
    work_s = ends[0] ** (1 - share) * ends[1] ** share
    with np.errstate(over="ignore"):
        times = model.time_per_work(work_s, machine, problem.formula)
        powers = model.epe(work_s, machine, problem.formula)
    flat_times, flat_powers = times.ravel(), powers.ravel()
    order = np.lexsort((flat_powers, flat_times))
    least = np.minimum.accumulate(flat_powers[order])
    better = np.concatenate(([True], least[1:] < least[:-1] * (1 - 1e-12)))
    front = []
    for index in order[better]:
        k, i, j = np.unravel_index(index, work_s.shape)
        front.append(
            FrontPoint(float(flat_times[index]), float(flat_powers[index]),
                       float(work_s[k, i, j]), writes[i].setting, reads[j].setting)
        )
    return front


@dataclass(frozen=True)
class Strategy:
    """What the kernel's governor would do with all writers; a range where that can't be known."""

    name: str
    low: Outcome
    high: Outcome


def strategies(
    problem: Problem, writes: list[Candidate], reads: list[Candidate]
) -> list[Strategy]:
    """The paper's rivals (Table 2): all processes write, the governor sets the frequency.

    ondemand moves between the frequencies with the load, so it is a range over all of them.
    Without settable frequencies there is one, "as it is"; none where nothing was to choose.
    """
    pairs = {}
    for write in writes:
        for read in reads:
            if write.setting.freq_kHz == read.setting.freq_kHz and _all(write, writes) and _all(
                read, reads
            ):
                pairs[write.setting.freq_kHz or 0] = outcome_of(problem, write, read)
    if not pairs or len(writes) * len(reads) == 1:
        return []
    if list(pairs) == [0]:
        return [Strategy("as it is", pairs[0], pairs[0])]
    value = lambda outcome: value_of(outcome, problem.objective)  # noqa: E731
    slow, fast = pairs[min(pairs)], pairs[max(pairs)]
    return [
        Strategy("performance", fast, fast),
        Strategy("powersave", slow, slow),
        Strategy("ondemand", min(pairs.values(), key=value), max(pairs.values(), key=value)),
    ]


def _all(candidate: Candidate, candidates: list[Candidate]) -> bool:
    return candidate.setting.writers == max(each.setting.writers for each in candidates)
