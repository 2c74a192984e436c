// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes and times as people write them: a number and its unit, by the grammar of docs/cli.md,
// "Sizes and times", which Python reads by too (python/perdure/units.py). Pure.
//
// What is no such quantity, or more than 64 bits hold, is nullopt; callers say what they wanted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace perdure {

// Bytes; a part of a byte is refused.
std::optional<std::uint64_t> parse_size(std::string_view text);
// Nanoseconds, rounded to the nearest.
std::optional<std::uint64_t> parse_time_ns(std::string_view text);

}  // namespace perdure
