// SPDX-License-Identifier: BSD-3-Clause
//
// Rank rule: what the program says of an array for the case that another number of ranks made the
// pool. The numbers are perdure.h's.
#pragma once

#include <cstdint>

namespace perdure {

enum class RankRule : std::uint8_t {
  none = 0,     // by its box, if it has one
  rows = 1,     // one list over all ranks, in their order: the first extent is divided anew
  same = 2,     // equal on all ranks
  by_hand = 3,  // the program reads what it wants
  box = 4,      // its part of a global array; from GlobalBox, not from the program's options
};

constexpr const char* rule_name(RankRule rule) {
  switch (rule) {
    case RankRule::none:
      return "none";
    case RankRule::rows:
      return "rows";
    case RankRule::same:
      return "same";
    case RankRule::by_hand:
      return "by hand";
    case RankRule::box:
      return "box";
  }
  return "";
}

}  // namespace perdure
