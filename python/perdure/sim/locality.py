# SPDX-License-Identifier: BSD-3-Clause
"""How many pages get most of the accesses: Figure 4 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.core import load_core
from perdure.failures import Wrong

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Concentration:
    """Shares of the pages, hottest first, and of the accesses that go to them; from 0 to 1."""

    pages: list[float]
    accesses: list[float]

    def pages_for(self, share: float) -> float:
        """The least share of the pages that gets so large a share of the accesses."""
        return next(page for page, sum_ in zip(self.pages, self.accesses) if sum_ >= share - 1e-12)

    def accesses_of(self, share: float) -> float:
        """The share of the accesses that the hottest pages get, so large a share of all."""
        return self.accesses[round(share * (len(self.pages) - 1))]

    def thinned(self, points: int = 400) -> Concentration:
        """With so many points that nobody sees the difference."""
        last = len(self.pages) - 1
        chosen = sorted({round(last * (i / points) ** 2) for i in range(points + 1)})
        return Concentration([self.pages[i] for i in chosen], [self.accesses[i] for i in chosen])


def concentration(accesses: np.ndarray) -> Concentration:
    """Of the accesses of each page. Raises Wrong where there are none."""
    import numpy as np

    counts = np.sort(accesses)[::-1].astype(float)
    if counts.size == 0 or counts.sum() == 0:
        raise Wrong("the trace has no accesses")
    return Concentration(
        (np.arange(counts.size + 1) / counts.size).tolist(),
        np.concatenate(([0.0], np.cumsum(counts) / counts.sum())).tolist(),
    )


def concentration_of(trace: Path) -> Concentration:
    """Of a trace. Raises Wrong or _core.Error."""
    return concentration(load_core().page_accesses(str(trace)))
