#include "base/checksum.hpp"

#include <isa-l/crc64.h>

namespace perdure {

std::uint64_t crc64(const void* bytes, std::size_t size_bytes, std::uint64_t seed) {
  return crc64_ecma_refl(seed, static_cast<const unsigned char*>(bytes), size_bytes);
}

}  // namespace perdure
