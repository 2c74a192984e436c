# SPDX-License-Identifier: BSD-3-Clause
"""The energy paper's numbers, each stated or inferred, and what follows from them.

`data/energy/reference.json` holds them with their sources; nothing of the results is stored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perdure.energy.plan.settings import Candidate, Node, Outcome, Problem, outcome_of
from perdure.energy.profile.file import Setting
from perdure.energy.quantities import Wrong

_PLACES = (
    Path(__file__).parent / "reference.json",
    Path(__file__).resolve().parents[3] / "data/energy/reference.json",
)


_STRATEGIES = ("performance", "profile lookup")


@lru_cache(maxsize=1)
def reference() -> dict:
    """The file's content. Raises Wrong if it is not installed."""
    for place in _PLACES:
        if place.is_file():
            return json.loads(place.read_text(encoding="utf-8"))
    raise Wrong(f"{_PLACES[0]} is missing: install perdure again")


def constant(name: str) -> float:
    """A constant of the paper."""
    return reference()["constants"][name]["value"]


def candidate(device: str, strategy: str, op: str) -> Candidate:
    """What an operation costs on a device under "performance" or "profile lookup"."""
    point = reference()["devices"][device][strategy][op]
    speed, watts = point["bandwidth_MBps"]["value"], point["power_W"]["value"]
    return Candidate(
        Setting(point["freq_kHz"], point["writers"]),
        constant("size_bytes") / 1e6 / speed,
        power_W=watts,
        J_per_MB=watts / speed,
    )


def problem(formula: str = "paper", interval: str = "young", objective: str = "energy") -> Problem:
    """The evaluation of the paper's section 7."""
    return Problem(
        constant("rate_per_s"), Node(compute_W=constant("compute_W")), objective, formula, interval
    )


def outcome(device: str, strategy: str, chosen: Problem | None = None) -> Outcome:
    """EPE of a device under a strategy: a bar of Figure 7."""
    return outcome_of(
        chosen or problem(), candidate(device, strategy, "write"),
        candidate(device, strategy, "read"),
    )


def saving_percent(device: str, chosen: Problem | None = None) -> float:
    """By how many percent profile lookup lowers EPE."""
    before, after = (outcome(device, name, chosen) for name in _STRATEGIES)
    assert before.epe_W is not None and after.epe_W is not None  # all powers are in the file
    return 100 * (1 - after.epe_W / before.epe_W)


def per_MB_percent(device: str, op: str) -> float:
    """By how many percent profile lookup changes J/MB: negative if it saves."""
    before, after = (candidate(device, name, op) for name in _STRATEGIES)
    assert before.J_per_MB is not None and after.J_per_MB is not None
    return 100 * (after.J_per_MB / before.J_per_MB - 1)


@dataclass(frozen=True)
class Selected:
    """The frequency that the stated model selects, and the paper's."""

    device: str
    op: str
    model_kHz: int
    paper_kHz: int


def selected_kHz(kappa_GHz: float, rise: float) -> int:
    """The paper's frequency of least energy per byte: P0 (1 + r (f/2.1)^2) (1 + kappa / f)."""
    cost = lambda kHz: (1 + rise * (kHz / 2.1e6) ** 2) * (1 + kappa_GHz * 1e6 / kHz)  # noqa: E731
    return min(reference()["table_3"]["frequencies_kHz"], key=cost)


def table_3() -> list[Selected]:
    """Table 3 as output of the model: reads and writes of a device can't differ in it."""
    table = reference()["table_3"]
    rise = table["model"]["rise"]["value"]
    return [
        Selected(device, op, selected_kHz(table["model"]["kappa_GHz"][device]["value"], rise), kHz)
        for device, row in table["selected_kHz"].items()
        for op, kHz in row.items()
    ]


def corrected() -> dict[str, Problem]:
    """The same inputs with the mistakes of the paper taken out one by one."""
    return {
        "paper": problem(),
        "exact-split": problem("exact"),
        "exact-interval": problem("exact", "optimal", "time"),
        "energy-interval": problem("exact", "optimal", "energy"),
    }

