// SPDX-License-Identifier: BSD-3-Clause
#include "base/key_values.hpp"

#include <algorithm>
#include <cstring>

#include "base/quantity.hpp"

namespace perdure {

Status wrong_value(const std::string& key, const std::string& value, const std::string& allowed) {
  return Status(Code::invalid_argument, key, "='", value, "' is not ", allowed);
}

Result<std::uint64_t> parse_number(const std::string& key, const std::string& value,
                                   std::uint64_t least, std::uint64_t most) {
  const auto number = number_in<std::uint64_t>(value);
  if (number && *number >= least && *number <= most) return *number;
  return wrong_value(key, value, sentence("a number from ", least, " to ", most));
}

Result<std::uint64_t> parse_bytes(const std::string& key, const std::string& value,
                                  std::uint64_t least, std::uint64_t most) {
  const std::optional<std::uint64_t> bytes = parse_size(value);
  if (bytes.has_value() && *bytes >= least && *bytes <= most) return *bytes;
  return wrong_value(
      key, value, sentence("a number of bytes from ", least, " to ", most, ", such as 64k or 1m"));
}

Status set_unsigned(const std::string& key, const std::string& value, unsigned most,
                    unsigned& place) {
  PERDURE_TRY_ASSIGN(auto parsed, parse_number(key, value, 1, most));
  place = static_cast<unsigned>(parsed);
  return Status::success();
}

Status set_text(const std::string& key, const std::string& value, std::string& place) {
  if (value.empty()) return wrong_value(key, value, "a text of at least one byte");
  place = value;
  return Status::success();
}

Result<std::vector<std::pair<std::string, std::string>>> split_key_values(
    const std::string& text, const std::string& variable, const std::string& example) {
  std::vector<std::pair<std::string, std::string>> items;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    if (item.empty()) continue;
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos) {
      return Status(Code::invalid_argument, variable, ": '", item,
                    "' is not key=value; for example ", example);
    }
    items.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return items;
}

}  // namespace perdure
