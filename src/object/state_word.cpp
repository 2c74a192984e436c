#include "object/state_word.hpp"

#include "base/assert.hpp"
#include "base/checksum.hpp"

namespace perdure {
namespace {

std::uint64_t tag_of(SlotState state, std::uint64_t version) {
  const std::uint64_t words[2] = {version, static_cast<std::uint64_t>(state)};
  return crc64(words, sizeof words) & 0xffffffU;
}

}  // namespace

std::uint64_t encode_state(const StateWord& word) {
  PERDURE_ASSERT(word.version <= version_max);
  return (word.version << 24) | tag_of(word.state, word.version);
}

std::optional<StateWord> decode_state(std::uint64_t bits) {
  const std::uint64_t version = bits >> 24;
  for (const SlotState state : {SlotState::complete, SlotState::open}) {
    if (tag_of(state, version) == (bits & 0xffffffU)) return StateWord{state, version};
  }
  return std::nullopt;
}

}  // namespace perdure
