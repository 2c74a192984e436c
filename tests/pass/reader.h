// SPDX-License-Identifier: BSD-3-Clause
//
// A reader beside a program of random_nests.py: a thread that looks at every object all the time,
// and knows what it may see. The native side runs an epoch first, compiled with the pass
// `ipv-check`, which announces each store in front of it: so each element has the row of values
// that the program as written shows in that epoch. What the reader finds in an element of the other
// side must be in that row, and not in front of what it found there before.
#ifndef PERDURE_TESTS_PASS_READER_H
#define PERDURE_TESTS_PASS_READER_H

#include <stddef.h>

// Elements of 4 or 8 bytes, in the memory of both sides.
void reader_knows(const void* native, const void* watched, size_t bytes, size_t element_bytes);
void reader_start(void);

// An epoch: begins before the native side runs it; the reader looks from reader_looks() on, until
// reader_rests() returns, by when it has looked at everything at least once. Returns how many
// values it found so far that can't be, and says the first.
void reader_begins_epoch(void);
void reader_looks(void);
long reader_rests(void);

void reader_stop(void);
#endif
