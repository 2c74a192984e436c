# SPDX-License-Identifier: BSD-3-Clause
"""Jacobi iterations of Laplace's equation with mpi4py: the grid is cut into blocks of rows.

Each rank has its rows, and one more above and below, in an array of mode twin: a sweep reads the
last version and writes the next one, and the commit copies nothing. After a failure of any rank the
job is started again, by hand or by perdure run, and ends with the same answer, bit for bit.

    mpiexec -n 4 python -m mpi4py examples/jacobi.py /dev/shm/jacobi
    perdure run --restarts 3 -- mpiexec -n 4 python -m mpi4py examples/jacobi.py /dev/shm/jacobi
"""

import sys

import numpy as np
from mpi4py import MPI

import perdure

COLUMNS, ROWS, SWEEPS = 200, 120, 400
world = MPI.COMM_WORLD


def rows_of(rank: int) -> int:
    """How many of the rows a rank has."""
    return ROWS * (rank + 1) // world.size - ROWS * rank // world.size


def exchange(grid: np.ndarray) -> None:
    """Brings the neighbours' rows into the first and the last one."""
    above = world.rank - 1 if world.rank > 0 else MPI.PROC_NULL
    below = world.rank + 1 if world.rank + 1 < world.size else MPI.PROC_NULL
    world.Sendrecv(grid[1], above, recvbuf=grid[-1], source=below)
    world.Sendrecv(grid[-2], below, recvbuf=grid[0], source=above)


def sweep(old: np.ndarray, new: np.ndarray) -> None:
    """Each inner point becomes the mean of its neighbours; the border stays."""
    new[:] = old
    new[1:-1, 1:-1] = (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]) / 4


def main() -> None:
    with perdure.open(sys.argv[1], world) as pool:
        u = pool.array("u", (rows_of(world.rank) + 2, COLUMNS), mode="twin")
        state = pool.scalars(iteration=0)
        if pool.restart() is None:  # all is zero; version 1 has the hot edge
            if world.rank == 0:
                u.working[0] = 1
            pool.commit()
        if world.rank == 0:
            print("begins at sweep", state.iteration, flush=True)
        while state.iteration < SWEEPS:
            sweep(u.consistent, u.working)
            exchange(u.working)
            state.iteration += 1
            pool.commit()
        total = world.reduce(float(np.sum(u.consistent[1:-1])))
        if world.rank == 0:
            print(f"the sum is {total:.17g}")


main()
