// SPDX-License-Identifier: BSD-3-Clause
//
// Options of in-place versioning: the program's, and what PERDURE_IPV says instead.
#pragma once

#include <optional>
#include <string>

#include "base/status.hpp"
#include "ipv/way_choice.hpp"

namespace perdure {

struct IpvOptions {
  std::optional<bool> helper;  // nothing: if a processor is idle
  unsigned threads = 1;
  unsigned every = 1;
  unsigned lag = 1;  // 0 or 1: so many persistence points later a version is finished
  bool guard = true;
  bool move_views = true;
  std::string report;
  std::optional<Tier> tier;  // of every object, whatever the program says
};

// `given` may be null. Code::invalid_argument names what is wrong.
Result<IpvOptions> ipv_options(const perdure_ipv_options* given, const char* environment);

Status check_tier(int tier);

}  // namespace perdure
