// SPDX-License-Identifier: BSD-3-Clause
//
// A module of PTX, NVIDIA's text for kernels, as far as clang's form of ours uses it. What is not
// known here is an error that names its line: nothing is skipped, as it could decide a result.
//
// A kernel is a list of instructions. Registers of all types are numbered together, and each
// number that the text names has a register of its own, which nothing stores to: so an operand is
// always a register. Labels are places in the list.
//
// Failure: PtxError, whose sentence begins with the line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fake {

class PtxError : public std::runtime_error {
 public:
  PtxError(std::uint32_t line, const std::string& sentence)
      : std::runtime_error("line " + std::to_string(line) + ": " + sentence) {}
};

enum class Op : std::uint8_t {
  move,            // a ← b; a predicate, 32 or 64 bits; from 64 to 32 bits the low half
  special,         // a ← the special register `value`
  high_half,       // a ← the high half of b
  load_parameter,  // a ← 64 bits of the parameters from byte `value` on
  load_constant,   // a ← 64 bits of the constants at b + value
  load,            // a, and a2, ← memory at b + value
  store,           // memory at a + value ← b, and c
  atomic_add,      // a ← memory at b + value, to which c is added
  shuffle,         // a ← b of lane ^ c; d and e must be 31 and -1
  add,             // a ← b + c
  subtract,        // a ← b - c
  negate,          // a ← -b
  multiply,        // a ← b * c, the low half
  multiply_high,   // a ← b * c, the high half, unsigned
  multiply_wide,   // a of 64 bits ← b * c of 32 bits, unsigned
  multiply_wide_signed,
  divide,  // a ← b / c, unsigned
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  shift_left,
  shift_right,  // unsigned
  bits,         // a ← d bits of b from bit c on, unsigned
  select,       // a ← d ? b : c
  is_equal,     // a ← b == c, and so on
  is_not_equal,
  is_less,  // unsigned
  is_not_less,
  branch,  // to `value`
  leave
};
enum SpecialRegister : std::uint8_t { tid_x, ctaid_x, ntid_x, nctaid_x };

constexpr std::uint32_t no_register = ~0U;

struct Instruction {
  Op op{};
  std::uint8_t width_bits = 64;  // of the result; of what is compared; of one word in memory
  bool guard_is_not = false;
  std::uint32_t guard = no_register;
  // Registers: the result, then what it is made of.
  std::uint32_t a = no_register, a2 = no_register, b = no_register, c = no_register;
  std::uint32_t d = no_register;
  std::uint64_t value = 0;
  std::uint32_t line = 0;
};

struct PtxKernel {
  std::string name;
  std::uint32_t parameters = 0;                                  // of 8 bytes each
  std::uint32_t threads_max = 1024;                              // of a block
  std::uint32_t registers = 0;                                   // the numbers included
  std::vector<std::pair<std::uint32_t, std::uint64_t>> numbers;  // a register, and what it holds
  std::vector<Instruction> instructions;
};

struct PtxModule {
  std::vector<std::byte> constants;
  std::map<std::string, PtxKernel, std::less<>> kernels;
};

PtxModule read_ptx(std::string_view text);

}  // namespace fake
