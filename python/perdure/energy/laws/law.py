# SPDX-License-Identifier: BSD-3-Clause
"""What a law of the time between failures is. Gaps between failures are independent of each other.

A law is a frozen dataclass of numbers: its mean and its `parameters`. Everything else follows from
its five methods, which must agree with each other: survival' = -hazard * survival, lived' =
survival, reached() is the inverse of survival(), draw() is distributed so. The tests hold every
registered law to that. Ages are in s; survival and lived take arrays, hazard too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from perdure.energy.quantities import Wrong


@dataclass(frozen=True)
class Parameter:
    """A number of a law besides the mean; a fit starts from `usual`."""

    name: str
    least: float
    most: float
    usual: float
    description: str


@dataclass(frozen=True)
class Law(ABC):
    """A family of distributions of the gaps between failures, of which this is one."""

    name: ClassVar[str]
    description: ClassVar[str]  # after the name, for people
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    down_inside: ClassVar[bool] = False  # gaps begin when the program runs again

    mean_s: float

    def __post_init__(self) -> None:
        """Raises Wrong for a number that cannot be planned with."""
        for each in self.parameters:
            value = getattr(self, each.name)
            if not each.least <= value <= each.most:
                raise Wrong(f"a {each.name} of {value:g} is outside of {each.least:g} to "
                            f"{each.most:g}; {each.description}")

    @property
    def memoryless(self) -> bool:
        """Whether the hazard is constant: then the formulas of exponential failures hold."""
        return False

    @abstractmethod
    def survival(self, t: Any) -> Any:
        """Share of the gaps that are longer than t."""

    @abstractmethod
    def hazard(self, t: Any) -> Any:
        """Failures a second at age t > 0."""

    @abstractmethod
    def lived(self, t: Any) -> Any:
        """Mean of min(gap, t): the integral of survival from 0 to t."""

    @abstractmethod
    def reached(self, share: float) -> float:
        """The age that so large a share of the gaps reaches."""

    @abstractmethod
    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        """Gaps at random."""

    def values(self) -> dict[str, float]:
        """The parameters with their values."""
        return {each.name: getattr(self, each.name) for each in self.parameters}

    def with_mean(self, mean_s: float) -> Law:
        """The same law with another mean."""
        return replace(self, mean_s=mean_s)

    def text(self, digits: int = 4) -> str:
        """As the command line takes it."""
        values = ",".join(f"{name}={value:.{digits}g}" for name, value in self.values().items())
        return f"{self.name}:{values}" if values else self.name

    def document(self) -> dict[str, object]:
        """As a plan has it; the mean is elsewhere, as a rate."""
        return {"name": self.name, **self.values()}

    @classmethod
    def usual(cls, mean_s: float) -> Law:
        """With the usual value of each parameter."""
        return cls(mean_s, **{each.name: each.usual for each in cls.parameters})

    @classmethod
    def usage(cls) -> str:
        """How it is written on the command line, and what it is."""
        names = ",".join(f"{each.name}={each.name[0].upper()}" for each in cls.parameters)
        return f"{cls.name}:{names} ({cls.description})" if names else cls.name


registered_laws: list[type[Law]] = []
_Law = TypeVar("_Law", bound=type[Law])


def register(law: _Law) -> _Law:
    """Makes a law known by its name."""
    registered_laws.append(law)
    return law
