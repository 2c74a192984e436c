// SPDX-License-Identifier: BSD-3-Clause
#include "npb/verification.hpp"

#include <algorithm>
#include <cmath>

namespace npb {

double difference(const Check& check) {
  return std::abs((check.value - check.published) / check.published);
}

bool agrees(const Check& check) {
  return difference(check) <= check.tolerance;  // false for NaN
}

Verdict verdict(const std::vector<Check>& checks, std::uint64_t iterations,
                std::uint64_t published_iterations) {
  if (iterations != published_iterations) return Verdict::not_applicable;
  const bool all = !checks.empty() && std::all_of(checks.begin(), checks.end(), agrees);
  return all ? Verdict::verified : Verdict::failed;
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::verified:
      return "verified";
    case Verdict::failed:
      return "failed";
    case Verdict::not_applicable:
      return "not applicable";
  }
  return "?";
}

int exit_code(Verdict verdict) {
  return verdict == Verdict::failed ? 1 : 0;
}

}  // namespace npb
