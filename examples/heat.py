# SPDX-License-Identifier: BSD-3-Clause
"""The program of README.md in Python: an array in twin mode and a scalar, committed in each step.

Killed and started again, it goes on from its last commit.

    python examples/heat.py /dev/shm/heat
"""

import sys

import perdure

with perdure.open(sys.argv[1]) as pool:
    u = pool.array("u", 1000, mode="twin")
    state = pool.scalars(iteration=0)
    pool.restart()  # the newest version; None if there is none
    print("begins at step", state.iteration, flush=True)
    while state.iteration < 500:
        now, after = u.consistent, u.working  # the last version, read-only, and the other copy
        after[0] = 1
        after[1:-1] = (now[:-2] + now[1:-1] + now[2:]) / 3
        after[-1] = (now[-2] + now[-1] + now[-1]) / 3
        state.iteration += 1
        pool.commit()  # durable; the two copies swap roles
    print(f"u[10] is {u.consistent[10]:.17g}")
