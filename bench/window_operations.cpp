// SPDX-License-Identifier: BSD-3-Clause
//
// bench_window_operations BATCHES: nanoseconds of single one-sided operations between two ranks, as
// one JSON object. Plain MPI: it is run as it is, with Perdure preloaded, and with its window made
// persistent by the environment (python/perdure_bench/windows_micro.py).
//
// Of each operation the fastest of many short batches counts: what a batch takes longer was spent
// by the machine on something else.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

// The fastest batch of `times` actions, per action.
template <typename Action>
double fastest_ns(int batches, int times, const Action& action) {
  double best = 1e9;
  for (int batch = 0; batch < batches; ++batch) {
    const double begin = MPI_Wtime();
    for (int i = 0; i < times; ++i) action(i);
    best = std::min(best, (MPI_Wtime() - begin) / times);
  }
  return best * 1e9;
}

struct Size {
  const char* name;
  int bytes;
  int times;  // in a batch
};
constexpr Size sizes[] = {
    {"8 B", 8, 500}, {"4 KiB", 4 << 10, 200}, {"64 KiB", 64 << 10, 20}, {"1 MiB", 1 << 20, 5}};
constexpr MPI_Aint window_bytes = 4 << 20;

// Rank 0 acts on rank 1, which waits inside MPI.
void print_passive(MPI_Win window, int batches) {
  std::vector<char> memory(1 << 20);
  MPI_Win_lock_all(0, window);
  for (const Size& size : sizes) {
    const int words = size.bytes / 8;
    const double put = fastest_ns(batches, size.times, [&](int i) {
      MPI_Put(memory.data(), words, MPI_INT64_T, 1, i & 1023, words, MPI_INT64_T, window);
      MPI_Win_flush(1, window);
    });
    const double get = fastest_ns(batches, size.times, [&](int i) {
      MPI_Get(memory.data(), words, MPI_INT64_T, 1, i & 1023, words, MPI_INT64_T, window);
      MPI_Win_flush(1, window);
    });
    std::printf("%s\"put %s, flush\": %.2f, \"get %s, flush\": %.2f", &size == sizes ? "{" : ", ",
                size.name, put, size.name, get);
  }
  MPI_Win_unlock_all(window);
}

void print_fences(MPI_Win window, int batches, bool speaks) {
  std::int64_t value = 1;
  const double empty = fastest_ns(batches, 20, [&](int) { MPI_Win_fence(0, window); });
  const double with_put = fastest_ns(batches, 20, [&](int i) {
    if (speaks) MPI_Put(&value, 1, MPI_INT64_T, 1, i & 1023, 1, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
  });
  if (speaks) std::printf(", \"fence\": %.2f, \"put 8 B, fence\": %.2f}\n", empty, with_put);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int batches = argc == 2 ? std::atoi(argv[1]) : 0;
  if (batches < 1 || ranks != 2) {
    std::fprintf(stderr, "usage: mpiexec -n 2 bench_window_operations BATCHES\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(window_bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base),
                   &window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) print_passive(window, batches);
  MPI_Barrier(MPI_COMM_WORLD);
  print_fences(window, batches, rank == 0);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
