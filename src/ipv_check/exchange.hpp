// SPDX-License-Identifier: BSD-3-Clause
//
// Exchange: two arrays of a loop that take turns. One is stored to in odd iterations only, the
// other in even ones only, as in Jacobi's method or a lattice Boltzmann flow. They may be a pair
// (perdure_ipv_pair()) if they keep the contract of pair_object.hpp, as far as a run shows it:
//
//   stored  every iteration stores to the same bytes, which are the same in both arrays (ipv.R2);
//   read    none reads what it is to overwrite: neither is alive after an iteration of the other;
//   walls   what is read and never stored to is equal in both.
//
// Pure, except that it reads the arrays. Threads: as Record.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ipv_check/block_map.hpp"

namespace perdure::ipv_check {

enum class ExchangeBreach : std::uint8_t { none, stored, read, walls };

struct Exchange {
  const Tracked* after_odd;   // stored to in odd iterations
  const Tracked* after_even;  // in even ones
  ExchangeBreach breach = ExchangeBreach::none;
  std::optional<std::uint64_t> byte;  // that breaks it; none: not always the same ones
};

// Of single blocks of the same size, of at least a page, that are still there; each is in one of
// them at most. `complete` iterations; of fewer than four nothing is said.
std::vector<Exchange> find_exchanges(BlockMap& blocks, std::uint32_t complete);

}  // namespace perdure::ipv_check
