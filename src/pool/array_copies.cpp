// SPDX-License-Identifier: BSD-3-Clause
#include "pool/array_copies.hpp"

#include <bit>
#include <utility>

#include "base/assert.hpp"

namespace perdure {
namespace {

// Sets of copies are bits.
std::uint64_t bit(std::uint32_t copy) {
  return std::uint64_t{1} << copy;
}

bool has(std::uint64_t set, std::uint32_t copy) {
  return (set >> copy & 1) != 0;
}

std::uint32_t lowest_out_of(std::uint64_t set) {
  return static_cast<std::uint32_t>(std::countr_one(set));
}

}  // namespace

std::uint64_t ArrayCopies::named_copies() const {
  std::uint64_t set = 0;
  for (const std::uint8_t copy : named_) {
    if (copy != none) set |= bit(copy);
  }
  return set;
}

bool ArrayCopies::is_named(std::uint32_t copy) const {
  return has(named_copies(), copy);
}

std::uint32_t ArrayCopies::lowest_unnamed() const {
  return lowest_out_of(named_copies());
}

void ArrayCopies::choose_working(std::uint32_t consistent, std::uint32_t copies, bool stays) {
  const std::uint64_t taken = named_copies() | bit(consistent);
  if (stays && !has(taken, working_)) return;
  working_ = lowest_out_of(taken);
  PERDURE_ASSERT(working_ < copies);
}

void ArrayCopies::work_on(std::uint32_t copy) {
  PERDURE_ASSERT(saved_ == none && !is_named(copy));
  working_ = copy;
}

bool ArrayCopies::move_on(std::uint32_t consistent, std::uint32_t copies) {
  PERDURE_ASSERT(saved_ == none);
  const std::uint32_t free = lowest_out_of(named_copies() | bit(consistent) | bit(working_));
  if (free >= copies) return false;
  saved_ = std::exchange(working_, free);
  return true;
}

}  // namespace perdure
