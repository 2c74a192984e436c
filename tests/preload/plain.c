// SPDX-License-Identifier: BSD-3-Clause
/* A plain MPI program that knows nothing of Perdure: a window of each kind, one-sided calls with
 * more arguments than there are registers, a file in views, and a call that MPI-IO makes itself.
 * Prints one line on rank 0, "right N", and ends with 0; or says what was wrong.
 *
 *   plain FILE
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static long windows(void) {
  long *base, got = -1, one = 1, before = -1, sum = 0;
  long own[2] = {-1, 7};
  MPI_Win win, made;
  MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  base[0] = 100 + rank;
  base[1] = 0;
  MPI_Win_fence(0, win);
  MPI_Get(&got, 1, MPI_LONG, (rank + 1) % ranks, 0, 1, MPI_LONG, win);
  MPI_Win_fence(0, win);
  need(got == 100 + (rank + 1) % ranks, "what MPI_Get got");
  MPI_Win_lock_all(0, win);
  MPI_Get_accumulate(&one, 1, MPI_LONG, &before, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, win);
  MPI_Win_unlock_all(win);
  need(before >= 0 && before < ranks, "what MPI_Get_accumulate found");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) need(base[1] == ranks, "the sum of MPI_Get_accumulate");
  MPI_Win_free(&win);
  MPI_Win_create(own, sizeof own, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &made);
  MPI_Win_fence(0, made);
  MPI_Put(&got, 1, MPI_LONG, (rank + 1) % ranks, 0, 1, MPI_LONG, made);
  MPI_Win_fence(0, made);
  MPI_Win_free(&made);
  need(own[0] == 100 + rank && own[1] == 7, "what MPI_Put put");
  MPI_Reduce(&own[0], &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  return sum;
}

static void files(const char* name) {
  MPI_File file;
  MPI_Status status;
  MPI_Datatype strided;
  MPI_Offset bytes = 0;
  int values[4], back[4] = {0}, count = 0;
  for (int i = 0; i < 4; i++) values[i] = 10 * rank + i;
  need(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) ==
           MPI_SUCCESS,
       "MPI_File_open");
  MPI_Type_vector(4, 1, ranks, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  MPI_File_set_view(file, (MPI_Offset)(rank * sizeof(int)), MPI_INT, strided, "native",
                    MPI_INFO_NULL);
  MPI_File_write_at_all(file, 0, values, 4, MPI_INT, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  need(count == 4, "the count of MPI_File_write_at_all");
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_at(file, 0, back, 4, MPI_INT, &status);
  for (int i = 0; i < 4; i++) need(back[i] == values[i], "what MPI_File_read_at read");
  MPI_File_get_size(file, &bytes);
  need(bytes == (MPI_Offset)(4 * ranks * sizeof(int)), "the size of the file");
  MPI_File_close(&file);
  MPI_Type_free(&strided);
}

static void errors(void) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_File file;
  const int code =
      MPI_File_open(MPI_COMM_SELF, "/no/such/place", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  need(code != MPI_SUCCESS, "a file that is not there was opened");
  MPI_Error_string(code, text, &length);
  need(length > 0, "the text of an error");
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long sum = windows();
  files(argv[1]);
  errors();
  if (rank == 0) printf("right %ld\n", sum);
  MPI_Finalize();
  return 0;
}
