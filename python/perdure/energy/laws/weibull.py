# SPDX-License-Identifier: BSD-3-Clause
"""Weibull failures: with a shape below 1 they cluster, above 1 machines age.

Time between failures of large machines is modelled well by it, with a hazard that falls: Schroeder
and Gibson, A large-scale study of failures in high-performance computing systems, DSN 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gamma, log
from typing import Any

import numpy as np

from perdure.energy.laws.law import Law, Parameter, register


@register
@dataclass(frozen=True)
class Weibull(Law):
    """S(t) = exp(-(t / scale)^shape)."""

    name = "weibull"
    description = "below 1 they cluster"
    parameters = (
        Parameter("shape", 0.2, 20.0, 1.0,
                  "failures of real machines have 0.4 to 1.2 (1 is exponential)"),
    )

    shape: float

    @property
    def memoryless(self) -> bool:
        return self.shape == 1

    @cached_property
    def scale_s(self) -> float:
        """The time after which 63 % have failed."""
        return self.mean_s / gamma(1 + 1 / self.shape)

    def survival(self, t: Any) -> Any:
        return np.exp(-((t / self.scale_s) ** self.shape))

    def hazard(self, t: Any) -> Any:
        return self.shape / self.scale_s * (t / self.scale_s) ** (self.shape - 1)

    def lived(self, t: Any) -> Any:
        from scipy.special import gammainc

        return self.mean_s * gammainc(1 / self.shape, (t / self.scale_s) ** self.shape)

    def reached(self, share: float) -> float:
        return self.scale_s * (-log(share)) ** (1 / self.shape)

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        return self.scale_s * random.weibull(self.shape, count)
