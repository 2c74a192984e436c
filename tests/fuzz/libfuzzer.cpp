// SPDX-License-Identifier: BSD-3-Clause
//
// The entry of libFuzzer; PERDURE_FUZZ_TARGET is the name of a target. `PROGRAM --seeds FOLDER`
// writes the target's seeds and ends.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "targets.hpp"

namespace {

const perdure::fuzz::Target& target() {
  static const perdure::fuzz::Target& found = *perdure::fuzz::find_target(PERDURE_FUZZ_TARGET);
  return found;
}

void write_seeds(const std::string& folder) {
  int number = 0;
  for (const perdure::fuzz::Bytes& seed : target().seeds()) {
    std::ofstream file(folder + "/seed-" + std::to_string(number++), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), std::ssize(seed));
    if (!file) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc != 3 || std::strcmp((*argv)[1], "--seeds") != 0) return 0;
  write_seeds((*argv)[2]);
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  (void)target().run(std::as_bytes(std::span(bytes, size)));
  return 0;
}
