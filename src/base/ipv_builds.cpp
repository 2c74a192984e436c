// SPDX-License-Identifier: BSD-3-Clause
#include "base/ipv_builds.hpp"

#include <mutex>
#include <utility>

namespace perdure {
namespace {

struct Known {
  std::mutex mutex;
  std::vector<IpvBuild> builds;
};

// Modules are loaded before and after anything of ours.
Known& known() {
  static auto* const all = new Known;
  return *all;
}

}  // namespace

void note_ipv_build(IpvBuild build) {
  const std::lock_guard<std::mutex> lock(known().mutex);
  known().builds.push_back(std::move(build));
}

std::vector<IpvBuild> ipv_builds() {
  const std::lock_guard<std::mutex> lock(known().mutex);
  return known().builds;
}

}  // namespace perdure
