# SPDX-License-Identifier: BSD-3-Clause
"""A loop in numpy that `perdure bench advise` records and then protects as it was advised.

    python advised_loop.py CELLS STEPS [POOL]

Heat on CELLS x CELLS cells, in place. With POOL a version of each step is made, in mode copy. The
last line is the processor's seconds of the loop, the steps and a sum.
"""

import sys
import time

import numpy as np


def steps(u: np.ndarray, heat: np.ndarray, count: int, commit) -> float:
    began = time.process_time()
    for _ in range(count):
        np.add(u[:-2, 1:-1], u[2:, 1:-1], out=heat)
        heat += u[1:-1, :-2]
        heat += u[1:-1, 2:]
        heat /= 4
        np.sqrt(heat, out=heat)
        u[1:-1, 1:-1] = heat
        commit()
    return time.process_time() - began


def main() -> None:
    cells, count = int(sys.argv[1]), int(sys.argv[2])
    start = 1 + np.arange(cells * cells, dtype=float).reshape(cells, cells) % 97 / 97
    heat = np.empty((cells - 2, cells - 2))
    if len(sys.argv) == 3:
        took = steps(start, heat, count, lambda: None)
        print(took, count, start.sum())
        return
    import perdure

    with perdure.open(sys.argv[3]) as pool:
        u = pool.array("u", start.shape)
        pool.restart()
        u.working[:] = start
        took = steps(u.working, heat, count, pool.commit)
        print(took, count, u.working.sum())


main()
