// State word: the 8 bytes whose store makes a version exist.
//
//   bits 63..24  the version's number           bits 23..0  a tag of (version, state)
//
// The tag is a checksum, so that no single flipped bit turns one state into the other or changes
// the number unseen. A word that is neither is damage, never a crash: 8-byte stores do not tear.
#pragma once

#include <cstdint>
#include <optional>

namespace perdure {

enum class SlotState : std::uint8_t {
  complete = 1,  // the slot's body is a version, all of whose data is durable on this rank
  open = 2,      // the version with this number may be under way; nothing of it counts
};

struct StateWord {
  SlotState state;
  std::uint64_t version;
  bool operator==(const StateWord&) const = default;
};

constexpr std::uint64_t version_max = (std::uint64_t{1} << 40) - 1;

std::uint64_t encode_state(const StateWord& word);
std::optional<StateWord> decode_state(std::uint64_t bits);

}  // namespace perdure
