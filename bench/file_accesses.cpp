// SPDX-License-Identifier: BSD-3-Clause
//
// bench_file_accesses FILE REGION_BYTES ACCESS:PATTERN:BYTES:CALLS…: accesses to one file whose
// number and sizes are known, by ranks that each keep to their own region of it.
//
//   ACCESS   read, write, write_all, write_shared
//   PATTERN  random, sequential (from the region's begin); shared pointers have their own
//
// Prints the seconds from opening to having closed, of the slowest rank, as a JSON object. Plain
// MPI: it is recorded, cached or neither, as python/perdure/cache/calibrate.py and
// python/perdure_bench/predict.py want.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Step {
  std::string access;
  bool random;
  std::int64_t bytes;
  std::int64_t calls;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "bench_file_accesses: %s\n", what.c_str());
  MPI_Abort(MPI_COMM_WORLD, 2);
  std::abort();
}

Step parse(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    letter == ':' ? parts.emplace_back() : parts.back() += std::string(1, letter);
  }
  if (parts.size() != 4) fail(text + " is not ACCESS:PATTERN:BYTES:CALLS");
  return {parts[0], parts[1] == "random", std::stoll(parts[2]), std::stoll(parts[3])};
}

void check(int error) {
  if (error != MPI_SUCCESS) fail("an access failed with " + std::to_string(error));
}

void run(MPI_File file, const Step& step, std::int64_t region, int rank) {
  std::vector<char> memory(static_cast<std::size_t>(step.bytes), static_cast<char>(rank + 1));
  const std::int64_t places = region / step.bytes;
  const auto bytes = static_cast<int>(step.bytes);
  std::uint64_t state = 0x9E3779B97F4A7C15U * static_cast<std::uint64_t>(rank + 1);
  for (std::int64_t i = 0; i < step.calls; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const auto drawn = static_cast<std::int64_t>(state >> 33);
    const std::int64_t place = (step.random ? drawn : i) % places;
    const MPI_Offset at = rank * region + place * step.bytes;
    char* from = memory.data();
    if (step.access == "read") {
      check(MPI_File_read_at(file, at, from, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    } else if (step.access == "write") {
      check(MPI_File_write_at(file, at, from, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    } else if (step.access == "write_all") {
      check(MPI_File_write_at_all(file, at, from, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    } else if (step.access == "write_shared") {
      check(MPI_File_write_shared(file, from, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    } else {
      fail(step.access + " is none of read, write, write_all, write_shared");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 4) fail("FILE REGION_BYTES ACCESS:PATTERN:BYTES:CALLS…");
  const std::int64_t region = std::stoll(argv[2]);
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  MPI_File file = MPI_FILE_NULL;
  check(MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &file));
  for (int i = 3; i < argc; ++i) run(file, parse(argv[i]), region, rank);
  check(MPI_File_close(&file));
  double total_s = MPI_Wtime() - began;
  MPI_Allreduce(MPI_IN_PLACE, &total_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) std::printf("{\"total_s\": %.9f}\n", total_s);
  MPI_Finalize();
  return 0;
}
