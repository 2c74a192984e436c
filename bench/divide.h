/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What bench_divide and bench_hdf5_divide have in common: a square of doubles of which each rank
 * has a block, and the time until a job of another number of ranks has it back. */
#pragma once

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE_DOUBLES = 512 };

static int rank, ranks;
static uint64_t edge;             /* of the square, in elements */
static uint64_t first[2], own[2]; /* this rank's block */

static void find_block(const char* edge_text) {
  edge = strtoull(edge_text, NULL, 10);
  int dimensions[2] = {0, 0};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 2, dimensions);
  const int place[2] = {rank / dimensions[1], rank % dimensions[1]};
  for (int i = 0; i < 2; i++) {
    const uint64_t parts = (uint64_t)dimensions[i], part = (uint64_t)place[i];
    first[i] = edge * part / parts;
    own[i] = edge * (part + 1) / parts - first[i];
  }
}

static double value(uint64_t i, uint64_t j) {
  return (double)(i * edge + j) + 0.25;
}

static void fill(double* block) {
  for (uint64_t i = 0; i < own[0]; i++) {
    for (uint64_t j = 0; j < own[1]; j++) {
      block[i * own[1] + j] = value(first[0] + i, first[1] + j);
    }
  }
}

/* Every page is touched, in both programs. */
static double touch(const double* block) {
  double sum = 0;
  for (uint64_t i = 0; i < own[0] * own[1]; i += PAGE_DOUBLES) sum += block[i];
  return sum;
}

/* Prints "take NS", of the slowest rank, and ends with 3 if something is wrong. */
static int report(const double* block, double begin_s, double end_s) {
  const double own_s = end_s - begin_s;
  double slowest_s = 0;
  int wrong = 0, any = 0;
  for (uint64_t i = 0; i < own[0]; i++) {
    for (uint64_t j = 0; j < own[1]; j++) {
      wrong |= block[i * own[1] + j] != value(first[0] + i, first[1] + j);
    }
  }
  MPI_Allreduce(&own_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) printf("take %.0f\n", slowest_s * 1e9);
  if (any && rank == 0) fprintf(stderr, "what came back is wrong\n");
  return any ? 3 : 0;
}
