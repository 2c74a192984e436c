/* SPDX-License-Identifier: BSD-3-Clause */
/* Particles walk at random, divide and end; the pool "pool" keeps each step. */
#define _GNU_SOURCE
#include <perdure/perdure.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 4000, FIRST = 1000, STEPS = 400 };

struct particle {
  double place, speed;
  long age;
};

static long walk(struct particle* p, long count, unsigned short* seed) {
  long kept = 0, born = count;
  for (long i = 0; i < count; i++) {
    struct particle next = p[i];
    next.speed += erand48(seed) - 0.5;
    next.place += next.speed;
    next.age++;
    double chance = erand48(seed);
    if (chance > 0.99 && born < ROOM) p[born++] = next;
    if (chance > 0.01) p[kept++] = next;
  }
  for (long i = count; i < born; i++) p[kept++] = p[i];
  return kept;
}

static void check(int code) {
  if (code == PERDURE_OK) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  exit(1);
}

int main(void) {
  perdure_pool* pool;
  perdure_array* array;
  struct particle* p = calloc(ROOM, sizeof *p);
  uint64_t shape[2] = {FIRST, sizeof *p};
  unsigned short seed[3] = {1, 2, 3};
  long step = 0, count = FIRST;
  check(perdure_open("pool", NULL, &pool));
  perdure_stored_shape(pool, "p", 0, NULL, shape);  // of the last run, if there was one
  perdure_array_options options = {.buffer = p};
  check(perdure_array_open(pool, "p", PERDURE_BYTE, 2, shape, PERDURE_COPY, &options, &array));
  check(perdure_scalar(pool, "iteration", &step, sizeof step));
  check(perdure_scalar(pool, "seed", seed, sizeof seed));
  FILE* out = fopen("walkers.txt", "a");
  if (p == NULL || out == NULL) return 1;
  check(perdure_file(pool, "walkers.txt", out));
  check(perdure_restart(pool, NULL));
  count = (long)shape[0];
  fprintf(stderr, "begins at step %ld\n", step);
  while (step < STEPS) {
    count = walk(p, count, seed);
    step++;
    fprintf(out, "%ld %ld %.17g\n", step, count, p[0].place);
    shape[0] = (uint64_t)count;
    check(perdure_array_resize(array, shape, p));
    check(perdure_commit(pool, NULL));
  }
  printf("%ld particles, the first at %.17g\n", count, p[0].place);
  fclose(out);
  check(perdure_close(pool));
  free(p);
}
