// SPDX-License-Identifier: BSD-3-Clause
//
// The same commits as those of `perdure bench python`, by a C program, which waits for its turn:
//
//     python_commits POOL MODE BYTES
//
// For each line that it reads it stores into every element of an array of so many bytes, commits,
// and prints the nanoseconds of the commit.
#include <perdure/perdure.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "bench_python_commits: %s\n", perdure_last_error());
  exit(1);
}

static long long nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1000000000LL * now.tv_sec + now.tv_nsec;
}

// As numpy does it: the wider the stores, the more is still dirty in the caches at the commit.
#if defined(__x86_64__) && !defined(__clang__)
#define AS_WIDE_AS_CAN_BE __attribute__((target_clones("avx512f", "avx2", "default"), optimize(3)))
#else
#define AS_WIDE_AS_CAN_BE
#endif
AS_WIDE_AS_CAN_BE static void fill(double* next, uint64_t elements, double value) {
  for (uint64_t i = 0; i < elements; i++) next[i] = value;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  uint64_t elements = strtoull(argv[3], NULL, 10) / sizeof(double);
  uint64_t iteration = 0;
  uint64_t version = 0;
  perdure_pool* pool;
  perdure_array* u;
  check(perdure_open(argv[1], NULL, &pool));
  check(perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &elements, atoi(argv[2]), NULL, &u));
  check(perdure_scalar(pool, "iteration", &iteration, sizeof iteration));
  check(perdure_restart(pool, &version));
  for (int turn = getchar(); turn != EOF; turn = getchar()) {
    if (turn != '\n') continue;
    iteration++;
    fill(perdure_working(u), elements, (double)iteration);
    const long long began = nanoseconds();
    check(perdure_commit(pool, &version));
    printf("%lld\n", nanoseconds() - began);
    fflush(stdout);
  }
  check(perdure_close(pool));
}
