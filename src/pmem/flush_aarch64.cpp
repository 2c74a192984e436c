// SPDX-License-Identifier: BSD-3-Clause
//
// Flush primitives of aarch64. `dc cvap` is written as its system instruction, so that it
// assembles without -march=armv8.2-a and is only reached when the kernel reports DCPOP.
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include <vector>

#include "pmem/flush_native.hpp"

namespace perdure {
namespace {

std::size_t line_bytes() {
  static const std::size_t bytes = [] {
    std::uint64_t ctr = 0;
    asm("mrs %0, ctr_el0" : "=r"(ctr));
    return aarch64_line_bytes(ctr);
  }();
  return bytes;
}

void fence() {
  asm volatile("dsb ish" ::: "memory");
}

// To the point of persistence (ARMv8.2).
void flush_with_cvap(const void* address, std::size_t count) {
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + count;
  const std::size_t step = line_bytes();
  for (std::uintptr_t line = line_of(address, step); line < end; line += step) {
    asm volatile("sys #3, c7, c12, #1, %0" ::"r"(line) : "memory");
  }
}

// To the point of coherency: memory itself, where no cache sits below that point.
void flush_with_cvac(const void* address, std::size_t count) {
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(address) + count;
  const std::size_t step = line_bytes();
  for (std::uintptr_t line = line_of(address, step); line < end; line += step) {
    asm volatile("dc cvac, %0" ::"r"(line) : "memory");
  }
}

// stnp is only a hint: a processor may keep the line in its cache. The flush after it is what
// makes the copy durable; the hint saves it work where it is taken.
template <auto flush>
void copy_with_stnp(std::byte* to, const std::byte* from, std::size_t lines) {
  std::byte* const first = to;
  const std::size_t count = lines * cache_line_bytes;
  for (; lines != 0; --lines, to += 64, from += 64) {
    asm volatile(
        "ldp q0, q1, [%1]\n\t"
        "ldp q2, q3, [%1, #32]\n\t"
        "stnp q0, q1, [%0]\n\t"
        "stnp q2, q3, [%0, #32]"
        :
        : "r"(to), "r"(from)
        : "v0", "v1", "v2", "v3", "memory");
  }
  flush(first, count);
}

template <auto flush>
FlushPrimitives with_stnp(const char* flush_name) {
  return {flush_name, "stnp", flush, copy_in_lines<copy_with_stnp<flush>, flush>, fence, nullptr};
}

std::vector<FlushPrimitives> detect() {
  std::vector<FlushPrimitives> found;
  if ((getauxval(AT_HWCAP) & HWCAP_DCPOP) != 0) {
    found.push_back(with_stnp<flush_with_cvap>("dc cvap"));
  }
  found.push_back(with_stnp<flush_with_cvac>("dc cvac"));
  return found;
}

}  // namespace

std::span<const FlushPrimitives> native_flush_primitives() {
  static const std::vector<FlushPrimitives> found = detect();
  return found;
}

}  // namespace perdure
