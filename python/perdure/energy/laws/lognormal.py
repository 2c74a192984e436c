# SPDX-License-Identifier: BSD-3-Clause
"""Lognormal failures: the hazard rises from nothing to its highest at some age, then falls."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, pi, sqrt
from typing import Any

import numpy as np

from perdure.energy.laws.law import Law, Parameter, register


@register
@dataclass(frozen=True)
class Lognormal(Law):
    """The logarithm of a gap is normal, with standard deviation sigma."""

    name = "lognormal"
    description = "of the logarithm of the gaps"
    parameters = (
        Parameter("sigma", 0.1, 3.0, 1.0,
                  "the larger it is, the more short gaps there are for a few long ones"),
    )

    sigma: float

    @property
    def median_s(self) -> float:
        """The age that half of the gaps reach."""
        return self.mean_s * exp(-0.5 * self.sigma**2)

    def _deviations(self, t: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(t / self.median_s) / self.sigma

    def survival(self, t: Any) -> Any:
        from scipy.special import ndtr

        return ndtr(-self._deviations(t))

    def hazard(self, t: Any) -> Any:
        from scipy.special import log_ndtr

        away = self._deviations(t)
        # Both the density and the survival are 0 in floats before their ratio is.
        return np.exp(-0.5 * away**2 - log_ndtr(-away)) / (self.sigma * sqrt(2 * pi) * t)

    def lived(self, t: Any) -> Any:
        from scipy.special import ndtr

        away = self._deviations(t)
        return self.mean_s * ndtr(away - self.sigma) + t * ndtr(-away)

    def reached(self, share: float) -> float:
        from scipy.special import ndtri

        return self.median_s * exp(-self.sigma * float(ndtri(share)))

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        return random.lognormal(log(self.median_s), self.sigma, count)
