/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the jobs of this folder have in common: PROGRAM POOL STEPS [KILL_RANK KILL_US]. Rank
 * KILL_RANK is killed KILL_US microseconds after the job has begun. At the end rank 0 prints
 * "back", the version that came back, how many ranks had made the pool, the microseconds until the
 * first commit had returned, and "wrong" if something is. */
#ifndef PERDURE_TESTS_RANKS_RANKS_JOB_H
#define PERDURE_TESTS_RANKS_RANKS_JOB_H

#include <mpi.h>
#include <perdure/perdure_mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static int rank, ranks, wrong;
static uint64_t step;

static inline void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "rank %d: %s\n", rank, perdure_last_error());
  MPI_Abort(MPI_COMM_WORLD, 2);
}

/* What is stored is a function of the step, so each restart is judged. */
static inline double value(int kind, uint64_t index, uint64_t at) {
  return (double)(kind * 1000000 + index) + (double)at / 1024;
}

static inline void judge(int right, const char* what) {
  if (right) return;
  if (wrong++ == 0) fprintf(stderr, "rank %d: wrong %s at step %d\n", rank, what, (int)step);
}

static inline void die(int number) {
  (void)number;
  raise(SIGKILL);
}

/* Returns the seconds of MPI at which it begins. */
static inline double begin_job(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 3 && argc != 5) MPI_Abort(MPI_COMM_WORLD, 2);
  if (argc == 5 && atoi(argv[3]) == rank) {
    signal(SIGALRM, die);
    const struct itimerval timer = {{0, 0}, {0, atol(argv[4])}};
    setitimer(ITIMER_REAL, &timer, NULL);
  }
  return MPI_Wtime();
}

static inline void print_back(uint64_t version, unsigned old_ranks, double until_s) {
  int all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("back %d %u %d%s\n", (int)version, old_ranks, (int)(until_s * 1e6),
           all_wrong != 0 ? " wrong" : "");
  }
}

#endif
