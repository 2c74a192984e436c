// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the generated programs of random_nests.py, compiled natively and with the pass: on equal
// arrays, epoch by epoch, whose bytes and results must stay equal.
//
//   nest_driver SEED         which arrays, and which parts of them, are objects
//   nest_driver SEED POOL    linked with libperdure: in each tier. A process runs each program, and
//                            is killed in an epoch or after its persistence point; another
//                            restarts
//   nest_driver SEED POOL reader    a thread looks at all objects meanwhile (reader.h)
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nests.h"
#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"
#include "reader.h"

extern struct program native_programs[], ipv_programs[];
extern const int native_count, ipv_count;

volatile int threads_beside;

static const char* pool_path;  // NULL: over poison_runtime.cpp
static int is_watched;
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
    if (pool_path != NULL) used = (used + page - 1) / page * page;
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
  if (pool_path != NULL) {
    const int tier = random_below(3) == 0 ? PERDURE_IPV_AUTO : PERDURE_IPV_STREAM;
    // The pass gives static arrays whole pages, as lay_out() does.
    const perdure_ipv_object_options options = {tier, (uintptr_t)at % page == 0};
    if (perdure_ipv_object(name, at, bytes, &options) != 0) {
      fprintf(stderr, "%s\n", perdure_last_error());
      exit(3);
    }
    return;
  }
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

struct sides {
  struct program* programs[2];
  struct arrays arrays[2];
  char* blocks[2];
  size_t bytes;
};

static struct sides set_up(int number, unsigned long long seed, char* blocks[2]) {
  struct sides sides = {.programs = {&native_programs[number], &ipv_programs[number]}};
  for (int side = 0; side < 2; ++side) {
    sides.blocks[side] = blocks[side];
    memset(blocks[side], 1, block_bytes);
    sides.bytes = lay_out(&sides.arrays[side], blocks[side], seed);
    fill(&sides.arrays[side], seed + 1);
    for (int a = 0; a < 2; ++a) {
      double* values = (double*)sides.programs[side]->statics[a];
      for (int i = 0; i < (int)(static_bytes / sizeof(double)); ++i) values[i] = i % 17 - 8;
    }
  }
  state = seed + 2;
  return sides;
}

// Also between the arrays, where a pool leaves that alone: not after an object in its last page.
static int are_equal(const struct sides* sides) {
  const struct arrays *one = &sides->arrays[0], *two = &sides->arrays[1];
  int equal = memcmp(one->f, two->f, cells * sizeof *one->f) == 0 &&
              memcmp(one->index, two->index, cells * sizeof *one->index) == 0 &&
              memcmp(one->points, two->points, cells * sizeof *one->points) == 0;
  for (int a = 0; a < 4; ++a) equal &= memcmp(one->d[a], two->d[a], cells * sizeof(double)) == 0;
  for (int a = 0; a < 2; ++a) {
    equal &=
        memcmp(sides->programs[0]->statics[a], sides->programs[1]->statics[a], static_bytes) == 0;
  }
  if (pool_path == NULL) equal &= memcmp(sides->blocks[0], sides->blocks[1], sides->bytes) == 0;
  return equal;
}

static void start_reader(const struct sides* sides) {
  const struct arrays *native = &sides->arrays[0], *watched = &sides->arrays[1];
  for (int a = 0; a < 4; ++a) {
    reader_knows(native->d[a], watched->d[a], cells * sizeof(double), sizeof(double));
  }
  reader_knows(native->f, watched->f, cells * sizeof(float), sizeof(float));
  reader_knows(native->index, watched->index, cells * sizeof(int), sizeof(int));
  reader_knows(native->points, watched->points, cells * sizeof(struct point), sizeof(double));
  for (int a = 0; a < 2; ++a) {
    reader_knows(sides->programs[0]->statics[a], sides->programs[1]->statics[a], static_bytes,
                 sizeof(double));
  }
  reader_start();
}

// Both sides; 0 if they are equal after it.
static int run_epoch(struct sides* sides, int epoch, unsigned long long seed) {
  double results[2];
  if (is_watched) reader_begins_epoch();
  results[0] = sides->programs[0]->run(&sides->arrays[0], epoch);
  if (is_watched) reader_looks();
  results[1] = sides->programs[1]->run(&sides->arrays[1], epoch);
  if (memcmp(&results[0], &results[1], sizeof(double)) == 0 && are_equal(sides)) return 0;
  printf("%s, seed %llu: results differ in epoch %d\n", sides->programs[0]->name, seed, epoch);
  return 1;
}

