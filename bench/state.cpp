// SPDX-License-Identifier: BSD-3-Clause
//
// bench_state: what it costs that state changes its size.
//
//   resize-within   a call of resize() whose elements fit where the array is, microseconds
//   resize-beyond   one that takes another extent, of twice the size
//   particles       particles that divide and end, in a vector that the pool follows, over the same
//                   in an array with room for the most that there will be
//   particles-room  the same in an array with room for 200,000, over that
//   amr             blocks of a mesh, of which some are replaced in each step, over the same blocks
//                   of which none is
//   objects-10k     10,000 small arrays, of which 100 are replaced in a step: of each
//
// Ways take turns, and a sample is a ratio of one turn. All ways of a case must end with the same
// state. The pools are in shared memory, so that nothing waits for a device.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/fact.hpp"
#include "perdure/perdure.hpp"
#include "words.hpp"

namespace perdure::bench {
namespace {

namespace fs = std::filesystem;

struct Options {
  bool quick = false;
  std::string directory = "/dev/shm";
};

// A pool that goes with its files.
class Scratch {
 public:
  explicit Scratch(const Options& options)
      : path_(options.directory + "/perdure-bench-state-" + std::to_string(::getpid())) {
    fs::remove_all(path_);
    pool_ = std::make_unique<Pool>(path_);
  }
  ~Scratch() {
    pool_.reset();
    fs::remove_all(path_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Pool& pool() { return *pool_; }

 private:
  std::string path_;
  std::unique_ptr<Pool> pool_;
};

double microseconds_of(const std::function<void()>& work) {
  const std::uint64_t start_ns = monotonic_ns();
  work();
  return 1e-3 * static_cast<double>(monotonic_ns() - start_ns);
}

Fact fact_of(const std::string& name, const char* metric, const char* unit,
             std::vector<double> samples) {
  return of_samples({.bench = "state", .name = name, .metric = metric, .unit = unit},
                    std::move(samples));
}

// --- one call ---------------------------------------------------------------

void measure_resize_within(const Options& options) {
  Scratch scratch(options);
  Pool& pool = scratch.pool();
  constexpr std::uint64_t elements = 100'000;
  Array<double> array = pool.array<double>("u", {elements}, Mode::copy);
  pool.restart();
  pool.commit();
  constexpr int calls = 1000;
  std::vector<double> samples;
  for (int i = 0; i < (options.quick ? 20 : 200); ++i) {
    samples.push_back(microseconds_of([&] {
                        for (int call = 0; call < calls; ++call) {
                          array.resize({elements - static_cast<std::uint64_t>(call % 2)});
                        }
                      }) /
                      calls);
  }
  print_fact(at_most(1, fact_of("resize-within", "us", "us", std::move(samples))));
}

void measure_resize_beyond(const Options& options) {
  std::vector<double> samples;
  for (int i = 0; i < (options.quick ? 5 : 50); ++i) {
    Scratch scratch(options);
    Pool& pool = scratch.pool();
    constexpr std::uint64_t elements = 500'000;
    Array<double> array = pool.array<double>("u", {elements}, Mode::copy);
    pool.restart();
    std::ranges::fill(array.working(), 1.0);
    pool.commit();
    samples.push_back(microseconds_of([&] { array.resize({2 * elements}); }));
  }
  Fact fact = fact_of("resize-beyond", "us", "us", std::move(samples));
  fact.more.emplace_back("bytes", std::int64_t{8'000'000});
  print_fact(fact);
}

// --- ways that take turns ---------------------------------------------------

struct Ran {
  double step_us = 0;
  double sum = 0;  // of the state at the end
};
using Way = std::function<Ran()>;

// Prints `name`'s time over that of `plain`, in each round; the first round is not counted.
void compare(const Options& options, const std::string& name, const Way& way, const Way& plain,
             std::optional<double> target) {
  std::vector<double> ratios;
  std::vector<double> steps;
  const int rounds = options.quick ? 3 : 15;
  for (int round = 0; round <= rounds; ++round) {
    Ran one;
    Ran other;
    if (round % 2 == 0) one = way();
    other = plain();
    if (round % 2 != 0) one = way();
    if (one.sum != other.sum) throw std::logic_error(name + ": the ways end with other states");
    if (round == 0) continue;
    ratios.push_back(one.step_us / other.step_us);
    steps.push_back(one.step_us);
  }
  Fact fact = fact_of(name, "run_time_ratio", "", std::move(ratios));
  print_fact(target ? at_most(*target, fact) : fact);
  print_fact(fact_of(name, "us", "us", std::move(steps)));
}

// --- particles --------------------------------------------------------------

struct Particle {
  std::array<double, 3> place;
  std::array<double, 3> speed;
  std::int64_t number;
};

constexpr std::size_t particles_at_first = 4200;

// Particles move; one of a hundred divides, one of a hundred ends. `Particles`: a vector.
class Cloud {
 public:
  explicit Cloud(std::vector<Particle>& particles) : particles_(particles) {
    particles_.clear();
    for (std::size_t i = 0; i < particles_at_first; ++i) add();
  }

  void step() {
    constexpr double box = 1000;
    for (std::size_t i = 0; i < particles_.size(); ++i) {
      Particle& one = particles_[i];
      for (std::size_t axis = 0; axis < 3; ++axis) {
        one.place[axis] += 0.01 * one.speed[axis];
        if (one.place[axis] < 0 || one.place[axis] > box) one.speed[axis] = -one.speed[axis];
      }
    }
    const std::size_t some = particles_.size() / 100;
    for (std::size_t i = 0; i < some; ++i) {
      particles_[random_() % particles_.size()] = particles_.back();
      particles_.pop_back();
    }
    // Back to the number at first, more or less.
    const std::size_t born =
        2 * some * particles_at_first / (particles_.size() + particles_at_first);
    for (std::size_t i = 0; i < born + random_() % 5; ++i) add();
    if (particles_.size() > particles_at_first + 40) particles_.resize(particles_at_first);
  }
  double sum() const {
    double all = 0;
    for (const Particle& one : particles_) all += one.place[0] + static_cast<double>(one.number);
    return all;
  }

 private:
  void add() {
    const auto drawn = [this] { return static_cast<double>(random_() % 1000); };
    particles_.push_back({{drawn(), drawn(), drawn()}, {drawn(), drawn(), drawn()}, born_++});
  }

  std::vector<Particle>& particles_;
  std::mt19937_64 random_{1};
  std::int64_t born_ = 0;
};

Ran run_cloud(const Options& options, Pool& pool, Cloud& cloud,
              const std::function<void()>& before_commit) {
  const int steps = options.quick ? 300 : 2000;
  pool.commit();
  Ran ran;
  ran.step_us = microseconds_of([&] {
                  for (int step = 0; step < steps; ++step) {
                    cloud.step();
                    before_commit();
                    pool.commit();
                  }
                }) /
                steps;
  ran.sum = cloud.sum();
  return ran;
}

Ran run_followed(const Options& options) {
  Scratch scratch(options);
  std::vector<Particle> particles;
  Cloud cloud(particles);
  scratch.pool().array("particles", particles);
  scratch.pool().restart();
  return run_cloud(options, scratch.pool(), cloud, [] {});
}

// The vector's memory never moves: it has the room from the beginning.
Ran run_with_room(const Options& options, std::size_t room) {
  Scratch scratch(options);
  std::vector<Particle> particles;
  particles.reserve(room);
  Cloud cloud(particles);
  const std::span<std::byte> memory(reinterpret_cast<std::byte*>(particles.data()),
                                    room * sizeof(Particle));
  scratch.pool().array<std::byte>("particles", {memory.size()}, Mode::copy, {.buffer = memory});
  std::uint64_t count = 0;
  scratch.pool().scalar("count", count);
  scratch.pool().restart();
  return run_cloud(options, scratch.pool(), cloud, [&] { count = particles.size(); });
}

// --- blocks of a mesh -------------------------------------------------------

// `replaced` of the `count` arrays go in each step, and others come.
struct Mesh {
  std::size_t count;
  std::size_t elements;  // of a block
  std::size_t changed;   // blocks that are stored to in a step
  std::size_t replaced;
  int steps;
};

Ran run_mesh(const Options& options, const Mesh& mesh, bool replaces) {
  Scratch scratch(options);
  Pool& pool = scratch.pool();
  std::uint64_t named = 0;
  const auto open = [&] {
    return pool.array<double>("block " + std::to_string(named++), {mesh.elements}, Mode::log,
                              {.marks = true});
  };
  pool.restart();
  std::vector<Array<double> > blocks;
  for (std::size_t i = 0; i < mesh.count; ++i) blocks.push_back(open());
  pool.commit();
  std::mt19937_64 random(1);
  Ran ran;
  ran.step_us = microseconds_of([&] {
                  for (int step = 1; step <= mesh.steps; ++step) {
                    const std::size_t first = random() % mesh.count;
                    for (std::size_t i = 0; i < mesh.replaced; ++i) {
                      Array<double>& block = blocks[(first + i) % mesh.count];
                      if (replaces) {
                        pool.remove(block);
                        block = open();
                      }
                    }
                    for (std::size_t i = 0; i < mesh.changed; ++i) {
                      Array<double>& block = blocks[(first + i) % mesh.count];
                      std::ranges::fill(block.working(), step);
                      block.mark(0, mesh.elements);
                    }
                    pool.commit();
                  }
                }) /
                mesh.steps;
  for (const Array<double>& block : blocks) ran.sum += block.working()[0];
  return ran;
}

void measure_objects(const Options& options) {
  const Mesh mesh{.count = 10'000,
                  .elements = 8,
                  .changed = 100,
                  .replaced = 100,
                  .steps = options.quick ? 20 : 100};
  std::vector<double> samples;
  for (int round = 0; round < (options.quick ? 2 : 9); ++round) {
    const Ran with = run_mesh(options, mesh, true);
    const Ran without = run_mesh(options, mesh, false);
    if (with.sum != without.sum) throw std::logic_error("objects-10k: other states");
    samples.push_back((with.step_us - without.step_us) / static_cast<double>(mesh.replaced));
  }
  print_fact(fact_of("objects-10k", "us", "us", std::move(samples)));
}

void measure(const Options& options) {
  measure_resize_within(options);
  measure_resize_beyond(options);
  const Way fixed = [&] { return run_with_room(options, particles_at_first + 50); };
  compare(options, "particles", [&] { return run_followed(options); }, fixed, 1.02);
  compare(
      options, "particles-room", [&] { return run_with_room(options, 200'000); }, fixed,
      std::nullopt);
  const Mesh mesh{.count = 500,
                  .elements = 512,
                  .changed = 500,
                  .replaced = 10,
                  .steps = options.quick ? 50 : 400};
  compare(
      options, "amr", [&] { return run_mesh(options, mesh, true); },
      [&] { return run_mesh(options, mesh, false); }, std::nullopt);
  measure_objects(options);
}

}  // namespace
}  // namespace perdure::bench

int main(int argc, char** argv) try {
  perdure::bench::Options options;
  perdure::bench::Words words("What it costs that state changes its size; one JSON line per fact");
  words.flag("--quick", options.quick, "a check within a minute");
  words.directory("--dir", options.directory, "directory of the pools");
  if (const auto code = words.parse(argc, argv)) return *code;
  perdure::bench::measure(options);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_state: %s\n", error.what());
  return 1;
}
