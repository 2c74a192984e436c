// SPDX-License-Identifier: BSD-3-Clause
#include "ptx_run.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>

namespace fake {
namespace {

constexpr std::uint32_t lanes = 32;
constexpr std::uint32_t all_lanes = ~0U;
using Row = std::array<std::uint64_t, lanes>;  // of one register, in each lane

std::uint64_t cut(std::uint64_t value, std::uint8_t width_bits) {
  return width_bits == 32 ? value & 0xffffffffU : value;
}

class Warp {
 public:
  Warp(const PtxModule& module, const PtxKernel& kernel, const Launch& launch, Memory& memory)
      : module_(module), kernel_(kernel), launch_(launch), memory_(memory) {
    rows_.resize(kernel.registers);
    for (const auto& [number, value] : kernel.numbers) rows_[number].fill(value);
  }

  void run(std::uint32_t block, std::uint32_t first_thread) {
    block_ = block;
    first_thread_ = first_thread;
    const std::uint32_t threads = std::min(launch_.threads - first_thread, lanes);
    live_ = threads == lanes ? all_lanes : (1U << threads) - 1;
    waiting_ = 0;
    at_.fill(0);
    while (live_ != 0) {
      const std::uint32_t ready = live_ & ~waiting_;
      if (ready == 0) throw PtxError(1, "a shuffle waits for lanes that have left");
      run_together(ready);
    }
  }

 private:
  // Those that are the least far, as far as the next ones or until they part.
  void run_together(std::uint32_t ready) {
    std::uint64_t at = ~std::uint64_t{0};
    for (std::uint32_t lane = 0; lane < lanes; lane++) {
      if ((ready >> lane & 1U) != 0) at = std::min(at, at_[lane]);
    }
    std::uint64_t next = ~std::uint64_t{0};
    mask_ = 0;
    for (std::uint32_t lane = 0; lane < lanes; lane++) {
      if ((ready >> lane & 1U) == 0) continue;
      if (at_[lane] == at) mask_ |= 1U << lane;
      if (at_[lane] != at) next = std::min(next, at_[lane]);
    }
    do {
      const Instruction& instruction = kernel_.instructions[at];
      at++;
      if (instruction.op == Op::branch || instruction.op == Op::leave) {
        jump(instruction, at);
        return;
      }
      if (instruction.op == Op::shuffle && !all_have_come(at - 1)) return;
      step(instruction);
    } while (at != next);
    each([&](std::uint32_t lane) { at_[lane] = at; });
  }

  template <typename Body>
  void each(const Body& body) const {
    if (mask_ == all_lanes) {
      for (std::uint32_t lane = 0; lane < lanes; lane++) body(lane);
      return;
    }
    for (std::uint32_t left = mask_; left != 0; left &= left - 1) {
      body(static_cast<std::uint32_t>(std::countr_zero(left)));
    }
  }

  void jump(const Instruction& instruction, std::uint64_t next) {
    std::uint32_t taken = mask_;
    if (instruction.guard != no_register) {
      const Row& guard = rows_[instruction.guard];
      each([&](std::uint32_t lane) {
        if ((guard[lane] != 0) == instruction.guard_is_not) taken &= ~(1U << lane);
      });
    }
    each([&](std::uint32_t lane) {
      at_[lane] = (taken >> lane & 1U) != 0 ? instruction.value : next;
    });
    if (instruction.op == Op::leave) live_ &= ~taken;
  }

  // Whether all lanes are at the shuffle; those of before wait there.
  bool all_have_come(std::uint64_t at) {
    if (mask_ == all_lanes) return true;
    each([&](std::uint32_t lane) { at_[lane] = at; });
    waiting_ |= mask_;
    for (std::uint32_t lane = 0; lane < lanes; lane++) {
      if ((waiting_ >> lane & 1U) == 0 || at_[lane] != at) return false;
    }
    mask_ = all_lanes;
    waiting_ = 0;
    return true;
  }

  void step(const Instruction& i) {
    if (i.guard != no_register) throw PtxError(i.line, "a guard of what is no branch");
    switch (i.op) {
      case Op::load:
      case Op::store:
      case Op::atomic_add:
        return access(i);
      case Op::special:
      case Op::load_parameter:
      case Op::load_constant:
        return fetch(i);
      case Op::shuffle:
        return shuffle(i);
      default:
        return compute(i);
    }
  }

