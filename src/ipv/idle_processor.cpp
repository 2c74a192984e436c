// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/idle_processor.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "base/checksum.hpp"
#include "base/environment.hpp"

namespace perdure {
namespace {

struct Processors {
  std::uint64_t name = 0;  // the same for the same processors; 0: not known
  std::uint64_t count = 0;
};

Processors own_processors() {
  std::array<cpu_set_t, 16> sets{};  // for 16,384 processors
  if (::sched_getaffinity(0, sizeof sets, sets.data()) != 0) return {};
  return {crc64(sets.data(), sizeof sets) | 1,
          static_cast<std::uint64_t>(CPU_COUNT_S(sizeof sets, sets.data()))};
}

std::uint64_t threads_of_a_rank() {
  const std::string text = environment("OMP_NUM_THREADS");  // "" is 0
  return static_cast<std::uint64_t>(std::max(1L, std::strtol(text.c_str(), nullptr, 10)));
}

}  // namespace

Result<bool> processor_is_idle(Group& group) {
  PERDURE_TRY_ASSIGN(const auto nodes, group.nodes());
  const Processors own = own_processors();
  std::vector<std::uint64_t> names(group.ranks());
  names[group.rank()] = own.name;
  PERDURE_TRY(group.all_max(names));
  std::uint64_t sharing = 0;
  for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
    const bool same = nodes[rank] == nodes[group.rank()] && names[rank] == own.name;
    sharing += same ? 1U : 0U;  // this rank as well
  }
  return own.name != 0 && sharing * threads_of_a_rank() < own.count;
}

}  // namespace perdure
