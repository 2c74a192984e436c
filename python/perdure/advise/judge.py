# SPDX-License-Identifier: BSD-3-Clause
"""From what was seen of a program, and what a commit costs here, to advice. Pure.

Costs are of a run without failures: (interval + commit) / interval. The interval is the one of
least expected time by the exact model (energy/formulas/model.py), with the commit and the restart
as they were measured, and the failure rate that was given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from perdure.advise.place import Commit, Medium
from perdure.advise.program import Memory, Program
from perdure.cache.predict import Prediction
from perdure.energy.formulas.model import Machine, time_optimal_work, time_per_work
from perdure.units import bytes_text, seconds_text

HIGH, MEDIUM, LOW = "high", "medium", "low"
_ORDER = (LOW, MEDIUM, HIGH)
_DEAR = 0.02  # of the time: from here on hiding the copy is worth a thread
_FEW = 0.4  # of the pages: below it log copies less than half of what copy does
_UNSTEADY = 0.5  # quartiles over the lower one
_SHORT_S = 1.0
_GAIN = 0.001  # of the time: less than that is not worth a line of code


@dataclass(frozen=True)
class Assumed:
    """What the user says, or what is taken: seconds; None: not said."""

    mtbf_s: float
    job_s: float | None = None
    interval_s: float | None = None
    cores: int = 1


@dataclass(frozen=True)
class Carried:
    """What `perdure ipv record` found that the loop carries, of the rank that has most."""

    bytes: int
    names: tuple[str, ...]


@dataclass
class Advice:
    """One thing to do. `what`: pool, windows, ipv, cache, checkpoint, output, nothing.

    `run_time_ratio` is predicted, without failures, and is the most; `expected_ratio` is with them.
    """

    what: str
    text: str
    how: list[str] = field(default_factory=list)
    command: str = ""
    mode: str | None = None
    names: list[str] = field(default_factory=list)
    bytes: int = 0  # of a rank, in a version
    pool_bytes: int = 0  # of all ranks, on the medium
    commit_s: float | None = None
    interval_s: float | None = None
    run_time_ratio: float | None = None
    least_ratio: float | None = None  # the same, if all but the largest block were scratch memory
    expected_ratio: float | None = None
    sure: str = HIGH
    why: list[str] = field(default_factory=list)

    def doubt(self, sure: str, why: str) -> None:
        """Something that makes it less sure."""
        self.why.append(why)
        self.sure = min(self.sure, sure, key=_ORDER.index)


@dataclass(frozen=True)
class Choice:
    """Which protection, before its cost is known: what place.py is to measure."""

    what: str  # "pool", "windows", or "nothing"
    mode: str
    bytes: int
    share: float  # of it changes between two versions
    least: float = 1.0  # the share of it that a version may do with: the rest may be scratch memory


def choose(program: Program, carried: Carried | None = None) -> Choice:
    """The protection that suits the program."""
    own = sum(each.bytes for each in program.windows if each.kind != "create")
    whole = program.changing_bytes + own
    if program.windows and 2 * program.window_bytes >= whole:
        largest = max(each.bytes // each.count for each in program.windows)
        return Choice("windows", "copy", program.window_bytes, 1.0,
                      largest / program.window_bytes if program.window_bytes else 1.0)
    size = carried.bytes if carried else program.changing_bytes
    if size == 0:
        return Choice("nothing", "copy", 0, 1.0)
    arrays = [each for each in program.changing if each.kind != "mapped"]
    room = sum(each.bytes * each.count for each in arrays)
    changed = sum(each.bytes * each.count * each.share for each in arrays)
    if carried is None and room and 2 * changed >= size and changed < _FEW * room:
        return Choice("pool", "log", room, changed / room)
    least = 1.0 if carried else program.largest_bytes / size
    return Choice("pool", "copy", size, 1.0, least)


def protection(
    program: Program, choice: Choice, commit: Commit | None, medium: Medium, assumed: Assumed,
    carried: Carried | None = None,
) -> Advice:  # fmt: skip
    """What to protect and how, how often, and what it costs; `commit` None: could not be tried."""
    if program.uses_perdure:
        return Advice("nothing", "It has a pool already: perdure run and perdure report say what "
                      "its commits cost.", command="perdure run --json run.json -- CMD")
    if choice.what == "nothing":
        return _nothing(program)
    made = _windows(program, choice, medium) if choice.what == "windows" else _pool(
        program, choice, medium, carried)
    made.bytes = choice.bytes
    made.pool_bytes = 2 * choice.bytes * program.ranks
    if commit is None:
        made.doubt(LOW, "a commit could not be tried where pools are to be")
        return made
    _cost(made, commit, choice.least, assumed)
    if _is_too_short(made, commit, assumed):
        return _not_worth_it(made, assumed)
    _hide(made, program, assumed)
    if commit.spread > _UNSTEADY:
        made.doubt(MEDIUM, "commits took unequally long when they were tried: "
                   f"{seconds_text(commit.low_s)} to {seconds_text(commit.high_s)}")
    return made


def doubts(made: Advice, program: Program, run_s: float, exit_code: int) -> None:
    """What the recording leaves open."""
    if exit_code != 0:
        made.doubt(LOW, f"the program ended with {exit_code}")
    if program.refused:
        made.doubt(LOW, f"its memory could not be read ({program.refused}), so nobody knows what "
                   "changes")
    elif program.looks < 4:
        made.doubt(LOW, f"its memory was looked at {program.looks} times only; let it run longer")
    if run_s < _SHORT_S:
        made.doubt(LOW, f"it ran for {seconds_text(run_s)} only: give it a larger problem")
    if program.ranks > program.ranks_seen > 0:
        made.doubt(MEDIUM, f"{program.ranks_seen} of {program.ranks} ranks ran on this node")


def _nothing(program: Program) -> Advice:
    made = Advice("nothing", "Nothing to protect was found: no large memory that goes on changing, "
                  "and no windows.")
    if program.has_looked:
        made.how.append("What it keeps in a few numbers can be scalars of a pool "
                        "(docs/protect.md).")
    else:
        made.doubt(LOW, "its memory was not seen")
    return made


def _pool(program: Program, choice: Choice, medium: Medium, carried: Carried | None) -> Advice:
    size = bytes_text(choice.bytes)
    made = Advice("pool", f"Protect the arrays that change, {size} a rank, in a pool: mode "
                  f"{choice.mode}.", mode=choice.mode)
    made.names = list(carried.names) if carried else [_name_of(each) for each in program.changing]
    made.how.append("Name them and the step, restart, and commit: docs/protect.md has a page a "
                    "language.")
    call = "perdure_open_mpi(MPI_COMM_WORLD, …)" if program.is_mpi else "perdure_open(…)"
    made.command = f'pool = perdure.open("{medium.path}/NAME")' if program.is_python else call
    if any(each.count > 1 and each.share > 0.9 for each in program.changing) and not carried:
        made.how.append("Where a step reads one array and writes all of another of the same size: "
                        "mode twin, which copies nothing.")
    if program.windows:
        made.how.append(f"Its windows have {bytes_text(program.window_bytes)} of that, so they "
                        "need not be persistent.")
    if carried is None:
        made.doubt(MEDIUM, "it is what changes; what each step computes anew need not be saved, "
                   "and only the source, or perdure ipv record, tells it from the rest")
    return made


def _windows(program: Program, choice: Choice, medium: Medium) -> Advice:
    size = bytes_text(choice.bytes)
    made = Advice("windows", f"Make its windows persistent, {size} a rank: mode copy.", mode="copy")
    made.names = [f"{each.count} by MPI_Win_{each.kind}" for each in program.windows]
    fences = sum(each.fences for each in program.windows)
    others = sum(each.unlocks + each.completes for each in program.windows)
    if fences and not others:
        made.how.append("It may stay as it is: a variable makes a version at each fence.")
        made.command = f'PERDURE_WINDOWS="pool={medium.path}/NAME;commit=fence"'
    else:
        made.how.append("Its epochs do not end by fences, so the program says where a version is "
                        "made: perdure_win_commit().")
        made.command = 'MPI_Info_set(info, "perdure_name", "NAME")'
    made.how.append("What is in variables, as a counter of steps, it must find out from its data, "
                    "or keep in the window's pool (docs/windows.md).")
    if program.changing_bytes:
        made.doubt(MEDIUM, f"{bytes_text(program.changing_bytes)} a rank beside the windows "
                   "change, too")
    return made


def _name_of(memory: Memory) -> str:
    many = f"{memory.count} x " if memory.count > 1 else ""
    name = memory.name or {"heap": "from malloc", "mapped": "mapped memory"}.get(memory.kind,
                                                                               memory.kind)
    return f"{many}{bytes_text(memory.bytes)} {name}"


def _cost(made: Advice, commit: Commit, least: float, assumed: Assumed) -> None:
    machine = Machine(1 / assumed.mtbf_s, commit.seconds, commit.restart_s)
    best_s = assumed.interval_s or float(time_optimal_work(machine))
    made.commit_s, made.interval_s = commit.seconds, best_s
    made.run_time_ratio = 1 + commit.seconds / best_s
    made.least_ratio = 1 + least * commit.seconds / best_s
    expected = float(time_per_work(best_s, machine))
    made.expected_ratio = expected if math.isfinite(expected) else None


def unprotected_ratio(job_s: float, mtbf_s: float) -> float:
    """Expected time over useful work of a job that begins anew after each failure."""
    return math.expm1(job_s / mtbf_s) / (job_s / mtbf_s) if job_s < 500 * mtbf_s else math.inf


def _is_too_short(made: Advice, commit: Commit, assumed: Assumed) -> bool:
    if assumed.job_s is None or made.expected_ratio is None:
        return False
    pays = unprotected_ratio(assumed.job_s, assumed.mtbf_s) - made.expected_ratio
    return pays < _GAIN or made.interval_s is not None and made.interval_s >= assumed.job_s


def _not_worth_it(made: Advice, assumed: Assumed) -> Advice:
    assert assumed.job_s is not None
    lost = unprotected_ratio(assumed.job_s, assumed.mtbf_s) - 1
    text = (f"Nothing: a job of {seconds_text(assumed.job_s)} loses {100 * lost:.2g} % by failures "
            f"every {seconds_text(assumed.mtbf_s)}, less than versions would save.")
    return Advice("nothing", text, sure=made.sure, why=made.why)


def _hide(made: Advice, program: Program, assumed: Assumed) -> None:
    """Where a copy is dear and a core is idle, versions are copied beside the computation."""
    ranks_here = max(program.ranks_seen, 1)
    if made.what != "pool" or made.run_time_ratio is None or made.run_time_ratio < 1 + _DEAR:
        return
    if assumed.cores > ranks_here and not program.is_python:
        made.how.append("A core is idle: in-place versioning, tier copy, copies beside the "
                        "computation, and its arrays stay where they are (docs/ipv.md).")
    else:
        made.how.append("perdure_commit_begin() copies beside the computation, where the next step "
                        "reads first.")


def of_files(predictions: Sequence[tuple[Prediction, str]]) -> list[Advice]:
    """Cache or not, of each file that was opened by MPI-IO; the words are cache/predict.py's."""
    found = []
    for one, words in predictions:
        ratio = one.with_s / one.without_s if one.without_s > 0 else 1.0
        cached = words.startswith("cache it")
        text = (f"{'Cache' if cached else 'Do not cache'} {one.path}: its {one.calls} calls took "
                f"{seconds_text(one.without_s)}, and would take {seconds_text(one.with_s)}.")
        made = Advice("cache" if cached else "no cache", text, run_time_ratio=ratio)
        if cached:
            name = one.path.rpartition("/")[2]
            made.command = f"perdure run --cache '{name}' -- CMD"
            made.how += words.split("; ")[1:]
        if 0.6 < ratio < 1.6:
            made.doubt(MEDIUM, "with and without are near each other")
        found.append(made)
    return found


def of_written(program: Program, protects: Advice) -> list[Advice]:
    """Checkpoint files in place of which a pool could be, and output that should go back."""
    found = []
    for each in program.again:
        times = max(each.closed, each.renamed)
        text = (f"It writes {each.pattern} again and again: {times} times, "
                f"{bytes_text(each.bytes)} each.")
        made = Advice("checkpoint", text, bytes=each.bytes)
        made.how.append("If these are checkpoints, a commit can take their place: "
                        "docs/checkpoint.md shows which lines change.")
        if protects.commit_s is not None:
            made.commit_s = protects.commit_s
        made.doubt(MEDIUM, "output in numbered files looks the same")
        found.append(made)
    for each in program.growing:
        text = f"{each.pattern} grows while it runs: {bytes_text(each.bytes)} by the end."
        made = Advice("output", text, bytes=each.bytes)
        made.how.append("Name it with perdure_file(), and its lines go back with the state.")
        found.append(made)
    return found
