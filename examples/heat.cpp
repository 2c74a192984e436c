// SPDX-License-Identifier: BSD-3-Clause
//
// The program of README.md in C++20, where errors are exceptions: an array in twin mode and a
// scalar, committed in each step. Killed and started again, it goes on from its last commit.
//
//     c++ -std=c++20 -o heat examples/heat.cpp $(perdure config --cflags --libs)
//     ./heat /dev/shm/heat
#include <cinttypes>
#include <cstdio>
#include <perdure/perdure.hpp>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s POOL\n", argv[0]);
    return 2;
  }
  std::uint64_t step = 0;
  perdure::Pool pool(argv[1]);
  auto u = pool.array<double>("u", {1000}, perdure::Mode::twin);
  pool.scalar("iteration", step);
  pool.restart();
  std::printf("begins at step %" PRIu64 "\n", step);
  while (step < 500) {
    auto now = u.consistent();
    auto next = u.working();
    next[0] = 1;
    for (std::size_t i = 1; i < 1000; ++i)
      next[i] = (now[i - 1] + now[i] + now[i < 999 ? i + 1 : i]) / 3;
    ++step;
    pool.commit();
  }
  std::printf("u[10] is %.17g\n", u.consistent()[10]);
}
