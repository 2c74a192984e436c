// SPDX-License-Identifier: BSD-3-Clause
#include "targets.hpp"

#include <algorithm>
#include <array>

namespace perdure::fuzz {

std::span<const Target> all_targets() {
  static const std::array targets = {
      trace_target,      import_target,  simulate_target,    pool_target,    inspect_target,
      job_record_target, part_target,    pieces_target,      journal_target, tokens_target,
      plan_target,       profile_target, device_table_target};
  return targets;
}

const Target* find_target(std::string_view name) {
  const auto targets = all_targets();
  const auto found = std::find_if(targets.begin(), targets.end(),
                                  [name](const Target& target) { return target.name == name; });
  return found == targets.end() ? nullptr : &*found;
}

Bytes bytes_of(std::string_view text, std::string_view chosen) {
  Bytes bytes(chosen.size() + text.size());
  const auto byte = [](char letter) { return static_cast<std::byte>(letter); };
  std::transform(text.begin(), text.end(),
                 std::transform(chosen.begin(), chosen.end(), bytes.begin(), byte), byte);
  return bytes;
}

}  // namespace perdure::fuzz
