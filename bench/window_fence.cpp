// SPDX-License-Identifier: BSD-3-Clause
//
// bench_window_fence MODE BYTES REPEATS POOL FLAVOUR: a fence that commits a window of BYTES on
// each rank, and what it is made of, interleaved. Prints facts
// (python/perdure_bench/windows_fence.py).
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/fact.hpp"
#include "perdure/perdure_mpi.h"

namespace {

struct Setting {
  std::string mode;
  std::size_t bytes;
  int repeats;
  std::string pool;
  std::string flavour;
  int ranks = 1;
};

// Of the slowest rank, in microseconds.
template <typename Action>
double timed(const Action& action) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  action();
  double mine = MPI_Wtime() - begin;
  double slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest * 1e6;
}

void print(const Setting& setting, const char* metric, std::vector<double> values) {
  perdure::Fact fact{
      .bench = "windows", .name = "fence-" + setting.mode, .metric = metric, .unit = "us"};
  fact.more = {{"window_bytes", static_cast<std::int64_t>(setting.bytes)},
               {"ranks", std::int64_t{setting.ranks}},
               {"mpi", setting.flavour}};
  perdure::print_fact(perdure::of_samples(fact, std::move(values)));
}

MPI_Win make_window(const Setting& setting) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_name", "w");
  MPI_Info_set(info, "perdure_pool", setting.pool.c_str());
  MPI_Info_set(info, "perdure_mode", setting.mode.c_str());
  void* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(static_cast<MPI_Aint>(setting.bytes), 1, info, MPI_COMM_WORLD,
                   static_cast<void*>(&base), &window);
  MPI_Info_free(&info);
  return window;
}

void touch(MPI_Win window, std::size_t bytes, int value) {
  MPI_Win working = window;
  if (perdure_win_halves(window, nullptr, &working) != PERDURE_OK) working = window;
  void* base = nullptr;
  int found = 0;
  MPI_Win_get_attr(working, MPI_WIN_BASE, static_cast<void*>(&base), &found);
  std::memset(base, value, bytes);
}

void run(const Setting& setting) {
  MPI_Win window = make_window(setting);
  std::vector<char> from(setting.bytes, 1);
  std::vector<char> to(setting.bytes, 2);
  std::vector<double> fences;
  std::vector<double> floors;
  for (int i = 0; i < setting.repeats; ++i) {
    touch(window, setting.bytes, i);
    const double commit = timed([&] { MPI_Win_fence(PERDURE_MODE_COMMIT, window); });
    double floor = timed([&] { MPI_Win_fence(0, window); });
    long mine = i;
    long all = 0;
    floor += timed([&] { MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD); });
    if (setting.mode != "twin") {
      floor += timed([&] { std::memcpy(to.data(), from.data(), setting.bytes); });
    }
    if (i < 3) continue;  // first touches
    fences.push_back(commit);
    floors.push_back(floor);
  }
  MPI_Win_free(&window);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  print(setting, "fence_us", fences);
  print(setting, "floor_us", floors);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Setting setting;
  if (argc != 6 || std::atoi(argv[3]) < 5 || std::atoll(argv[2]) < 1) {
    std::fprintf(stderr, "usage: bench_window_fence copy|twin|log BYTES REPEATS>=5 POOL FLAVOUR\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  setting.mode = argv[1];
  setting.bytes = static_cast<std::size_t>(std::atoll(argv[2]));
  setting.repeats = std::atoi(argv[3]);
  setting.pool = argv[4];
  setting.flavour = argv[5];
  MPI_Comm_size(MPI_COMM_WORLD, &setting.ranks);
  run(setting);
  MPI_Finalize();
  return 0;
}
