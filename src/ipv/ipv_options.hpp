// SPDX-License-Identifier: BSD-3-Clause
//
// Options of in-place versioning: the program's, and what PERDURE_IPV says instead.
#pragma once

#include <optional>
#include <string>

#include "base/status.hpp"
#include "perdure/perdure_ipv.h"
#include "pmem/delay_device.hpp"

namespace perdure {

using Tier = perdure_ipv_tier;
const char* tier_name(Tier tier);

struct IpvOptions {
  std::optional<bool> helper;  // nothing: if a processor is idle
  unsigned threads = 1;
  unsigned every = 1;
  unsigned lag = 1;  // 0 or 1: so many persistence points later a version is finished
  bool guard = true;
  bool move_views = true;
  bool verify = false;                // version_check.hpp
  std::optional<unsigned> box_bytes;  // compiled nests announce boxes from this size on
  Accesses accesses;                  // of the objects' copies in the pool, an iteration
  std::string report;
  std::optional<Tier> tier;  // of every object, whatever the program says
};

// `given` may be null. Code::invalid_argument names what is wrong.
Result<IpvOptions> ipv_options(const perdure_ipv_options* given, const char* environment);

Status check_tier(int tier);

}  // namespace perdure
