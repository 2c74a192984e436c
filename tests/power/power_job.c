// SPDX-License-Identifier: BSD-3-Clause
/* A job whose machine loses its power: power_job run|check pool|drain|file PLACE MEMORY STEPS MARK
 *
 * PLACE lies on the disk, MEMORY does not survive. What step s holds follows from s alone. `run`
 * writes the number of what was acknowledged to MARK, each time right after the call that
 * acknowledged it has returned. `check` starts again, prints "found N", and compares all bytes.
 *
 *   pool   three arrays in modes copy, twin and log, and a scalar, of a pool in PLACE: a commit
 *   drain  the same, of a pool in MEMORY which is lost, with a drain in PLACE: a drained version
 *   file   a cached file and its part in PLACE, acknowledged durably: a write of some bytes
 *
 * Exit code: 0 right, 1 a call failed, 2 wrong contents, 3 more was found than was begun. */
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perdure/perdure_mpi.h"

enum { cells = 3000, block = 512, turns = 5, piece_max = 6000, pieces_max = 256 };

static const char *place, *memory;
static uint64_t steps;
static int mark = -1;
static int checking;

static void check(int code, const char* what) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s: %s\n", what, perdure_last_error());
  exit(1);
}

static void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "%s: %s\n", what, text);
  exit(1);
}

static void acknowledge(uint64_t reached) {
  if (write(mark, &reached, sizeof reached) == (ssize_t)sizeof reached) return;
  perror("MARK");
  exit(1);
}

/* Of the array in log mode a step changes every fifth block only. */
static uint64_t value(uint64_t step, uint64_t cell, int sparse) {
  while (sparse && step > 0 && cell / block % turns != step % turns) step--;
  return step == 0 ? 0 : step * 1000003u + cell * 7919u + (uint64_t)sparse;
}

static void fill(uint64_t* cell, uint64_t step, int sparse) {
  for (uint64_t i = 0; i < cells; i++) {
    if (!sparse || i / block % turns == step % turns) cell[i] = value(step, i, sparse);
  }
}

static void compare(const uint64_t* cell, uint64_t step, int sparse, const char* name) {
  for (uint64_t i = 0; i < cells; i++) {
    if (cell[i] == value(step, i, sparse)) continue;
    fprintf(stderr, "%s: cell %llu is not that of step %llu\n", name, (unsigned long long)i,
            (unsigned long long)step);
    exit(2);
  }
}

static void judge(uint64_t found) {
  printf("found %llu\n", (unsigned long long)found);
  if (found > steps) exit(3);
}

static void run_pool(int drained) {
  char path[4096], levels[4096];
  snprintf(path, sizeof path, "%s/pool", drained ? memory : place);
  snprintf(levels, sizeof levels, "redundancy=off;every=1;lease=1s;drain=%s/drain", place);
  perdure_options options = {0};
  if (drained) options.levels = levels;
  perdure_pool* pool = NULL;
  check(perdure_open_mpi(MPI_COMM_WORLD, path, &options, &pool), "open");
  const uint64_t shape = cells;
  const int modes[] = {PERDURE_COPY, PERDURE_TWIN, PERDURE_LOG};
  const char* names[] = {"copied", "twin", "logged"};
  perdure_array* arrays[3];
  for (int a = 0; a < 3; a++) {
    check(perdure_array_open(pool, names[a], PERDURE_INT64, 1, &shape, modes[a], NULL, &arrays[a]),
          names[a]);
  }
  uint64_t step = 0, version = 0;
  check(perdure_scalar(pool, "step", &step, sizeof step), "scalar");
  check(perdure_restart(pool, &version), "restart");
  if (checking) {
    if (version != step) exit(2);
    for (int a = 0; a < 3 && step > 0; a++)
      compare(perdure_consistent(arrays[a]), step, a == 2, names[a]);
    judge(step);
    return;
  }
  while (step < steps) {
    step++;
    for (int a = 0; a < 3; a++) fill(perdure_working(arrays[a]), step, a == 2);
    check(perdure_commit(pool, &version), "commit");
    uint64_t whole = version;
    if (drained) check(perdure_levels_wait(pool, &whole), "wait");
    acknowledge(whole);
  }
  check(perdure_close(pool), "close");
}

/* Piece p of the file: where it lies, and how long it is; pieces overlap none other. */
static uint64_t piece_bytes(uint64_t piece) {
  return 1 + piece * 2654435761u % piece_max;
}
static uint64_t piece_start(uint64_t piece) {
  return piece * 37 % pieces_max * (piece_max + 100);
}
static unsigned char byte_of(uint64_t piece, uint64_t i) {
  return (unsigned char)(1 + (piece * 31 + i * 7) % 255);
}

/* How many pieces, from the first on, are whole. One of at most 4096 bytes is whole or absent. */
static void check_file(MPI_File file) {
  static unsigned char bytes[piece_max];
  uint64_t whole = 0;
  for (uint64_t piece = 0; piece < steps; piece++) {
    const uint64_t count = piece_bytes(piece);
    MPI_Status status;
    memset(bytes, 0, sizeof bytes);
    check_mpi(MPI_File_read_at(file, (MPI_Offset)piece_start(piece), bytes, (int)count, MPI_BYTE,
                               &status),
              "read");
    uint64_t right = 0, zeros = 0;
    for (uint64_t i = 0; i < count; i++) {
      right += bytes[i] == byte_of(piece, i);
      zeros += bytes[i] == 0;
    }
    if (right == count && whole == piece) whole++;
    if (right + zeros != count || (count <= 4096 && right != count && zeros != count)) {
      fprintf(stderr, "piece %llu of %llu bytes has %llu right ones and %llu zeros\n",
              (unsigned long long)piece, (unsigned long long)count, (unsigned long long)right,
              (unsigned long long)zeros);
      exit(2);
    }
  }
  judge(whole);
}

static void run_file(void) {
  char path[4096], parts[4096];
  snprintf(path, sizeof path, "%s/cached", place);
  snprintf(parts, sizeof parts, "%s/parts", place);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_cache", "on");
  MPI_Info_set(info, "perdure_cache_directory", parts);
  MPI_Info_set(info, "perdure_cache_block", "64k");
  MPI_Info_set(info, "perdure_cache_ack", "durable");
  MPI_File file;
  check_mpi(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file),
            "open");
  MPI_Info_free(&info);
  if (checking) {
    check_file(file);
  } else {
    acknowledge(0);
    for (uint64_t piece = 0; piece < steps; piece++) {
      static unsigned char bytes[piece_max];
      const uint64_t count = piece_bytes(piece);
      for (uint64_t i = 0; i < count; i++) bytes[i] = byte_of(piece, i);
      check_mpi(MPI_File_write_at(file, (MPI_Offset)piece_start(piece), bytes, (int)count, MPI_BYTE,
                                  MPI_STATUS_IGNORE),
                "write");
      acknowledge(piece + 1);
      if (piece % 16 == 15) check_mpi(MPI_File_sync(file), "sync");
    }
  }
  check_mpi(MPI_File_close(&file), "close");
}

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  checking = strcmp(argv[1], "check") == 0;
  place = argv[3];
  memory = argv[4];
  steps = strtoull(argv[5], NULL, 10);
  if (!checking) mark = open(argv[6], O_WRONLY);
  if (!checking && mark < 0) {
    perror(argv[6]);
    return 1;
  }
  MPI_Init(&argc, &argv);
  if (strcmp(argv[2], "file") == 0) {
    run_file();
  } else {
    run_pool(strcmp(argv[2], "drain") == 0);
  }
  MPI_Finalize();
  return 0;
}
