// SPDX-License-Identifier: BSD-3-Clause
#include "pool/array_memory.hpp"

#include <cstring>

namespace perdure {

Result<Stores> ArrayMemory::check(const std::byte* at, std::uint64_t size_bytes) {
  reach_bytes_ = 0;
  return check_buffer_memory(at, size_bytes, &reach_bytes_);
}

void ArrayMemory::use(ArrayBuffer own, std::byte* at) {
  own_ = std::move(own);
  source_ = at_ = at;
  how_lost_ = nullptr;
}

void ArrayMemory::stage(std::uint64_t size_bytes) {
  std::memcpy(staging_.at(), at_, size_bytes);
  source_ = staging_.at();
}

}  // namespace perdure
