// SPDX-License-Identifier: BSD-3-Clause
//
// Mutates the seeds of every target (targets.hpp) for a moment, after what was found before. Longer
// campaigns, with sanitizers: tests/fuzz/run.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "source_tree.hpp"
#include "targets.hpp"

namespace perdure::fuzz {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void mutate(Bytes& bytes) {
    for (std::uint64_t changes = 1 + below(4); changes != 0 && !bytes.empty(); --changes) {
      const auto at = static_cast<std::ptrdiff_t>(below(bytes.size()));
      const auto count =
          static_cast<std::ptrdiff_t>(1 + below(std::min<std::size_t>(32, bytes.size())));
      change(bytes, at, std::min<std::ptrdiff_t>(at + count, std::ssize(bytes)));
    }
  }

 private:
  void change(Bytes& bytes, std::ptrdiff_t at, std::ptrdiff_t end) {
    std::byte& first = bytes[static_cast<std::size_t>(at)];
    switch (below(7)) {
      case 0:
        first ^= std::byte{1} << below(8);
        break;
      case 1:
        first = static_cast<std::byte>(below(256));
        break;
      case 2:
        bytes.erase(bytes.begin() + at, bytes.begin() + end);
        break;
      case 3:
        bytes.insert(bytes.begin() + at, static_cast<std::size_t>(end - at), std::byte{0x30});
        break;
      case 4:
        std::fill(bytes.begin() + at, bytes.begin() + end, std::byte{0xff});
        break;
      case 5:
        std::fill(bytes.begin() + at, bytes.begin() + end, std::byte{0});
        break;
      case 6:
        if (below(4) == 0) bytes.resize(static_cast<std::size_t>(at));
        break;
    }
  }

  std::mt19937_64 random_;
};

Bytes read_file(const std::filesystem::path& path) {
  Bytes bytes(std::filesystem::file_size(path));
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), std::ssize(bytes));
  return bytes;
}

class Fuzz : public testing::TestWithParam<Target> {};

TEST_P(Fuzz, accepts_some_of_its_seeds) {
  const std::vector<Bytes> seeds = GetParam().seeds();
  const auto accepted = std::count_if(seeds.begin(), seeds.end(), GetParam().run);
  EXPECT_GT(accepted, 0) << "of " << seeds.size();
}

TEST_P(Fuzz, survives_what_was_found_before) {
  const std::filesystem::path found =
      source_file(std::string("tests/fuzz/found/") + GetParam().name);
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(found, none)) {
    std::printf("%s\n", entry.path().filename().c_str());
    std::fflush(stdout);  // an abort would lose it
    (void)GetParam().run(read_file(entry.path()));
  }
}

TEST_P(Fuzz, no_mutated_input_breaks_it) {
  const std::uint64_t seed = from_environment("PERDURE_TEST_SEED", wall_clock_ns());
  const std::uint64_t most = from_environment("PERDURE_FUZZ_INPUTS", 3000);
  std::printf("PERDURE_TEST_SEED=%ju\n", static_cast<std::uintmax_t>(seed));
  std::fflush(stdout);
  Mutator mutator(seed);
  const std::vector<Bytes> seeds = GetParam().seeds();
  std::uint64_t accepted = 0;
  for (std::uint64_t input = 0; input < most; ++input) {
    Bytes bytes = seeds[mutator.below(seeds.size())];
    mutator.mutate(bytes);
    if (GetParam().run(bytes)) ++accepted;
  }
  std::printf("%ju inputs, %ju accepted\n", static_cast<std::uintmax_t>(most),
              static_cast<std::uintmax_t>(accepted));
}

std::string name_of(const testing::TestParamInfo<Target>& target) {
  return target.param.name;
}
INSTANTIATE_TEST_SUITE_P(Targets, Fuzz,
                         testing::ValuesIn(all_targets().begin(), all_targets().end()), name_of);

}  // namespace
}  // namespace perdure::fuzz
