// SPDX-License-Identifier: BSD-3-Clause
//
// Programs for random_nests.py --unit, each of which goes wrong if the pass takes one of its proofs
// for granted, or leaves out one of its tests: what random nests meet too seldom. The mutants of
// pass/ (tests/mutants) name them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nests.h"

#define NEST static __attribute__((noinline))

static double polynomial(double x) {
  const double y = x * 0.5 + 0.25, z = y * x - 0.125;
  return (((z * y + x) * 0.25 + y * y) * 0.5 - z * z) * 0.125 + ((x - y) * (y - z)) * 0.0625;
}

// The exit is in the middle, too far from the header's begin for the optimiser to turn the loop:
// what comes before it is run once more than what comes after.
NEST double exit_in_the_middle(double* a, const double* c, long n) {
  double sum = 0;
  for (long i = 0;; ++i) {
    const double x = polynomial(c[i]) + polynomial(c[i] * 0.5);
    sum += x;
    if (i >= n) break;
    a[i] = x;
  }
  return sum;
}
NEST double read_once_more(double* a, long n) {
  double sum = 0;
  for (long i = 0;; ++i) {
    const double x = polynomial(a[i]) + polynomial(a[i] * 0.5);
    sum += x;
    if (i >= n) break;
    a[i] = x;
  }
  return sum;
}

// What is read goes down to bytes in front of the object.
NEST void reads_downwards(double* a, const double* b, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = n - 1; i >= 0; --i) a[j * n + n - 1 - i] = b[i] * 0.5 + j;
  }
}

// The step is that of an element, or not.
NEST void steps(double* a, long step, long n) {
  for (long i = 0; i < n; ++i) a[i * step] = a[i * step] * 0.5 + 1;
}

// b and c may be the same memory as a, so that a[i] is read again.
NEST double read_behind_a_store(double* a, double* b, long n) {
  double sum = 0;
  for (long i = 0; i < n; ++i) {
    a[i] = a[i] * 0.5 + 1;
    b[i] = 0.25;
    sum += a[i];
  }
  return sum;
}
NEST double read_behind_a_conditional_store(double* a, double* b, const double* c, long n) {
  double sum = 0;
  for (long i = 0; i < n; ++i) {
    if (c[i] > 0) a[i] = 1;
    b[i] = 0.25;
    sum += a[i];
    a[i] = 2 + i;
  }
  return sum;
}
// 16 bytes, of which 8 are stored to before and 8 after.
NEST long read_over_two(struct point* p, double s, long n) {
  long sum = 0;
  for (long i = 0; i < n; ++i) {
    unsigned __int128 both;
    p[i].x = s;
    memcpy(&both, &p[i], 16);
    sum += (long)(both % 1000003);
    p[i].y = s * 0.5;
    p[i].tag = i;
  }
  return sum;
}

NEST void two_rows(double* a, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) {
      a[j * n + i] = a[j * n + i] * 0.5 + 1;
      a[j * n + i + 1600] = a[j * n + i + 1600] * 0.25 + 2;
    }
  }
}

// Its address is known to the table below.
static __attribute__((annotate("perdure_ipv"))) double known[cells];
static __attribute__((annotate("perdure_ipv"))) double second[cells];
NEST void by_two_names(double* a, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) a[j * n + i] = known[cells - 1 - (j * n + i)] * 0.5 + 1;
  }
}

// Two ranges that are tested as one.
NEST void reads_near(double* a, const double* b, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) a[j * n + i] = b[i] + b[i + 120] * 0.5;
  }
}

NEST double leaves_twice(double* a, const double* c, double s, long rows, long n) {
  double sum = 0;
  for (long j = 0; j < rows; ++j) {
    if (s > 0 && j == 3) {
      for (long i = 0; i < n; ++i) sum += c[i];
      return sum * 0.5;
    }
    for (long i = 0; i < n; ++i) a[j * n + i] += c[i];
  }
  return s + 1;
}

// Vectors of 16 bytes, 24 apart; of one iteration each, as the next one needs what they hold.
NEST void pairs(struct point* p, const double* b, long n) {
  double x = 0, y = 0;
  for (long i = 0; i < n; ++i) {
    x = x * 0.5 + b[2 * i];
    y = y * 0.5 + b[2 * i + 1];
    p[i].x = x;
    p[i].y = y;
    p[i].tag = i;
  }
}

