// SPDX-License-Identifier: BSD-3-Clause
//
// Fact: one measured number of a benchmark, printed as one line of JSON:
//   {"bench":…, "case":…, "metric":…, "value":…, "unit":…, "low":…, "high":…, "n":…,
//    "target":…, "holds":…, and whatever else is said about it}
// value is the median of n samples, low and high their quartiles; target is null where none is
// claimed. A value that could not be had is null, with the reason in "absent".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace perdure {

struct Fact {
  std::string bench = {};
  std::string name = {};  // printed as "case", which is a word of C++
  std::string metric = {};
  std::string unit = {};
  std::optional<double> value = std::nullopt;
  std::optional<double> low = std::nullopt;
  std::optional<double> high = std::nullopt;
  std::size_t n = 0;
  std::optional<double> target = std::nullopt;
  std::optional<bool> holds = std::nullopt;
  std::vector<std::pair<std::string, std::variant<std::int64_t, double, std::string>>> more = {};
};

// With value, low, high and n; no samples leave the value absent. Interpolates between samples.
[[nodiscard]] Fact of_samples(Fact fact, std::vector<double> samples);

// With the claim that the value is at most (at least) `target`; an absent value holds nothing.
[[nodiscard]] Fact at_most(double target, Fact fact);
[[nodiscard]] Fact at_least(double target, Fact fact);

// The line, without its end; and the line to stdout at once, so that a killed run shows what it
// had.
std::string fact_line(const Fact& fact);
void print_fact(const Fact& fact);

}  // namespace perdure
