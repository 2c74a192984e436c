// SPDX-License-Identifier: BSD-3-Clause
//
// Verification: a computed number agrees with a published one if their difference, over the
// published one, is at most the tolerance. That is the test of the benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace npb {

struct Check {
  std::string name;
  double value = 0;
  double published = 0;
  double tolerance = 0;  // relative
};

double difference(const Check& check);  // |value - published| / |published|
bool agrees(const Check& check);        // false for a value that is not a number

// not_applicable: the numbers are published for another number of iterations.
enum class Verdict { verified, failed, not_applicable };

// Failed if any check fails, and if there is none.
Verdict verdict(const std::vector<Check>& checks, std::uint64_t iterations,
                std::uint64_t published_iterations);
const char* name_of(Verdict verdict);
int exit_code(Verdict verdict);  // 1 if it failed

}  // namespace npb
