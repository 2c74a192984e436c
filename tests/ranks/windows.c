/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Windows of a program that goes on with whatever number of ranks it gets:
 *
 *     windows POOL STEPS [KILL_RANK KILL_US]
 *
 * It has a grid of which each rank has some lines and a line of its neighbours on both sides (mode
 * twin, by its box), a list of particles over all ranks (copy, rows), and a table that is the same
 * on all (log). The rest, and what it prints, is as in ranks_job.h. In place of STEPS a word is a
 * trial of what is refused, and prints the sentence:
 *
 *     nothing    nothing is said of the window with the grid
 *     forgotten  the list is not made before the first commit
 *     rows       the ranks ask for other rows than there are
 *     dynamic    a dynamic window is to be divided
 *     box        the box has another size than the memory */
#include "ranks_job.h"

enum { LINES = 61, COLUMNS = 40, PARTICLES = 203, TABLE = 17 };

static uint64_t first, lines, particles, first_particle;
static const char *pool_path, *trial;
static MPI_Win grid, list, table;
static double *places, *entries; /* of the list and the table */

/* Of a call of MPI: if it failed, that may be as it should be. */
static void check_mpi(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (error == MPI_SUCCESS) return;
  MPI_Error_string(error, text, &length);
  fprintf(stderr, "rank %d: refused: %s\n", rank, text);
  MPI_Abort(MPI_COMM_WORLD, trial != NULL ? 4 : 2);
}

static int tries(const char* what) {
  return trial != NULL && strcmp(trial, what) == 0;
}

static MPI_Win make(const char* name, const char* mode, const char* key, const char* text,
                    uint64_t bytes, int unit, double** base) {
  MPI_Info info;
  MPI_Win win;
  MPI_Info_create(&info);
  MPI_Info_set(info, "perdure_name", name);
  MPI_Info_set(info, "perdure_pool", pool_path);
  MPI_Info_set(info, "perdure_mode", mode);
  MPI_Info_set(info, "perdure_job", "windows");
  if (text != NULL) MPI_Info_set(info, key, text);
  check_mpi(MPI_Win_allocate((MPI_Aint)bytes, unit, info, MPI_COMM_WORLD, base, &win));
  MPI_Info_free(&info);
  return win;
}

/* Of a half: what MPICH 4.0 says of other windows may lie some bytes before their memory. */
static double* memory(MPI_Win win) {
  void* base = NULL;
  int found = 0;
  MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found);
  return base;
}

/* The list is made first: what it says opens the pool. */
static void make_windows(void) {
  particles = PARTICLES / (uint64_t)ranks + ((uint64_t)rank < PARTICLES % (uint64_t)ranks);
  MPI_Exscan(&particles, &first_particle, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) first_particle = 0;
  if (tries("rows")) particles += 1;
  if (!tries("forgotten")) {
    list = make("list", "copy", "perdure_ranks", "rows", particles * 24, 24, &places);
  }
  table = make("table", "log", "perdure_ranks", "same", TABLE * 8, 8, &entries);

  const uint64_t owned = LINES / (uint64_t)ranks + ((uint64_t)rank < LINES % (uint64_t)ranks);
  uint64_t owned_first = 0;
  for (int r = 0; r < rank; r++) owned_first += LINES / ranks + (r < LINES % ranks);
  first = owned_first == 0 ? 0 : owned_first - 1;
  lines = owned_first + owned + (owned_first + owned < LINES) - first;
  char box[100];
  double* half;
  snprintf(box, sizeof box, "%dx%d of %dx%d at %d,0", (int)lines, COLUMNS, LINES, COLUMNS,
           (int)first);
  if (tries("dynamic")) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "perdure_name", "regions");
    MPI_Info_set(info, "perdure_pool", pool_path);
    MPI_Info_set(info, "perdure_ranks", "rows");
    check_mpi(MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &grid));
  }
  grid = make("grid", "twin", "perdure_box", tries("nothing") ? NULL : box,
              lines * COLUMNS * 8 + (tries("box") ? 8 : 0), 8, &half);
}

static void store(uint64_t at) {
  MPI_Win consistent, working;
  check(perdure_win_halves(grid, &consistent, &working));
  double* cells = memory(working);
  for (uint64_t i = 0; i < lines * COLUMNS; i++) cells[i] = value(1, first * COLUMNS + i, at);
  for (uint64_t i = 0; i < 3 * particles; i++) places[i] = value(2, 3 * first_particle + i, at);
  for (uint64_t i = 0; i < TABLE; i++) entries[i] = value(3, i, at);
  step = at;
}

static void judge_all(void) {
  MPI_Win consistent, working;
  check(perdure_win_halves(grid, &consistent, &working));
  const double* cells = memory(consistent);
  for (uint64_t i = 0; i < lines * COLUMNS; i++) {
    judge(cells[i] == value(1, first * COLUMNS + i, step), "grid");
  }
  for (uint64_t i = 0; i < 3 * particles; i++) {
    judge(places[i] == value(2, 3 * first_particle + i, step), "list");
  }
  for (uint64_t i = 0; i < TABLE; i++) judge(entries[i] == value(3, i, step), "table");
}

int main(int argc, char** argv) {
  const double begin_s = begin_job(argc, argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  pool_path = argv[1];
  char* end = NULL;
  const uint64_t steps = strtoull(argv[2], &end, 10);
  if (*end != '\0') trial = argv[2];
  make_windows();
  perdure_pool* pool;
  check(perdure_win_pool(table, &pool));
  perdure_pool_status status;
  check(perdure_status(pool, &status));
  check(perdure_scalar(pool, "step", &step, sizeof step));
  uint64_t version = 0;
  check(perdure_win_restart(table, &version));
  if (trial != NULL) {
    const int code = perdure_win_commit(table, NULL);
    fprintf(stderr, "rank %d: %s\n", rank, code == 0 ? "committed" : perdure_last_error());
    MPI_Abort(MPI_COMM_WORLD, 4);
  }
  if (version != 0) judge_all();
  judge(step == version, "step");
  double until_s = 0;
  for (uint64_t i = 0; i < steps; i++) {
    store(step + 1);
    uint64_t made = 0;
    check(perdure_win_commit(table, &made));
    judge(made == step, "number of the version");
    if (i == 0) until_s = MPI_Wtime() - begin_s;
  }
  print_back(version, status.old_ranks, until_s);
  MPI_Win_free(&grid);
  MPI_Win_free(&list);
  MPI_Win_free(&table);
  MPI_Finalize();
  return wrong != 0;
}
