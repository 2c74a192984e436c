# SPDX-License-Identifier: BSD-3-Clause
"""A loop of data analysis on one node, in plain numpy: k-means, with its state in a pool.

The centres are written in place (mode copy), the labels of the points too, of which few change from
one round to the next (mode log). Killed and started again, it goes on with the round after its last
commit; the points themselves come from where they came from before.

    python examples/kmeans.py /dev/shm/kmeans
"""

import sys
from datetime import datetime, timezone

import numpy as np

import perdure

CENTRES, POINTS, ROUNDS = 8, 20_000, 30


def read_points() -> np.ndarray:
    """Stands for a file of measurements."""
    random = np.random.default_rng(7)
    middles = random.normal(scale=4.0, size=(CENTRES, 2))
    return middles[random.integers(CENTRES, size=POINTS)] + random.normal(size=(POINTS, 2))


def main() -> None:
    points = read_points()
    with perdure.open(sys.argv[1]) as pool:
        centres = pool.array("centres", (CENTRES, 2), mode="copy")
        labels = pool.array("labels", POINTS, np.int32, mode="log")
        state = pool.scalars(
            iteration=0,
            spread=0.0,
            began=datetime.now(timezone.utc),
            host=perdure.text(64),
        )
        if pool.restart() is None:
            centres.working[:] = points[:CENTRES]
        print("begins at round", state.iteration, flush=True)
        while state.iteration < ROUNDS:
            distances = ((points[:, None] - centres.working) ** 2).sum(axis=2)
            nearest = distances.argmin(axis=1)
            changed = np.flatnonzero(nearest != labels.working)
            labels.working[changed] = nearest[changed]
            for k in range(CENTRES):
                centres.working[k] = points[nearest == k].mean(axis=0)
            state.spread = distances.min(axis=1).mean()
            state.iteration += 1
            if pool.due():  # always, or as `perdure energy plan` says
                pool.commit()
        print(f"the spread is {state.spread:.17g}, the labels sum to {labels.working.sum()}")


main()
