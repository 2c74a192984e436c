// SPDX-License-Identifier: BSD-3-Clause
#include "text_lines.hpp"

#include <algorithm>
#include <charconv>

namespace graphs {
namespace {

constexpr std::uint64_t line_bytes_max = 1 << 20;
constexpr std::string_view blanks = " \t\r\v\f";

[[noreturn]] void fail_long_line(const InputFile& file, std::uint64_t from) {
  throw InputError(file.path() + ": the line at byte " + std::to_string(from) + " has more than " +
                   std::to_string(line_bytes_max) + " bytes; is it a text file?");
}

// Where the first line begins that begins at `from` or later.
std::uint64_t line_start(const InputFile& file, std::uint64_t begin, std::uint64_t from) {
  if (from <= begin) return begin;
  constexpr std::uint64_t step = 4096;
  const std::uint64_t limit = std::min(file.bytes(), from - 1 + line_bytes_max);
  for (std::uint64_t at = from - 1; at < limit; at += step) {
    const std::string bytes = file.read(at, std::min(at + step, limit));
    if (const auto end = bytes.find('\n'); end != std::string::npos) return at + end + 1;
  }
  if (limit < file.bytes()) fail_long_line(file, from);
  return file.bytes();
}

}  // namespace

TextLines::TextLines(const InputFile& file, std::uint64_t begin, Part part)
    : file_(file), first_byte_(0) {
  const std::uint64_t size = file.bytes() - begin;
  first_byte_ = line_start(file, begin, begin + part.begin(size));
  const std::uint64_t end = line_start(file, begin, begin + part.end(size));
  bytes_ = file.read(first_byte_, end);
}

TextLines::TextLines(const InputFile& file, std::uint64_t bytes_max)
    : file_(file), bytes_(file.read(0, std::min(file.bytes(), bytes_max))), first_byte_(0) {}

bool TextLines::next(std::string_view& line) {
  if (at_ >= bytes_.size()) return false;
  line_ = at_;
  const std::size_t end = std::min(bytes_.find('\n', at_), bytes_.size());
  line = std::string_view(bytes_).substr(line_, end - line_);
  if (line.size() > line_bytes_max) fail_long_line(file_, first_byte_ + line_);
  at_ = end + 1;
  return true;
}

void TextLines::fail(const std::string& what) const {
  const std::string before = file_.read(0, first_byte_ + line_);
  const auto lines = std::count(before.begin(), before.end(), '\n') + 1;
  throw InputError(file_.path() + ": line " + std::to_string(lines) + ": " + what);
}

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

std::optional<std::uint64_t> number_of(std::string_view word) {
  std::uint64_t number = 0;
  const char* begin = word.data();
  const char* end = begin + word.size();
  const auto [at, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || at != end || word.empty()) return std::nullopt;
  return number;
}

std::string quoted(std::string_view word) {
  std::string text(1, '\'');
  text += word.substr(0, 40);
  text += '\'';
  return text;
}

}  // namespace graphs
