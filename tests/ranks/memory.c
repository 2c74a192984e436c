/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much memory the ranks take that go on with the pool of another number of them: POOL BYTES. A
 * list of so many bytes of all ranks together is made, or divided anew. Each rank prints "took" and
 * the most memory that it had, in KiB, its part of the pool and its own share of the list included,
 * less what it had before, and "share" with the KiB of its share. */
#include <mpi.h>
#include <perdure/perdure_mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static long kib_of(const char* key) {
  char line[256];
  long kib = -1;
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    if (strncmp(line, key, strlen(key)) == 0) kib = atol(line + strlen(key));
  }
  if (status != NULL) fclose(status);
  return kib;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
  const uint64_t all = strtoull(argv[2], NULL, 10) / sizeof(double);
  const uint64_t first = all * (uint64_t)rank / (uint64_t)ranks;
  const uint64_t mine[1] = {all * ((uint64_t)rank + 1) / (uint64_t)ranks - first};
  double* list = malloc(mine[0] * sizeof *list);
  if (list == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  const long before = kib_of("VmRSS:");
  perdure_pool* pool;
  perdure_array* array;
  uint64_t version = 0;
  perdure_options options = {.flags = PERDURE_ANY_RANKS};
  perdure_array_options how = {.ranks = PERDURE_ROWS, .buffer = list};
  check(perdure_open_mpi(MPI_COMM_WORLD, argv[1], &options, &pool));
  check(perdure_array_open(pool, "list", PERDURE_DOUBLE, 1, mine, PERDURE_COPY, &how, &array));
  check(perdure_restart(pool, &version));
  for (uint64_t i = 0; i < mine[0]; i++) {
    if (version != 0 && list[i] != (double)(first + i)) {
      fprintf(stderr, "rank %d: element %llu is wrong\n", rank, (unsigned long long)i);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    list[i] = (double)(first + i);
  }
  check(perdure_commit(pool, &version));
  printf("took %ld share %ld\n", kib_of("VmHWM:") - before, (long)(mine[0] * sizeof *list / 1024));
  check(perdure_close(pool));
  MPI_Finalize();
  return 0;
}