static int run(int number, unsigned long long seed, char* blocks[2]) {
  struct sides sides = set_up(number, seed, blocks);
  make_objects(&sides.arrays[1], sides.programs[1]);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    if (run_epoch(&sides, epoch, seed) != 0) return 1;
    perdure_ipv_persist(NULL);
  }
  perdure_ipv_close();
  return 0;
}

static void must(int code) {
  if (code == 0) return;
  fprintf(stderr, "%s\n", perdure_last_error());
  exit(3);
}

// One process: from the newest version on. Killed in `kill_epoch`, in front of its persistence
// point or after it, or not at all.
static int run_from_version(int number, unsigned long long seed, char* blocks[2], int kill_epoch,
                            int behind) {
  struct sides sides = set_up(number, seed, blocks);
  perdure_pool* pool;
  int epoch = 0;
  must(perdure_open(pool_path, NULL, &pool));
  must(perdure_scalar(pool, "epoch", &epoch, sizeof epoch));
  must(perdure_ipv_open(pool, NULL));
  make_objects(&sides.arrays[1], sides.programs[1]);
  must(perdure_ipv_restart(NULL));
  for (int done = 0; done < epoch; ++done) sides.programs[0]->run(&sides.arrays[0], done);
  if (!are_equal(&sides)) {
    printf("%s, seed %llu: the version of epoch %d differs\n", sides.programs[0]->name, seed,
           epoch);
    return 1;
  }
  if (is_watched) start_reader(&sides);
  while (epoch < epochs) {
    if (run_epoch(&sides, epoch, seed) != 0) return 1;
    if (epoch == kill_epoch && !behind) kill(getpid(), SIGKILL);
    ++epoch;
    must(perdure_ipv_persist(NULL));
    if (is_watched && reader_rests() != 0) return 1;
    if (epoch - 1 == kill_epoch) kill(getpid(), SIGKILL);
  }
  if (is_watched) reader_stop();
  must(perdure_ipv_close());
  must(perdure_close(pool));
  return 0;
}

// libomp leaves a file of this name where a process is killed.
static void remove_file_of_libomp(pid_t killed) {
  char path[64];
  snprintf(path, sizeof path, "/dev/shm/__KMP_REGISTERED_LIB_%d_%d", (int)killed, (int)getuid());
  unlink(path);
}

// A process that is killed, and one that goes on; the second must end well.
static int run_killed(int number, unsigned long long seed, char* blocks[2]) {
  state = seed + 3;
  const int kill_epoch = (int)random_below(epochs);
  const int behind = (int)random_below(2);
  int wrong = 0;
  for (int life = 0; life < 2; ++life) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const int ended = run_from_version(number, seed, blocks, life == 0 ? kill_epoch : -1, behind);
      fflush(stdout);
      _exit(ended);
    }
    int status = 0;
    waitpid(child, &status, 0);
    remove_file_of_libomp(child);
    const int as_wanted = life == 0 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                                    : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!as_wanted)
      printf("%s: life %d ended with %d\n", native_programs[number].name, life, status);
    wrong |= !as_wanted;
  }
  char command[4096];
  snprintf(command, sizeof command, "rm -rf '%s'", pool_path);
  return system(command) != 0 || wrong;
}

int main(int count, char** words) {
  const unsigned long long seed = count > 1 ? strtoull(words[1], NULL, 10) : 1;
  pool_path = count > 2 ? words[2] : NULL;
  is_watched = count > 3;
  perdure_ipv_box_bytes_min = 1;
  char* blocks[2] = {aligned_alloc(page, block_bytes), aligned_alloc(page, block_bytes)};
  if (blocks[0] == NULL || blocks[1] == NULL || native_count != ipv_count) return 2;
  int wrong = 0;
  for (int number = 0; number < native_count; ++number) {
    fprintf(stderr, "%s\n", native_programs[number].name);
    const unsigned long long own = seed + 1000 * (unsigned)number;
    wrong += pool_path == NULL ? run(number, own, blocks) : run_killed(number, own, blocks);
  }
  printf("%d programs, %d wrong\n", native_count, wrong);
  return wrong == 0 ? 0 : 1;
}