  template <typename Function>
  void set(const Instruction& i, const Function& function) {
    Row& a = rows_[i.a];
    each([&](std::uint32_t lane) { a[lane] = function(lane); });
  }
  template <typename Function>
  void of_two(const Instruction& i, const Function& function) {
    const Row& b = rows_[i.b];
    const Row& c = rows_[i.c];
    if (i.width_bits == 32) {
      set(i, [&](std::uint32_t lane) {
        return std::uint64_t{static_cast<std::uint32_t>(function(b[lane], c[lane]))};
      });
    } else {
      set(i, [&](std::uint32_t lane) { return std::uint64_t{function(b[lane], c[lane])}; });
    }
  }

  void compute(const Instruction& i) {
    using u64 = std::uint64_t;
    const u64 width = i.width_bits;
    switch (i.op) {
      case Op::move:
        return set(i, [&, &b = rows_[i.b]](auto lane) { return cut(b[lane], i.width_bits); });
      case Op::high_half:
        return set(i, [&b = rows_[i.b]](auto lane) { return b[lane] >> 32U; });
      case Op::negate:
        return set(i, [&b = rows_[i.b]](auto lane) { return 0 - b[lane]; });
      case Op::add:
        return of_two(i, [](u64 b, u64 c) { return b + c; });
      case Op::subtract:
        return of_two(i, [](u64 b, u64 c) { return b - c; });
      case Op::multiply:
      case Op::multiply_wide:
        return of_two(i, [](u64 b, u64 c) { return b * c; });
      case Op::multiply_high:
        return of_two(i, [](u64 b, u64 c) {
          return static_cast<u64>((static_cast<unsigned __int128>(b) * c) >> 64U);
        });
      case Op::multiply_wide_signed:
        return of_two(i, [](u64 b, u64 c) {
          return static_cast<u64>(std::int64_t{static_cast<std::int32_t>(b)} *
                                  static_cast<std::int32_t>(c));
        });
      case Op::divide:
        return of_two(i, [](u64 b, u64 c) { return c == 0 ? ~u64{0} : b / c; });
      case Op::bitwise_and:
        return of_two(i, [](u64 b, u64 c) { return b & c; });
      case Op::bitwise_or:
        return of_two(i, [](u64 b, u64 c) { return b | c; });
      case Op::bitwise_xor:
        return of_two(i, [](u64 b, u64 c) { return b ^ c; });
      case Op::shift_left:
        return of_two(i, [width](u64 b, u64 c) { return c < width ? b << c : 0; });
      case Op::shift_right:
        return of_two(i, [width](u64 b, u64 c) { return c < width ? b >> c : 0; });
      case Op::bits:
        return of_two(i, [width, count = rows_[i.d][0]](u64 b, u64 c) {
          return c < width && count < width ? b >> c & ((u64{1} << count) - 1) : 0;
        });
      case Op::select:
        return set(i, [&b = rows_[i.b], &c = rows_[i.c], &d = rows_[i.d]](auto lane) {
          return d[lane] != 0 ? b[lane] : c[lane];
        });
      case Op::is_equal:
        return of_two(i, [](u64 b, u64 c) { return u64{b == c}; });
      case Op::is_not_equal:
        return of_two(i, [](u64 b, u64 c) { return u64{b != c}; });
      case Op::is_less:
        return of_two(i, [](u64 b, u64 c) { return u64{b < c}; });
      case Op::is_not_less:
        return of_two(i, [](u64 b, u64 c) { return u64{b >= c}; });
      default:
        throw PtxError(i.line, "an instruction that nobody runs");
    }
  }

  void fetch(const Instruction& i) {
    if (i.op == Op::load_parameter) {
      const std::uint64_t value = launch_.parameters[i.value / 8];
      return set(i, [&](auto) { return value; });
    }
    if (i.op == Op::special) {
      return set(i, [&](std::uint32_t lane) -> std::uint64_t {
        if (i.value == tid_x) return first_thread_ + lane;
        if (i.value == ctaid_x) return block_;
        return i.value == ntid_x ? launch_.threads : launch_.blocks;
      });
    }
    const Row& from = rows_[i.b];
    set(i, [&](std::uint32_t lane) {
      const std::uint64_t at = from[lane] + i.value;
      if (at % 8 != 0 || at + 8 > module_.constants.size()) {
        throw AccessError(i.line, "byte " + std::to_string(at) + " of the constants", at % 8 != 0);
      }
      std::uint64_t value = 0;
      std::memcpy(&value, module_.constants.data() + at, sizeof value);
      return value;
    });
  }

