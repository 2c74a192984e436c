// SPDX-License-Identifier: BSD-3-Clause
//
// TextLines: the lines of one part of a text file, split by bytes: a line belongs to the part in
// which its first byte lies. An error names the number of the line, which is counted only then.
// Throws InputError.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "arcs.hpp"
#include "input_file.hpp"

namespace graphs {

class TextLines {
 public:
  // Of the bytes from `begin`, where a line begins, to the end of the file.
  TextLines(const InputFile& file, std::uint64_t begin, Part part);

  // Of the first `bytes_max` bytes of the file.
  TextLines(const InputFile& file, std::uint64_t bytes_max);

  // False after the last line. The line is without its end, and valid until the next one.
  bool next(std::string_view& line);

  // Where in the file the next line begins.
  std::uint64_t position() const { return first_byte_ + std::min(at_, bytes_.size()); }

  // Throws an InputError about the line that next() gave.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  const InputFile& file_;
  std::string bytes_;
  std::uint64_t first_byte_;
  std::size_t line_ = 0;  // where the line begins that next() gave
  std::size_t at_ = 0;
};

// Takes the next word, up to blanks or the end, from the front of `text`; empty at the end.
std::string_view take_word(std::string_view& text);

// As many digits as it takes; nothing if `word` is something else or more than 64 bits.
std::optional<std::uint64_t> number_of(std::string_view word);

// The word as a message shows it: in quotes, and cut off if it is long.
std::string quoted(std::string_view word);

}  // namespace graphs
