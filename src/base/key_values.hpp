// SPDX-License-Identifier: BSD-3-Clause
//
// Options as text: keys with values, as an MPI_Info or an environment variable holds them, and the
// values that several of them share. Pure.
//
// A malformed value is Code::invalid_argument, whose sentence names key, value and what is allowed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.hpp"

namespace perdure {

using KeyValues = std::map<std::string, std::string>;

Status wrong_value(const std::string& key, const std::string& value, const std::string& allowed);
Result<std::uint64_t> parse_number(const std::string& key, const std::string& value,
                                   std::uint64_t least, std::uint64_t most);
// A size (base/quantity.hpp).
Result<std::uint64_t> parse_bytes(const std::string& key, const std::string& value,
                                  std::uint64_t least, std::uint64_t most);

Status set_unsigned(const std::string& key, const std::string& value, unsigned most,
                    unsigned& place);
Status set_text(const std::string& key, const std::string& value, std::string& place);

// One word of a few, each of which means a value; `allowed` lists them for the sentence.
template <typename Choice, typename Place>
Status set_choice(const std::string& key, const std::string& value, const std::string& allowed,
                  const std::vector<std::pair<std::string_view, Choice>>& choices, Place& place) {
  for (const auto& [word, choice] : choices) {
    if (value != word) continue;
    place = choice;
    return Status::success();
  }
  return wrong_value(key, value, allowed);
}
template <typename Place>
Status set_bool(const std::string& key, const std::string& value, Place& place) {
  return set_choice<bool>(key, value, "true or false", {{"true", true}, {"false", false}}, place);
}

// "key=value;key=value"; `variable` and `example` are for the sentence.
Result<std::vector<std::pair<std::string, std::string>>> split_key_values(
    const std::string& text, const std::string& variable, const std::string& example);

}  // namespace perdure
