// SPDX-License-Identifier: BSD-3-Clause
#include "pool/state_word.hpp"

#include "base/assert.hpp"
#include "base/checksum.hpp"

namespace perdure {
namespace {

constexpr unsigned tag_bits = 22;
constexpr unsigned back_bits = 6;
constexpr std::uint64_t tag_mask = (std::uint64_t{1} << tag_bits) - 1;

// `number` is the word without its tag.
std::uint64_t tag_of(SlotState state, std::uint64_t number) {
  const std::uint64_t words[2] = {number, static_cast<std::uint64_t>(state)};
  return crc64(words, sizeof words) & tag_mask;
}

}  // namespace

StateWord state_of(SlotState state, std::uint64_t version, std::uint64_t parent) {
  if (version == 0) return {state, 0, 0};
  PERDURE_ASSERT(parent < version && version - 1 - parent <= back_max);
  return {state, version, static_cast<std::uint32_t>(version - 1 - parent)};
}

std::uint64_t encode_state(const StateWord& word) {
  PERDURE_ASSERT(word.version <= version_max && word.back <= back_max);
  const std::uint64_t number = (word.version << back_bits) | word.back;
  return (number << tag_bits) | tag_of(word.state, number);
}

std::optional<StateWord> decode_state(std::uint64_t bits) {
  const std::uint64_t number = bits >> tag_bits;
  for (const SlotState state :
       {SlotState::complete, SlotState::open, SlotState::deleted, SlotState::unused}) {
    if (tag_of(state, number) != (bits & tag_mask)) continue;
    return StateWord{state, number >> back_bits, static_cast<std::uint32_t>(number & back_max)};
  }
  return std::nullopt;
}

}  // namespace perdure
