// SPDX-License-Identifier: BSD-3-Clause
//
// What an access in pieces costs beside one of the same bytes, in a program that knows nothing of
// Perdure:
//
//     file_pieces FILE PIECES TIMES here|nodes|all
//
// Two ranks. Each has PIECES numbers of a file: every second one, through a view (strided), or as
// many together (contiguous). It writes and reads them by one call of MPI_File_write_at and
// MPI_File_read_at; `all`: by collective ones. With `nodes` and `all` the ranks take each other for
// processes of two nodes, if they are cached: rank 0's keeps the file.
//
// Rank 0 prints a line for each kind: its name and the median, over TIMES, of the nanoseconds that
// the slower rank took. What was read is compared.
#include <stdlib.h>
#include <string.h>

#include "this_rank.h"

enum { CONTIGUOUS_WRITE, CONTIGUOUS_READ, STRIDED_WRITE, STRIDED_READ, KINDS };
static const char* const names[KINDS] = {"contiguous-write", "contiguous-read", "strided-write",
                                         "strided-read"};

static MPI_File file;
static MPI_Datatype every_second;
static int pieces;
static int* numbers;
static int* got;
static int collective;

static void look(int strided) {
  const MPI_Offset at = strided ? (MPI_Offset)rank * (MPI_Offset)sizeof(int)
                                : (MPI_Offset)rank * pieces * (MPI_Offset)sizeof(int);
  need(!MPI_File_set_view(file, at, MPI_INT, strided ? every_second : MPI_INT, "native",
                          MPI_INFO_NULL),
       "MPI_File_set_view");
}

static int64_t spent_in(int kind, int number) {
  const int is_write = kind == CONTIGUOUS_WRITE || kind == STRIDED_WRITE;
  for (int i = 0; is_write && i < pieces; i++) numbers[i] = number * pieces + i + rank;
  MPI_Barrier(MPI_COMM_WORLD);
  const int64_t began_ns = now_ns();
  int failed = 0;
  if (is_write) {
    failed = (collective ? MPI_File_write_at_all : MPI_File_write_at)(file, 0, numbers, pieces,
                                                                      MPI_INT, MPI_STATUS_IGNORE);
  } else {
    failed = (collective ? MPI_File_read_at_all : MPI_File_read_at)(file, 0, got, pieces, MPI_INT,
                                                                    MPI_STATUS_IGNORE);
  }
  int64_t spent = now_ns() - began_ns, slowest = 0;
  need(!failed, "an access");
  need(is_write || memcmp(numbers, got, (size_t)pieces * sizeof(int)) == 0,
       "reading what is there");
  MPI_Allreduce(&spent, &slowest, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

static int by_size(const void* a, const void* b) {
  const int64_t left = *(const int64_t*)a, right = *(const int64_t*)b;
  return (left > right) - (left < right);
}

static void measure(int times) {
  int64_t* spent[KINDS];
  for (int kind = 0; kind < KINDS; kind++) {
    spent[kind] = calloc((size_t)times, sizeof(int64_t));
    need(spent[kind] != NULL, "memory");
  }
  for (int i = -3; i < times; i++) {  // the first ones make connections, room and pages
    for (int kind = 0; kind < KINDS; kind++) {
      if (kind % 2 == 0) look(kind == STRIDED_WRITE);
      const int64_t took = spent_in(kind, i + 3);
      if (i >= 0) spent[kind][i] = took;
    }
  }
  for (int kind = 0; kind < KINDS; kind++) {
    qsort(spent[kind], (size_t)times, sizeof(int64_t), by_size);
    if (rank == 0) printf("%s %lld\n", names[kind], (long long)spent[kind][times / 2]);
    free(spent[kind]);
  }
}

// Before MPI begins.
static void pretend_nodes(void) {
  const char* own = getenv("PMI_RANK");
  if (own == NULL) own = getenv("OMPI_COMM_WORLD_RANK");
  if (own != NULL) setenv("PERDURE_NODE_ID", own, 1);
}

int main(int argc, char** argv) {
  if (argc == 5 && strcmp(argv[4], "here") != 0) pretend_nodes();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  need(argc == 5, "four arguments: FILE PIECES TIMES here|nodes|all");
  pieces = atoi(argv[2]);
  collective = strcmp(argv[4], "all") == 0;
  numbers = calloc((size_t)pieces, sizeof(int));
  got = calloc((size_t)pieces, sizeof(int));
  need(numbers != NULL && got != NULL, "memory");
  MPI_Type_vector(pieces, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  need(!MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL,
                      &file),
       "MPI_File_open");
  measure(atoi(argv[3]));
  need(!MPI_File_close(&file), "MPI_File_close");
  if (rank == 0) remove(argv[1]);
  MPI_Type_free(&every_second);
  free(numbers);
  free(got);
  MPI_Finalize();
  return 0;
}
