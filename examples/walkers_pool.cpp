// SPDX-License-Identifier: BSD-3-Clause
// Particles walk at random, divide and end; the pool "pool" keeps each step.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <perdure/perdure.hpp>
#include <random>
#include <sstream>
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

// The vector and the random numbers are elsewhere than in the pool: copied to it, and from it.
struct Kept {
  static constexpr std::size_t room = 4000;
  perdure::Array<std::byte> particles;
  std::array<char, 8000> random{};
  long step = 0, count = 0;

  explicit Kept(perdure::Pool& pool)
      : particles(pool.array<std::byte>("p", {room * sizeof(Particle)}, perdure::Mode::log)) {
    pool.scalar("iteration", step);
    pool.scalar("count", count);
    pool.scalar("random", random);
  }

  void save(const std::vector<Particle>& from, const std::mt19937_64& engine) {
    if (from.size() > room) throw std::length_error("more particles than room");
    count = static_cast<long>(from.size());
    std::memcpy(particles.working().data(), from.data(), from.size() * sizeof(Particle));
    std::ostringstream text;
    text << engine;
    if (text.str().size() >= random.size()) throw std::length_error("no room for the engine");
    random.fill(0);
    std::ranges::copy(text.str(), random.begin());
  }

  void load(std::vector<Particle>& to, std::mt19937_64& engine) {
    to.resize(static_cast<std::size_t>(count));
    std::memcpy(to.data(), particles.working().data(), to.size() * sizeof(Particle));
    std::istringstream(random.data()) >> engine;
  }
};

int main() {
  std::vector<Particle> particles(1000);
  std::mt19937_64 random(1);
  std::ofstream out("walkers.txt", std::ios::app);
  perdure::Pool pool("pool");
  Kept kept(pool);
  pool.file("walkers.txt", out);
  if (pool.restart() != 0) kept.load(particles, random);
  long& step = kept.step;
  out.precision(17);
  std::fprintf(stderr, "begins at step %ld\n", step);
  while (step < 400) {
    walk(particles, random);
    step++;
    out << step << ' ' << particles.size() << ' ' << particles[0].place << '\n';
    kept.save(particles, random);
    pool.commit();
  }
  std::printf("%zu particles, the first at %.17g\n", particles.size(), particles[0].place);
}
