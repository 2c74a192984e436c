// SPDX-License-Identifier: BSD-3-Clause
//
// What a run leaves as JSON (docs/ipv_check.md describes it). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ipv_builds.hpp"
#include "base/process_place.hpp"
#include "ipv_check/checker.hpp"
#include "ipv_check/record.hpp"

namespace perdure::ipv_check {

struct RunFacts {
  std::vector<std::string> command;
  ProcessPlace place;
  std::string marks;       // what began iterations: "persist", "iteration" or ""
  std::uint64_t lost = 0;  // accesses of signal handlers that interrupted the checker
  std::vector<IpvBuild> builds;
};

// Rows of tracked memory that the loop touched.
std::string record_report(const Record& record, const RunFacts& run);

std::string check_report(const Checker& checker, const RunFacts& run);

}  // namespace perdure::ipv_check
