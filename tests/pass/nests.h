// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs of random_nests.py and nest_driver.c share.
#ifndef PERDURE_TESTS_PASS_NESTS_H
#define PERDURE_TESTS_PASS_NESTS_H

enum { n1 = 47, n2 = 9, n3 = 8, cells = n1 * n2 * n3, epochs = 3 };

struct point {
  double x, y;
  long tag;
};

struct arrays {
  double* d[4];
  float* f;
  int* index;  // all below `cells`
  struct point* points;
};

enum {
  page = 4096,
  static_bytes = cells * sizeof(double),
  of_point = sizeof(struct point) + sizeof(float) + sizeof(int) + 4 * sizeof(double),
  block_bytes = (cells * of_point / page + 16) * page
};

// How many threads run a part of a nest beside the main thread.
extern volatile int threads_beside;

struct program {
  const char* name;
  double (*run)(struct arrays*, int epoch);
  char* statics[2];
};
#endif
