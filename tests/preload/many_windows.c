// SPDX-License-Identifier: BSD-3-Clause
/* Makes more windows, or attaches more regions, than the device has room for (a file may have
 * 320 KiB), as a program does that knows nothing of it: errors are fatal. Prints what is right of
 * two ranks.
 *
 *   many_windows windows|regions   600 of them
 *   many_windows uneven            rank 0 attaches them alone, then all make a window
 *   many_windows killed            attaches them, detaches the first and attaches another; is
 *                                  killed after a fence
 *   many_windows again             attaches those again: each holds what it held, or nothing
 *   many_windows session           3 windows without MPI_Init
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { COUNT = 600 };

static int rank;

/* The windows of some 430 of them fit, with the slots; the tree that more of them need does not. */
static void limit_files(void) {
  const struct rlimit limit = {320 << 10, 320 << 10};
  signal(SIGXFSZ, SIG_IGN);
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) MPI_Abort(MPI_COMM_WORLD, 4);
}

static void use_windows(MPI_Comm comm, int count) {
  static MPI_Win windows[COUNT];
  static int* values[COUNT];
  for (int i = 0; i < count; i++) {
    /* MPICH 4.0.2 by itself mixes up the ranks' memory where it is smaller. */
    MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, comm, &values[i], &windows[i]);
  }
  for (int i = 0; i < count; i += 9) { /* each fence may commit all windows */
    const int value = 100 * i + rank;
    MPI_Win_fence(0, windows[i]);
    MPI_Put(&value, 1, MPI_INT, 1 - rank, 0, 1, MPI_INT, windows[i]);
    MPI_Win_fence(0, windows[i]);
    if (*values[i] != 100 * i + 1 - rank) MPI_Abort(comm, 3);
  }
  for (int i = 0; i < count; i++) MPI_Win_free(&windows[i]);
}

static void use_regions(void) {
  static int values[COUNT], numbers[COUNT];
  MPI_Aint own[COUNT], others[COUNT];
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int i = 0; i < COUNT; i++) {
    MPI_Win_attach(window, &values[i], sizeof values[i]);
    MPI_Get_address(&values[i], &own[i]);
  }
  MPI_Sendrecv(own, COUNT, MPI_AINT, 1 - rank, 0, others, COUNT, MPI_AINT, 1 - rank, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Win_fence(0, window);
  for (int i = 0; i < COUNT; i++) {
    numbers[i] = i;
    MPI_Put(&numbers[i], 1, MPI_INT, 1 - rank, others[i], 1, MPI_INT, window);
  }
  MPI_Win_fence(0, window);
  for (int i = 0; i < COUNT; i++) {
    if (values[i] != i) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Win_detach(window, &values[i]);
  }
  MPI_Win_free(&window);
}

static void use_unevenly(void) {
  static int memory[2 * COUNT];
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int i = 0; rank == 0 && i < COUNT; i++) MPI_Win_attach(window, &memory[2 * i], sizeof(int));
  use_windows(MPI_COMM_WORLD, 1);
  MPI_Win_free(&window);
}

static void attach_in_order(int again) {
  static int values[COUNT + 1];
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int i = 0; i <= COUNT; i++) {
    values[i] = again ? -1 : i;
    if (i == COUNT && !again) MPI_Win_detach(window, &values[0]);
    if (i > 0 || !again) MPI_Win_attach(window, &values[i], sizeof values[i]);
  }
  if (!again) {
    MPI_Win_fence(0, window);
    raise(SIGKILL);
  }
  for (int i = 1; i <= COUNT; i++) {
    if (values[i] != i && (values[i] != -1 || i < 400)) MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Win_detach(window, &values[i]);
  }
  MPI_Win_free(&window);
}

#if MPI_VERSION >= 4
static void use_session(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "perdure", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  MPI_Comm_rank(comm, &rank);
  use_windows(comm, 3);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
}
#endif

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
#if MPI_VERSION >= 4
  if (strcmp(what, "session") == 0) {
    use_session();
    if (rank == 0) printf("right 201\n");
    return 0;
  }
#endif
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  limit_files();
  if (strcmp(what, "windows") == 0) use_windows(MPI_COMM_WORLD, COUNT);
  if (strcmp(what, "regions") == 0) use_regions();
  if (strcmp(what, "uneven") == 0) use_unevenly();
  if (strcmp(what, "killed") == 0 || strcmp(what, "again") == 0) attach_in_order(*what == 'a');
  if (rank == 0) printf("right 201\n");
  MPI_Finalize();
  return 0;
}
