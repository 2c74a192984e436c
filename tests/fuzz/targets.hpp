// SPDX-License-Identifier: BSD-3-Clause
//
// What is fuzzed: one target for each format that is read. A target takes any bytes, and aborts
// where an invariant is broken; it makes the checksums of what it was given right by itself, as
// everything would otherwise be refused before what they protect is looked at.
//
// fuzz_test.cpp mutates the seeds of all targets for a moment; libfuzzer.cpp is the entry of
// libFuzzer. Both run what was found before (tests/fuzz/found/TARGET/) first.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace perdure::fuzz {

using Bytes = std::vector<std::byte>;

struct Target {
  const char* name;
  bool (*run)(std::span<const std::byte> bytes);  // whether they were accepted
  std::vector<Bytes> (*seeds)();                  // that are accepted
};

std::span<const Target> all_targets();
const Target* find_target(std::string_view name);  // null: there is none

// The bytes of a text, after those that choose what is done with it.
Bytes bytes_of(std::string_view text, std::string_view chosen = "");

// Takes numbers off the front of an input; zeros when it has ended.
class Choices {
 public:
  explicit Choices(std::span<const std::byte> bytes) : rest_(bytes) {}
  unsigned take() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<unsigned>(rest_.front());
    rest_ = rest_.subspan(1);
    return value;
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

// The targets, by the modules whose formats they read.
extern const Target trace_target, import_target, simulate_target;    // trace_targets.cpp
extern const Target pool_target, inspect_target, job_record_target;  // pool_targets.cpp
extern const Target part_target, pieces_target;                      // part_targets.cpp
extern const Target journal_target, tokens_target, plan_target;      // text_targets.cpp
extern const Target profile_target, device_table_target;             // text_targets.cpp

}  // namespace perdure::fuzz
