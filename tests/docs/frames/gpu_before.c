// SPDX-License-Identifier: BSD-3-Clause
// What docs/gpu.md leaves out.
#include "cuda.h"

void run(double* u, double* host, size_t bytes, long step, long steps, cudaStream_t stream);
void launch_step(double* u, cudaStream_t stream);
void save(const double* host, size_t bytes, long step);

void run(double* u, double* host, size_t bytes, long step, long steps, cudaStream_t stream) {
  // snippet
}
