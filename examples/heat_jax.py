# SPDX-License-Identifier: BSD-3-Clause
"""The program of README.md with JAX, whose arrays never change: each step's is written to an array
in twin mode, from where it is. Killed and started again, it goes on from its last commit.

    python examples/heat_jax.py /dev/shm/heat
"""

import sys

import jax
import jax.numpy as jnp

import perdure


@jax.jit
def step_of(u: jax.Array) -> jax.Array:
    after = (jnp.roll(u, 1) + u + jnp.append(u[1:], u[-1])) / 3
    return after.at[0].set(1)


with perdure.open(sys.argv[1]) as pool:
    kept = pool.array("u", 1000, "f4", mode="twin")
    state = pool.scalars(iteration=0)
    pool.restart()
    u = jnp.array(kept.consistent)  # zeros, or the last version
    print("begins at step", state.iteration, flush=True)
    while state.iteration < 500:
        u = step_of(u)
        state.iteration += 1
        kept.write(0, u)  # on a GPU after pool.stream()
        pool.commit()
    print(f"u[10] is {u[10]:.9g}")
