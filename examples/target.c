/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat along a rod whose cells are in memory of a device of OpenMP, which two functions reach.
 * Where there is none, OpenMP takes the host for one. */
#include <omp.h>
#include <perdure/perdure.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1000, STEPS = 400 };

static int copy(void* context, void* to, const void* from, size_t bytes, int direction) {
  const int device = *(int*)context, host = omp_get_initial_device();
  return omp_target_memcpy(to, from, bytes, 0, 0, direction == PERDURE_TO_HOST ? host : device,
                           direction == PERDURE_TO_DEVICE ? host : device);
}

static void* allocate(void* context, void* memory, size_t bytes) {
  const int device = *(int*)context;
  if (bytes > 0) return omp_target_alloc(bytes, device);
  omp_target_free(memory, device);
  return NULL;
}

static void heat_step(double* u, double* next, int device) {
#pragma omp target teams distribute parallel for is_device_ptr(u, next) device(device)
  for (int i = 1; i <= CELLS; i++) next[i] = (u[i - 1] + u[i] + u[i + 1]) / 3;
#pragma omp target teams distribute parallel for is_device_ptr(u, next) device(device)
  for (int i = 0; i <= CELLS; i++) u[i] = i == 0 ? 1 : next[i];
}

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  exit(1);
}

int main(void) {
  const int host = omp_get_initial_device();
  int number = omp_get_default_device();
  uint64_t cells = CELLS + 2, version;
  const size_t bytes = cells * sizeof(double);
  double *u = omp_target_alloc(bytes, number), *next = omp_target_alloc(bytes, number);
  double* found = calloc(cells, sizeof(double));
  if (u == NULL || next == NULL || found == NULL) return 1;
  check(omp_target_memcpy(u, found, bytes, 0, 0, number, host));

  perdure_device device = {.context = &number, .copy = copy, .allocate = allocate};
  perdure_array_options options = {.buffer = u, .device = &device};
  perdure_pool* pool;
  perdure_array* array;
  long step = 0;
  check(perdure_open("pool", NULL, &pool));
  check(perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_COPY, &options, &array));
  check(perdure_scalar(pool, "iteration", &step, sizeof step));
  check(perdure_restart(pool, &version));
  fprintf(stderr, "begins at step %ld\n", step);
  while (step < STEPS) {
    heat_step(u, next, number);
    step++;
    if (step % 50 == 0) check(perdure_commit(pool, NULL));
  }
  check(perdure_close(pool));
  check(omp_target_memcpy(found, u, bytes, 0, 0, host, number));
  printf("u[10] is %.12g\n", found[10]);
  omp_target_free(u, number);
  omp_target_free(next, number);
  free(found);
}
