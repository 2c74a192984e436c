// SPDX-License-Identifier: BSD-3-Clause
//
// State word: the 8 bytes whose store makes a version exist, or cease to.
//
//   bits 63..28  the version's number
//   bits 27..22  back: the version was made from version number - 1 - back
//   bits 21..0   a tag of (number, back, state)
//
// The tag is a checksum, so that no single flipped bit turns one state into another or changes a
// number unseen. A word with a wrong tag is damage, never a crash: 8-byte stores do not tear.
#pragma once

#include <cstdint>
#include <optional>

namespace perdure {

enum class SlotState : std::uint8_t {
  complete = 1,  // the slot's body is a version, all of whose data is durable on this rank
  open = 2,      // the version with this number may be under way; nothing of it counts
  deleted = 3,   // there was a version with this number; nothing of it counts any more
  unused = 4,    // no version stood here yet; the number is the slot's
};

struct StateWord {
  SlotState state;
  std::uint64_t version;
  std::uint32_t back = 0;
  bool operator==(const StateWord&) const = default;
};

constexpr std::uint64_t version_max = (std::uint64_t{1} << 36) - 1;
constexpr std::uint64_t back_max = (std::uint64_t{1} << 6) - 1;

// The version that it was made from. Version 0 is its own.
constexpr std::uint64_t parent_of(const StateWord& word) {
  return word.version > word.back ? word.version - 1 - word.back : 0;
}

// The word of `version` made from `parent`, which is older by at most back_max + 1.
StateWord state_of(SlotState state, std::uint64_t version, std::uint64_t parent);

std::uint64_t encode_state(const StateWord& word);
std::optional<StateWord> decode_state(std::uint64_t bits);

}  // namespace perdure