// A loop that is left early may be said to run so often that what it reads would wrap.
NEST void reads_until(double* a, const double* b, long most, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    double sum = 0;
    for (long i = 0; i < most; ++i) {
      if (b[i] > 1e30) break;
      sum += b[i];
    }
    for (long i = 0; i < n; ++i) a[j * n + i] = sum + i;
  }
}

// Nobody knows how often the loop runs, but it stays where it is.
NEST void until_it_is_large(double* a, double* total, const double* b, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    double x = 1;
    for (;;) {
      *total += *b * *b + 1;
      if (*total > 1e3) break;
      x += polynomial(x) * polynomial(x);
      if (x > 3) break;
    }
    for (long i = 0; i < n; ++i) a[j * n + i] = x + i;
  }
}

// All rows are one box, unless something else in the nest touches the object.
NEST void box_and_reads(double* a, const double* b, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) a[j * n + i] = a[j * n + i] * 0.5 + b[j * n + i];
  }
}
// Only where j is `which` is b read: what the other iterations would read wraps.
NEST double box_and_a_read(double* a, const double* b, long pitch, long which, long rows, long n) {
  double sum = 0;
  for (long j = 0; j < rows; ++j) {
    if (j == which) sum += b[j * pitch];
    for (long i = 0; i < n; ++i) a[j * n + i] = sum + i;
  }
  return sum;
}
NEST void box_on_a_condition(double* a, double s, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    if (s > 0) {
      for (long i = 0; i < n; ++i) a[j * n + i] = a[j * n + i] * 0.5 + s;
    }
  }
}
// Too large to have the condition moved out of the loop.
NEST double large_box_on_a_condition(double* a, const double* c, long which, long rows, long n) {
  double sum = 0;
  for (long j = 0; j < rows; ++j) {
    sum += polynomial(polynomial(c[j]) + polynomial(c[j] * 0.5)) + polynomial(sum * 0.25);
    sum -= polynomial(polynomial(sum) - polynomial(c[j] + 0.25)) * polynomial(c[j] - sum);
    if (which > 0) {
      for (long i = 0; i < n; ++i) a[j * n + i] = a[j * n + i] * 0.5 + 1;
    }
    sum += polynomial(polynomial(c[j] * sum) + polynomial(sum * 0.5)) * polynomial(sum * 0.125);
  }
  return sum;
}
NEST void box_downwards(double* a, const double* c, long rows, long n) {
  for (long j = rows - 1; j >= 0; --j) {
    for (long i = 0; i < n; ++i) a[j * n + i] = a[j * n + i] * 0.5 + c[j * n + i];
  }
}
NEST void two_boxes(double* a, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) a[j * n + i] = a[j * n + i] * 0.5 + 1;
    for (long i = 0; i < n; ++i) a[(j + rows) * n + i] = a[(j + rows) * n + i] * 0.25 + 2;
  }
}
// Rows that begin at any element: some pass the cache, others do not.
NEST void box_of_floats(float* f, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) f[j * n + i] = f[j * n + i] * 0.5f + 1;
  }
}
// A box within the nest of another array, which may be in the same object.
NEST double box_in_a_nest(double* a, double* b, long rows, long n) {
  double sum = 0;
  for (long k = 0; k < rows; ++k) {
    for (long i = 0; i < n; ++i) a[k * n + i] = a[k * n + i] * 0.5 + k;
    for (long j = 0; j < 2; ++j) {
      for (long i = 0; i < n; ++i) b[(2 * k + j) * n + i] = b[(2 * k + j) * n + i] * 0.5 + 1;
    }
    sum += b[2 * k * n + 3];
  }
  return sum;
}
// Rows of one array in an order in which they lie within each other.
NEST void box_of_columns(double* a, long rows, long n) {
  for (long i = 0; i < 3; ++i) {
    for (long j = 0; j < rows; ++j) {
      for (long m = 0; m < n / 3; ++m) {
        a[j * n + i * (n / 3) + m] = a[j * n + i * (n / 3) + m] * 0.5 + i;
      }
    }
  }
}
// Of each struct a part is stored to.
NEST void box_of_parts(struct point* p, const double* b, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) {
      p[j * n + i].y = p[j * n + i].x * 0.5;
      if (b[i] > 0) p[j * n + i].tag = i;
    }
  }
}

