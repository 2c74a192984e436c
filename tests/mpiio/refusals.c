/* What the cache refuses, and what it hands to the MPI library; meant for two ranks with every file
 * cached. Prints "verdict: right", or where it went wrong, which ends the job with 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, wrong;
static char path[600];

static void expect(int code, int wanted, const char* what) {
  int kind = MPI_SUCCESS;
  MPI_Error_class(code, &kind);
  if (kind == wanted) return;
  fprintf(stderr, "rank %d: %s: class %d instead of %d\n", rank, what, kind, wanted);
  wrong = 1;
}

static void expect_open(const char* key, const char* value, int wanted) {
  MPI_Info hints;
  MPI_File file;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, key, value);
  expect(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, hints, &file), wanted, key);
  MPI_Info_free(&hints);
}

/* What was written before the view is there after it, also in a file that will be deleted. */
static void leave_deleted_file(void) {
  MPI_File file;
  int value = 7, seen = 0;
  const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32", MPI_INFO_NULL);
  MPI_File_read_at(file, rank * 4, &seen, 4, MPI_BYTE, MPI_STATUS_IGNORE);
  if (seen != value) fprintf(stderr, "rank %d: %d instead of 7\n", rank, seen), wrong = 1;
  MPI_File_close(&file);
}

static void leave_shared_file(void) {
  MPI_File file, second;
  const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file);
  MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &second);
  expect(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL),
         MPI_ERR_UNSUPPORTED_OPERATION, "external32 beside another handle");
  MPI_File_close(&second);
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s/file", getenv("TMPDIR"));
  leave_deleted_file();
  leave_shared_file();
  expect_open("perdure_cache_nonsense", "1", MPI_ERR_ARG);
  expect_open("perdure_cache_block", "4097", MPI_ERR_ARG);
  expect_open("perdure_cache_block", rank == 0 ? "65536" : "131072", MPI_ERR_ARG);
  expect_open("perdure_cache_pool", "/proc/none/pool", MPI_ERR_IO);
  expect_open("perdure_cache_group", "/none", MPI_ERR_NO_SUCH_FILE);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !wrong) puts("verdict: right");
  MPI_Finalize();
  return wrong;
}
