// Runs the generated programs of random_nests.py, compiled natively and with the pass: on equal
// arrays, epoch by epoch, whose bytes and results must stay equal.
//
//   nest_driver SEED     which arrays, and which parts of them, are objects
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nests.h"
#include "perdure/perdure_ipv.h"

extern struct program native_programs[], ipv_programs[];
extern const int native_count, ipv_count;

static unsigned long long state;

static unsigned random_below(unsigned limit) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (unsigned)(state >> 33) % limit;
}

// Both sides' arrays lie in a block of memory of their own, in the same order and distances.
static size_t lay_out(struct arrays* arrays, char* block, unsigned long long seed) {
  state = seed;
  size_t used = 64;
  for (int turn = 0, first = (int)random_below(7); turn < 7; ++turn) {
    const int which = (first + turn) % 7;
    void* at = block + used;
    if (which < 4) {
      arrays->d[which] = at;
      used += cells * sizeof(double);
    } else if (which == 4) {
      arrays->f = at;
      used += cells * sizeof(float);
    } else if (which == 5) {
      arrays->index = at;
      used += cells * sizeof(int);
    } else {
      arrays->points = at;
      used += cells * sizeof(struct point);
    }
    used += random_below(3) * 64;
  }
  return used;
}

static void fill(struct arrays* arrays, unsigned long long seed) {
  state = seed;
  for (int i = 0; i < cells; ++i) {
    for (int a = 0; a < 4; ++a) arrays->d[a][i] = random_below(2000) / 1000.0 - 1;
    arrays->f[i] = (float)random_below(1000) / 500 - 1;
    arrays->index[i] = (int)random_below(cells);
    arrays->points[i] = (struct point){random_below(100) / 50.0, random_below(100) / 50.0, i};
  }
}

static void objects(char* at, size_t bytes, const char* name) {
  const unsigned how = random_below(4);
  if (how == 0) return;
  size_t from = how == 3 ? random_below((unsigned)(bytes / 16)) * 8 : 0;
  size_t to = how == 3 ? bytes - random_below((unsigned)(bytes / 16)) * 8 : bytes;
  perdure_ipv_object(name, at + from, to - from, NULL);
}

static void make_objects(struct arrays* arrays, const struct program* program) {
  static const char* const names[] = {"d0", "d1", "d2", "d3"};
  for (int a = 0; a < 4; ++a) objects((char*)arrays->d[a], cells * sizeof(double), names[a]);
  objects((char*)arrays->f, cells * sizeof(float), "f");
  objects((char*)arrays->index, cells * sizeof(int), "index");
  objects((char*)arrays->points, cells * sizeof(struct point), "points");
  for (int a = 0; a < 2; ++a) {
    objects(program->statics[a], static_bytes, a == 0 ? "static 0" : "static 1");
  }
}

static int run(int number, unsigned long long seed, char* blocks[2]) {
  struct program* programs[2] = {&native_programs[number], &ipv_programs[number]};
  struct arrays arrays[2];
  size_t bytes = 0;
  for (int side = 0; side < 2; ++side) {
    bytes = lay_out(&arrays[side], blocks[side], seed);
    memset(blocks[side], 1, bytes);
    fill(&arrays[side], seed + 1);
    for (int a = 0; a < 2; ++a) {
      double* values = (double*)programs[side]->statics[a];
      for (int i = 0; i < (int)(static_bytes / sizeof(double)); ++i) values[i] = i % 17 - 8;
    }
  }
  state = seed + 2;
  make_objects(&arrays[1], programs[1]);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    double results[2];
    for (int side = 0; side < 2; ++side) results[side] = programs[side]->run(&arrays[side], epoch);
    int equal = memcmp(&results[0], &results[1], sizeof(double)) == 0 &&
                memcmp(blocks[0], blocks[1], bytes) == 0;
    for (int a = 0; a < 2; ++a) {
      equal &= memcmp(programs[0]->statics[a], programs[1]->statics[a], static_bytes) == 0;
    }
    if (!equal) {
      printf("%s, seed %llu: results differ in epoch %d\n", programs[0]->name, seed, epoch);
      return 1;
    }
    perdure_ipv_persist(NULL);
  }
  perdure_ipv_close();
  return 0;
}

int main(int count, char** words) {
  const unsigned long long seed = count > 1 ? strtoull(words[1], NULL, 10) : 1;
  char* blocks[2] = {malloc(block_bytes), malloc(block_bytes)};
  if (blocks[0] == NULL || blocks[1] == NULL || native_count != ipv_count) return 2;
  int wrong = 0;
  for (int number = 0; number < native_count; ++number) {
    fprintf(stderr, "%s\n", native_programs[number].name);
    wrong += run(number, seed + 1000 * (unsigned)number, blocks);
  }
  printf("%d programs, %d wrong\n", native_count, wrong);
  return wrong == 0 ? 0 : 1;
}
