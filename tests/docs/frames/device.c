// SPDX-License-Identifier: BSD-3-Clause
// What docs/devices.md leaves out.
#include <perdure/perdure.h>

void run(perdure_pool* pool, void* u, uint64_t cells, int number);
int copy(void* context, void* to, const void* from, size_t bytes, int direction);
void* allocate(void* context, void* memory, size_t bytes);

void run(perdure_pool* pool, void* u, uint64_t cells, int number) {
  perdure_array* array;
  // snippet
}
