/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A CUDA driver without a device: what Perdure asks it, whether it is in use. */
#include <stdint.h>

#define EXPORTED __attribute__((visibility("default")))

void fake_cuda_initialise(void);
int cuPointerGetAttribute(void* value, int attribute, uint64_t pointer);

static int initialised;

EXPORTED void fake_cuda_initialise(void) {
  initialised = 1;
}

/* CUresult: 3 not initialised, 1 not an address that the driver knows. */
EXPORTED int cuPointerGetAttribute(void* value, int attribute, uint64_t pointer) {
  (void)value;
  (void)attribute;
  (void)pointer;
  return initialised ? 1 : 3;
}
