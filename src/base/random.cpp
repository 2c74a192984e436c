// SPDX-License-Identifier: BSD-3-Clause
#include "base/random.hpp"

#include <sys/random.h>

#include <cerrno>

namespace perdure {

Status fill_random(void* to, std::size_t bytes) {
  auto* place = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t count = ::getrandom(place, bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status("get random bytes from the kernel", errno);
    place += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return Status::success();
}

}  // namespace perdure
