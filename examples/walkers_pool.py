# SPDX-License-Identifier: BSD-3-Clause
"""Particles walk at random, divide and end; the pool "pool" keeps each step."""

import json

import numpy as np

import perdure

PARTICLE = np.dtype([("place", "f8"), ("speed", "f8"), ("age", "i8")])


def walk(particles, random):
    particles["speed"] += random.random(len(particles)) - 0.5
    particles["place"] += particles["speed"]
    particles["age"] += 1
    chance = random.random(len(particles))
    return np.concatenate([particles[chance > 0.01], particles[chance > 0.99]])


particles = np.zeros(1000, PARTICLE)
random = np.random.default_rng(1)
with open("walkers.txt", "a") as out, perdure.open("pool") as pool:
    kept = pool.array("p", 4000, PARTICLE, mode="log")
    state = pool.scalars(iteration=0, count=0, random=perdure.text(1000))
    pool.file(out)
    if pool.restart() is not None:
        particles = kept.working[: state.count].copy()
        random.bit_generator.state = json.loads(state.random)
    print("begins at step", state.iteration, flush=True)
    while state.iteration < 400:
        particles = walk(particles, random)
        state.iteration += 1
        print(state.iteration, len(particles), particles["place"][0], file=out)
        state.count = len(particles)
        kept.working[: len(particles)] = particles
        state.random = json.dumps(random.bit_generator.state)
        pool.commit()
print(f"{len(particles)} particles, the first at {particles['place'][0]}")
