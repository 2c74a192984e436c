// SPDX-License-Identifier: BSD-3-Clause
//
// The program of README.md with in-place versioning: the loop stores to a std::vector, and each
// iteration becomes a version. Killed and started again, it goes on from the last one.
//
//     c++ -std=c++20 -o heat_ipv examples/heat_ipv.cpp $(perdure config --cflags --libs)
//     ./heat_ipv /dev/shm/heat
//
// perdure-clang++ --ipv in place of c++ makes versions without copying what a loop overwrites.
#include <cinttypes>
#include <cstdio>
#include <perdure/ipv.hpp>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s POOL\n", argv[0]);
    return 2;
  }
  std::uint64_t step = 0;
  perdure::Pool pool(argv[1]);
  pool.scalar("iteration", step);
  std::vector<double, perdure::ipv::allocator<double>> u(1000);
  std::vector<double> before(u.size());  // not kept
  perdure::ipv::Objects objects(pool);
  objects.add("u", u);
  objects.restart();
  std::printf("begins at step %" PRIu64 "\n", step);
  while (step < 500) {
    before.assign(u.begin(), u.end());
    for (std::size_t i = 1; i < 1000; ++i)
      u[i] = (before[i - 1] + before[i] + before[i < 999 ? i + 1 : i]) / 3;
    u[0] = 1;
    ++step;
    objects.persist();
  }
  std::printf("u[10] is %.17g\n", u[10]);
}
