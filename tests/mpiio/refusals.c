// SPDX-License-Identifier: BSD-3-Clause
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

/* Two ways to one cached file: each sees what the other has written, and how large the file is. */
static void see_each_other(void) {
  MPI_File all, own;
  MPI_Offset size = 0;
  int value = 10 + rank, seen[2] = {0, 0};
  const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &all);
  MPI_File_set_size(all, 0);
  MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR, MPI_INFO_NULL, &own);
  MPI_File_write_at(own, rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_at(all, 0, seen, 2, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_get_size(all, &size);
  if (seen[0] != 10 || seen[1] != 11 || size != 8) {
    fprintf(stderr, "rank %d: %d %d, %ld bytes through the world's handle\n", rank, seen[0],
            seen[1], (long)size);
    wrong = 1;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  value = 20 + rank;
  MPI_File_write_at_all(all, rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_at(own, 0, seen, 2, MPI_INT, MPI_STATUS_IGNORE);
  if (seen[0] != 20 || seen[1] != 21) {
    fprintf(stderr, "rank %d: %d %d through its own handle\n", rank, seen[0], seen[1]);
    wrong = 1;
  }
  MPI_File_close(&all);
  MPI_File_read_at(own, 0, seen, 2, MPI_INT, MPI_STATUS_IGNORE); /* the other handle is closed */
  if (seen[0] != 20 || seen[1] != 21) wrong = 1;
  MPI_File_close(&own);
}

static int handled_code, handled_times;

static void handle(MPI_File* file, int* code, ...) {
  (void)file;
  handled_code = *code;
  ++handled_times;
}

/* The program's own error handler hears of what a cached file refuses, once, with a code that has
 * the sentence. */
static void call_own_handler(void) {
  MPI_File file;
  MPI_Errhandler own;
  MPI_Info hints;
  char text[MPI_MAX_ERROR_STRING] = "";
  int code, length = 0;
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_create_errhandler(handle, &own);
  MPI_File_set_errhandler(file, own);
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "perdure_cache_block", "8192");
  code = MPI_File_set_info(file, hints);
  expect(code, MPI_ERR_ARG, "another size of blocks");
  MPI_Error_string(code, text, &length);
  if (handled_times != 1 || handled_code != code || !strstr(text, "can't be changed while")) {
    fprintf(stderr, "rank %d: handled %d times with %d, not %d: %s\n", rank, handled_times,
            handled_code, code, text);
    wrong = 1;
  }
  MPI_Info_free(&hints);
  MPI_Errhandler_free(&own);
  MPI_File_close(&file);
}

/* A file that is not cached can't be committed with a pool. */
static void refuse_group(void) {
  MPI_Info hints;
  MPI_File file;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0, code;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "perdure_cache", "off");
  MPI_Info_set(hints, "perdure_cache_pool", "/none");
  code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, hints, &file);
  expect(code, MPI_ERR_ARG, "a group of a file that is not cached");
  MPI_Error_string(code, text, &length);
  if (!strstr(text, "give perdure_cache=on")) fprintf(stderr, "%s\n", text), wrong = 1;
  MPI_Info_set(hints, "perdure_cache", "on");
  code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, hints, &file);
  expect(code, MPI_ERR_NO_SUCH_FILE, "a group that is not open");
  MPI_Error_string(code, text, &length);
  if (!strstr(text, "open the pool")) fprintf(stderr, "%s\n", text), wrong = 1;
  code = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, hints, &file);
  expect(code, MPI_ERR_UNSUPPORTED_OPERATION, "a sequential file in a group");
  MPI_Info_free(&hints);
}

/* As the MPI library does: the file is another one, whatever its name. */
static void make_anew_under_the_name_of_an_open_file(void) {
  MPI_File first, second;
  int value = 30 + rank, seen = 0;
  const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &first);
  MPI_File_write_at(first, rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) remove(path);
  MPI_Barrier(MPI_COMM_WORLD);
  expect(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &second), MPI_SUCCESS,
         "a file made anew");
  value += 10;
  MPI_File_write_at(second, rank * 4, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_read_at(first, rank * 4, &seen, 1, MPI_INT, MPI_STATUS_IGNORE);
  if (seen != 30 + rank) fprintf(stderr, "rank %d: %d in the first file\n", rank, seen), wrong = 1;
  MPI_File_close(&first);
  MPI_File_close(&second);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &second);
  MPI_File_read_at(second, rank * 4, &seen, 1, MPI_INT, MPI_STATUS_IGNORE);
  if (seen != 40 + rank) fprintf(stderr, "rank %d: %d in the second one\n", rank, seen), wrong = 1;
  MPI_File_close(&second);
}

static void refuse_a_datatype_that_was_not_committed(void) {
  MPI_File file;
  MPI_Datatype pair;
  int values[2] = {1, 2};
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  for (int times = 0; times < 3; ++times) {
    expect(MPI_File_write_at(file, rank * 8, values, 1, pair, MPI_STATUS_IGNORE), MPI_ERR_TYPE,
           "a datatype that was not committed");
  }
  MPI_Type_commit(&pair);
  for (int times = 0; times < 3; ++times) {
    expect(MPI_File_write_at(file, rank * 8, values, 1, pair, MPI_STATUS_IGNORE), MPI_SUCCESS,
           "one that is");
  }
  MPI_Type_free(&pair);
  MPI_File_close(&file);
}

static void refuse_split_calls_out_of_order(void) {
  MPI_File file;
  int value = 1;
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  expect(MPI_File_write_at_all_end(file, &value, MPI_STATUS_IGNORE), MPI_ERR_IO,
         "an end without a begin");
  MPI_File_write_at_all_begin(file, rank * 4, &value, 1, MPI_INT);
  expect(MPI_File_write_at_all_begin(file, rank * 4, &value, 1, MPI_INT), MPI_ERR_IO,
         "a begin within another");
  expect(MPI_File_write_at_all_end(file, &value, MPI_STATUS_IGNORE), MPI_SUCCESS, "the end");
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  snprintf(path, sizeof path, "%s/file", getenv("TMPDIR"));
  leave_deleted_file();
  leave_shared_file();
  see_each_other();
  call_own_handler();
  refuse_group();
  make_anew_under_the_name_of_an_open_file();
  refuse_a_datatype_that_was_not_committed();
  refuse_split_calls_out_of_order();
  expect_open("perdure_cache_nonsense", "1", MPI_ERR_ARG);
  expect_open("perdure_cache_block", "4097", MPI_ERR_ARG);
  expect_open("perdure_cache_from", "soon", MPI_ERR_ARG);
  expect_open("perdure_cache_evict", "0", MPI_ERR_ARG);
  expect_open("perdure_cache_evict", "always", MPI_ERR_ARG);
  expect_open("perdure_cache_write_back", "never", MPI_ERR_ARG);
  expect_open("perdure_cache_block", rank == 0 ? "65536" : "131072", MPI_ERR_ARG);
  expect_open("perdure_cache_directory", "/proc/none/pool", MPI_ERR_IO);
  expect_open("perdure_cache_pool", "/none", MPI_ERR_NO_SUCH_FILE);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0 && !wrong) puts("verdict: right");
  MPI_Finalize();
  return wrong;
}
