// SPDX-License-Identifier: BSD-3-Clause
//
// The program of README.md on many ranks, with a persistent window in mode twin: each rank computes
// the working half from the consistent one and puts its outermost cells into its neighbours'.
//
//     flags=$(perdure config --mpi mpich --cflags --libs)
//     mpicxx -std=c++20 -o heat_window examples/heat_window.cpp $flags
//     mpiexec -n 4 ./heat_window /dev/shm/heat
//
// Killed and started again, with as many ranks, it goes on from its last commit.
#include <mpi.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <perdure/windows.hpp>

namespace {

constexpr int cells = 1000;

struct Part {
  int rank = 0;
  int ranks = 1;
  int first(int of) const { return static_cast<int>(static_cast<long>(cells) * of / ranks); }
  int mine() const { return first(rank + 1) - first(rank); }
  int neighbour(int by) const {
    const int other = rank + by;
    return other < 0 || other >= ranks ? MPI_PROC_NULL : other;
  }
};

// Places 1 to mine() are the rank's cells, and those on either side its neighbours'.
void heat_step(const Part& part, std::span<const double> now, std::span<double> next) {
  const int mine = part.mine();
  for (int i = 1; i <= mine; ++i) {
    const int cell = part.first(part.rank) + i - 1;
    next[i] = cell == 0 ? 1 : (now[i - 1] + now[i] + now[cell < cells - 1 ? i + 1 : i]) / 3;
  }
}

void put_outermost(const Part& part, std::span<const double> next, MPI_Win into) {
  const int left = part.neighbour(-1);
  const int left_cells = part.first(part.rank) - part.first(std::max(part.rank - 1, 0));
  MPI_Win_fence(0, into);
  MPI_Put(&next[1], 1, MPI_DOUBLE, left, left_cells + 1, 1, MPI_DOUBLE, into);
  MPI_Put(&next[part.mine()], 1, MPI_DOUBLE, part.neighbour(1), 0, 1, MPI_DOUBLE, into);
  MPI_Win_fence(0, into);
}

void run(const Part& part, const char* path) {
  std::uint64_t step = 0;
  perdure::Window<double> u(MPI_COMM_WORLD, part.mine() + 2,
                            {.name = "u", .pool = path, .mode = perdure::Mode::twin});
  perdure::Pool pool = u.pool();
  pool.scalar("iteration", step);
  if (part.rank == 0) std::printf("begins at step %" PRIu64 "\n", step);
  while (step < 500) {
    heat_step(part, u.consistent(), u.memory());
    put_outermost(part, u.memory(), u.working_half());
    ++step;
    u.commit();
  }
  if (part.rank == 0) std::printf("u[10] is %.17g\n", u.consistent()[11]);
  u.free();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s POOL\n", argv[0]);
    return 2;
  }
  MPI_Init(&argc, &argv);
  Part part;
  MPI_Comm_rank(MPI_COMM_WORLD, &part.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &part.ranks);
  run(part, argv[1]);
  MPI_Finalize();
}
