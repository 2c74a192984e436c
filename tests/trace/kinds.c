// SPDX-License-Identifier: BSD-3-Clause
//
// Accesses of many kinds, each over its own arrays of 32768 lines, which no cache of 1 MB holds.
// test_trace.py says what each must be counted as. kinds WHICH
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perdure/perdure_trace.h"

enum { lines = 32768, line = 64, size = lines * line };

struct block {
  char bytes[256];
};

// The compiler must not know what is in it.
static char* array(void) {
  static char* volatile hidden;
  hidden = aligned_alloc(4096, size);
  if (hidden == NULL) abort();
  return hidden;
}

static void touch(char* p, int from, int to) {
  for (int i = from; i < to; ++i) *(volatile char*)(p + (size_t)i * line) = 1;
}

static void copy_blocks(struct block* to, const struct block* from) {
  for (int i = 0; i < size / (int)sizeof *to; ++i) to[i] = from[i];
}

static void add_atomically(uint64_t* p) {
  for (int i = 0; i < lines; ++i) __atomic_fetch_add(p + (size_t)i * 8, 1, __ATOMIC_SEQ_CST);
}

static void compare_atomically(uint64_t* p) {
  for (int i = 0; i < lines; ++i) {
    uint64_t expected = 0;
    __atomic_compare_exchange_n(p + (size_t)i * 8, &expected, 1, 0, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
  }
}

// Eight bytes, four in this line and four in the next.
static void straddle(char* p) {
  for (int i = 0; i + 1 < lines; i += 2) {
    const uint64_t value = 7;
    memcpy(p + (size_t)i * line + line - 4, &value, sizeof value);
  }
}

static void fork_child(char* p) {
  touch(p, 0, lines / 2);
  const pid_t child = fork();
  if (child == 0) {
    touch(p, 0, lines);
    exit(0);
  }
  waitpid(child, NULL, 0);
  touch(p, lines / 2, lines);
}

static void mark(char* p) {
  touch(p, 0, 1000);
  perdure_trace_begin("solve");
  touch(p, 1000, 3000);
  perdure_trace_end();
  touch(p, 3000, lines);
}

int main(int count, char** words) {
  const char* which = count > 1 ? words[1] : "";
  char *a = array(), *b = array();
  volatile size_t whole = size;
  if (strcmp(which, "memset") == 0) memset(a, count, whole);
  if (strcmp(which, "memcpy") == 0) memcpy(b, a, whole);
  if (strcmp(which, "memmove") == 0) memmove(b, a, whole);
  if (strcmp(which, "blocks") == 0) copy_blocks((struct block*)b, (struct block*)a);
  if (strcmp(which, "add") == 0) add_atomically((uint64_t*)a);
  if (strcmp(which, "compare") == 0) compare_atomically((uint64_t*)a);
  if (strcmp(which, "straddle") == 0) straddle(a);
  if (strcmp(which, "fork") == 0) fork_child(a);
  if (strcmp(which, "mark") == 0) mark(a);
  if (strcmp(which, "killed") == 0) {
    for (int i = 0; i < 50; ++i) touch(a, 0, lines);
    kill(getpid(), 9);
  }
  if (strcmp(which, "_exit") == 0) {
    touch(a, 0, lines);
    _exit(3);
  }
  if (strcmp(which, "quick_exit") == 0) {
    touch(a, 0, lines);
    quick_exit(0);
  }
  return (a[count] + b[count]) == 1000 ? 1 : 0;
}
