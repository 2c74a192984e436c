// SPDX-License-Identifier: BSD-3-Clause
// What docs/gpu.md leaves out.
#include <perdure/perdure.h>

#include "cuda.h"

void run(double* u, perdure_pool* pool, uint64_t cells, long step, long steps, cudaStream_t stream);
void launch_step(double* u, cudaStream_t stream);

void run(double* u, perdure_pool* pool, uint64_t cells, long step, long steps,
         cudaStream_t stream) {
  perdure_array* array;
  uint64_t version;
  // snippet
}
