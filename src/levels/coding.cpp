// SPDX-License-Identifier: BSD-3-Clause
#include "levels/coding.hpp"

#include <algorithm>
#include <utility>

#include "base/quantity.hpp"

namespace perdure {
namespace {

// What of each column the block has.
std::vector<unsigned char> vector_of(const Coding& coding, std::uint32_t columns,
                                     std::uint32_t rows, std::uint32_t block) {
  std::vector<unsigned char> of(columns, 0);
  for (std::uint32_t column = 0; column < columns; ++column) {
    of[column] = block < columns ? static_cast<unsigned char>(block == column ? 1 : 0)
                                 : coding.coefficient(columns, rows, block - columns, column);
  }
  return of;
}

using Line = std::vector<unsigned char>;

void divide(Line& line, unsigned char by) {
  const unsigned char factor = field_inverse(by);
  for (unsigned char& each : line) each = field_product(each, factor);
}

void subtract(Line& line, const Line& other, unsigned char times) {
  for (std::size_t i = 0; i < line.size(); ++i) line[i] ^= field_product(other[i], times);
}

}  // namespace

const Coding* coding_of(std::uint32_t number) {
  const auto all = codings();
  const auto found = std::ranges::find(all, number, &Coding::number);
  return found == all.end() ? nullptr : *found;
}

std::optional<std::uint32_t> count_in(std::string_view text) {
  const auto count = number_in<std::uint32_t>(text);
  return count.value_or(0) == 0 || *count > group_size_max ? std::nullopt : count;
}

unsigned char field_product(unsigned char a, unsigned char b) {
  unsigned factor = a;
  unsigned product = 0;
  for (unsigned bits = b; bits != 0; bits >>= 1U) {
    if ((bits & 1U) != 0) product ^= factor;
    factor = (factor << 1U) ^ ((factor & 0x80U) != 0 ? 0x11dU : 0U);
  }
  return static_cast<unsigned char>(product);
}

unsigned char field_inverse(unsigned char a) {
  unsigned char power = 1;  // in the end a^254, and a^255 is 1
  for (int i = 1; i < 8; ++i) {
    a = field_product(a, a);
    power = field_product(power, a);
  }
  return power;
}

// One equation for each column, of as many unknowns as there are blocks, by elimination.
std::optional<std::vector<Term>> recover(const Coding& coding, std::uint32_t columns,
                                         std::uint32_t rows, std::uint32_t lost,
                                         std::span<const std::uint32_t> blocks) {
  std::vector<Line> lines(columns, Line(blocks.size() + 1, 0));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto of = vector_of(coding, columns, rows, blocks[i]);
    for (std::uint32_t column = 0; column < columns; ++column) lines[column][i] = of[column];
  }
  lines[lost].back() = 1;
  std::size_t solved = 0;
  std::vector<std::size_t> pivots;
  for (std::size_t i = 0; i < blocks.size() && solved < lines.size(); ++i) {
    const auto pivot = std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(solved),
                                    lines.end(), [i](const Line& line) { return line[i] != 0; });
    if (pivot == lines.end()) continue;
    std::swap(*pivot, lines[solved]);
    divide(lines[solved], lines[solved][i]);
    for (std::size_t other = 0; other < lines.size(); ++other) {
      if (other != solved) subtract(lines[other], lines[solved], lines[other][i]);
    }
    pivots.push_back(i);
    ++solved;
  }
  for (std::size_t line = solved; line < lines.size(); ++line) {
    if (lines[line].back() != 0) return std::nullopt;
  }
  std::vector<Term> terms;
  for (std::size_t line = 0; line < solved; ++line) {
    if (lines[line].back() != 0) terms.push_back({blocks[pivots[line]], lines[line].back()});
  }
  return terms;
}

bool can_recover(const Coding& coding, std::uint32_t columns, std::uint32_t rows,
                 std::uint32_t lost, std::span<const std::uint32_t> blocks) {
  if (coding.is_any_enough()) return blocks.size() >= columns;
  return recover(coding, columns, rows, lost, blocks).has_value();
}

}  // namespace perdure