  void shuffle(const Instruction& i) {
    const Row from = rows_[i.b];
    const Row& step = rows_[i.c];
    set(i, [&](std::uint32_t lane) { return from[(lane ^ step[lane]) % lanes]; });
  }

  // What all lanes access is mostly in one piece of memory.
  void access(const Instruction& i) {
    const std::size_t word_bytes = i.width_bits / 8;
    const std::size_t size_bytes =
        word_bytes * (i.a2 != no_register || (i.op == Op::store && i.c != no_register) ? 2 : 1);
    const Row& places = rows_[i.op == Op::store ? i.a : i.b];
    const bool to_store = i.op != Op::load;
    std::uint64_t low = ~std::uint64_t{0};
    std::uint64_t high = 0;
    std::uint64_t together = 0;
    each([&](std::uint32_t lane) {
      const std::uint64_t at = places[lane] + i.value;
      low = std::min(low, at);
      high = std::max(high, at);
      together |= at;
    });
    if (together % size_bytes != 0) fail(i, together, size_bytes, true);
    std::byte* const all = memory_.place(low, high - low + size_bytes, to_store);
    each([&](std::uint32_t lane) {
      const std::uint64_t at = places[lane] + i.value;
      std::byte* const here =
          all != nullptr ? all + (at - low) : memory_.place(at, size_bytes, to_store);
      if (here == nullptr) fail(i, at, size_bytes, false);
      access_here(i, lane, here, word_bytes);
    });
  }

  void access_here(const Instruction& i, std::uint32_t lane, std::byte* here,
                   std::size_t word_bytes) {
    if (i.op == Op::store) {
      std::memcpy(here, &rows_[i.b][lane], word_bytes);
      if (i.c != no_register) std::memcpy(here + word_bytes, &rows_[i.c][lane], word_bytes);
    } else if (i.op == Op::load) {
      std::uint64_t words[2] = {0, 0};
      std::memcpy(&words[0], here, word_bytes);
      if (i.a2 != no_register) std::memcpy(&words[1], here + word_bytes, word_bytes);
      rows_[i.a][lane] = words[0];
      if (i.a2 != no_register) rows_[i.a2][lane] = words[1];
    } else {
      rows_[i.a][lane] =
          __atomic_fetch_add(reinterpret_cast<std::uint32_t*>(here),
                             static_cast<std::uint32_t>(rows_[i.c][lane]), __ATOMIC_RELAXED);
    }
  }

  [[noreturn]] void fail(const Instruction& i, std::uint64_t at, std::size_t size_bytes,
                         bool misaligned) const {
    char address[24];
    std::snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(at));
    throw AccessError(
        i.line,
        kernel_.name + (i.op == Op::load ? " loads " : " stores ") + std::to_string(size_bytes) +
            " bytes at " + address +
            (misaligned ? ", which is no multiple of them" : ", where it has no memory for that"),
        misaligned);
  }

  const PtxModule& module_;
  const PtxKernel& kernel_;
  const Launch& launch_;
  Memory& memory_;
  std::vector<Row> rows_;
  std::uint32_t block_ = 0;
  std::uint32_t first_thread_ = 0;
  std::uint32_t live_ = 0;
  std::uint32_t waiting_ = 0;  // at a shuffle
  std::uint32_t mask_ = 0;     // those that run now
  std::array<std::uint64_t, lanes> at_{};
};

}  // namespace

void run_kernel(const PtxModule& module, const PtxKernel& kernel, const Launch& launch,
                Memory& memory) {
  const std::uint64_t of_block = (launch.threads + lanes - 1) / lanes;
  std::vector<std::uint64_t> warps(launch.blocks * of_block);
  std::iota(warps.begin(), warps.end(), 0);
  std::shuffle(warps.begin(), warps.end(), std::mt19937_64(launch.seed));
  Warp warp(module, kernel, launch, memory);
  for (const std::uint64_t one : warps) {
    warp.run(static_cast<std::uint32_t>(one / of_block),
             static_cast<std::uint32_t>(one % of_block) * lanes);
  }
}

}  // namespace fake
