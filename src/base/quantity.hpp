// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes and times as people write them: a number and its unit, by the grammar of docs/cli.md,
// "Sizes and times", which Python reads by too (python/perdure/units.py). Pure.
//
// What is no such quantity, or more than 64 bits hold, is nullopt; callers say what they wanted.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace perdure {

// A bare number: what std::from_chars reads, if that is all of the text.
template <typename Number, typename... Base>
std::optional<Number> number_in(std::string_view text, Base... base) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number, base...);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

// Bytes; a part of a byte is refused.
std::optional<std::uint64_t> parse_size(std::string_view text);
// Nanoseconds, rounded to the nearest.
std::optional<std::uint64_t> parse_time_ns(std::string_view text);

}  // namespace perdure
