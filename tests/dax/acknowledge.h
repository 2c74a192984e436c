// SPDX-License-Identifier: BSD-3-Clause
/* What a test program says to somebody who kills its whole machine (tests/dax): on standard output,
 * which may be a serial line.
 *
 *   restarted 17 power failure     it goes on from version or step 17; what the pool survives
 *   committed 18                   18 is durable, and a restart gives at least it; only with
 *                                  PERDURE_TEST_ACKNOWLEDGE in the environment
 *
 * A line is on its way for a while, so whoever reads it knows of no more than what is durable. */
#ifndef PERDURE_TESTS_ACKNOWLEDGE_H
#define PERDURE_TESTS_ACKNOWLEDGE_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "perdure/perdure.h"

static inline void say_restarted(const perdure_pool* pool, uint64_t from) {
  perdure_pool_status status;
  if (perdure_status(pool, &status) != PERDURE_OK) exit(1);
  printf("restarted %" PRIu64 " %s\n", from,
         status.survives_power_failure ? "power failure" : "process crash");
  fflush(stdout);
}

static inline void say_committed(uint64_t reached) {
  if (!getenv("PERDURE_TEST_ACKNOWLEDGE")) return;
  printf("committed %" PRIu64 "\n", reached);
  fflush(stdout);
}

#endif
