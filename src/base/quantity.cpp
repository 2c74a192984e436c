// SPDX-License-Identifier: BSD-3-Clause
#include "base/quantity.hpp"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace perdure {
namespace {

constexpr int exponent_most = 40;  // of ten, with all digits before the point; beyond is nothing
constexpr int written_most = 999;  // so that sums with it fit

struct Unit {
  std::string_view name;
  std::uint64_t scale;
};

constexpr Unit sizes[] = {
    {"", 1},
    {"B", 1},
    {"k", 1ULL << 10U},
    {"K", 1ULL << 10U},
    {"KiB", 1ULL << 10U},
    {"m", 1ULL << 20U},
    {"M", 1ULL << 20U},
    {"MiB", 1ULL << 20U},
    {"g", 1ULL << 30U},
    {"G", 1ULL << 30U},
    {"GiB", 1ULL << 30U},
    {"t", 1ULL << 40U},
    {"T", 1ULL << 40U},
    {"TiB", 1ULL << 40U},
    {"p", 1ULL << 50U},
    {"P", 1ULL << 50U},
    {"PiB", 1ULL << 50U},
    {"kB", 1'000},
    {"KB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"PB", 1'000'000'000'000'000},
};
constexpr std::uint64_t second = 1'000'000'000;
constexpr Unit times[] = {
    {"", second},
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", second},
    {"min", 60 * second},
    {"h", 3'600 * second},
    {"d", 86'400 * second},
    {"y", 31'557'600 * second},  // of 365.25 days
};

template <std::size_t count>
std::optional<std::uint64_t> scale_of(const Unit (&units)[count], std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.scale;
  }
  return std::nullopt;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

// digits * 10^exponent, without zeros at the end of digits.
struct Decimal {
  std::uint64_t digits = 0;
  int exponent = 0;
};

// Takes digits off the front of `text`; nullopt if they do not fit. The fraction is in `places`.
bool take_digits(std::string_view& text, Decimal& number, std::size_t& zeros, int& places) {
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), ++places) {
    const auto digit = static_cast<std::uint64_t>(text.front() - '0');
    ++zeros;
    if (digit == 0) continue;
    for (; zeros > 0; --zeros) {
      if (__builtin_mul_overflow(number.digits, std::uint64_t{10}, &number.digits)) return false;
    }
    if (__builtin_add_overflow(number.digits, digit, &number.digits)) return false;
  }
  return true;
}

// Takes a number off the front of `text`.
std::optional<Decimal> take_number(std::string_view& text) {
  Decimal number;
  std::size_t zeros = 0;  // read, and not in digits: they may be the last ones
  int whole = 0;
  int places = 0;
  if (!take_digits(text, number, zeros, whole)) return std::nullopt;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    if (!take_digits(text, number, zeros, places)) return std::nullopt;
  }
  if (whole + places == 0) return std::nullopt;
  int exponent = 0;
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    const bool signed_up = text.size() > 1 && text[1] == '+';
    const char* begin = text.data() + 1 + (signed_up ? 1 : 0);
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(begin, end, exponent);
    if (read.ec != std::errc{} || (signed_up && *begin == '-')) return std::nullopt;
    if (std::abs(exponent) > written_most) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  }
  number.exponent = exponent - places + static_cast<int>(zeros);
  if (number.digits == 0) return Decimal{};
  if (std::abs(number.exponent) > exponent_most) return std::nullopt;
  return number;
}

// The number at the front of `text`, whose rest becomes the unit.
std::optional<Decimal> split(std::string_view& text) {
  text = without_blanks(text);
  const std::optional<Decimal> number = take_number(text);
  text = without_blanks(text);
  return number;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const std::optional<Decimal> number = split(text);
  const std::optional<std::uint64_t> scale = scale_of(sizes, text);
  if (!number.has_value() || !scale.has_value()) return std::nullopt;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(number->digits, *scale, &bytes)) return std::nullopt;
  for (int left = number->exponent; left > 0; --left) {
    if (__builtin_mul_overflow(bytes, std::uint64_t{10}, &bytes)) return std::nullopt;
  }
  for (int left = number->exponent; left < 0; ++left) {
    if (bytes % 10 != 0) return std::nullopt;
    bytes /= 10;
  }
  return bytes;
}

std::optional<std::uint64_t> parse_time_ns(std::string_view text) {
  const std::optional<Decimal> number = split(text);
  const std::optional<std::uint64_t> scale = scale_of(times, text);
  if (!number.has_value() || !scale.has_value()) return std::nullopt;
  const long double ns =
      std::round(static_cast<long double>(number->digits) * static_cast<long double>(*scale) *
                 std::pow(10.0L, number->exponent));
  if (!(ns < 18446744073709551616.0L)) return std::nullopt;
  return static_cast<std::uint64_t>(ns);
}

}  // namespace perdure
