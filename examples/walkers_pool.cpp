// SPDX-License-Identifier: BSD-3-Clause
// Particles walk at random, divide and end; the pool "pool" keeps each step.
#include <cstdio>
#include <fstream>
#include <perdure/perdure.hpp>
#include <random>
#include <vector>

struct Particle {
  double place = 0, speed = 0;
  long age = 0;
};

static void walk(std::vector<Particle>& particles, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  std::vector<Particle> next;
  for (Particle p : particles) {
    p.speed += uniform(random) - 0.5;
    p.place += p.speed;
    p.age++;
    const double chance = uniform(random);
    if (chance > 0.01) next.push_back(p);
    if (chance > 0.99) next.push_back(p);
  }
  particles = std::move(next);
}

int main() {
  std::vector<Particle> particles(1000);
  std::mt19937_64 random(1);
  long step = 0;
  std::ofstream out("walkers.txt", std::ios::app);
  out.precision(17);
  perdure::Pool pool("pool");
  pool.array("p", particles);
  pool.state("random", random);
  pool.scalar("iteration", step);
  pool.file("walkers.txt", out);
  pool.restart();
  std::fprintf(stderr, "begins at step %ld\n", step);
  while (step < 400) {
    walk(particles, random);
    step++;
    out << step << ' ' << particles.size() << ' ' << particles[0].place << '\n';
    pool.commit();
  }
  std::printf("%zu particles, the first at %.17g\n", particles.size(), particles[0].place);
}
