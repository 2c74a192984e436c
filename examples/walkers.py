# SPDX-License-Identifier: BSD-3-Clause
"""Particles walk at random, divide and end."""

import numpy as np

PARTICLE = np.dtype([("place", "f8"), ("speed", "f8"), ("age", "i8")])


def walk(particles, random):
    particles["speed"] += random.random(len(particles)) - 0.5
    particles["place"] += particles["speed"]
    particles["age"] += 1
    chance = random.random(len(particles))
    return np.concatenate([particles[chance > 0.01], particles[chance > 0.99]])


particles = np.zeros(1000, PARTICLE)
random = np.random.default_rng(1)
step = 0
with open("walkers.txt", "w") as out:
    print("begins at step", step, flush=True)
    while step < 400:
        particles = walk(particles, random)
        step += 1
        print(step, len(particles), particles["place"][0], file=out)
print(f"{len(particles)} particles, the first at {particles['place'][0]}")
