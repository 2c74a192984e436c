// SPDX-License-Identifier: BSD-3-Clause
// What docs/ipv.md leaves out.
#include <perdure/perdure_ipv.h>
#include <stddef.h>

void run(double* u, size_t cells);

void run(double* u, size_t cells) {
  // snippet
}
