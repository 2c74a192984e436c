/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kernel of bench_ipv_update, as a user writes it: compiled by perdure-clang as it is (UPDATE
 * is update_native) and with --ipv=all (update_versioned).
 */
#include <stddef.h>

void UPDATE(double* u, const double* r, size_t rows, size_t columns);
void UPDATE(double* u, const double* r, size_t rows, size_t columns) {
  for (size_t j = 0; j < rows; j++) {
    for (size_t i = 0; i < columns; i++) u[j * columns + i] += r[j * columns + i];
  }
}
