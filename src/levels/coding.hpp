// SPDX-License-Identifier: BSD-3-Clause
//
// Coding: how a scheme of redundancy makes parity. A stripe (stripes.hpp) has columns of data and
// rows of parity; a coding says with what each column is multiplied in each row, over GF(2^8), and
// what its schemes are called. Everything else is the same for all: who sends what, what a guard
// holds, what a lost image is computed from (recover()), and which losses can be borne.
//
// One file for each in codings/; a guard has the number of its coding.
//
// Threads: pure. Failure: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "levels/redundancy.hpp"

namespace perdure {

class Coding {
 public:
  Coding() = default;
  Coding(const Coding&) = delete;
  Coding& operator=(const Coding&) = delete;
  virtual ~Coding() = default;

  // In guards: never that of another one.
  virtual std::uint32_t number() const = 0;
  // Absent: it is none of this coding's names.
  virtual std::optional<Scheme> parse(std::string_view name) const = 0;
  // What parse() reads.
  virtual std::string name(const Scheme& scheme) const = 0;
  // Of all its schemes, for who gave another one; and some of them, which tests go through.
  virtual std::string names() const = 0;
  virtual std::vector<std::string> examples() const = 0;

  // At least 1 and at most the rows: so many members may be lost, whichever they are.
  virtual std::uint32_t losses(std::uint32_t columns, std::uint32_t rows) const = 0;
  // 0: the row has nothing of the column, which is not sent for it then.
  virtual unsigned char coefficient(std::uint32_t columns, std::uint32_t rows, std::uint32_t row,
                                    std::uint32_t column) const = 0;
  // Whether any blocks of a stripe give all others, if they are as many as its columns.
  virtual bool is_any_enough() const { return false; }
};

// All of them; null: there is none of that number.
std::span<const Coding* const> codings();
const Coding* coding_of(std::uint32_t number);

// A number of 1 to group_size_max, for names of schemes.
std::optional<std::uint32_t> count_in(std::string_view text);

// GF(2^8), polynomial 0x11d.
unsigned char field_product(unsigned char a, unsigned char b);
unsigned char field_inverse(unsigned char a);  // of 0: 0

// Blocks of a stripe are numbered: columns of data from 0 to k - 1, rows of parity from k on. A
// lost column as a sum of blocks that are there, those named first if they are enough; absent:
// they do not give it.
struct Term {
  std::uint32_t block = 0;
  unsigned char coefficient = 0;  // not 0
};
std::optional<std::vector<Term>> recover(const Coding& coding, std::uint32_t columns,
                                         std::uint32_t rows, std::uint32_t lost,
                                         std::span<const std::uint32_t> blocks);
// Whether they give it.
bool can_recover(const Coding& coding, std::uint32_t columns, std::uint32_t rows,
                 std::uint32_t lost, std::span<const std::uint32_t> blocks);

}  // namespace perdure
