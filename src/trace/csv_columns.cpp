// SPDX-License-Identifier: BSD-3-Clause
#include "trace/csv_columns.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/quantity.hpp"

namespace perdure::trace {
namespace {

// The next column, without blanks and quotes around it, in small letters.
std::string take_column(std::string_view& line) {
  const std::size_t end = std::min(line.find(','), line.size());
  std::string_view column = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  constexpr std::string_view around = " \t\r\"";
  const std::size_t first = column.find_first_not_of(around);
  if (first == column.npos) return {};
  column = column.substr(first, column.find_last_not_of(around) - first + 1);
  std::string text(column);
  std::ranges::transform(text, text.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  return text;
}

std::optional<std::uint64_t> number(std::string_view text) {
  if (text.starts_with("0x")) return number_in<std::uint64_t>(text.substr(2), 16);
  return number_in<std::uint64_t>(text);
}

// READ(6), (10), (12), (16) and WRITE likewise.
std::optional<bool> is_write(std::string_view op) {
  if (op.starts_with("0x")) op.remove_prefix(2);
  constexpr std::array<std::string_view, 7> reads = {"r", "read", "8", "08", "28", "a8", "88"};
  constexpr std::array<std::string_view, 7> writes = {"w", "write", "a", "0a", "2a", "aa", "8a"};
  if (std::ranges::find(reads, op) != reads.end()) return false;
  if (std::ranges::find(writes, op) != writes.end()) return true;
  return std::nullopt;
}

}  // namespace

Result<CsvColumns> CsvColumns::of_header(std::string_view header) {
  CsvColumns columns;
  if (header.starts_with('#')) header.remove_prefix(1);
  for (std::size_t at = 0; !header.empty(); ++at) {
    const std::string name = take_column(header);
    if (name == "op") columns.op_ = at;
    if (name == "address") columns.address_ = at;
    if (name == "size") columns.size_ = at;
  }
  if (columns.op_ != none && columns.address_ != none) return columns;
  return Status(Code::invalid_argument, "its columns have no ",
                (columns.op_ == none ? "'op'" : "'address'"),
                "; name them in the first line or with --columns: time,op,size,address");
}

std::optional<CsvRequest> CsvColumns::request(std::string_view line) const {
  CsvRequest request;
  bool has_op = false;
  bool has_address = false;
  for (std::size_t at = 0; !line.empty(); ++at) {
    const std::string column = take_column(line);
    if (at == op_) {
      const auto write = is_write(column);
      if (!write) return std::nullopt;
      request.is_write = *write;
      has_op = true;
    } else if (at == address_ || at == size_) {
      const auto value = number(column);
      if (!value) return std::nullopt;
      (at == address_ ? request.address : request.bytes) = *value;
      has_address |= at == address_;
    }
  }
  return has_op && has_address ? std::optional(request) : std::nullopt;
}

}  // namespace perdure::trace
