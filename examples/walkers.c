/* SPDX-License-Identifier: BSD-3-Clause */
/* Particles walk at random, divide and end. */
#define _GNU_SOURCE
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

int main(void) {
  struct particle* p = calloc(ROOM, sizeof *p);
  unsigned short seed[3] = {1, 2, 3};
  long step = 0, count = FIRST;
  FILE* out = fopen("walkers.txt", "w");
  if (p == NULL || out == NULL) return 1;
  fprintf(stderr, "begins at step %ld\n", step);
  while (step < STEPS) {
    count = walk(p, count, seed);
    step++;
    fprintf(out, "%ld %ld %.17g\n", step, count, p[0].place);
  }
  printf("%ld particles, the first at %.17g\n", count, p[0].place);
  fclose(out);
  free(p);
}