// The first member and the last one: what lies between is kept.
NEST void stores_with_gaps(struct point* p, const double* b, long rows, long n) {
  for (long j = 0; j < rows; ++j) {
    for (long i = 0; i < n; ++i) {
      p[j * n + i].x = b[i] * 0.5;
      p[j * n + i].tag = i + j;
    }
  }
}

// The thread that announces the box must not do it, too.
NEST void effect_in_front(double* a, double* b, long n) {
#pragma omp parallel
  {
    b[5] += 1;
#pragma omp for
    for (long i = 0; i < n; ++i) a[i] = a[i] * 0.5 + 1;
  }
}

NEST void boxes_on_a_condition(double* a, double s, long rows, long n) {
#pragma omp parallel for firstprivate(a, s, n)
  for (long j = 0; j < rows; ++j) {
    if (s > 0) {
      for (long i = 0; i < n; ++i) a[j * n + i] = a[j * n + i] * 0.5 + s;
    }
  }
}
NEST void boxes_downwards(double* restrict a, const double* c, long rows, long n) {
#pragma omp parallel for
  for (long j = rows - 2; j > 0; --j) {
    for (long i = 0; i < n; ++i) a[j * n + i] = a[j * n + i] * 0.5 + c[j * n + i];
  }
}

static double* volatile other_name = known;
static volatile long hundred = 100, thousand = 1000, one = 1, three = 3, none = 0;
static volatile long endless = 1L << 61, beyond = -(1L << 56);

#define PROGRAM(name, body)                               \
  static double run_##name(struct arrays* v, int epoch) { \
    double* a = v->d[0];                                  \
    double* b = v->d[1];                                  \
    double* c = v->d[2];                                  \
    const double s = 0.25 * epoch - 0.25;                 \
    const long n = thousand;                              \
    (void)a, (void)b, (void)c, (void)s, (void)n;          \
    body                                                  \
  }

