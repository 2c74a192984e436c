# SPDX-License-Identifier: BSD-3-Clause
"""Particles walk at random, divide and end; the pool "pool" keeps each step."""

import numpy as np

import perdure

PARTICLE = np.dtype([("place", "f8"), ("speed", "f8"), ("age", "i8")])


def walk(particles, random):
    particles["speed"] += random.random(len(particles)) - 0.5
    particles["place"] += particles["speed"]
    particles["age"] += 1
    chance = random.random(len(particles))
    return np.concatenate([particles[chance > 0.01], particles[chance > 0.99]])


with open("walkers.txt", "a") as out, perdure.open("pool") as pool:
    p = pool.array("p", None if pool.arrays() else 1000, PARTICLE)
    run = pool.state({"random": np.random.default_rng(1)})
    state = pool.scalars(iteration=0)
    pool.file(out)
    pool.restart()
    print("begins at step", state.iteration, flush=True)
    while state.iteration < 400:
        particles = walk(p.working, run["random"])
        state.iteration += 1
        print(state.iteration, len(particles), particles["place"][0], file=out)
        p.resize(len(particles))
        p.working[:] = particles
        pool.commit()
print(f"{len(particles)} particles, the first at {particles['place'][0]}")
