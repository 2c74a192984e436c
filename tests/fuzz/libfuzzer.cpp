// The entry of libFuzzer; PERDURE_FUZZ_TARGET is one of targets.hpp.
#include <cstdint>

#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  perdure::trace::PERDURE_FUZZ_TARGET(std::as_bytes(std::span(bytes, size)));
  return 0;
}
