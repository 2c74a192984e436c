// SPDX-License-Identifier: BSD-3-Clause
// What docs/devices.md leaves out, and as much of SYCL as it has.
#include <perdure/perdure.h>

#include <cstddef>
#include <exception>

namespace sycl {
struct queue {
  void memcpy(void* to, const void* from, std::size_t bytes);
  void wait_and_throw();
};
void* malloc_device(std::size_t bytes, queue& on);
void free(void* memory, queue& on);
}  // namespace sycl

using std::size_t;

namespace page {
// snippet
perdure_device device(sycl::queue& on) {
  perdure_device made{};
  made.context = &on;
  made.copy = copy;
  made.wait = wait;
  made.allocate = allocate;
  return made;
}
}  // namespace page
