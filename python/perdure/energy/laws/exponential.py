# SPDX-License-Identifier: BSD-3-Clause
"""Failures without memory: the next one is as likely whatever the age."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from perdure.energy.laws.law import Law, register


@register
@dataclass(frozen=True)
class Exponential(Law):
    """S(t) = exp(-t / mean)."""

    name = "exponential"
    description = "without memory"

    @property
    def memoryless(self) -> bool:
        return True

    def survival(self, t: Any) -> Any:
        return np.exp(-t / self.mean_s)

    def hazard(self, t: Any) -> Any:
        return 1 / self.mean_s + 0 * t

    def lived(self, t: Any) -> Any:
        return -self.mean_s * np.expm1(-t / self.mean_s)

    def reached(self, share: float) -> float:
        return -self.mean_s * log(share)

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        return random.exponential(self.mean_s, count)
