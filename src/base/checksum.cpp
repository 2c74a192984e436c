#include "base/checksum.hpp"

#include <isa-l/crc64.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace perdure {
namespace {

// ISA-L's code for AVX-512 returns with the upper halves of vector registers in use. From then on
// every SSE instruction of the caller must keep them, which makes a solver that was not compiled
// for AVX two to three times slower on some processors (seen: AMD EPYC with AVX-512), for good.
#if defined(__x86_64__)
[[gnu::noinline, gnu::target("avx")]] void clear_upper_halves() {
  _mm256_zeroupper();
}
void leave_vector_code() {
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  if (has_avx) clear_upper_halves();
}
#else
void leave_vector_code() {}
#endif

}  // namespace

std::uint64_t crc64(const void* bytes, std::size_t size_bytes, std::uint64_t seed) {
  const std::uint64_t checksum =
      crc64_ecma_refl(seed, static_cast<const unsigned char*>(bytes), size_bytes);
  leave_vector_code();
  return checksum;
}

}  // namespace perdure