PROGRAM(exit_in_the_middle, return exit_in_the_middle(a, c, n);)
PROGRAM(read_once_more, return read_once_more(a, n);)
PROGRAM(reads_downwards, reads_downwards(a + 2100, a, 2, n / 2); return 0;)
PROGRAM(steps, steps(a, epoch == 0 ? three : one, n); return 0;)
PROGRAM(steps_down, steps(a + n, -one, n); return 0;)
PROGRAM(no_step, steps(a, one - 1, n); return 0;)
PROGRAM(no_iteration, steps(a, three, n - 1000); return 0;)
PROGRAM(read_behind_a_store, return read_behind_a_store(a, b, n);)
PROGRAM(read_behind_a_conditional_store, return read_behind_a_conditional_store(a, b, c, n);)
PROGRAM(read_over_two, return read_over_two(v->points, s, n);)
PROGRAM(two_rows, two_rows(a, 15, hundred); return 0;)
PROGRAM(by_two_names, by_two_names(other_name, 10, hundred); return 0;)
PROGRAM(leaves_twice, return leaves_twice(a, c, s, 9, hundred);)
PROGRAM(pairs, pairs(v->points, b, n); return 0;)
PROGRAM(reads_until, a[cells - 1] = 1e31; reads_until(a, a, endless, 9, hundred); return 0;)
PROGRAM(until_it_is_large, until_it_is_large(a, c + 5, b + 7, 9, hundred); return 0;)
PROGRAM(until_it_is_large_itself, until_it_is_large(a, a + 950, a + 951, 9, hundred); return 0;)
PROGRAM(reads_to_the_end, reads_until(a, b, hundred, 9, hundred); return 0;)
PROGRAM(box_and_reads, box_and_reads(a, b, 9, hundred); return 0;)
PROGRAM(box_and_own_reads, box_and_reads(a, a + 1000, 9, hundred); return 0;)
PROGRAM(box_and_overlapping_reads, box_and_reads(a, a + 300, 9, hundred); return 0;)
PROGRAM(box_and_a_read, return box_and_a_read(a, b, hundred, three, 9, hundred);)
PROGRAM(box_and_a_wrapped_read, return box_and_a_read(a, a + 50, beyond, none, 9, hundred);)
PROGRAM(box_on_a_condition, box_on_a_condition(a, s, 9, hundred); return 0;)
PROGRAM(large_box_on_a_condition, return large_box_on_a_condition(a, c, (long)(4 * s), 9, hundred);)
PROGRAM(stores_with_gaps, stores_with_gaps(v->points, b, 9, hundred); return 0;)
PROGRAM(box_downwards, box_downwards(a, c, 9, hundred); return 0;)
PROGRAM(two_boxes, two_boxes(a, 9, hundred); return 0;)
PROGRAM(box_of_floats, box_of_floats(v->f, 9, hundred + one); return 0;)
PROGRAM(box_in_a_nest, return box_in_a_nest(a, b, 5, hundred);)
PROGRAM(box_in_its_nest, return box_in_a_nest(a, a + 1000, 5, hundred);)
PROGRAM(box_of_columns, box_of_columns(a, 9, hundred* three); return 0;)
PROGRAM(box_of_parts, box_of_parts(v->points, b, 9, hundred); return 0;)
PROGRAM(effect_in_front, effect_in_front(a, b, n); return 0;)
PROGRAM(boxes_on_a_condition, boxes_on_a_condition(a, s, 9, hundred); return 0;)
PROGRAM(boxes_downwards, boxes_downwards(a, c, 9, hundred); return 0;)
// clang-format off
#define NEAR(part) \
  PROGRAM(reads_near_##part, reads_near(a + 2400, a + 120 * (part), 9, hundred - 60); return 0;)
NEAR(0)
NEAR(1)
NEAR(2) NEAR(3) NEAR(4) NEAR(5) NEAR(6) NEAR(7) NEAR(8) NEAR(9) NEAR(10) NEAR(11) NEAR(12) NEAR(13)
// clang-format on

#define NAME_(side, rest) side##rest
#define NAME(side, rest) NAME_(side, rest)
#define ENTRY(name) {#name, run_##name, {(char*)known, (char*)second}},
    // clang-format off
struct program NAME(SIDE, _programs)[] = {
    ENTRY(exit_in_the_middle)
    ENTRY(read_once_more)
    ENTRY(reads_downwards)
    ENTRY(steps)
    ENTRY(steps_down)
    ENTRY(no_step)
    ENTRY(no_iteration)
    ENTRY(read_behind_a_store)
    ENTRY(read_behind_a_conditional_store)
    ENTRY(read_over_two)
    ENTRY(two_rows)
    ENTRY(by_two_names)
    ENTRY(leaves_twice)
    ENTRY(pairs)
    ENTRY(reads_until)
    ENTRY(until_it_is_large)
    ENTRY(until_it_is_large_itself)
    ENTRY(reads_to_the_end)
    ENTRY(box_and_reads)
    ENTRY(box_and_own_reads)
    ENTRY(box_and_overlapping_reads)
    ENTRY(box_and_a_read)
    ENTRY(box_and_a_wrapped_read)
    ENTRY(box_on_a_condition)
    ENTRY(large_box_on_a_condition)
    ENTRY(stores_with_gaps)
    ENTRY(box_downwards)
    ENTRY(two_boxes)
    ENTRY(box_of_floats)
    ENTRY(box_in_a_nest)
    ENTRY(box_in_its_nest)
    ENTRY(box_of_columns)
    ENTRY(box_of_parts)
    ENTRY(effect_in_front)
    ENTRY(boxes_on_a_condition)
    ENTRY(boxes_downwards)
    ENTRY(reads_near_0)
    ENTRY(reads_near_1)
    ENTRY(reads_near_2)
    ENTRY(reads_near_3)
    ENTRY(reads_near_4)
    ENTRY(reads_near_5)
    ENTRY(reads_near_6)
    ENTRY(reads_near_7)
    ENTRY(reads_near_8)
    ENTRY(reads_near_9)
    ENTRY(reads_near_10)
    ENTRY(reads_near_11)
    ENTRY(reads_near_12)
    ENTRY(reads_near_13)
};
// clang-format on
const int NAME(SIDE, _count) = sizeof NAME(SIDE, _programs) / sizeof NAME(SIDE, _programs)[0];
