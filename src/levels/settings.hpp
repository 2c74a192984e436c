// SPDX-License-Identifier: BSD-3-Clause
//
// Settings of the levels beyond the pool: what is kept in other nodes' pools, what is drained to a
// directory, and how often.
//
// One grammar for all ways in: "key=value;key=value" in the environment variable PERDURE_LEVELS or
// in the info key perdure_levels, or one "key=value" a line in a file, whose path then stands for
// the text. docs/levels.md lists the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "levels/redundancy.hpp"
#include "pmem/region.hpp"

namespace perdure {

struct LevelSettings {
  // Absent: by default, which is a partner's copy on several nodes and nothing on one.
  std::optional<std::string> redundancy;  // a scheme (redundancy.hpp), or "off"
  std::uint64_t every = 10;               // versions
  std::string groups;                     // a file with a line of ranks for each failure group
  std::string drain;                      // a directory; empty: none
  std::optional<std::uint64_t> drain_every;
  std::uint64_t drain_keep = 2;  // versions
  std::uint64_t patience_ns = 60'000'000'000;
  std::uint64_t lease_ns = 30'000'000'000;  // a run that is silent for so long may lose its drain
  std::optional<JobId> take;                // a lineage to go on from, whatever the nodes hold

  bool any() const { return (redundancy && *redundancy != "off") || !drain.empty(); }
  // The scheme on `nodes` nodes; absent: none.
  Result<std::optional<Scheme>> scheme(std::uint32_t nodes) const;
  // As a person reads it.
  std::string text() const;
};

// `text` as above; empty: all by default. Code::invalid_argument names the key and what is allowed.
Result<LevelSettings> parse_level_settings(const std::string& text);

// The failure groups of a file: a line of ranks for each, each of the ranks in one of them.
Result<std::vector<std::vector<std::uint32_t>>> read_groups(const std::string& path,
                                                            std::uint32_t ranks);

}  // namespace perdure
