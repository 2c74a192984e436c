# SPDX-License-Identifier: BSD-3-Clause
"""The capacities with least energy: the notches of the paper's Figure 6, found and explained."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.failures import Wrong
from perdure.sim.sweep import KnownPoint, Point, Study, known_points

PROMINENCE = 0.01  # of a notch's energy: how far the curve must rise on both sides of it


@dataclass(frozen=True)
class Notch:
    """A local minimum of energy over the capacity of DRAM, at one capacity of MRAM."""

    point: KnownPoint
    # "all fits": nothing is swapped; "nearly all fits"; "hot set": it is cheaper to swap the rest.
    kind: str
    reason: str


@dataclass(frozen=True)
class Optimum:
    """`best` costs least energy of all that are within the budget; None if nothing is."""

    reference: KnownPoint  # DRAM alone, so much that nothing is swapped
    typical: KnownPoint  # DRAM alone, as much as one would buy
    best: KnownPoint | None
    notches: list[Notch]
    points: list[KnownPoint]  # all that were looked at
    budget: float
    policy: str


def local_minima(values: list[float], prominence: float = PROMINENCE) -> list[int]:
    """Indices of minima from which the curve rises by that share of them on both sides.

    An end of the curve counts as a side that rises.
    """
    found = []
    falling, extreme, place = True, float("inf"), 0
    for index, value in enumerate(values):
        if falling:
            if value < extreme:
                extreme, place = value, index
            elif value > extreme * (1 + prominence):
                found.append(place)
                falling, extreme = False, value
        elif value > extreme:
            extreme = value
        elif value < extreme / (1 + prominence):
            falling, extreme, place = True, value, index
    if falling and values:
        found.append(place)
    return found


def best_point(points: list[KnownPoint], slowest_s: float) -> KnownPoint | None:
    """The point with least energy that takes at most so long."""
    within = [point for point in points if point.time_s <= slowest_s]
    return min(within, key=lambda point: (point.energy_j, point.total_bytes), default=None)


def optimise(
    study: Study,
    policy: str,
    values: dict[str, str],
    budget: float,
    typical_bytes: int,
    step_bytes: int,
) -> Optimum:
    """Searches the study's capacities of MRAM and, for each, DRAM in steps.

    Raises Wrong where the device table lacks a number that time or energy needs.
    """
    curve = study.curves.curves[0]
    need = max(1, curve.stack_pages)
    typical_frames = max(1, typical_bytes // study.page_bytes)
    reference, typical = (
        _known(study.points("lru", 0, [frames]))[0] for frames in (need, typical_frames)
    )
    points: list[KnownPoint] = []
    notches: list[Notch] = []
    for mram in study.mram:
        row = _known(study.points(policy, mram, study.frames(step_bytes, mram), values))
        points += row
        for index in local_minima([point.energy_j for point in row]):
            # The least capacity of all is no notch: nothing says that less would cost more.
            if index > 0 or row[index].page_ins == 0:
                notches.append(_explain(row, index, study))
    slowest_s = reference.time_s * (1 + budget)
    return Optimum(
        reference=reference,
        typical=typical,
        best=best_point(points, slowest_s),
        notches=notches,
        points=points,
        budget=budget,
        policy=policy,
    )


def _known(points: list[Point]) -> list[KnownPoint]:
    known = known_points(points)
    if len(known) < len(points):
        raise Wrong("the devices have no times or energies: see perdure devices")
    return known


def _explain(row: list[KnownPoint], index: int, study: Study) -> Notch:
    point = row[index]
    if point.page_ins == 0:
        return Notch(
            point,
            "all fits",
            f"nothing is swapped: the program touches {study.footprint_bytes >> 20} MiB, and more "
            "only adds standby power",
        )
    if point.page_ins < study.curves.curves[0].pages / 100:
        return Notch(
            point,
            "nearly all fits",
            f"only {point.page_ins} pages are read back in the whole run; more saves next to "
            "nothing of that, and adds standby power",
        )
    smaller = row[index - 1] if index > 0 else None
    reason = (
        f"{point.page_ins} pages are read back in the whole run; a little more memory saves less "
        "of that than it takes as standby power"
    )
    if smaller is not None:
        more = smaller.page_ins - point.page_ins
        less = (point.dram_bytes - smaller.dram_bytes) >> 20
        if more > 0:
            reason += f", and {less} MiB less would add {more} reads"
        else:
            reason += f"; with {less} MiB less the policy holds other pages in MRAM, at more energy"
    return Notch(point, "hot set", reason)
