// SPDX-License-Identifier: BSD-3-Clause
#include "reader.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perdure/perdure_ipv_check_abi.h"

enum { ranges_max = 16, asked_to_rest = 1, asked_to_end = 2 };

struct history {
  uint64_t* values;  // as they followed each other
  unsigned count, room, seen;
};

struct range {
  const char *native, *watched;
  size_t bytes, element_bytes;
  struct history* of;
};

static struct range ranges[ranges_max];
static int range_count, is_noting;
static pthread_t thread;
static int request = asked_to_rest, is_resting = 1;
static long looks, sweeps, wrong;
static char first_wrong[256];

static uint64_t value_at(const char* address, size_t bytes) {
  if (bytes == 4) return __atomic_load_n((const uint32_t*)address, __ATOMIC_RELAXED);
  return __atomic_load_n((const uint64_t*)address, __ATOMIC_RELAXED);
}

void reader_knows(const void* native, const void* watched, size_t bytes, size_t element_bytes) {
  if (range_count == ranges_max) abort();
  struct history* const of = calloc(bytes / element_bytes, sizeof *of);
  if (of == NULL) abort();
  ranges[range_count++] = (struct range){native, watched, bytes, element_bytes, of};
}

static void note(const struct range* range, size_t element) {
  struct history* const of = &range->of[element];
  const uint64_t value =
      value_at(range->native + element * range->element_bytes, range->element_bytes);
  if (of->count != 0 && of->values[of->count - 1] == value) return;
  if (of->count == of->room) {
    of->room = of->room == 0 ? 2 : 2 * of->room;
    of->values = realloc(of->values, of->room * sizeof *of->values);
    if (of->values == NULL) abort();
  }
  of->values[of->count++] = value;
}

static void note_all(void) {
  for (int r = 0; r < range_count; ++r) {
    for (size_t i = 0; i < ranges[r].bytes / ranges[r].element_bytes; ++i) note(&ranges[r], i);
  }
}

// What is about to be overwritten has been shown.
static void about_to_store(uint64_t address, uint64_t bytes) {
  if (!is_noting) return;
  for (int r = 0; r < range_count; ++r) {
    const struct range* const range = &ranges[r];
    const uint64_t first = (uintptr_t)range->native;
    if (address >= first + range->bytes || address + bytes <= first) continue;
    const uint64_t begin = address > first ? address - first : 0;
    uint64_t end = address + bytes - first;
    if (end > range->bytes) end = range->bytes;
    const size_t last = (end + range->element_bytes - 1) / range->element_bytes;
    for (size_t i = begin / range->element_bytes; i < last; ++i) note(range, i);
  }
}

static void look_at(const struct range* range, size_t element) {
  struct history* const of = &range->of[element];
  const uint64_t found =
      value_at(range->watched + element * range->element_bytes, range->element_bytes);
  for (unsigned at = of->seen; at < of->count; ++at) {
    if (of->values[at] != found) continue;
    of->seen = at;
    return;
  }
  if (wrong++ != 0) return;
  snprintf(first_wrong, sizeof first_wrong,
           "range %d, element %zu: %016llx was seen, after value %u of %u, the last %016llx",
           (int)(range - ranges), element, (unsigned long long)found, of->seen, of->count,
           (unsigned long long)of->values[of->count - 1]);
}

static void sweep(void) {
  for (int r = 0; r < range_count; ++r) {
    for (size_t i = 0; i < ranges[r].bytes / ranges[r].element_bytes; ++i) look_at(&ranges[r], i);
    looks += (long)(ranges[r].bytes / ranges[r].element_bytes);
  }
  __atomic_add_fetch(&sweeps, 1, __ATOMIC_SEQ_CST);
}

static void* look_always(void* unused) {
  for (;;) {
    const int asked = __atomic_load_n(&request, __ATOMIC_SEQ_CST);
    if (asked == asked_to_end) return unused;
    __atomic_store_n(&is_resting, asked == asked_to_rest, __ATOMIC_SEQ_CST);
    if (asked == asked_to_rest) {
      sched_yield();
    } else {
      sweep();
    }
  }
}

void reader_start(void) {
  if (pthread_create(&thread, NULL, look_always, NULL) != 0) abort();
}

void reader_begins_epoch(void) {
  for (int r = 0; r < range_count; ++r) {
    for (size_t i = 0; i < ranges[r].bytes / ranges[r].element_bytes; ++i) {
      ranges[r].of[i].count = ranges[r].of[i].seen = 0;
    }
  }
  note_all();
  is_noting = 1;
}

void reader_looks(void) {
  is_noting = 0;
  note_all();
  sweeps = 0;
  __atomic_store_n(&request, 0, __ATOMIC_SEQ_CST);
}

long reader_rests(void) {
  while (__atomic_load_n(&sweeps, __ATOMIC_SEQ_CST) == 0) sched_yield();
  __atomic_store_n(&request, asked_to_rest, __ATOMIC_SEQ_CST);
  while (!__atomic_load_n(&is_resting, __ATOMIC_SEQ_CST)) sched_yield();
  if (wrong != 0) printf("the reader: %ld values that can't be; %s\n", wrong, first_wrong);
  return wrong;
}

void reader_stop(void) {
  __atomic_store_n(&request, asked_to_end, __ATOMIC_SEQ_CST);
  pthread_join(thread, NULL);
  printf("%ld looks\n", looks);
}

// What the instrumented side calls.
void perdure_ipv_check_load(uint64_t address, uint64_t bytes, struct perdure_ipv_site* site) {
  (void)address, (void)bytes, (void)site;
}
void perdure_ipv_check_store(uint64_t address, uint64_t bytes, struct perdure_ipv_site* site) {
  (void)site;
  about_to_store(address, bytes);
}
void perdure_ipv_check_load_lanes(uint64_t address, uint64_t element_bytes, uint64_t lanes,
                                  struct perdure_ipv_site* site) {
  (void)address, (void)element_bytes, (void)lanes, (void)site;
}
void perdure_ipv_check_store_lanes(uint64_t address, uint64_t element_bytes, uint64_t lanes,
                                   struct perdure_ipv_site* site) {
  (void)site;
  for (; lanes != 0; lanes >>= 1, address += element_bytes) {
    if ((lanes & 1) != 0) about_to_store(address, element_bytes);
  }
}
void perdure_ipv_check_copy(uint64_t to, uint64_t from, uint64_t bytes,
                            struct perdure_ipv_site* site) {
  (void)from, (void)site;
  about_to_store(to, bytes);
}
void perdure_ipv_check_assign(const void* to, const void* from, struct perdure_ipv_site* site) {
  (void)to, (void)from, (void)site;
}
void perdure_ipv_check_here(struct perdure_ipv_site* site) {
  (void)site;
}
void perdure_ipv_check_globals(const struct perdure_ipv_global* globals, uint64_t count) {
  (void)globals, (void)count;
}
